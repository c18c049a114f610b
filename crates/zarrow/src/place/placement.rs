//! Moves elements from one strided place to another: the inner loop of every read that is not one run of bytes.
//!
//! 1. Axes with one element are dropped; neighbouring axes that are contiguous on both sides are merged. An axis with
//!    irregular offsets stays unchanged.
//! 2. If the innermost axis is a run of bytes on both sides (and no byte order changes), its rows are copied whole.
//! 3. If one axis is contiguous in the source and another in the destination, they are transposed in tiles
//!    (`transposition`).
//! 4. Otherwise, and beside the tiles, elements of 1, 2, 4, 8 and 16 bytes move as one number each, and others byte by
//!    byte.
//! 5. A change of byte order happens during the move and needs no extra pass. Structures are the exception: after the
//!    move, each byte-swapped field is moved once more, reversed.
//! 6. Rows of a result larger than the caches bypass them (`nontemporal_copy`): an ordinary store would first read from
//!    memory each line that it is about to overwrite.

use crate::codec::Swap;
use crate::place::axis::Axis;
use crate::place::transposition::{Plane, transpose};
use crate::place::{nontemporal_copy, transposition};
use crate::plan::axis_part::PerAxis;
use std::ops::Range;
use zarrow_array::WordRun;

/// Copies the elements at all positions of `axes` and byte-swaps each as `swap` says. Bypasses the caches if
/// `past_caches` says so and whole cache lines are written (step 6).
///
/// # Safety
/// For every position, `item_size` bytes are readable in the source and writable in the destination, and the two
/// memories do not overlap. `swap` was made for elements of `item_size` bytes.
pub unsafe fn copy(
    item_size: usize,
    swap: &Swap,
    axes: &[Axis],
    source: *const u8,
    destination: *mut u8,
    past_caches: bool,
) {
    // SAFETY: passed on from the caller; the words of a field lie inside the element.
    unsafe {
        match swap {
            Swap::None => copy_words(item_size, 1, axes, source, destination, past_caches),
            Swap::Words(size) => copy_words(item_size, *size, axes, source, destination, past_caches),
            Swap::Fields(fields) => {
                copy_words(item_size, 1, axes, source, destination, false);
                for WordRun { offset, size, count } in &**fields {
                    let (source, destination) = (source.add(*offset), destination.add(*offset));
                    copy_words(size * count, *size, axes, source, destination, false);
                }
            }
        }
    }
}

/// Copies the elements at all positions of `axes`; reverses the bytes of each word of `swap` bytes.
///
/// # Safety
/// As [`copy`]; `swap` divides `item_size`.
unsafe fn copy_words(
    item_size: usize,
    swap: usize,
    axes: &[Axis<'_>],
    source: *const u8,
    destination: *mut u8,
    past_caches: bool,
) {
    let axes = merge(axes, item_size, swap);
    if (swap == 1 || swap == item_size)
        && !axes.last().is_some_and(|axis| swap == 1 && axis.is_run(item_size))
        && let Some((plane, outer)) = Plane::take(&axes, item_size)
    {
        let swapped = swap > 1;
        // SAFETY: the caller's contract; the plane and the outer axes have the positions of all axes.
        return unsafe {
            match (item_size, swapped) {
                (1, _) => planes::<1, 1, false>(&outer, &plane, source, destination, past_caches),
                (2, false) => planes::<2, 1, false>(&outer, &plane, source, destination, past_caches),
                (2, true) => planes::<2, 2, true>(&outer, &plane, source, destination, past_caches),
                (4, false) => planes::<4, 1, false>(&outer, &plane, source, destination, past_caches),
                (4, true) => planes::<4, 4, true>(&outer, &plane, source, destination, past_caches),
                (8, false) => planes::<8, 1, false>(&outer, &plane, source, destination, past_caches),
                (8, true) => planes::<8, 8, true>(&outer, &plane, source, destination, past_caches),
                (_, false) => planes::<16, 1, false>(&outer, &plane, source, destination, past_caches),
                (_, true) => planes::<16, 16, true>(&outer, &plane, source, destination, past_caches),
            }
        };
    }
    let (inner, outer) = match axes.split_last() {
        Some((inner, outer)) => (*inner, outer),
        None => {
            (Axis::Even { count: 1, source: item_size as isize, destination: item_size as isize }, &[][..])
        }
    };
    // SAFETY: the caller's contract covers every position that the rows visit, and merging changes none.
    unsafe {
        if let Axis::Even { count, .. } = inner
            && swap == 1
            && inner.is_run(item_size)
        {
            let row = count * item_size;
            if past_caches && row >= nontemporal_copy::LINE_NBYTES {
                rows(outer, source, destination, &|from, to| nontemporal_copy::copy(from, to, row));
                nontemporal_copy::finish();
            } else {
                rows(outer, source, destination, &|from, to| std::ptr::copy_nonoverlapping(from, to, row));
            }
            return;
        }
        match (swap, item_size) {
            (1, 1) => items::<1, 1>(outer, inner, source, destination),
            (1, 2) => items::<2, 1>(outer, inner, source, destination),
            (1, 4) => items::<4, 1>(outer, inner, source, destination),
            (1, 8) => items::<8, 1>(outer, inner, source, destination),
            (1, 16) => items::<16, 1>(outer, inner, source, destination),
            (2, 2) => items::<2, 2>(outer, inner, source, destination),
            (4, 4) => items::<4, 4>(outer, inner, source, destination),
            (8, 8) => items::<8, 8>(outer, inner, source, destination),
            (4, 8) => items::<8, 4>(outer, inner, source, destination),
            (8, 16) => items::<16, 8>(outer, inner, source, destination),
            (1, size) => rows(outer, source, destination, &|from, to| {
                each(inner, from, to, |from, to| std::ptr::copy_nonoverlapping(from, to, size));
            }),
            (swap, size) => rows(outer, source, destination, &|from, to| {
                each(inner, from, to, |from, to| {
                    for word in (0..size).step_by(swap) {
                        for byte in 0..swap {
                            *to.add(word + byte) = *from.add(word + swap - 1 - byte);
                        }
                    }
                });
            }),
        }
    }
}

/// Calls `item` with both sides' addresses at all positions of `axes`; `sizes` holds the element size on each side.
///
/// # Safety
/// For every position the addresses lie inside both memories.
#[inline(always)]
pub unsafe fn visit(
    (source_size, destination_size): (usize, usize),
    axes: &[Axis<'_>],
    source: *const u8,
    destination: *mut u8,
    item: &impl Fn(*const u8, *mut u8),
) {
    let axes = merge(axes, 0, 0);
    let Some((inner, outer)) = axes.split_last() else { return item(source, destination) };
    let row = |from: *const u8, to: *mut u8| match *inner {
        // Strides known to the compiler, for a vectorised loop.
        Axis::Even { count, source, destination }
            if source == source_size as isize && destination == destination_size as isize =>
        {
            for number in 0..count {
                item(from.wrapping_add(number * source_size), to.wrapping_add(number * destination_size));
            }
        }
        _ => each(*inner, from, to, item),
    };
    // SAFETY: passed on from the caller.
    unsafe { rows(outer, source, destination, &row) }
}

/// Merges axes: the same positions on fewer axes.
fn merge<'a>(axes: &[Axis<'a>], item_size: usize, swap: usize) -> PerAxis<Axis<'a>> {
    let mut merged: PerAxis<Axis<'a>> = PerAxis::new();
    for axis in axes.iter().filter(|axis| !matches!(axis, Axis::Even { count: 1, .. })) {
        match (merged.last_mut(), *axis) {
            (
                Some(Axis::Even { count: outer, source: outer_source, destination: outer_destination }),
                Axis::Even { count, source, destination },
            ) if Some(*outer_source) == source.checked_mul(count as isize)
                && Some(*outer_destination) == destination.checked_mul(count as isize) =>
            {
                (*outer, *outer_source, *outer_destination) = (*outer * count, source, destination);
            }
            _ => merged.push(*axis),
        }
    }
    // The innermost loop should be vectorisable, or at least long.
    let run = |axis: &Axis<'_>| swap == 1 && axis.is_run(item_size);
    if merged.len() > 1
        && !merged.last().is_some_and(run)
        && let Some(best) = merged.iter().rposition(run)
    {
        let axis = merged.remove(best);
        merged.push(axis);
    }
    merged
}

/// Calls `row` with both sides' addresses at every position of the outer axes.
///
/// # Safety
/// As [`copy`]: the positions' addresses lie inside both memories.
unsafe fn rows(
    outer: &[Axis<'_>],
    source: *const u8,
    destination: *mut u8,
    row: &impl Fn(*const u8, *mut u8),
) {
    match outer {
        [] => row(source, destination),
        [axis, rest @ ..] => each(*axis, source, destination, |from, to| {
            // SAFETY: the position is one of the caller's.
            unsafe { rows(rest, from, to, row) }
        }),
    }
}

/// Calls `item` with both sides' addresses at every position of one axis.
#[inline(always)]
fn each(axis: Axis<'_>, source: *const u8, destination: *mut u8, item: impl Fn(*const u8, *mut u8)) {
    match axis {
        Axis::Even { count, source: from_step, destination: to_step } => {
            let (mut from, mut to) = (source, destination);
            for _ in 0..count {
                item(from, to);
                // The address behind the last position is computed and never used.
                from = from.wrapping_offset(from_step);
                to = to.wrapping_offset(to_step);
            }
        }
        Axis::Each { source: from, destination: to } => {
            for (from, to) in from.iter().zip(to) {
                item(source.wrapping_offset(*from), destination.wrapping_offset(*to));
            }
        }
    }
}

/// Moves elements of `SIZE` bytes one by one, their words of `SWAP` bytes reversed.
///
/// # Safety
/// As [`copy`].
#[inline(never)]
unsafe fn items<const SIZE: usize, const SWAP: usize>(
    outer: &[Axis<'_>],
    inner: Axis<'_>,
    source: *const u8,
    destination: *mut u8,
) {
    let row = |from: *const u8, to: *mut u8| {
        each(inner, from, to, |from, to| {
            // SAFETY: the caller's contract gives `SIZE` bytes at every position; arrays of bytes need no
            // alignment.
            unsafe {
                let mut item: [u8; SIZE] = from.cast::<[u8; SIZE]>().read_unaligned();
                if SWAP > 1 {
                    for word in item.chunks_exact_mut(SWAP) {
                        word.reverse();
                    }
                }
                to.cast::<[u8; SIZE]>().write_unaligned(item);
            }
        });
    };
    // SAFETY: passed on from the caller.
    unsafe { rows(outer, source, destination, &row) }
}

/// Step 3: transposes the plane at every position of the outer axes.
///
/// # Safety
/// As [`copy`].
unsafe fn planes<const SIZE: usize, const SWAP: usize, const SWAPPED: bool>(
    outer: &[Axis<'_>],
    plane: &Plane,
    source: *const u8,
    destination: *mut u8,
    past_caches: bool,
) {
    let size = SIZE as isize;
    let row = |from: *const u8, to: *mut u8| {
        let (tiled_rows, tiled_columns, on_lines) = plane.tiled(SIZE, to);
        let past_caches = past_caches && on_lines;
        // Elements one by one, of some rows and columns of the plane.
        let left = |rows: Range<usize>, columns: Range<usize>| {
            let from =
                from.wrapping_offset(rows.start as isize * plane.row_step + columns.start as isize * size);
            let to =
                to.wrapping_offset(columns.start as isize * plane.column_step + rows.start as isize * size);
            let outer = [Axis::Even { count: rows.len(), source: plane.row_step, destination: size }];
            let inner = Axis::Even { count: columns.len(), source: size, destination: plane.column_step };
            // SAFETY: these are positions of the plane.
            unsafe { items::<SIZE, SWAP>(&outer, inner, from, to) }
        };
        // SAFETY: the tiles were made by `tiled`, which says whether they begin at lines.
        unsafe {
            let tiles = (tiled_rows.clone(), tiled_columns.clone());
            transpose::<SIZE, SWAPPED>(plane, tiles, from, to, past_caches);
        }
        left(0..tiled_rows.start, 0..plane.columns);
        left(tiled_rows.end..plane.rows, 0..plane.columns);
        left(tiled_rows, tiled_columns.end..plane.columns);
    };
    // SAFETY: passed on from the caller.
    unsafe { rows(outer, source, destination, &row) };
    transposition::finish(past_caches);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Copies each position, and each byte, separately.
    fn oracle(
        item: usize,
        swap: usize,
        axes: &[Axis<'_>],
        source: &[u8],
        at: isize,
        out: &mut [u8],
        to: isize,
    ) {
        match axes {
            [] => {
                for byte in 0..item {
                    let from = byte / swap * swap + (swap - 1 - byte % swap);
                    out[to as usize + byte] = source[at as usize + from];
                }
            }
            [Axis::Even { count, source: from, destination }, rest @ ..] => {
                for k in 0..*count as isize {
                    oracle(item, swap, rest, source, at + k * from, out, to + k * destination);
                }
            }
            [Axis::Each { source: from, destination }, rest @ ..] => {
                for (from, destination) in from.iter().zip(*destination) {
                    oracle(item, swap, rest, source, at + from, out, to + destination);
                }
            }
        }
    }

    /// Many short axes, or few that have tiles and more.
    fn shapes() -> impl Strategy<Value = Vec<usize>> {
        prop_oneof![
            prop::collection::vec(1usize..5, 0..5),
            (1usize..70, 1usize..70, 1usize..3).prop_map(|(a, b, c)| vec![a, b, c]),
            (1usize..3, 1usize..70, 1usize..70).prop_map(|(a, b, c)| vec![a, b, c]),
            (1usize..70, 1usize..3, 1usize..70).prop_map(|(a, b, c)| vec![a, b, c]),
        ]
    }

    proptest! {
        #[test]
        fn fast_and_plain_moves_agree(
            sizes in prop::sample::select(vec![
                (1usize, 1usize), (2, 1), (2, 2), (3, 1), (4, 1), (4, 4), (8, 1), (8, 8), (8, 4), (16, 1), (16, 8), (16, 16),
                (20, 4), (12, 1),
            ]),
            shape in shapes(), steps in prop::collection::vec(1usize..4, 5),
            order in Just((0..5).collect::<Vec<usize>>()).prop_shuffle(), flip in prop::collection::vec(any::<bool>(), 5),
            listed in prop::collection::vec(any::<bool>(), 5), turn in 0usize..5, past_caches in any::<bool>(),
        ) {
            let (item, swap) = sizes;
            // Every second case has no gaps, so that there are contiguous axes.
            let steps = if turn % 2 == 0 { vec![1; 5] } else { steps };
            // The source is a C-order array of `shape × steps`; the destination has its axes in another order.
            let ndim = shape.len();
            let mut axes = vec![(1usize, 0isize, 0isize); ndim];
            let (mut from, mut to) = (item, item);
            for axis in (0..ndim).rev() {
                axes[axis] = (shape[axis], (from * steps[axis]) as isize, 0);
                from *= shape[axis] * steps[axis];
            }
            let mut first = 0isize;
            for axis in order.into_iter().filter(|axis| *axis < ndim) {
                axes[axis].2 = to as isize;
                to *= shape[axis];
                if flip[axis] {
                    first += axes[axis].2 * (shape[axis] as isize - 1);
                    axes[axis].2 = -axes[axis].2;
                }
            }
            // The same positions one by one, in another order.
            let offsets: Vec<(Vec<isize>, Vec<isize>)> = axes
                .iter()
                .map(|(count, source, destination)| {
                    let mut numbers: Vec<isize> = (0..*count as isize).collect();
                    numbers.rotate_left(turn % count);
                    let of = |step: isize| numbers.iter().map(|number| number * step).collect();
                    (of(*source), of(*destination))
                })
                .collect();
            let axes: Vec<Axis<'_>> = axes
                .iter()
                .zip(&offsets)
                .zip(&listed)
                .map(|((&(count, source, destination), offsets), listed)| match listed {
                    true => Axis::Each { source: &offsets.0, destination: &offsets.1 },
                    false => Axis::Even { count, source, destination },
                })
                .collect();
            let source: Vec<u8> = (0..from).map(|at| (at * 7 % 251) as u8).collect();
            let (mut fast, mut plain) = (vec![0u8; to], vec![0u8; to]);
            oracle(item, swap, &axes, &source, 0, &mut plain, first);
            // SAFETY: the axes were laid out inside both vectors.
            unsafe {
                copy_words(item, swap, &axes, source.as_ptr(), fast.as_mut_ptr().offset(first), past_caches);
            }
            prop_assert_eq!(fast, plain);
        }
    }

    #[test]
    fn whole_arrays_become_one_row() {
        let axes = [
            Axis::Even { count: 3, source: 32, destination: 32 },
            Axis::Even { count: 1, source: 9, destination: 77 },
            Axis::Even { count: 8, source: 4, destination: 4 },
        ];
        assert_eq!(merge(&axes, 4, 1)[..], [Axis::Even { count: 24, source: 4, destination: 4 }]);
    }
}
