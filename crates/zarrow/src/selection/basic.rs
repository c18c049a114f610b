//! Basic indices: integers, slices with any step, and `...`.
//!
//! 1. The caller gives one [`Index`] per axis, with at most one [`Index::Ellipsis`]; missing ones are `:`.
//! 2. Each becomes an [`AxisSelection`]. An integer selects one position and drops its axis.
//!
//! Source: NumPy, "Basic indexing"; slices clip as `slice.indices` does, integers out of range are errors.

use crate::error::{ErrorKind, Result};
use crate::selection::{AxisSelection, Selection};

/// Index of one axis, as the user wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// One position, counted from the end if negative. Drops the axis.
    At(i64),
    /// A slice with any step but 0.
    Slice {
        /// First position.
        start: Option<i64>,
        /// Exclusive end.
        stop: Option<i64>,
        /// Distance of neighbours, 1 by default.
        step: Option<i64>,
    },
    /// As many `:` as are missing.
    Ellipsis,
}

impl Index {
    /// The whole axis, `:`.
    pub const ALL: Index = Index::Slice { start: None, stop: None, step: None };
}

impl Selection {
    /// Resolves `indices` in an array of `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if an integer is outside its axis, or there are more indices than axes, more than one
    /// ellipsis, or a step of 0.
    pub fn new(shape: &[u64], indices: &[Index]) -> Result<Selection> {
        let indices = one_an_axis(shape.len(), indices, &Index::ALL, |index| *index == Index::Ellipsis)?;
        let mut axes = Vec::with_capacity(shape.len());
        for (axis, (index, extent)) in indices.zip(shape).enumerate() {
            axes.push(AxisSelection::new(axis, *extent, *index)?);
        }
        Ok(Selection { axes, points: None })
    }
}

/// Returns one of `indices` for each of `ndim` axes, with `all` in place of an ellipsis and of missing ones.
///
/// # Errors
/// [`ErrorKind::Index`] if there are more indices than axes, or more than one ellipsis.
pub fn one_an_axis<'a, T>(
    ndim: usize,
    indices: &'a [T],
    all: &'a T,
    is_ellipsis: impl Fn(&T) -> bool,
) -> Result<impl Iterator<Item = &'a T> + Clone> {
    let given = indices.iter().filter(|index| !is_ellipsis(index)).count();
    if indices.len() - given > 1 {
        return Err(ErrorKind::Index("an index can have one ellipsis (...) only".into()).into());
    }
    let Some(missing) = ndim.checked_sub(given) else {
        let text = format!("too many indices: the array has {ndim} axes, {given} were indexed");
        return Err(ErrorKind::Index(text).into());
    };
    let ellipsis = indices.iter().position(is_ellipsis).unwrap_or(indices.len());
    let before = &indices[..ellipsis];
    let after = indices.get(ellipsis + 1..).unwrap_or(&[]);
    Ok(before.iter().chain(std::iter::repeat_n(all, missing)).chain(after))
}

impl AxisSelection {
    /// Resolves a basic index on one axis.
    pub(super) fn new(axis: usize, extent: u64, index: Index) -> Result<AxisSelection> {
        let length = length(axis, extent)?;
        match index {
            Index::At(position) => {
                let start = locate(position, axis, length)?;
                Ok(AxisSelection::Even { start, step: 1, count: 1, dropped: true })
            }
            Index::Slice { start, stop, step } => {
                let step = step.unwrap_or(1);
                if step == 0 {
                    return Err(ErrorKind::Index("slice step is 0, expected another integer".into()).into());
                }
                // The bounds of `slice.indices`: forward in 0..=length, backward in -1..length.
                let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
                let clip = |position: i64| {
                    let from_start = if position < 0 { position.saturating_add(length) } else { position };
                    from_start.clamp(low, high)
                };
                let (first, last) = if step > 0 { (low, high) } else { (high, low) };
                let (start, stop) = (start.map_or(first, clip), stop.map_or(last, clip));
                let distance = if step > 0 { stop - start } else { start - stop };
                let count = if distance > 0 { (distance as u64 - 1) / step.unsigned_abs() + 1 } else { 0 };
                let start = if count == 0 { 0 } else { start as u64 };
                Ok(AxisSelection::Even {
                    start,
                    step: if count > 1 { step } else { 1 },
                    count,
                    dropped: false,
                })
            }
            Index::Ellipsis => Ok(AxisSelection::whole(extent)),
        }
    }
}

/// Returns the extent of an axis as a signed number, comparable with positions.
///
/// # Errors
/// [`ErrorKind::Index`] for an axis of 2⁶³ positions and more.
pub fn length(axis: usize, extent: u64) -> Result<i64> {
    Ok(i64::try_from(extent).map_err(|_| ErrorKind::Index(format!("axis {axis} is too long")))?)
}

/// Resolves a position on an axis of `length` to one counted from the start.
///
/// # Errors
/// [`ErrorKind::Index`] if it is outside the axis.
pub fn locate(position: i64, axis: usize, length: i64) -> Result<u64> {
    let from_start = if position < 0 { position.checked_add(length) } else { Some(position) };
    match from_start.filter(|start| (0..length).contains(start)) {
        Some(start) => Ok(start as u64),
        None => {
            let text = format!("index {position} is out of bounds for axis {axis} with size {length}");
            Err(ErrorKind::Index(text).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Python's own rule, step by step.
    fn oracle(length: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<i64> {
        let wrap = |position: i64| if position < 0 { position + length } else { position };
        let mut at = match start.map(wrap) {
            Some(start) if step > 0 => start.max(0),
            Some(start) => start.min(length - 1),
            None if step > 0 => 0,
            None => length - 1,
        };
        let end = match stop.map(wrap) {
            Some(stop) if step > 0 => stop.min(length),
            Some(stop) => stop.max(-1),
            None if step > 0 => length,
            None => -1,
        };
        let mut positions = Vec::new();
        while (step > 0 && at < end) || (step < 0 && at > end) {
            positions.push(at);
            at += step;
        }
        positions
    }

    proptest! {
        #[test]
        fn slices_follow_python(
            length in 0i64..12, start in proptest::option::of(-15i64..15),
            stop in proptest::option::of(-15i64..15), step in (-5i64..6).prop_filter("not 0", |step| *step != 0),
        ) {
            let index = Index::Slice { start, stop, step: Some(step) };
            let selection = Selection::new(&[length as u64], &[index]).unwrap();
            let positions: Vec<i64> = selection.axes()[0].positions().into_iter().map(|at| at as i64).collect();
            prop_assert_eq!(positions, oracle(length, start, stop, step));
        }
    }

    #[test]
    fn integers_drop_their_axis_and_ellipsis_fills() {
        let selection = Selection::new(&[3, 4, 5], &[Index::At(-3), Index::Ellipsis]).unwrap();
        assert_eq!((selection.shape(), selection.axes()[0].positions()), (vec![4, 5], vec![0u64]));
        assert_eq!(Selection::new(&[], &[Index::Ellipsis]).unwrap().shape(), Vec::<u64>::new());
    }

    #[test]
    fn bad_indices_are_errors() {
        for indices in [
            &[Index::At(3)][..],
            &[Index::At(-4)],
            &[Index::At(i64::MIN)],
            &[Index::ALL, Index::ALL],
            &[Index::Ellipsis, Index::Ellipsis],
            &[Index::Slice { start: None, stop: None, step: Some(0) }],
        ] {
            assert!(Selection::new(&[3], indices).is_err(), "{indices:?}");
        }
    }

    #[test]
    fn extreme_slices_do_not_overflow() {
        let index = Index::Slice { start: Some(i64::MAX), stop: Some(i64::MIN), step: Some(i64::MIN) };
        assert_eq!(Selection::new(&[5], &[index]).unwrap().shape(), [1]);
    }
}
