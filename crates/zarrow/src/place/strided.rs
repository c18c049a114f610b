//! The caller's memory, as the destination of a read.

use crate::place::destination::Destination;
use crate::plan::output_strides::OutputStrides;
use crate::selection::Selection;

/// Layout of a result in the caller's memory.
///
/// This is only a description. The caller of [`ReadRequest::out`](crate::ReadRequest::out) guarantees its validity.
#[derive(Debug, Clone)]
pub struct Strided {
    pointer: *mut u8,
    nbytes: usize,
    origin: usize,
    strides: Vec<isize>,
}

// SAFETY: a description gives no access to memory; each user of it is responsible for the access.
unsafe impl Send for Strided {}
// SAFETY: as above.
unsafe impl Sync for Strided {}

impl Strided {
    /// Describes the `nbytes` bytes from `pointer` on. The first element is at the offset `origin`, and neighbours on
    /// each axis of the result are `strides` bytes apart.
    #[must_use]
    pub fn new(pointer: *mut u8, nbytes: usize, origin: usize, strides: Vec<isize>) -> Strided {
        Strided { pointer, nbytes, origin, strides }
    }

    /// Returns the item `number` along the first axis.
    #[must_use]
    pub(crate) fn item(&self, number: usize) -> Strided {
        let (first, rest) = self.strides.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        // A write outside the memory is refused later.
        let origin = (self.origin as isize).saturating_add(first.saturating_mul(number as isize));
        Strided { origin: usize::try_from(origin).unwrap_or(usize::MAX), strides: rest.to_vec(), ..*self }
    }

    /// Returns the memory as the destination of `selection`; the strides are its result's.
    ///
    /// # Safety
    /// As [`Destination::strided`].
    pub(crate) unsafe fn destination<'a>(&self, selection: &Selection, item_size: usize) -> Destination<'a> {
        let origin = isize::try_from(self.origin).unwrap_or(isize::MAX);
        let strides = OutputStrides::new(&self.strides, selection);
        // SAFETY: the caller's contract.
        unsafe { Destination::strided(self.pointer, self.nbytes, item_size, origin, strides) }
    }
}
