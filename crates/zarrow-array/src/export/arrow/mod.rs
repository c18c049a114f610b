//! The four layouts as Arrow arrays: the buffers that they have already, and a bitmap where there is a mask.
//!
//! Which type each array has says [`field`](ArrowField); which of several, the [`ArrowForm`]. What is new memory: a
//! bitmap of what is missing, an eighth of a mask; bits, 32-bit offsets and views, where the form asks for them; and
//! text that was stored in 32 bits a character.
//!
//! Sources: Arrow C data interface, C stream interface; canonical extension types.

mod dictionary;
mod field;
mod form;
mod tensor;
mod utf32;
mod validity;
mod variable;

use crate::export::arrow_abi::{ArrowArray, ArrowSchema};

/// A pair of structs for the Arrow C data interface.
pub type ArrowPair = (ArrowSchema, ArrowArray);

pub use dictionary::{dictionary_memory, dictionary_schema};
pub use field::ArrowField;
pub use form::{ArrowForm, BoolForm, RowForm, TextForm};
pub use tensor::{decoded_memory, tensor, tensor_memory, tensor_schema};
pub use variable::{variable, variable_memory, variable_schema};
