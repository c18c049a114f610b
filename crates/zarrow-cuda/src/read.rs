//! Reading an array to a device, and writing one from there.
//!
//! 1. The selection is cut along the chunks into parts that fit a slot of pinned memory (`Selection::parts`).
//! 2. Each part is read and decoded into a slot, on all threads, by the same engine as a read to the host.
//! 3. One copy brings the slot to the device, beside the decoding of the next part: straight to its place where it is one
//!    run of the result, else to memory on the device from which a kernel places it.
//! 4. Our stream waits for the copies. The call returns before the device is done.
//!
//! Each byte is copied once on the host (by decoding) and once to the device.
//!
//! [`read_routed`] may let the device decompress instead: [`decompress`](crate::decompress).

use crate::decompress::decompressor;
use crate::decompress::wave::{self, Done};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::route::{Route, explain};
use crate::stream::Stream;
use crate::tensor::DeviceTensor;
use zarrow::{Array, Part, ReadOptions, Selection, Strided, Values, WriteOptions};
use zarrow_array::{IndexStep, shape};

/// Bytes of a part, where chunks are smaller.
const PART_NBYTES: usize = 16 << 20;

/// Reads `selection` of `array` to `device`, or into `out`, which is on it and whose elements may lie apart.
///
/// The result may be used in [`Device::stream`]; another stream waits for it (`Device::order`).
///
/// # Errors
/// [`Error::Unsupported`] for arrays whose elements have no fixed size, or may be missing; [`Error::Array`] for an `out` of
/// another shape; [`Error::Zarr`] as [`Array::read`]; [`Error::OutOfMemory`]; and what the driver answers. On an error some
/// of the elements of `out` may have been written.
///
/// ```no_run
/// use zarrow::{Array, ReadOptions, Selection};
/// let array = Array::open("data.zarr/temperature").unwrap();
/// let all = Selection::all(array.shape());
/// let tensor = zarrow_cuda::read(&array, &all, zarrow_cuda::Device::get(0)?, None, &ReadOptions::default())?;
/// println!("{:?} at {:#x}", tensor.shape(), tensor.address());
/// # Ok::<(), zarrow_cuda::Error>(())
/// ```
pub fn read(
    array: &Array,
    selection: &Selection,
    device: &'static Device,
    out: Option<&DeviceTensor>,
    options: &ReadOptions<'_>,
) -> Result<DeviceTensor> {
    let result = place_for(array, selection, device, out)?;
    read_by_parts(array, selection, &result, options)?;
    Ok(result)
}

/// As [`read`], with chunks decompressed where `route` says; and how many were decompressed where. This waits until the device is
/// done, since only then it is known whether all frames were whole: where one was not, the read begins anew on the host,
/// which tells what is wrong with it.
///
/// # Errors
/// As [`read`]; [`Error::Unavailable`] where the device is asked for and nobody decompresses there;
/// [`Error::Unsupported`] where it is asked for an array or a selection that cannot be handed over
/// ([`Array::hands_over`]).
pub fn read_routed(
    array: &Array,
    selection: &Selection,
    device: &'static Device,
    out: Option<&DeviceTensor>,
    route: Route,
    options: &ReadOptions<'_>,
) -> Result<(DeviceTensor, Done)> {
    let route = match route {
        Route::Auto => explain(array, selection).route,
        route => route,
    };
    let result = place_for(array, selection, device, out)?;
    if route == Route::Device {
        if !array.hands_over(selection) {
            let text = "the device decompresses no such array, store or selection: type decompress=\"host\"";
            return Err(Error::Unsupported(text.to_owned()));
        }
        let done = wave::read(array, selection, &result, decompressor()?, options)?;
        if done.failed_frames == 0 {
            return Ok((result, done));
        }
        read_by_parts(array, selection, &result, options)?;
        return Ok((result, done));
    }
    read_by_parts(array, selection, &result, options)?;
    Ok((result, Done::default()))
}

/// The memory of a read's result.
fn place_for(
    array: &Array,
    selection: &Selection,
    device: &'static Device,
    out: Option<&DeviceTensor>,
) -> Result<DeviceTensor> {
    let extents = selection.shape();
    match out {
        Some(out) => check_place(array, &extents, device, out).map(|()| out.clone()),
        None => DeviceTensor::empty(device, &extents, array.data_type().clone()),
    }
}

/// Steps 1 to 4.
fn read_by_parts(
    array: &Array,
    selection: &Selection,
    result: &DeviceTensor,
    options: &ReadOptions<'_>,
) -> Result<()> {
    let item_size = result.item_size();
    let unit = array.chunk_shape().unwrap_or_else(|| vec![1; array.shape().len()]);
    let parts = selection.parts(&unit, item_size, PART_NBYTES);
    parts.iter().try_for_each(|part| read_part(array, part, result, options))
}

/// Steps 2 and 3 for one part.
fn read_part(array: &Array, part: &Part, result: &DeviceTensor, options: &ReadOptions<'_>) -> Result<()> {
    let device = result.device();
    let extents = part.selection.shape();
    let nbytes = shape::nbytes(&extents, result.item_size())?;
    let mut slot = device.idle.take(device, nbytes.max(PART_NBYTES))?;
    let (pointer, room) = slot.ready()?;
    let strides = c_byte_strides(&extents, result.item_size())?;
    let memory = Strided::new(pointer.as_ptr(), room.min(nbytes), 0, strides);
    // SAFETY: the slot has these bytes and is this read's alone; C strides give each position its own place.
    unsafe { array.read_strided(&part.selection, memory, options)? };
    let place = place_of(result, &part.start, &extents)?;
    if place.is_c_contiguous() {
        return device.copy_beside(&place, |stream| slot.send(place.address(), nbytes, stream));
    }
    let staging = DeviceTensor::empty(device, &extents, result.dtype().clone())?;
    device.copy_beside(&staging, |stream| slot.send(staging.address(), nbytes, stream))?;
    place.assign(&staging)
}

/// Writes `values`, which are broadcast, to `selection` of `array`.
///
/// The elements go to the host through pinned memory, one part at a time, while the part before is written.
///
/// # Errors
/// [`Error::Array`] for values whose shape cannot be broadcast; [`Error::Zarr`] as [`Array::write_with`]; and what the
/// driver answers. On an error some of the chunks may have been written.
pub fn write(
    array: &Array,
    selection: &Selection,
    values: &DeviceTensor,
    options: &WriteOptions<'_>,
) -> Result<()> {
    let device = values.device();
    let shape: Vec<i64> =
        selection.shape().iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
    let values = values.broadcast_to(&shape)?;
    let unit = array.write_unit().unwrap_or_else(|| vec![1; array.shape().len()]);
    let parts = selection.parts(&unit, values.item_size(), PART_NBYTES);
    let fetch = |part: &Part| {
        let extents = part.selection.shape();
        let source = place_of(&values, &part.start, &extents)?.contiguous()?;
        let mut slot = device.idle.take(device, source.nbytes().max(PART_NBYTES))?;
        slot.ready()?;
        slot.receive(source.address(), source.nbytes(), device.stream())?;
        Ok::<_, Error>((slot, source.nbytes(), extents))
    };
    let mut next = parts.first().map(fetch).transpose()?;
    for (number, part) in parts.iter().enumerate() {
        let Some((mut slot, nbytes, extents)) = next.take() else { break };
        next = parts.get(number + 1).map(fetch).transpose()?;
        let (pointer, _) = slot.ready()?;
        // SAFETY: the copy is done, so that all bytes have values, and nobody else has the slot.
        let bytes = unsafe { std::slice::from_raw_parts(pointer.as_ptr().cast_const(), nbytes) };
        let elements = Values::contiguous(bytes, values.dtype().clone(), &extents)?;
        let elements = match values.dtype() == array.data_type() {
            true => elements,
            false => elements.cast(array.data_type())?,
        };
        array.write_with(&part.selection, &elements, options)?;
    }
    Ok(())
}

/// A result that goes on in the stream of the caller's, once what that stream has to do before is done.
///
/// # Errors
/// As `read`, and what the driver answers.
pub fn in_stream<T>(device: &'static Device, stream: Stream, work: impl FnOnce() -> Result<T>) -> Result<T> {
    device.order(stream, device.stream())?;
    let outcome = work();
    device.order(device.stream(), stream)?;
    outcome
}

fn check_place(array: &Array, extents: &[u64], device: &Device, out: &DeviceTensor) -> Result<()> {
    if out.device().ordinal() != device.ordinal() {
        return Err(Error::OtherDevice { expected: device.to_string(), found: out.device().to_string() });
    }
    if out.is_read_only() {
        return Err(Error::ReadOnly);
    }
    if out.dtype() != array.data_type() {
        let (expected, found) = (array.data_type(), out.dtype());
        return Err(Error::Unsupported(format!("expected out= with elements of {expected}, got {found}")));
    }
    if out.extents() != extents {
        let text = format!("expected out= of shape {extents:?}, got {:?}", out.shape());
        return Err(zarrow_array::Error::BadView(text).into());
    }
    Ok(())
}

/// The part of a tensor that begins at `start`.
fn place_of(tensor: &DeviceTensor, start: &[u64], extents: &[u64]) -> Result<DeviceTensor> {
    let fits = |number: &u64| i64::try_from(*number).unwrap_or(i64::MAX);
    let steps: Vec<IndexStep> = start
        .iter()
        .zip(extents)
        .map(|(start, extent)| IndexStep::Range { start: fits(start), step: 1, count: fits(extent) })
        .collect();
    tensor.view(&steps)
}

fn c_byte_strides(extents: &[u64], item_size: usize) -> Result<Vec<isize>> {
    let layout = zarrow_array::StridedLayout::c_order(extents)?;
    Ok(layout.strides().iter().map(|stride| *stride as isize * item_size as isize).collect())
}
