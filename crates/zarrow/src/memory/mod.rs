//! Memory that is not the engine's own: the caller's, which a read fills, and files', which are mapped.

mod lent;
mod map;
mod strided;

pub(crate) use lent::Lent;
pub(crate) use map::map;
pub use strided::Strided;
