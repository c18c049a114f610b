//! Memory that reads fill: the caller's own.

mod strided;

pub use strided::Strided;
