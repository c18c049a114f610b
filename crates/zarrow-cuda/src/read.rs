//! Reads of an array to a device.
//!
//! 1. The selection is split along the chunks into parts that fit a slot of pinned memory (`Selection::parts`).
//! 2. Each part is read and decoded into a slot, on all threads, by the same engine as a read to the host.
//! 3. One copy brings the slot to the device in a separate [stream](crate::read_streams), while the next part is decoded:
//!    directly to its destination if that is contiguous, else to device memory, and a kernel places it.
//! 4. Our stream waits for these streams. The call returns before the device is done.
//!
//! Each byte is copied once on the host (by decoding) and once to the device.
//!
//! By its route, [`read`] lets the device decompress instead: [`decompress`](crate::decompress).

use crate::decompress::{Done, batch, decompressor};
use crate::device::Device;
use crate::driver::status::INVALID_HANDLE;
use crate::error::{Error, Result};
use crate::pinned::Slot;
use crate::read_streams::ReadStreams;
use crate::route::{DecompressedBy, Route, Share, explain, takes};
use crate::stream::Stream;
use crate::tensor::DeviceTensor;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use zarrow::{ErrorKind, Part, ReadRequest, Strided, num_threads};
use zarrow_array::{DataType, IndexStep, shape};

/// Total size of the slots that one read fills concurrently, unless chunks are larger.
const FILLED_NBYTES: usize = 512 << 20;
/// Bytes of a part, unless chunks are larger.
pub(crate) const PART_NBYTES: usize = 16 << 20;

/// Reads `request` to `device`, or into `out`, which must be on that device and may be strided. `route` decides where
/// chunks are decompressed. Also returns the numbers of chunks by place.
///
/// The result is ready in [`Device::stream`]; order other streams after it by `Device::order`. If the device
/// decompresses, this waits for it, since only then the status of all frames is known: after a failed frame, the read
/// restarts on the host, which reports the error.
///
/// # Errors
/// [`Error::Unsupported`] for arrays of variable-length or optional elements, and if the route is the device and it
/// cannot decompress any chunk; [`Error::Array`] for an `out` of another shape; [`Error::Zarr`], see
/// [`ReadRequest::read`]; [`Error::OutOfMemory`]; [`Error::Unavailable`] without a decompressor; and errors of the driver
/// and of the decompressor. After an error some elements of `out` may have been written.
///
/// ```no_run
/// use zarrow_cuda::{Device, Route, read};
/// let array = zarrow::Array::open("data.zarr/temperature").unwrap();
/// let (tensor, _) = read(&array.request(..)?, Device::get(0)?, None, Route::Auto)?;
/// println!("{:?} at {:#x}", tensor.shape(), tensor.address());
/// # Ok::<(), zarrow_cuda::Error>(())
/// ```
pub fn read(
    request: &ReadRequest<'_>,
    device: &'static Device,
    out: Option<&DeviceTensor>,
    route: Route,
) -> Result<(DeviceTensor, Done)> {
    let (array, selection) = (request.array(), request.selection());
    let result = place_for(request, device, out)?;
    let by_device = match (route, request.selected_field()) {
        (Route::Device, None) => {
            takes(array, selection, usize::MAX).map_err(Error::Unsupported)?;
            Some((decompressor()?, Share::all(array)))
        }
        (Route::Device, Some(_)) => {
            let text = "the device does not support fields of structures: use decompress=\"host\"";
            return Err(Error::Unsupported(text.to_owned()));
        }
        (Route::Auto, None) => {
            let share = Share::from_array(array, &explain(array, selection, Some(device)));
            decompressor().ok().zip(share)
        }
        (Route::Host, _) | (Route::Auto, Some(_)) => None,
    };
    if let Some((decompressor, share)) = by_device {
        match batch::read(request, &result, decompressor, &share) {
            Ok(done) if done.failed_frames == 0 && !done.is_replaced => return Ok((result, done)),
            Ok(_) => {}
            // Several chunks may be corrupt, and the device reports them later: the host determines the first.
            Err(Error::Zarr(error)) if error.context().codec.is_some() => {}
            // Errors of the array also occur on the host. Other errors of the device only matter if the caller
            // asked for the device.
            Err(error) if route == Route::Device || matches!(error, Error::Zarr(_)) => return Err(error),
            Err(_) => {}
        }
    }
    read_by_parts(request, &result)?;
    Ok((result, Done::default()))
}

/// Returns the memory of a read's result.
fn place_for(
    request: &ReadRequest<'_>,
    device: &'static Device,
    out: Option<&DeviceTensor>,
) -> Result<DeviceTensor> {
    let extents = request.selection().shape();
    match out {
        Some(out) => check_place(request.data_type(), &extents, device, out).map(|()| out.clone()),
        None => DeviceTensor::empty(device, &extents, request.data_type().clone()),
    }
}

/// Does steps 1 to 4 of the module.
///
/// A thread that has finished one part begins the next, so that all threads work even if a part has only a few large
/// chunks.
fn read_by_parts(request: &ReadRequest<'_>, result: &DeviceTensor) -> Result<()> {
    let item_size = result.item_size();
    let (array, field, missing) = (request.array(), request.selected_field(), request.missing_values());
    let unit = array.innermost_chunk_shape().unwrap_or_else(|| vec![1; array.shape().len()]);
    let parts = request.selection().parts(&unit, item_size, PART_NBYTES);
    let streams = ReadStreams::new(result)?;
    let (next, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let read_some = |cancel: &dyn Fn() -> bool| {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A part with few chunks may be read without a check.
            let read = match cancel() {
                true => Err(zarrow::Error::from(ErrorKind::Interrupted).into()),
                false => array.request(&part.selection).map_err(Error::from).and_then(|request| {
                    let request = field.into_iter().fold(request.cancel(cancel), ReadRequest::field);
                    let request = missing.into_iter().fold(request, ReadRequest::missing);
                    read_part(request, part, result, &streams)
                }),
            };
            read.inspect_err(|_| is_stopped.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    let beside = || read_some(&|| is_stopped.load(Ordering::Relaxed));
    // Only the caller's own thread may call the caller's cancel function.
    let own = || read_some(&|| is_stopped.load(Ordering::Relaxed) || request.is_cancelled());
    let chunk_nbytes = unit.iter().fold(item_size as u64, |nbytes, extent| nbytes.saturating_mul(*extent));
    let callers = callers(usize::try_from(chunk_nbytes).unwrap_or(usize::MAX), num_threads());
    thread::scope(|scope| {
        let others = callers.min(parts.len()).saturating_sub(1);
        // If a thread cannot be started, the others take its parts.
        let name = || thread::Builder::new().name("zarrow-parts".to_owned());
        let others: Vec<_> = (0..others).filter_map(|_| name().spawn_scoped(scope, beside).ok()).collect();
        let own = own();
        let join = |other: ScopedJoinHandle<'_, Result<()>>| {
            other.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        others.into_iter().map(join).fold(own, first_cause)
    })?;
    streams.finish()
}

/// Returns the number of concurrent callers for parts with chunks of this size: enough to keep all threads busy,
/// within [`FILLED_NBYTES`].
fn callers(chunk_nbytes: usize, threads: usize) -> usize {
    let wanted = threads.saturating_mul(chunk_nbytes) / PART_NBYTES;
    wanted.min(threads).min(FILLED_NBYTES / chunk_nbytes.max(PART_NBYTES)).max(2)
}

/// Returns the original error; the other caller was stopped because of it.
fn first_cause(own: Result<()>, other: Result<()>) -> Result<()> {
    let is_stopped =
        |error: &Error| matches!(error, Error::Zarr(error) if matches!(error.kind(), ErrorKind::Interrupted));
    match (own, other) {
        (Err(own), Err(other)) => Err(if is_stopped(&own) { other } else { own }),
        (own, other) => own.and(other),
    }
}

/// Steps 2 and 3 for one part.
fn read_part(
    request: ReadRequest<'_>,
    part: &Part,
    result: &DeviceTensor,
    streams: &ReadStreams<'_>,
) -> Result<()> {
    let device = result.device();
    let extents = part.selection.shape();
    let nbytes = shape::nbytes(&extents, result.item_size())?;
    let mut slot = device.idle.take(device.context(), nbytes.max(PART_NBYTES))?;
    let (pointer, room) = slot.ready()?;
    let strides = c_byte_strides(&extents, result.item_size())?;
    let memory = Strided::new(pointer.as_ptr(), room.min(nbytes), 0, strides);
    // SAFETY: the slot has these bytes and only this read uses it; with C strides, positions do not overlap.
    unsafe { request.out(memory) }.read()?;
    send(&mut slot, &place_of(result, &part.start, &extents)?, streams)
}

/// Reads items of one shape and type to `out`: item `i` to position `i` of its first axis. `route` decides where chunks
/// are decompressed. Also returns the numbers of chunks by place.
///
/// On the host, items that fit a slot together are read as one batch, which decodes each chunk once. The device reads
/// the items one after the other, and decompresses a chunk for each item that needs it. [`Route::Auto`] only uses the
/// device if that is likely to be faster for every item.
///
/// # Errors
/// See [`read`] and [`zarrow::read_many`].
///
/// ```no_run
/// use zarrow_cuda::{Device, DeviceTensor, Route, read_many};
/// let array = zarrow::Array::open("data.zarr/temperature").unwrap();
/// let requests: Vec<_> = (0..32).map(|_| array.request(..)).collect::<zarrow::Result<_>>()?;
/// let shape = [&[32], array.shape()].concat();
/// let out = DeviceTensor::empty(Device::get(0)?, &shape, array.data_type().clone())?;
/// read_many(&requests, &out, Route::Host)?;
/// # Ok::<(), zarrow_cuda::Error>(())
/// ```
pub fn read_many(requests: &[ReadRequest<'_>], out: &DeviceTensor, route: Route) -> Result<Done> {
    let Some(first) = requests.first() else { return Ok(Done::default()) };
    let extents = first.selection().shape();
    let batch: Vec<u64> = [&[requests.len() as u64][..], &extents].concat();
    for request in requests {
        check_place(request.data_type(), &batch, out.device(), out)?;
    }
    let by_host = |request: &ReadRequest<'_>| {
        let explanation = explain(request.array(), request.selection(), Some(out.device()));
        explanation.decompressed_by == DecompressedBy::Host
    };
    if route == Route::Host || route == Route::Auto && requests.iter().any(by_host) {
        return read_batch(requests, out).map(|()| Done::default());
    }
    requests.iter().enumerate().try_fold(Done::default(), |done, (number, request)| {
        let place = rows_of(out, number, 1)?.reshape(&signed(&extents))?;
        let (_, more) = read(request, out.device(), Some(&place), route)?;
        Ok(done + more)
    })
}

/// Reads checked items on the host.
fn read_batch(requests: &[ReadRequest<'_>], out: &DeviceTensor) -> Result<()> {
    let Some(first) = requests.first() else { return Ok(()) };
    let extents = first.selection().shape();
    let item_nbytes = shape::nbytes(&extents, out.item_size())?;
    if item_nbytes > PART_NBYTES {
        return requests.iter().enumerate().try_for_each(|(number, request)| {
            read_by_parts(request, &rows_of(out, number, 1)?.reshape(&signed(&extents))?)
        });
    }
    let device = out.device();
    let streams = ReadStreams::new(out)?;
    let together = (PART_NBYTES / item_nbytes.max(1)).clamp(1, requests.len());
    for (number, group) in requests.chunks(together).enumerate() {
        let shape = [&[group.len() as u64][..], &extents].concat();
        let nbytes = item_nbytes * group.len();
        let mut slot = device.idle.take(device.context(), PART_NBYTES)?;
        let (pointer, room) = slot.ready()?;
        let strides = c_byte_strides(&shape, first.data_type().item_size().unwrap_or(0))?;
        let memory = Strided::new(pointer.as_ptr(), room.min(nbytes), 0, strides);
        // SAFETY: as for one part; the first axis is that of the items.
        zarrow::read_each(&unsafe { zarrow::stacked_out(group, &memory) }?)?;
        send(&mut slot, &rows_of(out, number * together, group.len())?, &streams)?;
    }
    streams.finish()
}

/// Step 3: copies a slot, with elements in C order, to its destination.
fn send(slot: &mut Slot, place: &DeviceTensor, streams: &ReadStreams<'_>) -> Result<()> {
    let (stream, nbytes) = (streams.next()?, place.nbytes());
    if place.is_c_contiguous() {
        return slot.send(0..nbytes, place.address(), stream);
    }
    let staging = DeviceTensor::empty_in(place.device(), &place.extents(), place.dtype().clone(), stream)?;
    slot.send(0..nbytes, staging.address(), stream)?;
    place.assign_in(&staging, stream)
}

/// Runs `work` ordered after the caller's stream, and orders later work of that stream after the result.
///
/// # Errors
/// See `read`; errors of the driver.
pub fn in_stream<T>(device: &'static Device, stream: Stream, work: impl FnOnce() -> Result<T>) -> Result<T> {
    device.order(stream, device.stream()).map_err(|error| match error {
        Error::Driver { code: INVALID_HANDLE, .. } => {
            Error::InvalidStream { number: stream.number(), device: device.to_string() }
        }
        other => other,
    })?;
    let outcome = work();
    device.order(device.stream(), stream)?;
    outcome
}

fn check_place(dtype: &DataType, extents: &[u64], device: &Device, out: &DeviceTensor) -> Result<()> {
    if out.device().ordinal() != device.ordinal() {
        return Err(Error::OtherDevice { expected: device.to_string(), found: out.device().to_string() });
    }
    out.check_writable()?;
    if out.dtype() != dtype {
        let (expected, found) = (dtype.to_string(), out.dtype().to_string());
        return Err(Error::OtherType { what: "out=", expected, found });
    }
    if out.extents() != extents {
        let text = format!("expected out= of shape {extents:?}, got {:?}", out.shape());
        return Err(zarrow_array::Error::BadView(text).into());
    }
    Ok(())
}

/// Returns the part of a tensor that begins at `start`.
pub(crate) fn place_of(tensor: &DeviceTensor, start: &[u64], extents: &[u64]) -> Result<DeviceTensor> {
    let fits = |number: &u64| i64::try_from(*number).unwrap_or(i64::MAX);
    let steps: Vec<IndexStep> = start
        .iter()
        .zip(extents)
        .map(|(start, extent)| IndexStep::Range { start: fits(start), step: 1, count: fits(extent) })
        .collect();
    tensor.view(&steps)
}

/// Returns `count` rows of the first axis, from `start`.
fn rows_of(tensor: &DeviceTensor, start: usize, count: usize) -> Result<DeviceTensor> {
    let mut extents = tensor.extents();
    let mut starts = vec![0; extents.len()];
    if let (Some(first), Some(extent)) = (starts.first_mut(), extents.first_mut()) {
        (*first, *extent) = (start as u64, count as u64);
    }
    place_of(tensor, &starts, &extents)
}

pub(crate) fn signed(extents: &[u64]) -> Vec<i64> {
    extents.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect()
}

fn c_byte_strides(extents: &[u64], item_size: usize) -> Result<Vec<isize>> {
    let layout = zarrow_array::StridedLayout::c_order(extents)?;
    Ok(layout.strides().iter().map(|stride| *stride as isize * item_size as isize).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_keep_the_threads_busy() {
        let mib = |count: usize| count << 20;
        assert_eq!([callers(mib(1), 2), callers(mib(64), 2), callers(0, 1)], [2, 2, 2]);
        assert_eq!([callers(mib(1) / 4, 16), callers(mib(4), 16), callers(mib(16), 16)], [2, 4, 16]);
        assert_eq!([callers(mib(64), 16), callers(mib(512), 16), callers(usize::MAX, 16)], [8, 2, 2]);
    }
}
