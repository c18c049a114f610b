//! Gather and scatter of rows by a list of positions.

use super::DeviceTensor;
use crate::error::{Error, Result};
use crate::kernel::structs::Gather;
use crate::kernel::walk;
use zarrow_array::{Buffer, IndexStep, Number, Tensor, allocation};

impl DeviceTensor {
    /// Copies the rows at `positions` along the first axis to new memory; positions may repeat, in any order.
    ///
    /// # Errors
    /// [`Error::Array`] for a position outside the axis, and for a 0-dimensional tensor; [`Error::OutOfMemory`];
    /// errors of the driver.
    pub fn take(&self, positions: &[i64]) -> Result<DeviceTensor> {
        let extents = with_rows(self.extents(), positions.len() as u64)?;
        let result = DeviceTensor::empty(self.device(), &extents, self.dtype().clone())?;
        gather(self, &result, positions, false)?;
        Ok(result)
    }

    /// Sets the rows at `positions` along the first axis to those of `rows`, which must have the same type and is
    /// broadcast. If positions repeat, any of the rows may win.
    ///
    /// # Errors
    /// See [`take`](DeviceTensor::take); [`Error::ReadOnly`]; [`Error::Unsupported`] for another type.
    pub fn put(&self, positions: &[i64], rows: &DeviceTensor) -> Result<()> {
        self.check_writable()?;
        self.same_device(rows)?;
        self.same_type(rows)?;
        let shape = with_rows(self.shape().to_vec(), positions.len() as i64)?;
        // A copy, since `rows` may be a view of this memory.
        let rows = rows.broadcast_to(&shape)?.copy()?;
        gather(&rows, self, positions, true)
    }
}

/// Returns a shape with another number of rows.
fn with_rows<T>(mut shape: Vec<T>, count: T) -> Result<Vec<T>> {
    let none = || Error::from(zarrow_array::Error::BadView("a 0-dimensional tensor has no rows".to_owned()));
    *shape.first_mut().ok_or_else(none)? = count;
    Ok(shape)
}

/// Computes `destination[number] = source[positions[number]]`, or the inverse with `scatter`.
fn gather(source: &DeviceTensor, destination: &DeviceTensor, positions: &[i64], scatter: bool) -> Result<()> {
    let device = source.device();
    let listed = if scatter { destination } else { source };
    let row_count = listed.shape().first().copied().unwrap_or(0);
    if let Some(outside) = positions.iter().find(|position| !(0..row_count).contains(*position)) {
        let text = format!("position {outside} is outside an axis of length {row_count}");
        return Err(zarrow_array::Error::BadView(text).into());
    }
    if positions.is_empty() || source.size() == 0 {
        return Ok(());
    }
    let bytes = allocation::collected(positions.iter().flat_map(|position| position.to_ne_bytes()))?;
    let list = Tensor::new(Buffer::copy_of(&bytes)?, vec![positions.len() as u64], Number::Int64.into())?;
    let index = DeviceTensor::from_host(device, &list.into_shared()?)?;
    let row = |tensor: &DeviceTensor| {
        let steps: Vec<IndexStep> = std::iter::once(IndexStep::At(0))
            .chain(tensor.shape()[1..].iter().map(|extent| IndexStep::Range {
                start: 0,
                step: 1,
                count: *extent,
            }))
            .collect();
        tensor.view(&steps)
    };
    let (from, to) = (row(source)?, row(destination)?);
    let (width, shape, from_strides, to_strides) = to.in_words(&from);
    for walk in walk::walks(&shape, [&from_strides, &to_strides]) {
        let rows = Gather {
            source: source.address().wrapping_add_signed(walk.offsets[0]),
            destination: destination.address().wrapping_add_signed(walk.offsets[1]),
            index: index.address(),
            index_count: positions.len() as u64,
            row_count: row_count.unsigned_abs(),
            source_row_stride: source.byte_strides()[0],
            destination_row_stride: destination.byte_strides()[0],
            row_elements: walk.count,
            shape: walk.shape,
            source_stride: walk.strides[0],
            destination_stride: walk.strides[1],
            rank: walk.rank,
            scatter: u32::from(scatter),
        };
        // SAFETY: positions are inside the axis, and layouts only reach memory of their owners, which is freed in
        // the order of this stream; the destination is writable, and does not overlap the source.
        unsafe { device.launch_gather(width, &rows)? };
    }
    Ok(())
}
