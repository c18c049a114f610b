//! The caller's memory, as the destination of a read. `placement` moves elements there.

use crate::place::destination::Destination;
use crate::plan::output_strides::OutputStrides;
use crate::selection::Selection;
use std::ops::Range;
use zarrow_array::allocation;

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

    /// Returns the addresses of the bytes.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        let start = self.pointer.addr();
        start..start.saturating_add(self.nbytes)
    }

    /// Returns the item `number` along the first axis.
    #[must_use]
    pub(crate) fn item(&self, number: usize) -> Strided {
        let (first, rest) = self.strides.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        // A write outside the memory is refused later.
        let origin = (self.origin as isize).saturating_add(first.saturating_mul(number as isize));
        Strided { origin: usize::try_from(origin).unwrap_or(usize::MAX), strides: rest.to_vec(), ..*self }
    }

    /// Returns the layout of each box of positions, for reads that fill the boxes at the same time; `None` if two boxes
    /// may have a position in common. A box has a range for each axis.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use zarrow::Strided;
    /// let mut memory = [0u8; 12];
    /// let rows = Strided::new(memory.as_mut_ptr(), 12, 0, vec![4, 1]);
    /// assert_eq!(rows.disjoint_parts(&[[0..2, 0..4], [2..3, 0..4]])?.map(|parts| parts.len()), Some(2));
    /// assert!(rows.disjoint_parts(&[[0..2, 0..4], [1..3, 0..4]])?.is_none());
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn disjoint_parts(
        &self,
        boxes: &[impl AsRef<[Range<usize>]>],
    ) -> zarrow_array::Result<Option<Vec<Strided>>> {
        if boxes.len() > 1 && !are_disjoint(allocation::collected(boxes.iter().map(AsRef::as_ref))?) {
            return Ok(None);
        }
        let parts = boxes.iter().map(|ranges| {
            let steps = ranges.as_ref().iter().zip(&self.strides);
            let offset = steps.fold(self.origin as isize, |offset, (range, stride)| {
                offset.saturating_add(stride.saturating_mul(range.start as isize))
            });
            // A write outside the memory is refused later.
            let origin = usize::try_from(offset).unwrap_or(usize::MAX);
            Strided { origin, strides: self.strides.clone(), ..*self }
        });
        allocation::collected(parts).map(Some)
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

/// Whether boxes have no position in common, as far as one axis after the other shows: boxes with the same ranges on all
/// later axes must be apart on the first, and the different ranges of the later axes must be disjoint boxes themselves.
fn are_disjoint(mut boxes: Vec<&[Range<usize>]>) -> bool {
    let bounds = |range: &Range<usize>| (range.start, range.end);
    while boxes.len() > 1 {
        boxes.sort_unstable_by(|one, other| {
            let (one, other) = (one.iter().map(bounds), other.iter().map(bounds));
            one.clone().skip(1).cmp(other.clone().skip(1)).then_with(|| one.cmp(other))
        });
        let is_apart = |pair: &[&[Range<usize>]]| match (pair[0].split_first(), pair[1].split_first()) {
            (Some((one, own)), Some((other, others))) => own != others || one.end <= other.start,
            _ => false,
        };
        if !boxes.windows(2).all(is_apart) {
            return false;
        }
        boxes.iter_mut().for_each(|ranges| *ranges = ranges.get(1..).unwrap_or(&[]));
        boxes.dedup();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn axis() -> impl Strategy<Value = Range<usize>> {
        (0usize..5, 1usize..4).prop_map(|(start, extent)| start..start + extent)
    }

    fn positions(ranges: &[Range<usize>]) -> Vec<(usize, usize)> {
        let (rows, columns) = (&ranges[0], &ranges[1]);
        rows.clone().flat_map(|row| columns.clone().map(move |column| (row, column))).collect()
    }

    proptest! {
        #[test]
        fn boxes_with_a_common_position_are_found(boxes in prop::collection::vec([axis(), axis()], 1..5)) {
            let mut all: Vec<_> = boxes.iter().flat_map(|ranges| positions(ranges)).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            if are_disjoint(boxes.iter().map(|ranges| &ranges[..]).collect()) {
                prop_assert_eq!(all.len(), count);
            }
        }

        #[test]
        fn boxes_of_a_grid_are_disjoint(rows in prop::collection::btree_set(0usize..20, 2..5),
                                        columns in prop::collection::btree_set(0usize..20, 2..5)) {
            let edges = |edges: std::collections::BTreeSet<usize>| -> Vec<Range<usize>> {
                edges.iter().zip(edges.iter().skip(1)).map(|(start, stop)| *start..*stop).collect()
            };
            let (rows, columns) = (edges(rows), edges(columns));
            let boxes: Vec<[Range<usize>; 2]> =
                rows.iter().flat_map(|row| columns.iter().map(|column| [row.clone(), column.clone()])).collect();
            prop_assert!(are_disjoint(boxes.iter().map(|ranges| &ranges[..]).collect()));
        }
    }

    #[test]
    fn boxes_without_axes_have_one_position() {
        let memory = Strided::new(std::ptr::null_mut(), 0, 0, Vec::new());
        assert!(memory.disjoint_parts(&[[]]).unwrap().is_some());
        assert!(memory.disjoint_parts(&[[], []]).unwrap().is_none());
    }
}
