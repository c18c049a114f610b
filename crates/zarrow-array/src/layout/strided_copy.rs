//! Copy of strided elements to contiguous memory in C order. In `zarrow`, `placement` copies to strided memory.
//!
//! 1. Axes of length 1 are dropped, and adjacent axes with one common stride are merged.
//! 2. The last remaining axis is copied as one run of bytes if its elements are adjacent, else element by element.
//! 3. The other axes are stepped through like an odometer.

use std::mem::MaybeUninit;

/// Fills `target` with the elements of the strided memory at `source`; strides are in elements.
///
/// # Safety
/// Every element must be in readable memory without concurrent writes; `target` must have the size of all elements
/// and overlap none of them.
pub(super) unsafe fn copy_elements(
    source: *const u8,
    shape: &[i64],
    strides: &[i64],
    item_size: usize,
    target: &mut [MaybeUninit<u8>],
) {
    if target.is_empty() {
        return;
    }
    let mut axes = merged(shape, strides);
    let (extent, stride) = axes.pop().unwrap_or((1, 1));
    let (run, count) = if stride == 1 { (extent as usize * item_size, 1) } else { (item_size, extent) };
    let step = stride as isize * item_size as isize;
    let mut position = vec![0i64; axes.len()];
    let mut runs = target.chunks_exact_mut(run);
    let mut start = source;
    loop {
        for number in 0..count as isize {
            let Some(place) = runs.next() else { return };
            // SAFETY: `start` is the first element of a row and `number` is inside the row, so the run is inside
            // the source's memory; `place` has the run's size and does not overlap it.
            unsafe { copy_run(start.offset(number * step), place) };
        }
        // Step 3.
        let mut axis = axes.len();
        loop {
            let Some(slower) = axis.checked_sub(1) else { return };
            axis = slower;
            let (extent, stride) = axes[axis];
            position[axis] += 1;
            let bytes = stride as isize * item_size as isize;
            if position[axis] < extent {
                start = start.wrapping_offset(bytes);
                break;
            }
            start = start.wrapping_offset(-bytes * (extent as isize - 1));
            position[axis] = 0;
        }
    }
}

/// Step 1, from the slowest axis to the fastest.
fn merged(shape: &[i64], strides: &[i64]) -> Vec<(i64, i64)> {
    let mut axes: Vec<(i64, i64)> = Vec::with_capacity(shape.len());
    for (extent, stride) in shape.iter().zip(strides).filter(|(extent, _)| **extent != 1) {
        match axes.last_mut() {
            Some((slower, step)) if Some(*step) == stride.checked_mul(*extent) => {
                (*slower, *step) = (*slower * extent, *stride);
            }
            _ => axes.push((*extent, *stride)),
        }
    }
    axes
}

/// Fills `place` from `source`, by a single instruction if the size is that of a number.
///
/// # Safety
/// `place.len()` bytes must be readable at `source`, and must not overlap `place`.
unsafe fn copy_run(source: *const u8, place: &mut [MaybeUninit<u8>]) {
    macro_rules! sized {
        ($($size:literal)+) => {
            match place.len() {
                $($size => {
                    // SAFETY: by this function's contract.
                    let bytes = unsafe { source.cast::<[MaybeUninit<u8>; $size]>().read() };
                    place.copy_from_slice(&bytes);
                })+
                length => {
                    // SAFETY: by this function's contract.
                    unsafe { source.copy_to_nonoverlapping(place.as_mut_ptr().cast(), length) }
                }
            }
        };
    }
    sized!(1 2 4 8 16);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A simple reference: element by element.
    fn expected(source: &[u8], origin: i64, shape: &[i64], strides: &[i64], item_size: usize) -> Vec<u8> {
        let mut offsets = vec![origin];
        for (extent, stride) in shape.iter().zip(strides) {
            offsets =
                offsets.iter().flat_map(|start| (0..*extent).map(move |at| start + at * stride)).collect();
        }
        let element = |offset: &i64| &source[*offset as usize * item_size..][..item_size];
        offsets.iter().flat_map(|offset| element(offset).to_vec()).collect()
    }

    proptest! {
        #[test]
        fn elements_are_copied_in_c_order(
            axes in prop::collection::vec((0i64..5, -6i64..7), 0..4),
            item_size in prop::sample::select(vec![1usize, 2, 3, 4, 8, 12, 16]),
        ) {
            let (shape, strides): (Vec<i64>, Vec<i64>) = axes.into_iter().unzip();
            let reach = |sign: i64| -> i64 {
                shape.iter().zip(&strides).map(|(extent, stride)| (extent - 1).max(0) * (stride * sign).max(0)).sum()
            };
            let (origin, size) = (reach(-1), reach(-1) + reach(1) + 1);
            let source: Vec<u8> = (0..size as usize * item_size).map(|at| at as u8).collect();
            let expected = expected(&source, origin, &shape, &strides, item_size);
            let mut target = vec![MaybeUninit::new(0xa5); expected.len()];
            // SAFETY: the source has every element from the lowest to the highest, and is not shared.
            unsafe {
                let first = source.as_ptr().add(origin as usize * item_size);
                copy_elements(first, &shape, &strides, item_size, &mut target);
            }
            // SAFETY: every byte was written when the vector was made.
            let target: Vec<u8> = target.iter().map(|byte| unsafe { byte.assume_init() }).collect();
            prop_assert_eq!(target, expected);
        }
    }
}
