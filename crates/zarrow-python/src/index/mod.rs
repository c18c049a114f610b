//! What may stand between the brackets of `array[...]`, as the selections of the engine.

pub mod advanced;
pub mod basic;
pub mod field;
