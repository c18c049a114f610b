//! What part of an array is asked for, in NumPy's words, checked against a shape.
//!
//! 1. The caller gives one [`Index`] an axis, with at most one [`Index::Ellipsis`]; missing ones are `:`.
//! 2. Each becomes an [`AxisSelection`]: positions `start, start + step, …`, `count` of them, all inside the
//!    axis. An integer takes one position and drops its axis.
//!
//! Source: NumPy, "Basic indexing"; slices clip as `slice.indices` does, integers out of range are errors.

use crate::error::{ErrorKind, Result};

/// The index of one axis, as the user wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// One position, counted from the end where negative. Drops the axis.
    At(i64),
    /// A slice with any step but 0.
    Slice {
        /// The first position.
        start: Option<i64>,
        /// The position before which to stop.
        stop: Option<i64>,
        /// The distance of neighbours, 1 if not given.
        step: Option<i64>,
    },
    /// As many `:` as are missing.
    Ellipsis,
}

impl Index {
    /// The whole axis, `:`.
    pub const ALL: Index = Index::Slice { start: None, stop: None, step: None };
}

/// The positions of one axis that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisSelection {
    /// The first position.
    pub start: u64,
    /// The distance of neighbours, not 0; negative runs backwards.
    pub step: i64,
    /// How many positions.
    pub count: u64,
    /// Whether the axis is dropped from the result.
    pub dropped: bool,
}

/// A selection that fits one shape.
///
/// ```
/// use zarrow::{Index, Selection};
/// let rows = Index::Slice { start: Some(-2), stop: None, step: None };
/// let selection = Selection::new(&[10, 4, 6], &[rows, Index::Ellipsis, Index::At(-1)]).unwrap();
/// assert_eq!(selection.shape(), [2, 4]);
/// assert!(Selection::new(&[10], &[Index::At(10)]).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    axes: Vec<AxisSelection>,
}

impl Selection {
    /// The positions of `shape` that `indices` ask for.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] where an integer lies outside its axis, there are more indices than axes, more than
    /// one ellipsis, or a step of 0.
    pub fn new(shape: &[u64], indices: &[Index]) -> Result<Selection> {
        let given = indices.iter().filter(|index| **index != Index::Ellipsis).count();
        if indices.len() - given > 1 {
            return Err(ErrorKind::Index("an index can have one ellipsis (...) only".into()).into());
        }
        let Some(missing) = shape.len().checked_sub(given) else {
            let text = format!("too many indices: the array has {} axes, {given} were indexed", shape.len());
            return Err(ErrorKind::Index(text).into());
        };
        let ellipsis = indices.iter().position(|index| *index == Index::Ellipsis).unwrap_or(indices.len());
        let before = &indices[..ellipsis];
        let after = indices.get(ellipsis + 1..).unwrap_or(&[]);
        let every = std::iter::repeat_n(&Index::ALL, missing);
        let axes = before
            .iter()
            .chain(every)
            .chain(after)
            .zip(shape)
            .enumerate()
            .map(|(axis, (index, extent))| AxisSelection::new(axis, *extent, *index))
            .collect::<Result<Vec<_>>>()?;
        Ok(Selection { axes })
    }

    /// Every position of `shape`.
    #[must_use]
    pub fn all(shape: &[u64]) -> Selection {
        let axes =
            shape.iter().map(|extent| AxisSelection { start: 0, step: 1, count: *extent, dropped: false });
        Selection { axes: axes.collect() }
    }

    /// The positions of each axis of the array.
    #[must_use]
    pub fn axes(&self) -> &[AxisSelection] {
        &self.axes
    }

    /// Whether every position lies inside `shape`.
    #[must_use]
    pub fn fits(&self, shape: &[u64]) -> bool {
        let inside = |axis: &AxisSelection, extent: u64| {
            let reach = axis.count.saturating_sub(1).checked_mul(axis.step.unsigned_abs());
            let last = reach.and_then(|reach| match axis.step > 0 {
                true => axis.start.checked_add(reach),
                false => axis.start.checked_sub(reach),
            });
            axis.count == 0 || (axis.start < extent && last.is_some_and(|last| last < extent))
        };
        self.axes.len() == shape.len()
            && self.axes.iter().zip(shape).all(|(axis, extent)| inside(axis, *extent))
    }

    /// The shape of the result: the axes that are not dropped.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().filter(|axis| !axis.dropped).map(|axis| axis.count).collect()
    }
}

impl AxisSelection {
    fn new(axis: usize, extent: u64, index: Index) -> Result<AxisSelection> {
        let length =
            i64::try_from(extent).map_err(|_| ErrorKind::Index(format!("axis {axis} is too long")))?;
        match index {
            Index::At(position) => {
                let from_start = if position < 0 { position.checked_add(length) } else { Some(position) };
                match from_start.filter(|start| (0..length).contains(start)) {
                    Some(start) => {
                        Ok(AxisSelection { start: start as u64, step: 1, count: 1, dropped: true })
                    }
                    None => Err(ErrorKind::Index(format!(
                        "index {position} is out of bounds for axis {axis} with size {extent}"
                    ))
                    .into()),
                }
            }
            Index::Slice { start, stop, step } => {
                let step = step.unwrap_or(1);
                if step == 0 {
                    return Err(ErrorKind::Index("slice step cannot be zero".into()).into());
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
                Ok(AxisSelection { start, step: if count > 1 { step } else { 1 }, count, dropped: false })
            }
            Index::Ellipsis => Ok(AxisSelection { start: 0, step: 1, count: extent, dropped: false }),
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
            let axis = selection.axes()[0];
            let positions: Vec<i64> = (0..axis.count as i64).map(|at| axis.start as i64 + at * axis.step).collect();
            prop_assert_eq!(positions, oracle(length, start, stop, step));
        }
    }

    #[test]
    fn integers_drop_their_axis_and_ellipsis_fills() {
        let selection = Selection::new(&[3, 4, 5], &[Index::At(-3), Index::Ellipsis]).unwrap();
        assert_eq!((selection.shape(), selection.axes()[0].start), (vec![4, 5], 0));
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
