//! Maps files that already hold the tensor, instead of reading them.
//!
//! 1. Requirements: the array's chunks are plain elements in native byte order (uncompressed, not transposed), and the
//!    selection is inside one chunk, or takes whole rows of chunks that fill whole pages, so that they stack along the
//!    first axis. Inner chunks of shards are mapped if they begin on a page.
//! 2. The address space for the whole tensor is reserved.
//! 3. Each chunk's file is opened once, its length is checked, and it is mapped over its part of the reservation,
//!    private and writable: a write changes this process's copy of the page, never the file.
//! 4. A missing chunk gets anonymous pages, filled if the fill value is not zero. If that is much memory, the selection
//!    is read instead, which asks for the memory before it fills it.
//!
//! Everything else is read. A file is also read if the kernel refuses to map it, because the process has too many
//! maps, there is no address space left, or the file system cannot map. A write in place by another process shows
//! through, and access to the missing pages of a truncated file kills the process. Hence mapping is only on request.

use crate::codec::{Chain, Layout, Swap, wrong_elements_size};
use crate::decode::open_chunk::{Located, SharedChunk};
use crate::decode::reader::Reader;
use crate::error::{ErrorKind, Result};
use crate::metadata::{ChunkGrid, FillValue};
use crate::plan::axis_part::{AxisPart, PerAxis, whole_part};
use crate::pool::{num_threads, run};
use crate::read::item::Item;
use crate::store::FileRange;
use crate::store::system_calls;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use zarrow_array::{HUGE_PAGE, IndexStep, SharedTensor, shape};

/// Reading a chunk with less than this many bytes costs less than mapping it.
const LEAST_NBYTES: u64 = 256 << 10;

/// Maximum number of maps in one tensor: the kernel allows a process some 65,000.
const MOST_MAPS: u64 = 16_000;

/// Number of files per additional thread.
const ROWS_PER_THREAD: usize = 8;

/// Number that is not a device.
const NO_DEVICE: u64 = u64::MAX;

/// Maximum bytes filled with a fill value, since a map is promised to cost no memory.
const MOST_FILLED_NBYTES: usize = 64 << 20;

/// Page size assumed in planning. Larger pages divide fewer chunks, which the kernel then refuses.
const PAGE_NBYTES: u64 = 4096;

/// A reservation of address space, with the maps in it.
#[derive(Debug)]
struct Reservation {
    /// First used address: aligned to huge pages, so that the kernel can map large parts of a file at once.
    pointer: NonNull<u8>,
    nbytes: usize,
    /// The whole reservation.
    reserved: (*mut libc::c_void, usize),
}

// SAFETY: the reservation owns its address space, which belongs to no thread.
unsafe impl Send for Reservation {}
// SAFETY: a shared reservation gives no access to its memory.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves address space for `nbytes` bytes; `None` if the kernel refuses.
    fn new(nbytes: usize) -> Option<Reservation> {
        let length = nbytes.checked_add(HUGE_PAGE)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: an anonymous map at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let skipped = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
        let pointer = NonNull::new(start.cast::<u8>().wrapping_add(skipped))?;
        Some(Reservation { pointer, nbytes, reserved: (start, length) })
    }

    /// Maps `nbytes` bytes at `offset` of the reservation: a file from its byte `start` on, or anonymous zeros. `None`
    /// if the kernel refuses.
    fn map(
        &self,
        offset: usize,
        nbytes: usize,
        file: Option<(BorrowedFd<'_>, u64)>,
    ) -> Result<Option<*mut u8>> {
        if offset.checked_add(nbytes).is_none_or(|end| end > self.nbytes) {
            return Err(ErrorKind::Internal("a map outside its reservation".into()).into());
        }
        let kind = if file.is_some() { 0 } else { libc::MAP_ANONYMOUS };
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE | kind;
        let (descriptor, start) = file.map_or((-1, 0), |(file, start)| (file.as_raw_fd(), start));
        let start = libc::off_t::try_from(start)
            .map_err(|_| ErrorKind::Internal("a file too large to map".into()))?;
        // SAFETY: the range is inside the reservation, which no other code uses yet, and so replaces nothing.
        let pointer = unsafe {
            let place = self.pointer.as_ptr().add(offset);
            libc::mmap(place.cast(), nbytes, libc::PROT_READ | libc::PROT_WRITE, flags, descriptor, start)
        };
        Ok((pointer != libc::MAP_FAILED).then_some(pointer.cast()))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the reservation is this value's, and every view kept it alive.
        unsafe { libc::munmap(self.reserved.0, self.reserved.1) };
    }
}

/// Maps the chunks of an item without a field or a mask; `None` if they cannot be mapped and have to be read (step 1).
///
/// # Errors
/// [`ErrorKind::WrongSize`] if a chunk's length differs from its metadata; [`ErrorKind::Io`].
pub fn map(item: &Item<'_>) -> Result<Option<SharedTensor>> {
    let Item { reader, selection, .. } = *item;
    let metadata = reader.metadata;
    let FillValue::Fixed(fill) = &metadata.fill_value else { return Ok(None) };
    let ChunkGrid::Regular { chunk_shape } = &metadata.chunk_grid else { return Ok(None) };
    let (Some(part), Some((inner_shape, grid))) =
        (whole_part(selection), plain_chunk_shape(reader.chain, chunk_shape)?)
    else {
        return Ok(None);
    };
    if part.iter().any(|axis| axis.list.is_some()) {
        return Ok(None);
    }
    let item_size = fill.len();
    let chunk_nbytes = shape::nbytes(&inner_shape, item_size)? as u64;
    let first: Vec<u64> = part.iter().zip(&inner_shape).map(|(axis, extent)| axis.start / extent).collect();
    let last: Vec<u64> = part.iter().zip(&inner_shape).map(|(axis, extent)| axis.last() / extent).collect();
    let rows = match first.first().zip(last.first()) {
        Some((first, last)) => last - first + 1,
        None => 1,
    };
    let stacks = chunk_nbytes.is_multiple_of(PAGE_NBYTES)
        && inner_shape.iter().skip(1).eq(metadata.shape.iter().skip(1));
    let one = first == last;
    if chunk_nbytes < LEAST_NBYTES || rows > MOST_MAPS || !(one || stacks && first[1..] == last[1..]) {
        return Ok(None);
    }
    let nbytes = usize::try_from(chunk_nbytes).ok().zip(usize::try_from(rows).ok());
    let (chunk_nbytes, rows) = nbytes.ok_or_else(|| ErrorKind::Internal("a map too large".into()))?;
    let total =
        chunk_nbytes.checked_mul(rows).ok_or(zarrow_array::Error::OutOfMemory { nbytes: usize::MAX })?;
    let Some(reservation) = Reservation::new(total) else { return Ok(None) };
    // Neighbouring rows may be in one shard.
    let (start, per_shard) =
        (first.first().map_or(0, |first| *first), grid.first().map_or(1, |count| *count));
    let shard_of = |row: u64| ((start + row) / per_shard - start / per_shard) as usize;
    let mut tasks = vec![0u64; shard_of(rows as u64 - 1) + 1];
    (0..rows as u64).for_each(|row| tasks[shard_of(row)] += 1);
    let missed = AtomicBool::new(false);
    let shared: Vec<SharedChunk<'_>> = tasks.into_iter().map(SharedChunk::new).collect();
    let reader = Reader { missed: Some(&missed), ..reader };
    let refused = AtomicBool::new(false);
    let (left_to_fill, local) = (AtomicUsize::new(MOST_FILLED_NBYTES), AtomicU64::new(NO_DEVICE));
    let threads = (rows / ROWS_PER_THREAD).clamp(1, num_threads());
    let mapped = run(rows as u64, threads, &|| false, &|row, worker, checkpoint| {
        let mut chunk_index: PerAxis<u64> = PerAxis::from_slice(&first);
        if let Some(place) = chunk_index.first_mut() {
            *place += row;
        }
        let outer: PerAxis<u64> = chunk_index.iter().zip(&grid).map(|(index, count)| index / count).collect();
        let number = chunk_index.iter().zip(&grid).fold(0, |at, (index, count)| at * count + index % count);
        let place = (row as usize * chunk_nbytes, chunk_nbytes);
        let shared = &shared[shard_of(row)];
        if !refused.load(Ordering::Relaxed) {
            let chunk = shared.get(|| reader.open(&outer, worker, checkpoint))?;
            let mapped = map_chunk(chunk.locate(number), place, (fill, &left_to_fill), &local, &reservation)
                .map_err(|error| error.in_chunk(&outer))?;
            refused.fetch_or(!mapped, Ordering::Relaxed);
        }
        shared.leave();
        Ok(())
    });
    reader.if_present(mapped, &missed)?;
    if refused.into_inner() {
        return Ok(None);
    }
    let mut extents = inner_shape.clone();
    if let Some(extent) = extents.first_mut() {
        *extent = extent.saturating_mul(rows as u64);
    }
    let pointer = reservation.pointer;
    // SAFETY: every chunk of the reservation was mapped readable and writable, C-contiguous as the extents say, and
    // the reservation is the owner.
    let tensor = unsafe {
        SharedTensor::from_map(Arc::new(reservation), pointer, &extents, metadata.data_type.clone())?
    };
    let origin: Vec<u64> = first.iter().zip(&inner_shape).map(|(index, extent)| index * extent).collect();
    let steps: Vec<IndexStep> =
        part.iter().zip(&origin).map(|(axis, origin)| step_of(axis, *origin)).collect();
    Ok(Some(tensor.view(&steps)?))
}

/// Returns the index step of an axis in a view of the mapped chunks, which begin at `origin`.
fn step_of(axis: &AxisPart<'_>, origin: u64) -> IndexStep {
    let start = (axis.start - origin) as i64;
    let (step, count) = (axis.step as i64, axis.count as i64);
    match (axis.output, axis.reversed) {
        (None, _) => IndexStep::At(start),
        (Some(_), false) => IndexStep::Range { start, step, count },
        (Some(_), true) => IndexStep::Range { start: start + (count - 1) * step, step: -step, count },
    }
}

/// Returns the shape of chunks of plain elements, and their number in a stored chunk along each axis, which is above
/// one only for inner chunks of plain shards.
fn plain_chunk_shape(chain: &Chain, chunk_shape: &[u64]) -> Result<Option<(Vec<u64>, Vec<u64>)>> {
    let is_plain = |chain: &Chain| {
        chain.order.is_none() && matches!(chain.stored_layout(), Layout::Elements(Swap::None))
    };
    Ok(match chain.stored_layout() {
        _ if is_plain(chain) => Some((chunk_shape.to_vec(), vec![1; chunk_shape.len()])),
        Layout::InnerChunks(inner_chunks) if chain.order.is_none() && is_plain(&inner_chunks.chain) => {
            Some((inner_chunks.chunk_shape.clone(), inner_chunks.grid(chunk_shape)?))
        }
        _ => None,
    })
}

/// Maps a plain chunk that was found in the store to an offset; false if it cannot be mapped (steps 3 and 4).
fn map_chunk(
    found: Option<Located<'_>>,
    (offset, nbytes): (usize, usize),
    fill: (&[u8], &AtomicUsize),
    local: &AtomicU64,
    reservation: &Reservation,
) -> Result<bool> {
    let Some(Located { value, range }) = found else {
        return fill_chunk(reservation, (offset, nbytes), fill);
    };
    let Some(FileRange { file, offset: begin, nbytes: all }) = value.file() else { return Ok(false) };
    let stat = system_calls::fstat(file).map_err(|error| ErrorKind::Io(error.into()))?;
    let file_nbytes = u64::try_from(stat.st_size).unwrap_or(0);
    let (start, length) = range.unwrap_or_else(|| (0, all.unwrap_or(file_nbytes)));
    if length != nbytes as u64 {
        // If the value is not a file, the store reports that.
        let actual = if range.is_none() { value.nbytes()? } else { length };
        let expected = nbytes as u64;
        return Err(wrong_elements_size(expected, actual));
    }
    // Reading a range beyond the end of a file gives an error; accessing a map of it would kill the process.
    let start = begin.saturating_add(start);
    if !start.is_multiple_of(PAGE_NBYTES) || start.checked_add(length).is_none_or(|end| end > file_nbytes) {
        return Ok(false);
    }
    // All files of a device share the answer.
    if stat.st_dev != local.load(Ordering::Relaxed) {
        if is_remote(file)? {
            return Ok(false);
        }
        local.store(stat.st_dev, Ordering::Relaxed);
    }
    Ok(reservation.map(offset, nbytes, Some((file, start)))?.is_some())
}

/// Maps anonymous pages with the fill value; false if that would fill more than the remaining budget (step 4).
fn fill_chunk(
    reservation: &Reservation,
    (offset, nbytes): (usize, usize),
    (fill, left): (&[u8], &AtomicUsize),
) -> Result<bool> {
    let zero = fill.iter().all(|byte| *byte == 0);
    let take = |left: usize| left.checked_sub(nbytes);
    if !zero && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
        return Ok(false);
    }
    let Some(pointer) = reservation.map(offset, nbytes, None)? else { return Ok(false) };
    if !zero {
        // SAFETY: the pages were just mapped writable, and no other code has their address.
        let bytes = unsafe { std::slice::from_raw_parts_mut(pointer, nbytes) };
        bytes.chunks_exact_mut(fill.len()).for_each(|item| item.copy_from_slice(fill));
    }
    Ok(true)
}

/// Whether a file is on a file system shared with other machines, which may change or truncate it at any time.
#[cfg(target_os = "linux")]
fn is_remote(file: BorrowedFd<'_>) -> Result<bool> {
    /// NFS, SMB (three kinds), AFS, Ceph, FUSE, 9P, Lustre, as `statfs` reports them.
    const REMOTE: [u64; 9] = [
        0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x5346_414F, 0x00C3_6400, 0x6573_5546, 0x0102_1997,
        0x0BD0_0BD0,
    ];
    let stat = system_calls::fstatfs(file).map_err(|error| ErrorKind::Io(error.into()))?;
    Ok(REMOTE.contains(&((stat.f_type as u64) & 0xFFFF_FFFF)))
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_file: BorrowedFd<'_>) -> Result<bool> {
    Ok(false)
}
