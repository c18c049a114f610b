//! Memory of the caller's, for a read to fill.

use crate::exec::{Destination, OutputStrides};
use crate::selection::Selection;

/// Where the elements of a result lie in memory that the caller owns.
///
/// It is a description: what it says is promised where it is used, by
/// [`Array::read_strided`](crate::Array::read_strided).
#[derive(Debug, Clone)]
pub struct Strided {
    pointer: *mut u8,
    nbytes: usize,
    origin: usize,
    strides: Vec<isize>,
}

// SAFETY: a description gives no access to memory; who uses it answers for the access.
unsafe impl Send for Strided {}
// SAFETY: as above.
unsafe impl Sync for Strided {}

impl Strided {
    /// The `nbytes` bytes from `pointer` on, in which the first element lies at `origin` and neighbours on each axis
    /// of the result are `strides` bytes apart.
    #[must_use]
    pub fn new(pointer: *mut u8, nbytes: usize, origin: usize, strides: Vec<isize>) -> Strided {
        Strided { pointer, nbytes, origin, strides }
    }

    /// The item `number` along the first axis.
    #[must_use]
    pub(crate) fn item(&self, number: usize) -> Strided {
        let (first, rest) = self.strides.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        // What leaves the memory is refused when it is written to.
        let origin = (self.origin as isize).saturating_add(first.saturating_mul(number as isize));
        Strided { origin: usize::try_from(origin).unwrap_or(usize::MAX), strides: rest.to_vec(), ..*self }
    }

    /// The memory as the destination of `selection`, whose result has these strides.
    ///
    /// # Safety
    /// As [`Destination::strided`].
    pub(crate) unsafe fn destination<'a>(self, selection: &Selection, item_size: usize) -> Destination<'a> {
        let origin = isize::try_from(self.origin).unwrap_or(isize::MAX);
        let strides = OutputStrides::new(&self.strides, selection);
        // SAFETY: the caller's contract.
        unsafe { Destination::strided(self.pointer, self.nbytes, item_size, origin, strides) }
    }
}
