//! Transfers between device and host, through pinned slots.
//!
//! 1. The tensor is halved along its outermost axes until each part fits a slot.
//! 2. While the device copies one part, the host fills or empties the slot of the next one.

use super::DeviceTensor;
use crate::device::Device;
use crate::error::Result;
use crate::pinned::Slot;
use std::mem::MaybeUninit;
use zarrow_array::{IndexStep, SharedTensor, Tensor, UninitBuffer};

/// Bytes of a slot for transfers.
pub(crate) const SLOT_NBYTES: usize = 16 << 20;
/// Number of parts in progress.
const SLOTS: usize = 3;

impl DeviceTensor {
    /// Copies the elements to new host memory, in C order, and waits for them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of the driver, including those of earlier
    /// work.
    pub fn to_host(&self) -> Result<SharedTensor> {
        let mut buffer = UninitBuffer::new(self.nbytes())?;
        self.copy_to_host(buffer.as_mut_slice())?;
        // SAFETY: all bytes were written above.
        let buffer = unsafe { buffer.assume_init() };
        Ok(Tensor::new(buffer, self.extents(), self.dtype().clone())?.into_shared()?)
    }

    /// Copies the elements to `target` in C order, and waits for them.
    ///
    /// # Errors
    /// See [`to_host`](DeviceTensor::to_host); [`Error::Array`](crate::Error::Array) if `target` has another
    /// length.
    pub fn copy_to_host(&self, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        let (expected, actual) = (self.nbytes(), target.len());
        if expected != actual {
            let what = "the memory to copy to";
            return Err(zarrow_array::Error::LengthMismatch { what, expected, actual }.into());
        }
        let device = self.device();
        let source = self.contiguous()?;
        let mut under_way: std::collections::VecDeque<(Slot, &mut [MaybeUninit<u8>])> = Default::default();
        for (number, part) in target.chunks_mut(SLOT_NBYTES).enumerate() {
            if under_way.len() == SLOTS {
                under_way.pop_front().map_or(Ok(()), arrive)?;
            }
            let mut slot = device.idle.take(device.context(), SLOT_NBYTES)?;
            slot.ready()?;
            let from = source.address() + (number * SLOT_NBYTES) as u64;
            slot.receive(from, part.len(), device.stream())?;
            under_way.push_back((slot, part));
        }
        under_way.into_iter().try_for_each(arrive)?;
        device.synchronize()
    }

    /// Copies the elements of a host tensor to new memory of `device`, in C order.
    ///
    /// The host memory is read during the call; the copy to the device is not waited for.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of the driver.
    pub fn from_host(device: &'static Device, tensor: &SharedTensor) -> Result<DeviceTensor> {
        let extents: Vec<u64> = tensor.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        let result = DeviceTensor::empty(device, &extents, tensor.dtype().clone())?;
        upload(device, tensor, result.address())?;
        Ok(result)
    }
}

/// Second half of step 2: empties a slot.
fn arrive((mut slot, part): (Slot, &mut [MaybeUninit<u8>])) -> Result<()> {
    let (pointer, _) = slot.ready()?;
    // SAFETY: the slot has at least as many bytes as were received, and no copy uses it any more; `part` does not
    // overlap it.
    unsafe { pointer.as_ptr().copy_to_nonoverlapping(part.as_mut_ptr().cast(), part.len()) };
    Ok(())
}

/// Steps 1 and 2 for a part of the host tensor.
fn upload(device: &'static Device, part: &SharedTensor, to: u64) -> Result<()> {
    let nbytes = part.nbytes();
    if nbytes == 0 {
        return Ok(());
    }
    let axis = part.shape().iter().position(|extent| *extent > 1);
    if let (true, Some(axis)) = (nbytes > SLOT_NBYTES, axis) {
        let extent = part.shape()[axis];
        let half = |start: i64, count: i64| {
            let steps: Vec<IndexStep> = part
                .shape()
                .iter()
                .enumerate()
                .map(|(number, extent)| match number == axis {
                    true => IndexStep::Range { start, step: 1, count },
                    false => IndexStep::Range { start: 0, step: 1, count: *extent },
                })
                .collect();
            part.view(&steps)
        };
        let first = half(0, extent / 2)?;
        upload(device, &first, to)?;
        return upload(device, &half(extent / 2, extent - extent / 2)?, to + first.nbytes() as u64);
    }
    let mut slot = device.idle.take(device.context(), nbytes.max(SLOT_NBYTES))?;
    let (pointer, _) = slot.ready()?;
    // SAFETY: the slot has these bytes and only we use it. A concurrent write to the tensor gives a mixture of old
    // and new bytes, as with NumPy.
    unsafe {
        let bytes = std::slice::from_raw_parts_mut(pointer.as_ptr().cast::<MaybeUninit<u8>>(), nbytes);
        part.copy_into(bytes)?;
    }
    slot.send(0..nbytes, to, device.stream())
}
