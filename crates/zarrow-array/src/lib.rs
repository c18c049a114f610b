//! Decoded Zarr arrays in memory, and their zero-copy exchange with other libraries.
//!
//! - [`Buffer`]: host memory with one owner, aligned for every consumer.
//! - [`DataType`], [`Number`]: element types, and their names in each protocol.
//! - [`Tensor`], [`Variable`], [`MaskedTensor`], [`MaskedVariable`]: the four layouts that cover all Zarr data
//!   types; [`DecodedArray`] is an enum of them.
//! - [`SharedTensor`]: a tensor shared by several libraries.
//! - [`export`]: to DLPack and to the Arrow C data interface; [`import`]: from both, and from buffers.
//! - [`fork`]: fork-safe locks for all zarrow crates; [`thread`]: their helper threads.
//! - [`Element`]: tensors from vectors, and slices of tensors.
//! - Feature `zarrs`: `DecodedArray` as an output type of zarrs' retrieve methods. Feature `ndarray`: conversion
//!   between tensors and `ndarray` arrays. Feature `arrow`: all layouts as arrays of the arrow crates. None of them
//!   copies.
//!
//! ```
//! use zarrow_array::{Buffer, Number, Tensor, export};
//! let tensor = Tensor::new(Buffer::zeroed(24)?, vec![2, 3], Number::Float32.into())?.into_shared()?;
//! let exported = export::dlpack::versioned(&tensor)?;
//! assert_eq!(exported.tensor().data, tensor.pointer().as_ptr().cast());
//! # Ok::<(), zarrow_array::Error>(())
//! ```

mod alignment;
#[cfg(feature = "arrow")]
mod arrow_rs;
mod block;
mod buffer;
mod dtype;
mod element;
mod error;
mod fresh_pages;
mod huge_pages;
mod layout;
mod mask;
#[cfg(feature = "ndarray")]
mod ndarray;
mod occupied_thread;
mod recycle;
mod shared_bytes;
mod slab_pool;
mod validity_bitmap;
#[cfg(feature = "zarrs")]
mod zarrs;

pub mod allocation;
pub mod export;
pub mod fork;
pub mod import;
pub mod shape;
pub mod thread;

pub use alignment::{HOST_ALIGNMENT, alignment_of};
pub use buffer::{Buffer, UninitBuffer};
pub use dtype::{DataType, Field, Number, NumberNames, Struct, TimeUnit, WordRun};
pub use element::Element;
pub use error::{Error, Result};
pub use fresh_pages::FreshPages;
pub use huge_pages::HUGE_PAGE;
pub use layout::{
    DecodedArray, ForeignMemory, ForeignStrides, IndexStep, MaskedTensor, MaskedVariable, SharedTensor,
    StridedLayout, Tensor, Variable,
};
pub use mask::{Mask, count_missing};
pub use recycle::{recycled_limit, release_recycled, set_recycled_limit};
pub use shared_bytes::SharedBytes;
pub use slab_pool::SlabPool;
pub use validity_bitmap::pack_validity;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
