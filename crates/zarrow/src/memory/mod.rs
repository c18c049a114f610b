//! Memory of results other than freshly allocated memory in C order: Fortran order, the caller's memory, and mapped
//! files.

mod column_major;
mod lent;
mod map;
mod strided;

pub(crate) use column_major::read_column_major;
pub(crate) use lent::Lent;
pub(crate) use map::map;
pub use strided::Strided;
