//! The four layouts as Arrow arrays: their existing buffers, and a bitmap if there is a mask.
//!
//! [`field`](ArrowField) selects the type of an array, and [`ArrowForm`] chooses among alternatives. New memory is
//! only allocated for validity bitmaps (an eighth of a mask), for bits, 32-bit offsets and views if the form asks
//! for them, and for text stored with 32 bits per character.
//!
//! Sources: Arrow C data interface, C stream interface; canonical extension types.

mod dictionary;
mod field;
mod form;
mod node;
mod nulls;
mod tensor;
mod utf32;
mod variable;

use crate::export::arrow_abi::{ArrowArray, ArrowSchema};

/// A pair of structs for the Arrow C data interface.
pub type ArrowPair = (ArrowSchema, ArrowArray);

pub use dictionary::{dictionary_memory, dictionary_schema};
pub use field::ArrowField;
pub use form::{ArrowForm, BoolForm, RowForm, TextForm};
pub use tensor::{decoded_memory, tensor, tensor_memory, tensor_schema};
pub use variable::{variable, variable_memory, variable_schema};
