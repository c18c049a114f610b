//! Reads a part of uncompressed elements: only the selected bytes, in few requests.
//!
//! 1. If the bytes from the first selected element to the last are few, or most of them are selected, they are read at
//!    once into the worker's memory, and the elements are moved from there.
//! 2. Otherwise the outermost axis with several positions is split: between neighbouring positions if the gap is worth
//!    a separate request, else into groups of few bytes.
//! 3. Listed positions are grouped in the same way. Points are first sorted by their offset in the chunk.
//! 4. If a request is a system call, a large range with mostly selected bytes is read piece by piece, so that each
//!    piece is still in the core's own cache when its elements are moved.
//! 5. For bytes in the page cache, shorter gaps are worth a request. If one of these requests would wait for the disk,
//!    the whole part is read by the rules for a disk.

use crate::codec::{FEW_NBYTES, Input, Swap, Worker};
use crate::error::{ErrorKind, Result};
use crate::place::destination::Source;
use crate::place::element_offsets::{StridedLayout, offsets};
use crate::place::output_claim::OutputClaim;
use crate::plan::axis_part::{AxisPart, IndexList, PerAxis, narrowed};
use crate::pool::job::Checkpoint;
use std::ops::Range;
use zarrow_array::allocation;

/// Minimum gap in bytes between two positions that is worth a request.
const GAP_NBYTES: u64 = 32 << 10;

/// The same for bytes in the page cache: copying more takes longer than a request.
const CACHED_GAP_NBYTES: u64 = 8 << 10;

/// Bytes that one core's cache keeps until they are moved, next to their destination.
const PIECE_NBYTES: u64 = 128 << 10;

/// Factor on the sizes and gaps for requests with high latency.
const REMOTE_FACTOR: u64 = 16;

/// The range of bytes from the first element of a part to its last.
///
/// # Errors
/// [`ErrorKind::Internal`] if it begins before the chunk, which a checked plan rules out.
pub fn span(part: &[AxisPart<'_>], strides: &[isize], item_size: usize) -> Result<Range<usize>> {
    let range = StridedLayout::in_chunk(part, 0, strides)?.and_then(|layout| layout.range(item_size));
    Ok(range.ok_or_else(outside)?)
}

fn outside() -> ErrorKind {
    ErrorKind::Internal("a part exceeds its chunk".into())
}

/// Returns the start and length of the byte range that holds a part, if it is at most half of a chunk of `nbytes`
/// bytes.
pub fn small_span(
    part: &[AxisPart<'_>],
    strides: &[isize],
    item_size: usize,
    nbytes: usize,
) -> Option<(usize, usize)> {
    let range = span(part, strides, item_size).ok()?;
    (range.len() <= nbytes / 2).then_some((range.start, range.len()))
}

/// Thresholds in bytes: how much is read at once, and which gap is worth a separate request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuts {
    /// Ranges up to this size are read at once, however few of their bytes are selected.
    pub few: u64,
    /// Minimum gap in bytes between two positions that is worth a request.
    pub gap: u64,
    /// Size of a piece in bytes, for ranges with mostly selected bytes (step 4).
    pub piece: u64,
}

impl Cuts {
    /// For requests that are system calls.
    pub const LOCAL: Cuts = Cuts { few: FEW_NBYTES, gap: GAP_NBYTES, piece: PIECE_NBYTES };
    /// For requests with high latency.
    pub const REMOTE: Cuts =
        Cuts { few: FEW_NBYTES * REMOTE_FACTOR, gap: GAP_NBYTES * REMOTE_FACTOR, piece: u64::MAX };

    /// Returns the cuts for reads of `input`.
    pub fn new(input: &Input<'_>) -> Cuts {
        if input.is_fetched() { Cuts::REMOTE } else { Cuts::LOCAL }
    }
}

/// Reads the elements of `claim` from a chunk with these axis strides; `format` is the element size in bytes and the
/// byte swap.
pub fn read_range(
    claim: &OutputClaim<'_>,
    input: &Input<'_>,
    strides: &[isize],
    format: (usize, &Swap),
    worker: &mut Worker,
    checkpoint: &Checkpoint<'_>,
) -> Result<()> {
    if Cuts::new(input) == Cuts::LOCAL && read_apart(claim, input, strides, format, worker, checkpoint)? {
        return Ok(());
    }
    let (item_size, swap) = format;
    each_range(claim.part(), strides, item_size, Cuts::new(input), &mut |part, range| {
        checkpoint.pass()?;
        let memory = worker.decoded.take(range.len())?;
        let bytes = &*input.read(range.start as u64, memory)?;
        let origin = -isize::try_from(range.start).unwrap_or(isize::MAX);
        // SAFETY: the piece has places of the caller's claim only, and that claim is not used meanwhile. No two pieces
        // have a place in common.
        let mut claim = unsafe { OutputClaim::new(part, claim.sink()) };
        claim.scatter(&Source { bytes, origin, strides, swap })
    })
}

/// Reads the bytes at each position of the outermost axis by a non-blocking request, then moves all the elements
/// together (step 5). Returns false if the gaps are not worth it, or if a request would wait.
fn read_apart(
    claim: &OutputClaim<'_>,
    input: &Input<'_>,
    strides: &[isize],
    (item_size, swap): (usize, &Swap),
    worker: &mut Worker,
    checkpoint: &Checkpoint<'_>,
) -> Result<bool> {
    /// Number of requests between two looks at the clock.
    const REQUESTS: usize = 64;
    let part = claim.part();
    let outermost = part.iter().position(|axis| axis.start < axis.last());
    let Some(axis) = outermost.filter(|axis| part[*axis].list.is_none()) else { return Ok(false) };
    let nbytes = span(part, strides, item_size)?.len() as u64;
    let (distance, own) = apart(&part[axis], strides[axis], nbytes);
    let gaps = CACHED_GAP_NBYTES..GAP_NBYTES;
    if nbytes <= FEW_NBYTES || own > CACHED_GAP_NBYTES || !gaps.contains(&(distance - own.min(distance))) {
        return Ok(false);
    }
    let first = span(&narrowed(part, axis, 0, 1), strides, item_size)?;
    let memory = worker.decoded.take(first.len() * part[axis].count as usize)?;
    for (number, piece) in memory.chunks_exact_mut(first.len()).enumerate() {
        if number % REQUESTS == 0 {
            checkpoint.pass()?;
        }
        if input.read_at_once(first.start as u64 + number as u64 * distance, piece)?.is_none() {
            return Ok(false);
        }
    }
    // SAFETY: each of the pieces that the memory consists of was filled.
    let bytes = unsafe { memory.assume_init_ref() };
    // The same places, read from memory that holds the positions of the axis one after the other.
    let (mut packed, mut packed_strides) = (PerAxis::from_slice(part), PerAxis::from_slice(strides));
    (packed[axis].start, packed[axis].step) = (0, 1);
    packed_strides[axis] = first.len() as isize;
    let origin = part[axis].start as isize * strides[axis] - first.start as isize;
    // SAFETY: the part has the places of the caller's claim, and that claim is not used meanwhile.
    let mut claim = unsafe { OutputClaim::new(&packed, claim.sink()) };
    claim.scatter(&Source { bytes, origin, strides: &packed_strides, swap })?;
    Ok(true)
}

/// Returns the distance in bytes between positions of an axis, and the bytes spanned by each; together they span
/// `nbytes`.
fn apart(axis: &AxisPart<'_>, stride: isize, nbytes: u64) -> (u64, u64) {
    let distance = (stride.unsigned_abs() as u64).saturating_mul(axis.step);
    (distance, nbytes.saturating_sub(distance.saturating_mul(axis.count.saturating_sub(1))))
}

/// Reads a piece of a part from a range of bytes.
type ReadPiece<'a> = dyn FnMut(&[AxisPart<'_>], Range<usize>) -> Result<()> + 'a;

/// Calls `read` with each piece of `part` that is read at once, and the byte range that holds it (steps 1 to 3).
///
/// This is a pure function of the selection: a read that prefetches calls it first to learn the ranges to fetch, and
/// again to read from the fetched bytes.
///
/// # Errors
/// Errors of `read`; [`ErrorKind::Internal`] if the part is outside its chunk, [`zarrow_array::Error::OutOfMemory`].
pub fn each_range(
    part: &[AxisPart<'_>],
    strides: &[isize],
    item_size: usize,
    cuts: Cuts,
    read: &mut ReadPiece<'_>,
) -> Result<()> {
    let range = span(part, strides, item_size)?;
    let nbytes = range.len() as u64;
    let wanted = part.iter().map(|axis| axis.count).product::<u64>() * item_size as u64;
    let Cuts { few, gap, piece } = cuts;
    let Some(axis) = part.iter().position(|axis| axis.start < axis.last()) else { return read(part, range) };
    let is_dense = wanted >= nbytes / 2;
    let is_small = if is_dense { nbytes <= piece || !has_pieces(part, axis) } else { nbytes <= few };
    if is_small {
        return read(part, range);
    }
    let mut each = |part: &[AxisPart<'_>], axis: usize, taken: u64, count: u64| {
        each_range(&narrowed(part, axis, taken, count), strides, item_size, cuts, read)
    };
    if part[axis].list.is_none() {
        let (distance, own) = apart(&part[axis], strides[axis], nbytes);
        let group = match is_dense {
            true => (piece / distance.max(1)).max(1),
            false if distance.saturating_sub(own) >= gap => 1,
            false => (few / distance.max(1)).max(1),
        };
        return (0..part[axis].count)
            .step_by(usize::try_from(group).unwrap_or(usize::MAX))
            .try_for_each(|taken| each(part, axis, taken, group.min(part[axis].count - taken)));
    }
    // For points, the axis that counts them.
    let counts =
        |other: &AxisPart<'_>| part[axis].is_vectorized() && other.is_vectorized() && other.output.is_some();
    let axis = part.iter().position(counts).unwrap_or(axis);
    let offsets = offsets(part, axis, strides)?.ok_or_else(outside)?;
    let sorted = Sorted::new(part, offsets)?;
    let part = sorted.part(part);
    // The extent of each position on the other axes.
    let own = sorted.distance(0, sorted.offsets.len() - 1);
    let around = nbytes.saturating_sub(own);
    let mut taken = 0usize;
    while taken < sorted.offsets.len() {
        let next = (taken + 1..sorted.offsets.len()).find(|next| {
            let distance = sorted.distance(next - 1, *next);
            distance > 0 && (distance >= gap || sorted.distance(taken, *next) + around > few)
        });
        let end = next.unwrap_or(sorted.offsets.len());
        each(&part, axis, taken as u64, (end - taken) as u64)?;
        taken = end;
    }
    Ok(())
}

/// Whether reading piece by piece along `axis` is worth it: pieces of lists are not in chunk order, and pieces along
/// the innermost axis of the result would each fill a section of every row.
fn has_pieces(part: &[AxisPart<'_>], axis: usize) -> bool {
    part[axis].list.is_none() && part.iter().any(|other| other.output > part[axis].output)
}

/// The positions of one axis, or of points, sorted by their offset in the chunk (step 3).
struct Sorted {
    /// Byte offsets in the chunk, ascending.
    offsets: Vec<isize>,
    /// The positions on each axis, and the places, of points that had to be sorted.
    points: Option<(PerAxis<Vec<u64>>, Vec<u64>)>,
}

impl Sorted {
    /// Sorts the points of `part` by `offsets`; lists on other axes are already sorted.
    fn new(part: &[AxisPart<'_>], offsets: Vec<isize>) -> Result<Sorted> {
        if offsets.is_sorted() {
            return Ok(Sorted { offsets, points: None });
        }
        let mut order: Vec<usize> = allocation::collected(0..offsets.len())?;
        order.sort_unstable_by_key(|number| offsets[*number]);
        let in_order =
            |list: IndexList<'_>| allocation::collected(order.iter().map(|number| list.positions[*number]));
        let of_points = part.iter().map(|axis| axis.list.filter(|list| list.vectorized));
        let positions =
            of_points.map(|list| list.map_or(Ok(Vec::new()), in_order)).collect::<Result<_, _>>()?;
        let counting = part.iter().find(|axis| axis.is_vectorized() && axis.output.is_some());
        let place = |number: &usize| {
            let places = counting.and_then(|axis| axis.list?.places);
            places.map_or(counting.map_or(0, |axis| axis.place) + *number as u64, |places| places[*number])
        };
        let points = Some((positions, allocation::collected(order.iter().map(place))?));
        Ok(Sorted { offsets: allocation::collected(order.iter().map(|number| offsets[*number]))?, points })
    }

    /// Returns the part with its positions in this order.
    fn part<'a>(&'a self, part: &[AxisPart<'a>]) -> PerAxis<AxisPart<'a>> {
        let Some((positions, places)) = &self.points else { return PerAxis::from_slice(part) };
        let reorder = |(axis, positions): (&AxisPart<'a>, &'a Vec<u64>)| match axis.list {
            Some(list) if list.vectorized => {
                axis.with_list(IndexList { positions, places: Some(places), ..list })
            }
            _ => *axis,
        };
        part.iter().zip(positions).map(reorder).collect()
    }

    /// Distance in bytes between two of the positions.
    fn distance(&self, from: usize, to: usize) -> u64 {
        self.offsets[from].abs_diff(self.offsets[to]) as u64
    }
}
