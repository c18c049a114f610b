//! A tensor in device memory.

mod compare;
mod elements;
mod host;
mod rows;

use crate::device::Device;
use crate::driver::functions::Address;
use crate::error::{Error, Result};
use crate::foreign::ForeignMemory;
use crate::memory::DeviceMemory;
use crate::stream::Stream;
use std::fmt;
use std::sync::Arc;
use zarrow_array::{DataType, IndexStep, StridedLayout, shape};

/// Owner of a tensor's memory.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// Our own memory.
    Own(Arc<DeviceMemory>),
    /// Memory of another library.
    Foreign(Arc<ForeignMemory>),
}

/// A strided view of device memory with a shared owner. A clone is another view of the same memory.
///
/// Methods submit their work to [`Device::stream`], where it is done in order; the caller does not wait. Methods
/// that return a value to the host wait.
///
/// ```no_run
/// use zarrow_array::Number;
/// use zarrow_cuda::{Device, DeviceTensor};
/// let device = Device::get(0)?;
/// let tensor = DeviceTensor::empty(device, &[2, 3], Number::Int32.into())?;
/// tensor.fill(&7i32.to_ne_bytes())?;
/// assert_eq!(tensor.to_host()?.shape(), [2, 3]);
/// # Ok::<(), zarrow_cuda::Error>(())
/// ```
#[derive(Clone)]
pub struct DeviceTensor {
    owner: Owner,
    device: &'static Device,
    address: Address,
    layout: StridedLayout,
    dtype: DataType,
    item_size: usize,
    read_only: bool,
}

impl DeviceTensor {
    /// Allocates an uninitialized tensor in C order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Unsupported`] for variable-length elements; [`Error::Array`] for a shape
    /// that does not fit.
    pub fn empty(device: &'static Device, shape: &[u64], dtype: DataType) -> Result<DeviceTensor> {
        DeviceTensor::empty_in(device, shape, dtype, device.stream())
    }

    /// Like [`empty`](DeviceTensor::empty), allocated and freed in `stream`, one of the device's own.
    pub(crate) fn empty_in(
        device: &'static Device,
        shape: &[u64],
        dtype: DataType,
        stream: Stream,
    ) -> Result<DeviceTensor> {
        let (layout, item_size) = (StridedLayout::c_order(shape)?, fixed_size(&dtype)?);
        let memory = DeviceMemory::new_in(device, shape::nbytes(shape, item_size)?, stream)?;
        let (address, owner) = (memory.address(), Owner::Own(Arc::new(memory)));
        Ok(DeviceTensor { owner, device, address, layout, dtype, item_size, read_only: false })
    }

    /// Like [`empty`](DeviceTensor::empty), in Fortran order.
    ///
    /// # Errors
    /// See [`empty`](DeviceTensor::empty).
    pub fn empty_column_major(
        device: &'static Device,
        shape: &[u64],
        dtype: DataType,
    ) -> Result<DeviceTensor> {
        let reversed: Vec<u64> = shape.iter().rev().copied().collect();
        let axes: Vec<usize> = (0..shape.len()).rev().collect();
        DeviceTensor::empty(device, &reversed, dtype)?.transpose(&axes)
    }

    /// Creates a tensor over memory of another library. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for variable-length elements.
    ///
    /// # Safety
    /// All elements of the layout must be in memory of `device` that lives as long as the owner in `memory`, and
    /// must be writable unless `read_only`. Earlier work on the memory must be ordered before `device.stream()`.
    pub unsafe fn from_foreign(
        memory: ForeignMemory,
        address: Address,
        layout: StridedLayout,
        dtype: DataType,
        read_only: bool,
    ) -> Result<DeviceTensor> {
        let item_size = fixed_size(&dtype)?;
        let device = memory.device();
        let owner = Owner::Foreign(Arc::new(memory));
        Ok(DeviceTensor { owner, device, address, layout, dtype, item_size, read_only })
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// Returns the address of the first element on the device; 0 for an empty tensor of ours.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.layout.shape()
    }

    /// Returns the strides in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        self.layout.strides()
    }

    /// Returns the strides in bytes.
    #[must_use]
    pub fn byte_strides(&self) -> Vec<i64> {
        self.strides().iter().map(|stride| stride.wrapping_mul(self.item_size as i64)).collect()
    }

    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        &self.dtype
    }

    /// Returns the bytes of one element.
    #[must_use]
    pub fn item_size(&self) -> usize {
        self.item_size
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.layout.size()
    }

    /// Returns the bytes of all elements without gaps.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.size() * self.item_size
    }

    /// Returns whether the memory must not be written to.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns whether the elements are C-contiguous.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.layout.is_c_contiguous()
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Records that a library uses the memory in `stream`: its work is ordered after our earlier work, and the
    /// memory is not freed before that work is done.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn lend_to(&self, stream: Stream) -> Result<()> {
        self.device.order(self.device.stream(), stream)?;
        if let Owner::Own(memory) = &self.owner {
            memory.is_used_in(stream);
        }
        Ok(())
    }

    /// Records that a library uses the memory in an unknown stream, without ordering: the memory is not freed
    /// before the device has done all work submitted until its last reference is dropped.
    pub fn lend_unordered(&self) {
        if let Owner::Own(memory) = &self.owner {
            memory.is_used_anywhere();
        }
    }

    /// Orders later work in our stream after the work that borrowers have queued on this memory. For borrowers in
    /// unknown streams the caller waits.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn begin_after_consumers(&self) -> Result<()> {
        let Owner::Own(memory) = &self.owner else { return Ok(()) };
        let (streams, has_others) = memory.consumers();
        if has_others {
            self.device.synchronize_all()?;
        }
        streams.into_iter().try_for_each(|stream| self.device.order(stream, self.device.stream()))
    }

    /// Orders later work of borrowers after our earlier work on this memory. For borrowers in unknown streams the
    /// caller waits.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn end_before_consumers(&self) -> Result<()> {
        let Owner::Own(memory) = &self.owner else { return Ok(()) };
        let (streams, has_others) = memory.consumers();
        if has_others {
            self.device.synchronize()?;
        }
        streams.into_iter().try_for_each(|stream| self.device.order(self.device.stream(), stream))
    }

    /// Returns a view by basic indexing.
    ///
    /// # Errors
    /// See [`StridedLayout::view`].
    pub fn view(&self, steps: &[IndexStep]) -> Result<DeviceTensor> {
        let (offset, layout) = self.layout.view(steps)?;
        Ok(self.at(offset, layout))
    }

    /// Permutes the axes without a copy.
    ///
    /// # Errors
    /// See [`StridedLayout::transpose`].
    pub fn transpose(&self, axes: &[usize]) -> Result<DeviceTensor> {
        Ok(self.at(0, self.layout.transpose(axes)?))
    }

    /// Changes the shape without a copy.
    ///
    /// # Errors
    /// See [`StridedLayout::reshape`].
    pub fn reshape(&self, shape: &[i64]) -> Result<DeviceTensor> {
        Ok(self.at(0, self.layout.reshape(shape)?))
    }

    /// Broadcasts to `shape` without a copy: axes of length 1, and missing axes, are repeated, as in NumPy.
    ///
    /// # Errors
    /// [`Error::Array`] if the shapes are incompatible.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<DeviceTensor> {
        let bad =
            || zarrow_array::Error::BadView(format!("cannot broadcast {:?} to {shape:?}", self.shape()));
        let added = shape.len().checked_sub(self.shape().len()).ok_or_else(bad)?;
        let mut strides = vec![0; added];
        for ((extent, stride), wanted) in self.shape().iter().zip(self.strides()).zip(&shape[added..]) {
            match *extent {
                extent if extent == *wanted => strides.push(*stride),
                1 => strides.push(0),
                _ => return Err(bad().into()),
            }
        }
        let layout = StridedLayout::new(shape.into(), strides.into());
        Ok(DeviceTensor { layout, read_only: true, ..self.clone() })
    }

    /// Reinterprets the memory as another type: with the same shape if the sizes are equal; otherwise the last
    /// axis, which must be contiguous, gets longer or shorter, as in NumPy's `view`.
    ///
    /// # Errors
    /// [`Error::Array`] if the last axis is not contiguous, or is not a whole number of new elements.
    pub fn reinterpret(&self, dtype: DataType) -> Result<DeviceTensor> {
        let item_size = fixed_size(&dtype)?;
        if item_size == self.item_size {
            return Ok(DeviceTensor { dtype, ..self.clone() });
        }
        let bad = |why: &str| {
            let text = format!("cannot view {} as {dtype}: {why}", self.dtype);
            Error::Array(zarrow_array::Error::BadView(text))
        };
        let (mut shape, mut strides) = (self.layout.shape().to_vec(), self.byte_strides());
        let (Some(extent), Some(stride)) = (shape.last_mut(), strides.last_mut()) else {
            return Err(bad("the element size of a 0-dimensional tensor cannot change"));
        };
        if *extent > 1 && *stride != self.item_size as i64 {
            return Err(bad("the last axis is not contiguous"));
        }
        let nbytes = extent.unsigned_abs() as usize * self.item_size;
        if item_size == 0 || !nbytes.is_multiple_of(item_size) {
            return Err(bad("the last axis is not a whole number of elements"));
        }
        (*extent, *stride) = ((nbytes / item_size) as i64, item_size as i64);
        if strides.iter().any(|stride| stride % item_size as i64 != 0) {
            return Err(bad("the strides are not multiples of the element size"));
        }
        let strides = strides.iter().map(|stride| stride / item_size as i64).collect();
        let layout = StridedLayout::new(shape.into(), strides);
        Ok(DeviceTensor { layout, dtype, item_size, ..self.clone() })
    }

    /// `offset` is in elements, and was checked with the layout.
    fn at(&self, offset: i64, layout: StridedLayout) -> DeviceTensor {
        let address = self.address.wrapping_add_signed(offset.wrapping_mul(self.item_size as i64));
        DeviceTensor { address, layout, ..self.clone() }
    }

    /// Returns the device of both tensors, if it is the same.
    fn same_device(&self, other: &DeviceTensor) -> Result<&'static Device> {
        if self.device.ordinal() == other.device.ordinal() {
            Ok(self.device)
        } else {
            Err(Error::OtherDevice { expected: self.device.to_string(), found: other.device.to_string() })
        }
    }

    /// Refuses a tensor of another type.
    fn same_type(&self, other: &DeviceTensor) -> Result<()> {
        let (expected, found) = (&self.dtype, &other.dtype);
        if expected == found {
            return Ok(());
        }
        let text = format!("expected elements of type {expected}, got {found}: call .astype() first");
        Err(Error::Unsupported(text))
    }

    /// Returns whether two elements may share bytes.
    fn may_overlap_itself(&self) -> bool {
        if self.size() == 0 {
            return false;
        }
        let mut axes: Vec<(u64, u64)> = self
            .shape()
            .iter()
            .zip(self.strides())
            .filter(|(extent, _)| **extent > 1)
            .map(|(extent, stride)| (stride.unsigned_abs(), extent.unsigned_abs() - 1))
            .collect();
        axes.sort_unstable();
        // Each axis must step over the whole span of the faster axes.
        let mut span = 1u64;
        axes.into_iter().any(|(stride, gaps)| {
            let overlaps = stride < span;
            span = span.saturating_add(stride.saturating_mul(gaps));
            overlaps
        })
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.may_overlap_itself() {
            let text = "elements of the memory to write to overlap: pass memory without overlap";
            return Err(zarrow_array::Error::BadView(text.to_owned()).into());
        }
        Ok(())
    }
}

/// Returns the bytes of one element.
fn fixed_size(dtype: &DataType) -> Result<usize> {
    match dtype.item_size() {
        Some(nbytes) if !matches!(dtype, DataType::Optional(_)) => Ok(nbytes),
        _ => Err(Error::Unsupported(format!(
            "elements of type {dtype} are not supported on a device: read them to the CPU, without device="
        ))),
    }
}

impl fmt::Debug for DeviceTensor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeviceTensor")
            .field("device", &self.device)
            .field("address", &self.address)
            .field("layout", &self.layout)
            .field("dtype", &self.dtype)
            .finish_non_exhaustive()
    }
}
