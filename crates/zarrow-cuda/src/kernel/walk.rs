//! Order of a kernel's walk through several strided sides at once.
//!
//! 1. Axes of length 1 are dropped.
//! 2. The others are sorted by their stride at the destination, the smallest last: neighbouring threads then write
//!    neighbouring elements.
//! 3. Two neighbouring axes are merged if they are contiguous with each other on every side.
//! 4. A launch takes eight axes. If more are left, the host walks the outermost ones, with a launch per position.

use super::structs::MAX_RANK;
use smallvec::SmallVec;

/// The elements of one launch: axes in the order of the walk, strides in bytes, and the start of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk<const SIDES: usize> {
    pub rank: u32,
    pub count: u64,
    pub shape: [u64; MAX_RANK],
    pub strides: [[i64; MAX_RANK]; SIDES],
    pub offsets: [i64; SIDES],
}

#[derive(Debug, Clone, Copy)]
struct Axis<const SIDES: usize> {
    extent: i64,
    strides: [i64; SIDES],
}

/// Returns the launches that walk `shape`. The last side is the destination. Strides are in bytes, and were checked
/// against the memory of each side.
pub fn walks<const SIDES: usize>(shape: &[i64], strides: [&[i64]; SIDES]) -> Vec<Walk<SIDES>> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let mut axes: SmallVec<[Axis<SIDES>; MAX_RANK]> = shape
        .iter()
        .enumerate()
        .filter(|(_, extent)| **extent != 1)
        .map(|(number, extent)| Axis { extent: *extent, strides: strides.map(|side| side[number]) })
        .collect();
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.strides[SIDES - 1].unsigned_abs()));
    let mut merged: SmallVec<[Axis<SIDES>; MAX_RANK]> = SmallVec::new();
    for axis in axes {
        match merged.last_mut() {
            Some(outer)
                if (0..SIDES)
                    .all(|side| Some(outer.strides[side]) == axis.strides[side].checked_mul(axis.extent)) =>
            {
                *outer = Axis { extent: outer.extent * axis.extent, strides: axis.strides };
            }
            _ => merged.push(axis),
        }
    }
    let (outer, inner) = merged.split_at(merged.len().saturating_sub(MAX_RANK));
    let mut walk = Walk {
        rank: inner.len() as u32,
        count: inner.iter().map(|axis| axis.extent.unsigned_abs()).product(),
        shape: [0; MAX_RANK],
        strides: [[0; MAX_RANK]; SIDES],
        offsets: [0; SIDES],
    };
    for (number, axis) in inner.iter().enumerate() {
        walk.shape[number] = axis.extent.unsigned_abs();
        for side in 0..SIDES {
            walk.strides[side][number] = axis.strides[side];
        }
    }
    let mut result = vec![walk];
    for axis in outer {
        let steps = |walk: Walk<SIDES>| {
            (0..axis.extent).map(move |position| {
                let mut walk = walk;
                for side in 0..SIDES {
                    walk.offsets[side] += axis.strides[side] * position;
                }
                walk
            })
        };
        result = result.into_iter().flat_map(steps).collect();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_axes_are_one() {
        let walk = walks(&[2, 1, 3, 4], [&[48, 9, 16, 4], &[48, 7, 16, 4]]);
        assert_eq!(walk.len(), 1);
        assert_eq!((walk[0].rank, walk[0].count, walk[0].shape[0]), (1, 24, 24));
        assert_eq!(walk[0].strides.map(|side| side[0]), [4, 4]);
    }

    #[test]
    fn the_destination_decides_the_order() {
        // From C order to Fortran order: the destination's innermost axis is the first.
        let walk = walks(&[3, 5], [&[20, 4], &[4, 12]]);
        assert_eq!(walk[0].shape[..2], [5, 3]);
        assert_eq!(walk[0].strides.map(|side| [side[0], side[1]]), [[4, 20], [12, 4]]);
    }

    #[test]
    fn backwards_and_repeated_axes_are_merged_if_they_continue() {
        let walk = walks(&[2, 3], [&[-12, -4], &[12, 4]]);
        assert_eq!((walk[0].rank, walk[0].strides[0][0]), (1, -4));
        let walk = walks(&[2, 3], [&[0, 0], &[12, 4]]);
        assert_eq!(walk[0].rank, 1);
        let walk = walks(&[2, 3], [&[0, 4], &[12, 4]]);
        assert_eq!(walk[0].rank, 2);
    }

    #[test]
    fn many_axes_take_several_launches() {
        let shape = [2i64; 10];
        let side: Vec<i64> = (0..10).map(|axis| 3i64.pow(10 - axis)).collect();
        let walk = walks(&shape, [&side, &side]);
        assert_eq!(walk.len(), 4);
        let mut offsets: Vec<_> = walk.iter().map(|walk| walk.offsets[1]).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, [0, 3i64.pow(9), 3i64.pow(10), 3i64.pow(9) + 3i64.pow(10)]);
        assert!(walks(&[0, 3], [&[1, 1]]).is_empty());
        assert_eq!(walks(&[], [&[]])[0].count, 1);
    }
}
