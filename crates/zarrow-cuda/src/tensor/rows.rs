//! Gather and scatter of rows by a list of positions.

use super::DeviceTensor;
use crate::error::{Error, Result};
use crate::kernel::structs::Gather;
use crate::kernel::{walk, width};
use zarrow_array::{Buffer, IndexStep, Number, Tensor, allocation};

impl DeviceTensor {
    /// Copies the rows at `positions` along the first axis to new memory; positions may repeat, in any order.
    ///
    /// # Errors
    /// [`Error::Array`] for a position outside the axis, and for a 0-dimensional tensor; [`Error::OutOfMemory`];
    /// errors of the driver.
    pub fn take(&self, positions: &[i64]) -> Result<DeviceTensor> {
        let mut extents = self.extents();
        match extents.first_mut() {
            Some(first) => *first = positions.len() as u64,
            None => {
                return Err(
                    zarrow_array::Error::BadView("a 0-dimensional tensor has no rows".to_owned()).into()
                );
            }
        }
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
        if rows.dtype() != self.dtype() {
            let (from, to) = (rows.dtype(), self.dtype());
            return Err(Error::Unsupported(format!(
                "expected elements of type {to}, got {from}: call .astype() first"
            )));
        }
        let mut shape = self.shape().to_vec();
        match shape.first_mut() {
            Some(first) => *first = positions.len() as i64,
            None => {
                return Err(
                    zarrow_array::Error::BadView("a 0-dimensional tensor has no rows".to_owned()).into()
                );
            }
        }
        // A copy, since `rows` may be a view of this memory.
        let rows = rows.broadcast_to(&shape)?.copy()?;
        gather(&rows, self, positions, true)
    }
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
    let item_size = source.item_size();
    let width = width(item_size);
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
    let (mut shape, mut from_strides, mut to_strides) =
        (from.shape().to_vec(), from.byte_strides(), to.byte_strides());
    if width < item_size {
        shape.push((item_size / width) as i64);
        from_strides.push(width as i64);
        to_strides.push(width as i64);
    }
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
