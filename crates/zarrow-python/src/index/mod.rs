//! Conversion of Python indices (`array[...]`) to the engine's selections.

pub mod advanced;
pub mod basic;
pub mod field;
