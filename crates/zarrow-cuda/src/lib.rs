//! CUDA memory, streams and kernels for zarrow.
//!
//! - [`Device`] is a device of this process, in the primary context that all libraries share. The driver is loaded
//!   at run time: without a driver every call returns an error, and the rest of zarrow is not affected.
//! - [`DeviceTensor`] is a strided tensor in device memory, ours or another library's. Its operations run as
//!   kernels, in one stream of the device, in order.
//! - [`export`] and [`import`] exchange tensors by DLPack.
//! - [`read`] reads an array of [`zarrow`] to a device.
//!
//! ```
//! match zarrow_cuda::Device::count() {
//!     Ok(count) => println!("{count} devices"),
//!     Err(error) => println!("{error}"),
//! }
//! ```

mod bodies;
mod context;
pub mod decompress;
mod device;
mod driver;
mod error;
mod event;
pub mod export;
mod foreign;
mod free_exported;
pub mod import;
mod kernel;
mod memory;
mod memory_pool;
mod meter;
mod pinned;
mod rates;
mod read;
mod read_streams;
mod release;
mod route;
mod split;
mod stream;
mod tensor;
mod unused;
mod write;

pub use device::{Device, release_memory};
pub use error::{Error, Result};
pub use event::Event;
pub use foreign::ForeignMemory;
pub use memory::set_reclaim;
pub use rates::{Mean, Rates};
pub use read::{in_stream, read, read_many};
pub use route::{DecompressedBy, Explanation, Route, explain};
pub use split::{Alike, Split, split};
pub use stream::Stream;
pub use tensor::DeviceTensor;
pub use write::write;
