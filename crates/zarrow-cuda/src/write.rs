//! Writes to an array from a device.
//!
//! The elements are copied to the host through pinned memory, one part at a time (`Selection::parts`), while the
//! previous part is encoded and written.

use crate::error::{Error, Result};
use crate::read::{PART_NBYTES, place_of, signed};
use crate::tensor::DeviceTensor;
use zarrow::{Array, Part, Selection, Values, WriteOptions};

/// Writes `values`, broadcast if necessary, to `selection` of `array`.
///
/// # Errors
/// [`Error::Array`] for values with a shape that cannot be broadcast; [`Error::Zarr`], see [`Array::write`];
/// and errors of the driver. After an error some chunks may have been written.
pub fn write(
    array: &Array,
    selection: &Selection,
    values: &DeviceTensor,
    options: &WriteOptions<'_>,
) -> Result<()> {
    let device = values.device();
    let values = values.broadcast_to(&signed(&selection.shape()))?;
    let unit = array.write_unit().unwrap_or_else(|| vec![1; array.shape().len()]);
    let parts = selection.parts(&unit, values.item_size(), PART_NBYTES);
    let fetch = |part: &Part| {
        let extents = part.selection.shape();
        let source = place_of(&values, &part.start, &extents)?.contiguous()?;
        let mut slot = device.idle.take(device.context(), source.nbytes().max(PART_NBYTES))?;
        slot.ready()?;
        slot.receive(source.address(), source.nbytes(), device.stream())?;
        Ok::<_, Error>((slot, source.nbytes(), extents))
    };
    let mut next = parts.first().map(fetch).transpose()?;
    for (number, part) in parts.iter().enumerate() {
        let Some((mut slot, nbytes, extents)) = next.take() else { break };
        next = parts.get(number + 1).map(fetch).transpose()?;
        let (pointer, _) = slot.ready()?;
        // SAFETY: the copy is done, so all bytes are initialized, and only this code uses the slot.
        let bytes = unsafe { std::slice::from_raw_parts(pointer.as_ptr().cast_const(), nbytes) };
        let elements = Values::contiguous(bytes, values.dtype().clone(), &extents)?;
        let elements = match values.dtype() == array.data_type() {
            true => elements,
            false => elements.cast(array.data_type())?,
        };
        array.write_request(&part.selection)?.options(options).write(&elements)?;
    }
    Ok(())
}
