//! Points of a vectorized selection, sorted and grouped by the chunk that holds them.
//!
//! 1. Each point gets the number of its chunk in the box of all touched chunks.
//! 2. The points are sorted by this number, unless they already are, or are in one chunk.
//! 3. An offset per chunk says where its points begin.

use crate::error::{ErrorKind, Result};
use crate::plan::axis_grid::AxisGrid;
use crate::plan::axis_part::{AxisPart, IndexList, PerAxis};
use std::borrow::Cow;
use zarrow_array::allocation::{self, Grow};

/// Returns the start of each group of `count` items; `length_of` returns a group's length, given its start.
pub fn starts_of(count: usize, length_of: impl Fn(usize) -> usize) -> Result<Vec<usize>> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at < count {
        starts.try_push(at)?;
        at += length_of(at);
    }
    Ok(starts)
}

/// Returns the number of items before group `number`, and the group's length.
pub fn group(starts: &[usize], number: u64, total: u64) -> (u64, u64) {
    let number = number as usize;
    let start = starts[number] as u64;
    (start, starts.get(number + 1).map_or(total, |end| *end as u64) - start)
}

/// Points, grouped by chunk.
#[derive(Debug)]
pub struct PointsByChunk<'a> {
    /// The positions of each axis of points, and the axis's index.
    pub axes: PerAxis<(usize, Cow<'a, [u64]>)>,
    /// Output index of each point; `None` if they are consecutive.
    pub places: Option<Cow<'a, [u64]>>,
    /// The first point of each group.
    pub starts: Vec<usize>,
}

impl<'a> PointsByChunk<'a> {
    /// Groups a part's points by chunk; `None` if the part has no points.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the number of chunks between the points overflows,
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn new(
        part: &[AxisPart<'a>],
        grid: &impl Fn(usize) -> AxisGrid<'a>,
    ) -> Result<Option<PointsByChunk<'a>>> {
        let vectorized: PerAxis<(usize, AxisPart<'a>, IndexList<'a>)> = part
            .iter()
            .enumerate()
            .filter_map(|(axis, part)| Some((axis, *part, part.list.filter(|list| list.vectorized)?)))
            .collect();
        let Some((_, _, first)) = vectorized.first() else { return Ok(None) };
        let count = first.positions.len();
        let mut numbers = allocation::filled(0u64, count)?;
        let mut chunks = 1u64;
        for (axis, part, list) in &vectorized {
            let chunk = |position| grid(*axis).locate(position).0;
            let lowest = chunk(part.start);
            let extent = chunk(part.last()) - lowest + 1;
            chunks = chunks.checked_mul(extent).ok_or_else(too_far)?;
            if extent > 1 {
                for (number, position) in numbers.iter_mut().zip(list.iter()) {
                    *number = *number * extent + (chunk(position) - lowest);
                }
            }
        }
        let place =
            vectorized.iter().find(|(_, part, _)| part.output.is_some()).map_or(0, |(_, part, _)| part.place);
        let (axes, places) = match numbers.is_sorted() {
            true => {
                let axes = vectorized.iter().map(|(axis, _, list)| (*axis, Cow::Borrowed(list.positions)));
                (axes.collect(), first.places.map(Cow::Borrowed))
            }
            false => {
                let mut order: Vec<(u64, usize)> =
                    allocation::collected(numbers.iter().copied().zip(0usize..))?;
                // Points of one chunk keep their order, because the last of several writes to one element wins.
                order.sort_unstable();
                for (number, (sorted, _)) in numbers.iter_mut().zip(&order) {
                    *number = *sorted;
                }
                let ordered = |value: &dyn Fn(usize) -> u64| -> Result<Cow<'a, [u64]>> {
                    Ok(Cow::Owned(allocation::collected(order.iter().map(|(_, at)| value(*at)))?))
                };
                let axes = vectorized
                    .iter()
                    .map(|(axis, _, list)| Ok((*axis, ordered(&|at| list.positions[at])?)))
                    .collect::<Result<_>>()?;
                let place_of = |at: usize| first.places.map_or(place + at as u64, |places| places[at]);
                (axes, Some(ordered(&place_of)?))
            }
        };
        let starts = starts_of(count, |at| numbers[at..].partition_point(|number| *number == numbers[at]))?;
        Ok(Some(PointsByChunk { axes, places, starts }))
    }
}

fn too_far() -> ErrorKind {
    ErrorKind::Unsupported("points with more chunks between them than can be counted".into())
}
