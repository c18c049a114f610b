//! Support for all classes: the GIL, errors, interruption, and fast calls.

#[macro_use]
pub mod help;

pub mod argument;
pub mod c_entry;
pub mod cancellation;
pub mod capsule;
pub mod error;
pub mod failure;
pub mod fast_method;
pub mod gil;
pub mod importing;
pub mod interpreter_exit;
pub mod interrupt;
pub mod json;
pub mod keeps_exception;
pub mod made_once;
pub mod serving_thread;
pub mod summary;
pub mod without_gil;
