//! The plan of a read: the chunks touched by a part of an array, and the positions taken from each chunk.
//!
//! 1. Each axis is cut along the grid independently: its chunks are consecutive, and a chunk's part is one piece per
//!    axis. Evenly spaced positions on a grid of equal chunks need no list of pieces.
//! 2. Listed positions are sorted, so that the positions in one chunk are adjacent; an offset per chunk says where they
//!    begin.
//! 3. Points are cut on all their axes at once, and sorted by chunk: `points_by_chunk.rs`.
//! 4. The combinations of the axes' chunks are numbered in C order.
//!
//! A chunk's part is cut along the grid of a shard's inner chunks in the same way.

use crate::error::{ErrorKind, Result};
use crate::plan::axis_grid::AxisGrid;
use crate::plan::axis_part::{AxisPart, IndexList, PerAxis};
use crate::plan::points_by_chunk::{PointsByChunk, group, starts_of};
use zarrow_array::allocation::Grow;

/// The chunks touched by a part on one axis, in ascending order.
#[derive(Debug)]
enum AxisChunks<'a> {
    /// Evenly spaced positions in chunks of one extent, computed on request.
    Equal { part: AxisPart<'a>, extent: u64, count: u64 },
    /// Any chunks, one by one.
    Each(Vec<(u64, AxisPart<'a>)>),
    /// A list: the positions of one chunk begin at each of `starts`.
    List { part: AxisPart<'a>, starts: Vec<usize>, grid: AxisGrid<'a> },
    /// An axis of points: points are grouped separately from the axes, and `count` is the number of groups on one axis.
    Vectorized { part: AxisPart<'a>, grid: AxisGrid<'a>, count: u64 },
}

impl<'a> AxisChunks<'a> {
    /// Computes the chunks of `part`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if a list of chunks is longer than any valid grid allows,
    /// [`zarrow_array::Error::OutOfMemory`].
    fn new(part: AxisPart<'a>, grid: AxisGrid<'a>) -> Result<AxisChunks<'a>> {
        /// More edges than any real document lists, since a grid of equal chunks needs none.
        const MOST: usize = 1 << 22;
        match (part.list, grid) {
            (Some(IndexList { vectorized: true, .. }), _) => {
                Ok(AxisChunks::Vectorized { part, grid, count: 1 })
            }
            (Some(list), _) => {
                let starts = starts_of(list.positions.len(), |number| {
                    let (_, origin, extent) = grid.locate(list.positions[number] - list.origin);
                    let end = (list.origin + origin).saturating_add(extent);
                    list.positions[number..].partition_point(|position| *position < end)
                })?;
                Ok(AxisChunks::List { part, starts, grid })
            }
            (None, AxisGrid::Equal(extent)) => {
                let count = match part.step <= extent {
                    true => part.last() / extent - part.start / extent + 1,
                    // No chunk holds two positions.
                    false => part.count,
                };
                Ok(AxisChunks::Equal { part, extent, count })
            }
            (None, grid) => {
                let mut chunks = Vec::new();
                let mut taken = 0u64;
                while taken < part.count {
                    let (chunk, origin, extent) = grid.locate(part.start + taken * part.step);
                    let piece = within(&part, taken, origin, extent);
                    taken += piece.count;
                    chunks.try_push((chunk, piece))?;
                    if chunks.len() > MOST {
                        return Err(too_many().into());
                    }
                }
                Ok(AxisChunks::Each(chunks))
            }
        }
    }

    /// The number of touched chunks.
    fn count(&self) -> u64 {
        match self {
            AxisChunks::Equal { count, .. } | AxisChunks::Vectorized { count, .. } => *count,
            AxisChunks::Each(chunks) => chunks.len() as u64,
            AxisChunks::List { starts, .. } => starts.len() as u64,
        }
    }

    /// Returns chunk `number`, which must be less than the count, and the part taken from it; for an axis of points,
    /// the whole axis.
    fn get(&self, number: u64) -> (u64, AxisPart<'a>) {
        match self {
            AxisChunks::Equal { part, extent, .. } if part.step <= *extent => {
                let chunk = part.start / extent + number;
                let origin = chunk * extent;
                let skipped = origin.saturating_sub(part.start).div_ceil(part.step);
                (chunk, within(part, skipped, origin, *extent))
            }
            AxisChunks::Equal { part, extent, .. } => {
                let chunk = (part.start + number * part.step) / extent;
                (chunk, within(part, number, chunk * extent, *extent))
            }
            AxisChunks::Each(chunks) => chunks[number as usize],
            AxisChunks::List { part, starts, grid } => {
                let (skipped, count) = group(starts, number, part.count);
                let (chunk, piece) = moved(part.skip(skipped, count), *grid);
                (chunk, piece.evened())
            }
            AxisChunks::Vectorized { part, .. } => (0, *part),
        }
    }
}

/// Returns the section of `part` inside the chunk `[origin, origin + extent)`, relative to the chunk's start. The
/// `skipped` positions before the chunk were taken already.
fn within<'a>(part: &AxisPart<'a>, skipped: u64, origin: u64, extent: u64) -> AxisPart<'a> {
    let start = part.start + skipped * part.step - origin;
    let room = (extent - start).div_ceil(part.step);
    AxisPart { start, ..part.skip(skipped, room.min(part.count - skipped)) }
}

/// Returns the chunk that holds all positions of `piece`, and the piece relative to the chunk's start.
fn moved<'a>(piece: AxisPart<'a>, grid: AxisGrid<'_>) -> (u64, AxisPart<'a>) {
    let (chunk, origin, _) = grid.locate(piece.start);
    let list = piece.list.map(|list| IndexList { origin: list.origin + origin, ..list });
    (chunk, AxisPart { start: piece.start - origin, list, ..piece })
}

/// The chunks touched by a part on each axis; their combinations are numbered in C order.
#[derive(Debug)]
pub struct ChunkParts<'a> {
    axes: PerAxis<AxisChunks<'a>>,
    points: Option<PointsByChunk<'a>>,
    count: u64,
}

impl<'a> ChunkParts<'a> {
    /// Computes the chunks of `part`, given each axis's grid.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the number of chunks overflows, [`ErrorKind::Unsupported`] if the number of chunks
    /// between points does, [`zarrow_array::Error::OutOfMemory`].
    pub fn new(part: &[AxisPart<'a>], grid: impl Fn(usize) -> AxisGrid<'a>) -> Result<ChunkParts<'a>> {
        let cut = |(axis, part): (usize, &AxisPart<'a>)| AxisChunks::new(*part, grid(axis));
        let mut axes: PerAxis<_> = part.iter().enumerate().map(cut).collect::<Result<_>>()?;
        let points = PointsByChunk::new(part, &grid)?;
        if let Some(points) = &points {
            let counts = axes.iter_mut().filter_map(|axis| match axis {
                AxisChunks::Vectorized { part: AxisPart { output: Some(_), .. }, count, .. } => Some(count),
                _ => None,
            });
            counts.for_each(|count| *count = points.starts.len() as u64);
        }
        let count = axes.iter().try_fold(1u64, |product, axis| product.checked_mul(axis.count()));
        Ok(ChunkParts { axes, points, count: count.ok_or_else(too_many)? })
    }

    /// The number of combinations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes the chunk index of combination `number`, and the part taken from that chunk on each axis.
    pub fn get<'s>(&'s self, number: u64, chunk_index: &mut PerAxis<u64>, part: &mut PerAxis<AxisPart<'s>>) {
        chunk_index.clear();
        part.clear();
        let mut rest = number;
        let mut of_points = 0u64;
        for axis in self.axes.iter().rev() {
            let number = rest % axis.count();
            let (index, piece) = axis.get(number);
            rest /= axis.count();
            if matches!(axis, AxisChunks::Vectorized { part: AxisPart { output: Some(_), .. }, .. }) {
                of_points = number;
            }
            chunk_index.push(index);
            part.push(piece);
        }
        chunk_index.reverse();
        part.reverse();
        let Some(points) = &self.points else { return };
        for (axis, positions) in &points.axes {
            let AxisChunks::Vectorized { part: whole, grid, .. } = &self.axes[*axis] else { continue };
            let (skipped, count) = group(&points.starts, of_points, positions.len() as u64);
            let origin = whole.list.map_or(0, |list| list.origin);
            let list = IndexList { positions, places: points.places.as_deref(), origin, vectorized: true };
            let count_here = if whole.output.is_some() { count } else { 1 };
            let piece = AxisPart { count: count_here, place: whole.place + skipped, ..*whole };
            let (index, piece) = moved(piece.with_list(list.skip(skipped, count)), *grid);
            chunk_index[*axis] = index;
            part[*axis] = piece;
        }
    }
}

fn too_many() -> ErrorKind {
    ErrorKind::Internal("more chunks than can be counted".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::ChunkGrid;
    use crate::plan::axis_part::oracle::{elements, selected, selections};
    use crate::plan::axis_part::whole_part;
    use crate::selection::{AxisIndex, Selection};
    use proptest::prelude::*;

    /// A grid of unequal chunks along each axis, of these extents.
    fn rectilinear(axes: &[Vec<u64>]) -> ChunkGrid {
        let edges: Vec<Vec<u64>> = axes.to_vec();
        let shape: Vec<u64> = edges.iter().map(|edges| edges.iter().sum()).collect();
        let grid = serde_json::json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": edges}});
        ChunkGrid::parse(&grid, &shape).unwrap()
    }

    /// Collects the positions taken from all chunks, relative to the array, and checks that every piece is inside its
    /// chunk and that no chunk occurs twice.
    fn taken<'g>(
        chunks: &ChunkParts<'_>,
        grid: &impl Fn(usize) -> AxisGrid<'g>,
    ) -> Vec<(PerAxis<u64>, PerAxis<u64>)> {
        let mut seen = std::collections::BTreeSet::new();
        let mut taken = Vec::new();
        for number in 0..chunks.count() {
            let (mut chunk_index, mut part) = (PerAxis::new(), PerAxis::new());
            chunks.get(number, &mut chunk_index, &mut part);
            assert!(seen.insert(chunk_index.clone()), "{chunk_index:?} twice");
            for (position, place) in elements(&part) {
                let position = position.iter().enumerate().map(|(axis, position)| {
                    // The first position of the chunk, found by stepping from the start.
                    let mut origin = 0;
                    while grid(axis).locate(origin).0 < chunk_index[axis] {
                        origin += 1;
                    }
                    assert_eq!(grid(axis).locate(origin + position).0, chunk_index[axis]);
                    origin + position
                });
                taken.push((position.collect(), place));
            }
        }
        taken.sort();
        taken
    }

    proptest! {
        /// Every selected position is taken once, from the chunk that holds it, and goes to its requested place.
        #[test]
        fn cutting_takes_each_position_once((_, selection) in selections(), extents in prop::collection::vec(1u64..9, 3)) {
            let Some(part) = whole_part(&selection) else { return Ok(()) };
            let grid = |axis: usize| AxisGrid::Equal(extents[axis]);
            let chunks = ChunkParts::new(&part, grid).unwrap();
            let mut expected = selected(&selection);
            expected.sort();
            prop_assert_eq!(taken(&chunks, &grid), expected);
        }

        #[test]
        fn so_it_does_on_a_grid_of_unequal_chunks((_, selection) in selections(), edges in prop::collection::vec(prop::collection::vec(1u64..6, 12), 3)) {
            let Some(part) = whole_part(&selection) else { return Ok(()) };
            let grid = rectilinear(&edges);
            let of = |axis: usize| AxisGrid::new(&grid, axis);
            let chunks = ChunkParts::new(&part, of).unwrap();
            let mut expected = selected(&selection);
            expected.sort();
            prop_assert_eq!(taken(&chunks, &of), expected);
        }

        /// Cutting a piece again is the same as cutting more finely.
        #[test]
        fn pieces_can_be_cut_again((_, selection) in selections(), inner in prop::collection::vec(1u64..4, 3), outer in prop::collection::vec(1u64..4, 3)) {
            let Some(part) = whole_part(&selection) else { return Ok(()) };
            let extent = |axis: usize| inner[axis] * outer[axis];
            let chunks = ChunkParts::new(&part, |axis| AxisGrid::Equal(extent(axis))).unwrap();
            let mut all = Vec::new();
            for number in 0..chunks.count() {
                let (mut chunk_index, mut piece) = (PerAxis::new(), PerAxis::new());
                chunks.get(number, &mut chunk_index, &mut piece);
                let grid = |axis: usize| AxisGrid::Equal(inner[axis]);
                let within = ChunkParts::new(&piece, grid).unwrap();
                all.extend(taken(&within, &grid).into_iter().map(|(position, place)| {
                    let position = position.iter().enumerate().map(|(axis, at)| chunk_index[axis] * extent(axis) + at);
                    (position.collect::<PerAxis<u64>>(), place)
                }));
            }
            all.sort();
            let mut expected = selected(&selection);
            expected.sort();
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn positions_of_one_chunk_keep_their_order() {
        let lists = [AxisIndex::List(&[7, 1, 7, 1, 0, 7]), AxisIndex::List(&[0, 0, 0, 0, 2, 0])];
        let points = Selection::points(&[8, 3], &lists, &[6]).unwrap();
        let orthogonal = Selection::orthogonal(&[8, 3], &lists[..1]).unwrap();
        for selection in [points, orthogonal] {
            let part = whole_part(&selection).unwrap();
            let chunks = ChunkParts::new(&part, |_| AxisGrid::Equal(4)).unwrap();
            let (mut chunk_index, mut piece) = (PerAxis::new(), PerAxis::new());
            for number in 0..chunks.count() {
                chunks.get(number, &mut chunk_index, &mut piece);
                let elements = elements(&piece);
                for (number, (position, place)) in elements.iter().enumerate() {
                    let later = elements[number..].iter().filter(|other| other.0 == *position);
                    assert!(later.map(|other| &other.1).is_sorted(), "{place:?}");
                }
            }
        }
    }

    #[test]
    fn chunks_that_cannot_be_counted_are_refused() {
        let far = [AxisIndex::List(&[0, i64::MAX - 1]); 2];
        let selection = Selection::points(&[i64::MAX as u64; 2], &far, &[2]).unwrap();
        let part = whole_part(&selection).unwrap();
        assert!(ChunkParts::new(&part, |_| AxisGrid::Equal(1)).is_err());
        assert_eq!(ChunkParts::new(&part, |_| AxisGrid::Equal(1 << 62)).unwrap().count(), 2);
        let all = Selection::all(&[i64::MAX as u64; 2]);
        assert!(ChunkParts::new(&whole_part(&all).unwrap(), |_| AxisGrid::Equal(1)).is_err());
    }

    #[test]
    fn combinations_run_in_c_order() {
        let selection = Selection::orthogonal(&[12, 6], &[AxisIndex::List(&[6, 11, 7])]).unwrap();
        let part = whole_part(&selection).unwrap();
        let chunks = ChunkParts::new(&part, |_| AxisGrid::Equal(2)).unwrap();
        let (mut chunk_index, mut piece) = (PerAxis::new(), PerAxis::new());
        let all: Vec<Vec<u64>> = (0..chunks.count())
            .map(|number| {
                chunks.get(number, &mut chunk_index, &mut piece);
                chunk_index.to_vec()
            })
            .collect();
        assert_eq!(all, [[3, 0], [3, 1], [3, 2], [5, 0], [5, 1], [5, 2]]);
    }
}
