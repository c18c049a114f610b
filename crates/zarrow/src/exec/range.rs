//! Reading a part of uncompressed elements: only the bytes that are wanted, in few requests.
//!
//! 1. Where the bytes from the first wanted element to the last are few, or most of them are wanted, they are read at
//!    once to the worker's memory, and the elements are moved from there.
//! 2. Otherwise the outermost axis of several positions is cut: between positions, where what lies between them is
//!    worth a request of its own; else into groups whose bytes are few.
//! 3. Picks are grouped the same way, one by one. Points are sorted for that by where they lie in the chunk.

use crate::codec::Swap;
use crate::error::{ErrorKind, Result};
use crate::exec::destination::Source;
use crate::exec::input::Input;
use crate::exec::job::Checkpoint;
use crate::exec::part::{AxisPart, PerAxis, Picks, narrowed};
use crate::exec::scratch::Worker;
use crate::exec::side::{Side, offsets};
use crate::exec::want::Want;
use std::ops::Range;
use zarrow_array::allocation;

/// Bytes that are read at once, whatever of them is wanted: another request would cost as much.
pub const FEW: u64 = 256 << 10;

/// Bytes between two positions that are worth a request.
const GAP: u64 = 32 << 10;

/// How many times as many both are where the store is slow.
const SLOW: u64 = 16;

/// The range of bytes from the first element of a part to its last.
///
/// # Errors
/// [`ErrorKind::Internal`] where it begins before the chunk, which a checked plan rules out.
pub fn span(part: &[AxisPart<'_>], strides: &[isize], item_size: usize) -> Result<Range<usize>> {
    let range = Side::in_chunk(part, 0, strides)?.and_then(|side| side.range(item_size));
    Ok(range.ok_or_else(outside)?)
}

fn outside() -> ErrorKind {
    ErrorKind::Internal("a part lies outside its chunk".into())
}

/// Start and length of the range of bytes that holds a part, where it is less than half of a chunk of `nbytes` bytes.
pub fn small_span(
    part: &[AxisPart<'_>],
    strides: &[isize],
    item_size: usize,
    nbytes: usize,
) -> Option<(usize, usize)> {
    let range = span(part, strides, item_size).ok()?;
    (range.len() < nbytes / 2).then_some((range.start, range.len()))
}

/// Where a read of a part begins, and how many bytes it reads at once where the store is slow.
///
/// # Errors
/// As [`read_range`].
pub fn first_range(part: &[AxisPart<'_>], strides: &[isize], item_size: usize) -> Result<(u64, u64)> {
    let range = span(part, strides, item_size)?;
    Ok((range.start as u64, (range.len() as u64).min(FEW * SLOW)))
}

/// Reads the elements of `want` from a chunk whose axes have these strides; `format` is the bytes of an element and
/// what of it is reversed.
///
/// # Errors
/// What the store gives; [`ErrorKind::Interrupted`].
pub fn read_range(
    want: &Want<'_>,
    input: &Input<'_>,
    strides: &[isize],
    format: (usize, &Swap),
    worker: &mut Worker,
    checkpoint: &Checkpoint<'_>,
) -> Result<()> {
    let (item_size, swap) = format;
    let part = want.part();
    let range = span(part, strides, item_size)?;
    let nbytes = range.len() as u64;
    let wanted = part.iter().map(|axis| axis.count).product::<u64>() * item_size as u64;
    let (few, gap) = if checkpoint.store_is_slow() { (FEW * SLOW, GAP * SLOW) } else { (FEW, GAP) };
    let cut = part.iter().position(|axis| axis.start < axis.last());
    let (Some(axis), true) = (cut, nbytes > few && wanted < nbytes / 2) else {
        checkpoint.pass()?;
        let memory = worker.decoded.take(range.len())?;
        let bytes = &*input.read(range.start as u64, memory)?;
        let origin = -isize::try_from(range.start).unwrap_or(isize::MAX);
        // SAFETY: it is the caller's want, which is not used meanwhile.
        let mut want = unsafe { Want::new(part, want.sink()) };
        return want.scatter(&Source { bytes, origin, strides, swap });
    };
    let mut read = |part: &[AxisPart<'_>], axis: usize, taken: u64, count: u64| {
        let piece = narrowed(part, axis, taken, count);
        // SAFETY: the piece has places of the caller's want only, which is not used meanwhile, and no two pieces have
        // one in common.
        let want = unsafe { Want::new(&piece, want.sink()) };
        read_range(&want, input, strides, format, worker, checkpoint)
    };
    if part[axis].picks.is_none() {
        let distance = strides[axis].unsigned_abs() as u64 * part[axis].step;
        let group = if distance >= gap { 1 } else { (few / distance.max(1)).max(1) };
        return (0..part[axis].count)
            .step_by(usize::try_from(group).unwrap_or(usize::MAX))
            .try_for_each(|taken| read(part, axis, taken, group.min(part[axis].count - taken)));
    }
    // Of points, the axis that counts them.
    let counts = |other: &AxisPart<'_>| part[axis].is_joined() && other.is_joined() && other.output.is_some();
    let axis = part.iter().position(counts).unwrap_or(axis);
    let offsets = offsets(part, axis, strides)?.ok_or_else(outside)?;
    let sorted = Sorted::new(part, offsets)?;
    let part = sorted.part(part);
    // What each pick takes with it on the other axes.
    let own = sorted.distance(0, sorted.offsets.len() - 1);
    let each = nbytes.saturating_sub(own);
    let mut taken = 0usize;
    while taken < sorted.offsets.len() {
        let next = (taken + 1..sorted.offsets.len()).find(|next| {
            let distance = sorted.distance(next - 1, *next);
            distance > 0 && (distance >= gap || sorted.distance(taken, *next) + each > few)
        });
        let end = next.unwrap_or(sorted.offsets.len());
        read(&part, axis, taken as u64, (end - taken) as u64)?;
        taken = end;
    }
    Ok(())
}

/// The picks of one axis, or of points, in the order in which they lie in the chunk (step 3).
struct Sorted {
    /// Where they lie, rising.
    offsets: Vec<isize>,
    /// The positions on each axis, and the places, of points that were not sorted.
    points: Option<(PerAxis<Vec<u64>>, Vec<u64>)>,
}

impl Sorted {
    /// Sorts the points of `part`, which lie at `offsets`; other picks are sorted.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    fn new(part: &[AxisPart<'_>], offsets: Vec<isize>) -> Result<Sorted> {
        if offsets.is_sorted() {
            return Ok(Sorted { offsets, points: None });
        }
        let mut order: Vec<usize> = allocation::collected(0..offsets.len())?;
        order.sort_unstable_by_key(|number| offsets[*number]);
        let in_order =
            |picks: Picks<'_>| allocation::collected(order.iter().map(|number| picks.positions[*number]));
        let of_points = part.iter().map(|axis| axis.picks.filter(|picks| picks.joined));
        let positions =
            of_points.map(|picks| picks.map_or(Ok(Vec::new()), in_order)).collect::<Result<_, _>>()?;
        let counting = part.iter().find(|axis| axis.is_joined() && axis.output.is_some());
        let place = |number: &usize| {
            let places = counting.and_then(|axis| axis.picks?.places);
            places.map_or(counting.map_or(0, |axis| axis.place) + *number as u64, |places| places[*number])
        };
        let points = Some((positions, allocation::collected(order.iter().map(place))?));
        Ok(Sorted { offsets: allocation::collected(order.iter().map(|number| offsets[*number]))?, points })
    }

    /// The part with its picks in this order.
    fn part<'a>(&'a self, part: &[AxisPart<'a>]) -> PerAxis<AxisPart<'a>> {
        let Some((positions, places)) = &self.points else { return PerAxis::from_slice(part) };
        let pick = |(axis, positions): (&AxisPart<'a>, &'a Vec<u64>)| match axis.picks {
            Some(picks) if picks.joined => axis.picking(Picks { positions, places: Some(places), ..picks }),
            _ => *axis,
        };
        part.iter().zip(positions).map(pick).collect()
    }

    /// Bytes from one to a later one.
    fn distance(&self, from: usize, to: usize) -> u64 {
        self.offsets[from].abs_diff(self.offsets[to]) as u64
    }
}
