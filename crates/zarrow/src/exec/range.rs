//! Reading a part of uncompressed elements: only the bytes that are wanted, in few requests.
//!
//! 1. Where the bytes from the first wanted element to the last are few, or most of them are wanted, they are read at
//!    once to the worker's memory, and the elements are moved from there.
//! 2. Otherwise the outermost axis is cut: between positions, where what lies between them is worth a request of its
//!    own; else into groups whose bytes are few.

use crate::codec::Swap;
use crate::error::Result;
use crate::exec::destination::Source;
use crate::exec::input::Input;
use crate::exec::job::Checkpoint;
use crate::exec::part::AxisPart;
use crate::exec::scratch::Worker;
use crate::exec::want::Want;

/// Bytes that are read at once, whatever of them is wanted: another request would cost as much.
pub const FEW: u64 = 256 << 10;

/// Bytes between two positions that are worth a request.
const GAP: u64 = 32 << 10;

/// How many times as many both are where the store is slow.
const SLOW: u64 = 16;

/// The range of bytes from the first element of a part to its last.
pub fn span(part: &[AxisPart], strides: &[isize], item_size: u64) -> (u64, u64) {
    let reach = |position: fn(&AxisPart) -> u64| {
        part.iter()
            .zip(strides)
            .map(|(axis, stride)| position(axis) * stride.unsigned_abs() as u64)
            .sum::<u64>()
    };
    (reach(|axis| axis.start), reach(AxisPart::last) + item_size)
}

/// Start and length of the range of bytes that holds a part, where it is less than half of a chunk of `nbytes` bytes.
pub fn small_span(
    part: &[AxisPart],
    strides: &[isize],
    item_size: usize,
    nbytes: usize,
) -> Option<(usize, usize)> {
    let (low, high) = span(part, strides, item_size as u64);
    let (low, length) = (usize::try_from(low).ok()?, usize::try_from(high - low).ok()?);
    (length < nbytes / 2).then_some((low, length))
}

/// Where a read of a part begins, and how many bytes it reads at once where the store is slow.
pub fn first_range(part: &[AxisPart], strides: &[isize], item_size: usize) -> (u64, u64) {
    let (low, high) = span(part, strides, item_size as u64);
    (low, (high - low).min(FEW * SLOW))
}

/// Reads the elements of `want` from a chunk whose axes have these strides; `format` is the bytes of an element and
/// what of it is reversed.
///
/// # Errors
/// What the store gives; [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
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
    let (low, high) = span(part, strides, item_size as u64);
    let wanted = part.iter().map(|axis| axis.count).product::<u64>() * item_size as u64;
    let (few, gap) = if checkpoint.store_is_slow() { (FEW * SLOW, GAP * SLOW) } else { (FEW, GAP) };
    let cut = part.iter().position(|axis| axis.count > 1);
    let (Some(axis), true) = (cut, high - low > few && wanted < (high - low) / 2) else {
        checkpoint.pass()?;
        let memory = worker.decoded.take(usize::try_from(high - low).unwrap_or(usize::MAX))?;
        let bytes = &*input.read(low, memory)?;
        let origin = -isize::try_from(low).unwrap_or(isize::MAX);
        // SAFETY: it is the caller's want, which is not used meanwhile.
        let mut want = unsafe { Want::new(part, want.sink()) };
        return want.scatter(&Source { bytes, origin, strides, swap });
    };
    let distance = strides[axis].unsigned_abs() as u64 * part[axis].step;
    let group = if distance >= gap { 1 } else { (few / distance.max(1)).max(1) };
    let mut piece = part.to_vec();
    let mut taken = 0u64;
    while taken < part[axis].count {
        let count = group.min(part[axis].count - taken);
        piece[axis] = part[axis].skip(taken, count);
        taken += count;
        // SAFETY: the piece has places of the caller's want only, which is not used meanwhile, and no two pieces have
        // one in common.
        let want = unsafe { Want::new(&piece, want.sink()) };
        read_range(&want, input, strides, format, worker, checkpoint)?;
    }
    Ok(())
}
