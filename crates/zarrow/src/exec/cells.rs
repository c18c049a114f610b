//! The plan of a read: which chunks a part of an array touches, and what it takes from each.
//!
//! 1. Each axis is cut by itself along the grid: its cells follow one another, and a chunk's part is one piece an
//!    axis. Evenly spaced positions on a grid of equal cells need no list of pieces.
//! 2. Picks are sorted, so that those of one cell follow one another: a number for each cell says where they begin.
//! 3. Points are cut on all their axes at once. They are numbered by the cell that holds them, among all cells between
//!    the lowest and the highest, and sorted by that number, unless one cell has them all or they are sorted already.
//! 4. The combinations of the axes' cells are numbered in C order.
//!
//! Cutting a chunk's part along the grid of a shard's inner chunks is the same once more.

use crate::error::{ErrorKind, Result};
use crate::exec::part::{AxisPart, PerAxis, Picks};
use crate::metadata::ChunkGrid;
use std::borrow::Cow;
use zarrow_array::allocation::{self, Grow};

/// The grid along one axis.
#[derive(Debug, Clone, Copy)]
pub enum AxisGrid<'a> {
    /// Cells of one extent.
    Equal(u64),
    /// Cells as this axis of a grid has them.
    Of(&'a ChunkGrid, usize),
}

impl<'a> AxisGrid<'a> {
    /// The grid of an array's chunks along `axis`.
    pub fn new(grid: &'a ChunkGrid, axis: usize) -> AxisGrid<'a> {
        match grid {
            ChunkGrid::Regular { chunk_shape } => AxisGrid::Equal(chunk_shape[axis]),
            grid => AxisGrid::Of(grid, axis),
        }
    }

    /// The cell that holds `position`, with its origin and its extent.
    fn locate(self, position: u64) -> (u64, u64, u64) {
        match self {
            AxisGrid::Equal(extent) => (position / extent, position / extent * extent, extent),
            AxisGrid::Of(grid, axis) => {
                let cell = grid.locate(axis, position);
                let (origin, extent) = grid.chunk_extent(axis, cell);
                (cell, origin, extent)
            }
        }
    }
}

/// The cells that a part touches on one axis, in rising order.
#[derive(Debug)]
enum AxisCells<'a> {
    /// Evenly spaced positions in cells of one extent, found when asked for.
    Equal { part: AxisPart<'a>, extent: u64, count: u64 },
    /// Any cells, one by one.
    Listed(Vec<(u64, AxisPart<'a>)>),
    /// Picks: those of one cell begin at each of `starts`.
    Picked { part: AxisPart<'a>, starts: Vec<usize>, grid: AxisGrid<'a> },
    /// An axis of points: they are grouped beside the axes, and the one that counts them knows how many groups there are.
    Joined { part: AxisPart<'a>, grid: AxisGrid<'a>, count: u64 },
}

impl<'a> AxisCells<'a> {
    /// The cells of `part`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where a list of them is longer than any honest grid's,
    /// [`zarrow_array::Error::OutOfMemory`].
    fn new(part: AxisPart<'a>, grid: AxisGrid<'a>) -> Result<AxisCells<'a>> {
        /// More edges than anybody writes out, since a grid of equal chunks needs none.
        const MOST: usize = 1 << 22;
        match (part.picks, grid) {
            (Some(Picks { joined: true, .. }), _) => Ok(AxisCells::Joined { part, grid, count: 1 }),
            (Some(picks), _) => {
                let starts = starts_of(picks.positions.len(), |number| {
                    let (_, origin, extent) = grid.locate(picks.positions[number] - picks.origin);
                    let end = (picks.origin + origin).saturating_add(extent);
                    picks.positions[number..].partition_point(|position| *position < end)
                })?;
                Ok(AxisCells::Picked { part, starts, grid })
            }
            (None, AxisGrid::Equal(extent)) => {
                let count = match part.step <= extent {
                    true => part.last() / extent - part.start / extent + 1,
                    // No cell holds two positions.
                    false => part.count,
                };
                Ok(AxisCells::Equal { part, extent, count })
            }
            (None, grid) => {
                let mut cells = Vec::new();
                let mut taken = 0u64;
                while taken < part.count {
                    let (cell, origin, extent) = grid.locate(part.start + taken * part.step);
                    let piece = within(&part, taken, origin, extent);
                    taken += piece.count;
                    cells.try_push((cell, piece))?;
                    if cells.len() > MOST {
                        return Err(too_many().into());
                    }
                }
                Ok(AxisCells::Listed(cells))
            }
        }
    }

    /// How many cells are touched.
    fn count(&self) -> u64 {
        match self {
            AxisCells::Equal { count, .. } | AxisCells::Joined { count, .. } => *count,
            AxisCells::Listed(cells) => cells.len() as u64,
            AxisCells::Picked { starts, .. } => starts.len() as u64,
        }
    }

    /// The cell `number`, which is below the count, and what is taken from it; for an axis of points, all of it.
    fn get(&self, number: u64) -> (u64, AxisPart<'a>) {
        match self {
            AxisCells::Equal { part, extent, .. } if part.step <= *extent => {
                let cell = part.start / extent + number;
                let origin = cell * extent;
                let skipped = origin.saturating_sub(part.start).div_ceil(part.step);
                (cell, within(part, skipped, origin, *extent))
            }
            AxisCells::Equal { part, extent, .. } => {
                let cell = (part.start + number * part.step) / extent;
                (cell, within(part, number, cell * extent, *extent))
            }
            AxisCells::Listed(cells) => cells[number as usize],
            AxisCells::Picked { part, starts, grid } => {
                let (skipped, count) = group(starts, number, part.count);
                let (cell, piece) = moved(part.skip(skipped, count), *grid);
                (cell, piece.evened())
            }
            AxisCells::Joined { part, .. } => (0, *part),
        }
    }
}

/// What of `part` lies in the cell `[origin, origin + extent)`, counted from the cell's start; the positions before the
/// cell, `skipped` in number, were taken already.
fn within<'a>(part: &AxisPart<'a>, skipped: u64, origin: u64, extent: u64) -> AxisPart<'a> {
    let start = part.start + skipped * part.step - origin;
    let room = (extent - start).div_ceil(part.step);
    AxisPart { start, ..part.skip(skipped, room.min(part.count - skipped)) }
}

/// The cell that has all picks of `piece`, and these counted from its start.
fn moved<'a>(piece: AxisPart<'a>, grid: AxisGrid<'_>) -> (u64, AxisPart<'a>) {
    let (cell, origin, _) = grid.locate(piece.start);
    let picks = piece.picks.map(|picks| Picks { origin: picks.origin + origin, ..picks });
    (cell, AxisPart { start: piece.start - origin, picks, ..piece })
}

/// Where each group of `count` items begins; `length_of` says how many items there are from the start of a group on.
///
/// # Errors
/// [`zarrow_array::Error::OutOfMemory`].
fn starts_of(count: usize, length_of: impl Fn(usize) -> usize) -> Result<Vec<usize>> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at < count {
        starts.try_push(at)?;
        at += length_of(at);
    }
    Ok(starts)
}

/// How many items stand before the group `number`, and how many are in it.
fn group(starts: &[usize], number: u64, total: u64) -> (u64, u64) {
    let number = number as usize;
    let start = starts[number] as u64;
    (start, starts.get(number + 1).map_or(total, |end| *end as u64) - start)
}

/// Points, grouped by cell (step 3).
#[derive(Debug)]
struct Groups<'a> {
    /// The positions of each axis of points, and which axis that is.
    axes: PerAxis<(usize, Cow<'a, [u64]>)>,
    /// Where each point goes; `None` where they follow one another.
    places: Option<Cow<'a, [u64]>>,
    starts: Vec<usize>,
}

impl<'a> Groups<'a> {
    /// The groups of a part's points; `None` where it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the cells between the points are more than can be counted,
    /// [`zarrow_array::Error::OutOfMemory`].
    fn new(part: &[AxisPart<'a>], grid: &impl Fn(usize) -> AxisGrid<'a>) -> Result<Option<Groups<'a>>> {
        let joined: PerAxis<(usize, AxisPart<'a>, Picks<'a>)> = part
            .iter()
            .enumerate()
            .filter_map(|(axis, part)| Some((axis, *part, part.picks.filter(|picks| picks.joined)?)))
            .collect();
        let Some((_, _, first)) = joined.first() else { return Ok(None) };
        let count = first.positions.len();
        let mut numbers = allocation::filled(0u64, count)?;
        let mut cells = 1u64;
        for (axis, part, picks) in &joined {
            let cell = |position| grid(*axis).locate(position).0;
            let lowest = cell(part.start);
            let extent = cell(part.last()) - lowest + 1;
            cells = cells.checked_mul(extent).ok_or_else(too_far)?;
            if extent > 1 {
                for (number, position) in numbers.iter_mut().zip(picks.iter()) {
                    *number = *number * extent + (cell(position) - lowest);
                }
            }
        }
        let place =
            joined.iter().find(|(_, part, _)| part.output.is_some()).map_or(0, |(_, part, _)| part.place);
        let (axes, places) = match numbers.is_sorted() {
            true => {
                let axes = joined.iter().map(|(axis, _, picks)| (*axis, Cow::Borrowed(picks.positions)));
                (axes.collect(), first.places.map(Cow::Borrowed))
            }
            false => {
                let mut order: Vec<(u64, usize)> =
                    allocation::collected(numbers.iter().copied().zip(0usize..))?;
                // Points of one cell keep their order: where they are written to, the last one stays.
                order.sort_unstable();
                for (number, (sorted, _)) in numbers.iter_mut().zip(&order) {
                    *number = *sorted;
                }
                let ordered = |value: &dyn Fn(usize) -> u64| -> Result<Cow<'a, [u64]>> {
                    Ok(Cow::Owned(allocation::collected(order.iter().map(|(_, at)| value(*at)))?))
                };
                let axes = joined
                    .iter()
                    .map(|(axis, _, picks)| Ok((*axis, ordered(&|at| picks.positions[at])?)))
                    .collect::<Result<_>>()?;
                let place_of = |at: usize| first.places.map_or(place + at as u64, |places| places[at]);
                (axes, Some(ordered(&place_of)?))
            }
        };
        let starts = starts_of(count, |at| numbers[at..].partition_point(|number| *number == numbers[at]))?;
        Ok(Some(Groups { axes, places, starts }))
    }
}

/// The cells that a part touches on each axis, whose combinations are numbered in C order.
#[derive(Debug)]
pub struct Cells<'a> {
    axes: PerAxis<AxisCells<'a>>,
    points: Option<Groups<'a>>,
    count: u64,
}

impl<'a> Cells<'a> {
    /// The cells of `part`, of which each axis has a grid.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where the cells are more than can be counted, [`ErrorKind::Unsupported`] where those
    /// between points are, [`zarrow_array::Error::OutOfMemory`].
    pub fn new(part: &[AxisPart<'a>], grid: impl Fn(usize) -> AxisGrid<'a>) -> Result<Cells<'a>> {
        let cut = |(axis, part): (usize, &AxisPart<'a>)| AxisCells::new(*part, grid(axis));
        let mut axes: PerAxis<_> = part.iter().enumerate().map(cut).collect::<Result<_>>()?;
        let points = Groups::new(part, &grid)?;
        if let Some(points) = &points {
            let counts = axes.iter_mut().filter_map(|axis| match axis {
                AxisCells::Joined { part: AxisPart { output: Some(_), .. }, count, .. } => Some(count),
                _ => None,
            });
            counts.for_each(|count| *count = points.starts.len() as u64);
        }
        let count = axes.iter().try_fold(1u64, |product, axis| product.checked_mul(axis.count()));
        Ok(Cells { axes, points, count: count.ok_or_else(too_many)? })
    }

    /// How many combinations there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The combination `number`: writes its cell on each axis and what is taken from it.
    pub fn get<'s>(&'s self, number: u64, cell: &mut PerAxis<u64>, part: &mut PerAxis<AxisPart<'s>>) {
        cell.clear();
        part.clear();
        let mut rest = number;
        let mut of_points = 0u64;
        for axis in self.axes.iter().rev() {
            let number = rest % axis.count();
            let (index, piece) = axis.get(number);
            rest /= axis.count();
            if matches!(axis, AxisCells::Joined { part: AxisPart { output: Some(_), .. }, .. }) {
                of_points = number;
            }
            cell.push(index);
            part.push(piece);
        }
        cell.reverse();
        part.reverse();
        let Some(points) = &self.points else { return };
        for (axis, positions) in &points.axes {
            let AxisCells::Joined { part: whole, grid, .. } = &self.axes[*axis] else { continue };
            let (skipped, count) = group(&points.starts, of_points, positions.len() as u64);
            let origin = whole.picks.map_or(0, |picks| picks.origin);
            let picks = Picks { positions, places: points.places.as_deref(), origin, joined: true };
            let count_here = if whole.output.is_some() { count } else { 1 };
            let piece = AxisPart { count: count_here, place: whole.place + skipped, ..*whole };
            let (index, piece) = moved(piece.picking(picks.skip(skipped, count)), *grid);
            cell[*axis] = index;
            part[*axis] = piece;
        }
    }
}

fn too_many() -> ErrorKind {
    ErrorKind::Internal("more chunks than can be counted".into())
}

fn too_far() -> ErrorKind {
    ErrorKind::Unsupported("points with more chunks between them than can be counted".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::part::oracle::{elements, selected, selections};
    use crate::exec::part::whole_part;
    use crate::selection::{AxisIndex, Selection};
    use proptest::prelude::*;

    /// A grid of unequal chunks along each axis, of these extents.
    fn rectilinear(axes: &[Vec<u64>]) -> ChunkGrid {
        let edges: Vec<Vec<u64>> = axes.to_vec();
        let shape: Vec<u64> = edges.iter().map(|edges| edges.iter().sum()).collect();
        let grid = serde_json::json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": edges}});
        ChunkGrid::parse(&grid, &shape).unwrap()
    }

    /// What all cells take, with positions of the whole array: every piece inside its cell, and no cell twice.
    fn taken<'g>(
        cells: &Cells<'_>,
        grid: &impl Fn(usize) -> AxisGrid<'g>,
    ) -> Vec<(PerAxis<u64>, PerAxis<u64>)> {
        let mut seen = std::collections::BTreeSet::new();
        let mut taken = Vec::new();
        for number in 0..cells.count() {
            let (mut cell, mut part) = (PerAxis::new(), PerAxis::new());
            cells.get(number, &mut cell, &mut part);
            assert!(seen.insert(cell.clone()), "{cell:?} twice");
            for (position, place) in elements(&part) {
                let position = position.iter().enumerate().map(|(axis, position)| {
                    // The first position of the cell, by going there from the start.
                    let mut origin = 0;
                    while grid(axis).locate(origin).0 < cell[axis] {
                        origin += 1;
                    }
                    assert_eq!(grid(axis).locate(origin + position).0, cell[axis]);
                    origin + position
                });
                taken.push((position.collect(), place));
            }
        }
        taken.sort();
        taken
    }

    proptest! {
        /// Every selected position is taken once, from the cell that holds it, and goes where it is asked to.
        #[test]
        fn cutting_takes_each_position_once((_, selection) in selections(), extents in prop::collection::vec(1u64..9, 3)) {
            let Some(part) = whole_part(&selection) else { return Ok(()) };
            let grid = |axis: usize| AxisGrid::Equal(extents[axis]);
            let cells = Cells::new(&part, grid).unwrap();
            let mut expected = selected(&selection);
            expected.sort();
            prop_assert_eq!(taken(&cells, &grid), expected);
        }

        #[test]
        fn so_it_does_on_a_grid_of_unequal_chunks((_, selection) in selections(), edges in prop::collection::vec(prop::collection::vec(1u64..6, 12), 3)) {
            let Some(part) = whole_part(&selection) else { return Ok(()) };
            let grid = rectilinear(&edges);
            let of = |axis: usize| AxisGrid::new(&grid, axis);
            let cells = Cells::new(&part, of).unwrap();
            let mut expected = selected(&selection);
            expected.sort();
            prop_assert_eq!(taken(&cells, &of), expected);
        }

        /// Cutting a piece once more is cutting it finer.
        #[test]
        fn pieces_can_be_cut_again((_, selection) in selections(), inner in prop::collection::vec(1u64..4, 3), outer in prop::collection::vec(1u64..4, 3)) {
            let Some(part) = whole_part(&selection) else { return Ok(()) };
            let extent = |axis: usize| inner[axis] * outer[axis];
            let cells = Cells::new(&part, |axis| AxisGrid::Equal(extent(axis))).unwrap();
            let mut all = Vec::new();
            for number in 0..cells.count() {
                let (mut cell, mut piece) = (PerAxis::new(), PerAxis::new());
                cells.get(number, &mut cell, &mut piece);
                let grid = |axis: usize| AxisGrid::Equal(inner[axis]);
                let within = Cells::new(&piece, grid).unwrap();
                all.extend(taken(&within, &grid).into_iter().map(|(position, place)| {
                    let position = position.iter().enumerate().map(|(axis, at)| cell[axis] * extent(axis) + at);
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
    fn positions_of_one_cell_keep_their_order() {
        let lists = [AxisIndex::List(&[7, 1, 7, 1, 0, 7]), AxisIndex::List(&[0, 0, 0, 0, 2, 0])];
        let points = Selection::points(&[8, 3], &lists, &[6]).unwrap();
        let orthogonal = Selection::orthogonal(&[8, 3], &lists[..1]).unwrap();
        for selection in [points, orthogonal] {
            let part = whole_part(&selection).unwrap();
            let cells = Cells::new(&part, |_| AxisGrid::Equal(4)).unwrap();
            let (mut cell, mut piece) = (PerAxis::new(), PerAxis::new());
            for number in 0..cells.count() {
                cells.get(number, &mut cell, &mut piece);
                let elements = elements(&piece);
                for (number, (position, place)) in elements.iter().enumerate() {
                    let later = elements[number..].iter().filter(|other| other.0 == *position);
                    assert!(later.map(|other| &other.1).is_sorted(), "{place:?}");
                }
            }
        }
    }

    #[test]
    fn cells_that_cannot_be_counted_are_refused() {
        let far = [AxisIndex::List(&[0, i64::MAX - 1]); 2];
        let selection = Selection::points(&[i64::MAX as u64; 2], &far, &[2]).unwrap();
        let part = whole_part(&selection).unwrap();
        assert!(Cells::new(&part, |_| AxisGrid::Equal(1)).is_err());
        assert_eq!(Cells::new(&part, |_| AxisGrid::Equal(1 << 62)).unwrap().count(), 2);
        let all = Selection::all(&[i64::MAX as u64; 2]);
        assert!(Cells::new(&whole_part(&all).unwrap(), |_| AxisGrid::Equal(1)).is_err());
    }

    #[test]
    fn combinations_run_in_c_order() {
        let selection = Selection::orthogonal(&[12, 6], &[AxisIndex::List(&[6, 11, 7])]).unwrap();
        let part = whole_part(&selection).unwrap();
        let cells = Cells::new(&part, |_| AxisGrid::Equal(2)).unwrap();
        let (mut cell, mut piece) = (PerAxis::new(), PerAxis::new());
        let all: Vec<Vec<u64>> = (0..cells.count())
            .map(|number| {
                cells.get(number, &mut cell, &mut piece);
                cell.to_vec()
            })
            .collect();
        assert_eq!(all, [[3, 0], [3, 1], [3, 2], [5, 0], [5, 1], [5, 2]]);
    }
}
