//! Integers and Rust's ranges as indices, and their tuples as selections: `(0..24, .., 5)`.
//!
//! 1. An integer or a range is the [`Index`] of one axis, `..` the whole axis. Negative numbers count from the end of
//!    the axis.
//! 2. A tuple has one index per axis; axes after the last are whole. So `..` by itself is everything.
//! 3. They are resolved against the array's shape at use ([`IntoSelection`]).

use crate::error::Result;
use crate::selection::{Index, Selection};
use std::borrow::Cow;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// Something that selects elements of an array: a [`Selection`], or integers and ranges to be resolved against the
/// array's shape.
///
/// ```
/// use zarrow::{Index, IntoSelection};
/// let shape = [48, 6, 8];
/// let chosen = |selection: zarrow::Result<std::borrow::Cow<'_, zarrow::Selection>>| selection.unwrap().shape();
/// assert_eq!(chosen((0..24, .., 5).into_selection(&shape)), [24, 6]);
/// assert_eq!(chosen((-1, 2..=3).into_selection(&shape)), [2, 8]);
/// assert_eq!(chosen((.., .., Index::from(..).step_by(2)).into_selection(&shape)), [48, 6, 4]);
/// assert_eq!(chosen((Index::Ellipsis, 0).into_selection(&shape)), [48, 6]);
/// assert_eq!(chosen((..).into_selection(&shape)), shape);
/// assert!((48, ..).into_selection(&shape).is_err());
/// ```
pub trait IntoSelection<'a> {
    /// Returns the selection in an array of `shape`.
    ///
    /// # Errors
    /// As [`Selection::new`].
    fn into_selection(self, shape: &[u64]) -> Result<Cow<'a, Selection>>;
}

impl<'a> IntoSelection<'a> for &'a Selection {
    fn into_selection(self, _shape: &[u64]) -> Result<Cow<'a, Selection>> {
        Ok(Cow::Borrowed(self))
    }
}

impl IntoSelection<'_> for Selection {
    fn into_selection(self, _shape: &[u64]) -> Result<Cow<'static, Selection>> {
        Ok(Cow::Owned(self))
    }
}

impl IntoSelection<'_> for &[Index] {
    fn into_selection(self, shape: &[u64]) -> Result<Cow<'static, Selection>> {
        Selection::new(shape, self).map(Cow::Owned)
    }
}

impl IntoSelection<'_> for RangeFull {
    /// Selects everything, also in an array without axes.
    fn into_selection(self, shape: &[u64]) -> Result<Cow<'static, Selection>> {
        Ok(Cow::Owned(Selection::all(shape)))
    }
}

impl Index {
    /// Returns the slice with the step `step`, as Python's `start:stop:step`; other indices unchanged.
    ///
    /// ```
    /// use zarrow::Index;
    /// let every_third = Index::Slice { start: Some(1), stop: None, step: Some(3) };
    /// assert_eq!(Index::from(1..).step_by(3), every_third);
    /// ```
    #[must_use]
    pub fn step_by(self, step: i64) -> Index {
        match self {
            Index::Slice { start, stop, .. } => Index::Slice { start, stop, step: Some(step) },
            other => other,
        }
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::ALL
    }
}

/// Returns the exclusive bound after `last`; `None` after the last position of the axis.
fn behind(last: i64) -> Option<i64> {
    if last == -1 { None } else { Some(last.saturating_add(1)) }
}

/// Converts a position. No axis reaches the largest `i64`, which replaces numbers beyond it.
fn position<T: TryInto<i64>>(number: T) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn slice(start: Option<i64>, stop: Option<i64>) -> Index {
    Index::Slice { start, stop, step: None }
}

macro_rules! indices {
    ($($integer:ty)+) => {
        $(
            impl From<$integer> for Index {
                fn from(at: $integer) -> Index {
                    Index::At(position(at))
                }
            }

            impl From<Range<$integer>> for Index {
                fn from(range: Range<$integer>) -> Index {
                    slice(Some(position(range.start)), Some(position(range.end)))
                }
            }

            impl From<RangeInclusive<$integer>> for Index {
                fn from(range: RangeInclusive<$integer>) -> Index {
                    slice(Some(position(*range.start())), behind(position(*range.end())))
                }
            }

            impl From<RangeFrom<$integer>> for Index {
                fn from(range: RangeFrom<$integer>) -> Index {
                    slice(Some(position(range.start)), None)
                }
            }

            impl From<RangeTo<$integer>> for Index {
                fn from(range: RangeTo<$integer>) -> Index {
                    slice(None, Some(position(range.end)))
                }
            }

            impl From<RangeToInclusive<$integer>> for Index {
                fn from(range: RangeToInclusive<$integer>) -> Index {
                    slice(None, behind(position(range.end)))
                }
            }

            one_axis! { $integer }
            one_axis! { Range<$integer> }
            one_axis! { RangeInclusive<$integer> }
            one_axis! { RangeFrom<$integer> }
            one_axis! { RangeTo<$integer> }
            one_axis! { RangeToInclusive<$integer> }
        )+
    };
}

macro_rules! one_axis {
    ($index:ty) => {
        impl IntoSelection<'_> for $index {
            fn into_selection(self, shape: &[u64]) -> Result<Cow<'static, Selection>> {
                Selection::new(shape, &[self.into()]).map(Cow::Owned)
            }
        }
    };
}

macro_rules! axes {
    ($($name:ident)+) => {
        impl<$($name: Into<Index>),+> IntoSelection<'_> for ($($name,)+) {
            #[expect(non_snake_case, reason = "the types' names are the values'")]
            fn into_selection(self, shape: &[u64]) -> Result<Cow<'static, Selection>> {
                let ($($name,)+) = self;
                Selection::new(shape, &[$($name.into()),+]).map(Cow::Owned)
            }
        }
    };
}

indices! { i32 i64 isize u32 u64 usize }
one_axis! { Index }
axes! { A }
axes! { A B }
axes! { A B C }
axes! { A B C D }
axes! { A B C D E }
axes! { A B C D E F }
axes! { A B C D E F G }
axes! { A B C D E F G H }

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(index: impl Into<Index>, extent: u64) -> Vec<u64> {
        Selection::new(&[extent], &[index.into()]).unwrap().axes()[0].positions()
    }

    #[test]
    fn ranges_are_those_of_rust_and_negative_bounds_count_from_the_end() {
        assert_eq!(positions(1..3, 5), [1, 2]);
        assert_eq!(positions(1usize..=3, 5), [1, 2, 3]);
        assert_eq!(positions(3u64.., 5), [3, 4]);
        assert_eq!(positions(..2, 5), [0, 1]);
        assert_eq!(positions(..=2, 5), [0, 1, 2]);
        assert_eq!(positions(-2.., 5), [3, 4]);
        assert_eq!(positions(-3..=-1, 5), [2, 3, 4]);
        assert_eq!(positions(..=-2, 5), [0, 1, 2, 3]);
        assert_eq!(positions(Index::from(..).step_by(-2), 5), [4, 2, 0]);
        let (start, stop) = (4, 1);
        assert_eq!(positions(Index::from(start..stop), 5), Vec::<u64>::new());
    }

    #[test]
    fn numbers_that_no_axis_reaches_clip_or_are_errors() {
        assert_eq!(positions(1..u64::MAX, 3), [1, 2]);
        assert_eq!(positions(..=i64::MAX, 3), [0, 1, 2]);
        assert!(u64::MAX.into_selection(&[3]).is_err());
        assert!((0, 0).into_selection(&[3]).is_err());
    }

    #[test]
    fn everything_of_an_array_without_axes_is_its_one_element() {
        assert_eq!((..).into_selection(&[]).unwrap().shape(), Vec::<u64>::new());
        assert_eq!((.., ..).into_selection(&[2, 3, 4]).unwrap().shape(), [2, 3, 4]);
    }
}
