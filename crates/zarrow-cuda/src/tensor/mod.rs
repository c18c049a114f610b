//! A tensor in the memory of a device.

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

/// What keeps the memory of a tensor.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// Memory of ours.
    Own(Arc<DeviceMemory>),
    /// Memory of another library.
    Foreign(Arc<ForeignMemory>),
}

/// A strided view of memory of a device, which an owner, shared by all views, keeps alive. A clone is another view of the
/// same memory.
///
/// What a method does with elements is given to [`Device::stream`] and done in order; the caller does not wait. A method
/// that gives a value to the host waits.
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
    /// A tensor in new memory, in C order, whose elements have no values yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Unsupported`] for elements of no fixed size; [`Error::Array`] for a shape that
    /// does not fit.
    pub fn empty(device: &'static Device, shape: &[u64], dtype: DataType) -> Result<DeviceTensor> {
        DeviceTensor::empty_in(device, shape, dtype, device.stream())
    }

    /// As [`empty`](DeviceTensor::empty), in memory that is taken and freed in `stream`, one of the device's own.
    ///
    /// # Errors
    /// As [`empty`](DeviceTensor::empty).
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

    /// As [`empty`](DeviceTensor::empty), in Fortran's order.
    ///
    /// # Errors
    /// As [`empty`](DeviceTensor::empty).
    pub fn empty_column_major(
        device: &'static Device,
        shape: &[u64],
        dtype: DataType,
    ) -> Result<DeviceTensor> {
        let reversed: Vec<u64> = shape.iter().rev().copied().collect();
        let axes: Vec<usize> = (0..shape.len()).rev().collect();
        DeviceTensor::empty(device, &reversed, dtype)?.transpose(&axes)
    }

    /// A tensor in memory of another library. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for elements of no fixed size.
    ///
    /// # Safety
    /// All elements that the layout reaches lie in memory of `device` that stays as long as the owner in `memory`, and
    /// that may be written to unless it is `read_only`. What was given to the device before it came here is ordered
    /// before `device.stream()`.
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

    /// Where it is.
    #[must_use]
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// The address of the first element, on the device; 0 for an empty tensor of ours.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// Extents, outermost axis first.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.layout.shape()
    }

    /// Distances of neighbours on each axis, in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        self.layout.strides()
    }

    /// Distances of neighbours on each axis, in bytes.
    #[must_use]
    pub fn byte_strides(&self) -> Vec<i64> {
        self.strides().iter().map(|stride| stride.wrapping_mul(self.item_size as i64)).collect()
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        &self.dtype
    }

    /// Bytes of one element.
    #[must_use]
    pub fn item_size(&self) -> usize {
        self.item_size
    }

    /// The number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.layout.size()
    }

    /// The elements' bytes, were they contiguous.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.size() * self.item_size
    }

    /// Whether nobody may write to the memory.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether the elements lie in C order without gaps.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.layout.is_c_contiguous()
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// A library is given the memory, and uses it in `stream`: what was done with it so far comes before, and it is not
    /// freed before what that library does there.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn lend_to(&self, stream: Stream) -> Result<()> {
        self.device.order(self.device.stream(), stream)?;
        if let Owner::Own(memory) = &self.owner {
            memory.is_used_in(stream);
        }
        Ok(())
    }

    /// A library is given the memory without any order, and uses it in a stream that it does not name: the memory is not freed
    /// before the device has done all that it was given until nobody has the memory any more.
    pub fn lend_unordered(&self) {
        if let Owner::Own(memory) = &self.owner {
            memory.is_used_anywhere();
        }
    }

    /// What libraries that were lent the memory have been given to do with it comes before what our stream does next. For
    /// those whose streams are not known the caller waits.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn begin_after_consumers(&self) -> Result<()> {
        let Owner::Own(memory) = &self.owner else { return Ok(()) };
        let (streams, has_others) = memory.consumers();
        if has_others {
            self.device.synchronize_all()?;
        }
        streams.into_iter().try_for_each(|stream| self.device.order(stream, self.device.stream()))
    }

    /// What those libraries do with the memory from now on comes after what our stream was given. For those whose streams are
    /// not known the caller waits.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn end_before_consumers(&self) -> Result<()> {
        let Owner::Own(memory) = &self.owner else { return Ok(()) };
        let (streams, has_others) = memory.consumers();
        if has_others {
            self.device.synchronize()?;
        }
        streams.into_iter().try_for_each(|stream| self.device.order(self.device.stream(), stream))
    }

    /// A view by basic indexing, of the same memory.
    ///
    /// # Errors
    /// As [`StridedLayout::view`].
    pub fn view(&self, steps: &[IndexStep]) -> Result<DeviceTensor> {
        let (offset, layout) = self.layout.view(steps)?;
        Ok(self.at(offset, layout))
    }

    /// The same memory with its axes in another order.
    ///
    /// # Errors
    /// As [`StridedLayout::transpose`].
    pub fn transpose(&self, axes: &[usize]) -> Result<DeviceTensor> {
        Ok(self.at(0, self.layout.transpose(axes)?))
    }

    /// The same memory with another shape of as many elements.
    ///
    /// # Errors
    /// As [`StridedLayout::reshape`].
    pub fn reshape(&self, shape: &[i64]) -> Result<DeviceTensor> {
        Ok(self.at(0, self.layout.reshape(shape)?))
    }

    /// The same memory with `shape`, where axes of one element, and axes that are not there, are repeated, as in NumPy.
    ///
    /// # Errors
    /// [`Error::Array`] where the shapes do not fit each other.
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

    /// The same memory as elements of another type: as many where the sizes are equal; else the last axis, whose elements
    /// lie side by side, has more or fewer, as in NumPy's `view`.
    ///
    /// # Errors
    /// [`Error::Array`] where the elements of the last axis do not lie side by side, or do not fill whole ones.
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
            return Err(bad("a tensor of no axes keeps the size of its element"));
        };
        if *extent > 1 && *stride != self.item_size as i64 {
            return Err(bad("the elements of the last axis do not lie side by side"));
        }
        let nbytes = extent.unsigned_abs() as usize * self.item_size;
        if item_size == 0 || !nbytes.is_multiple_of(item_size) {
            return Err(bad("the last axis has no whole number of elements"));
        }
        (*extent, *stride) = ((nbytes / item_size) as i64, item_size as i64);
        if strides.iter().any(|stride| stride % item_size as i64 != 0) {
            return Err(bad("the distances of neighbours are no whole number of elements"));
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

    /// The device of both, where it is one.
    fn same_device(&self, other: &DeviceTensor) -> Result<&'static Device> {
        if self.device.ordinal() == other.device.ordinal() {
            Ok(self.device)
        } else {
            Err(Error::OtherDevice { expected: self.device.to_string(), found: other.device.to_string() })
        }
    }

    /// Whether two elements may share bytes.
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
        // Each axis steps over all that the axes before it reach.
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
            let text = "elements of the memory to write to overlap: expected memory in which each has a place of its own";
            return Err(zarrow_array::Error::BadView(text.to_owned()).into());
        }
        Ok(())
    }
}

/// Bytes of one element.
fn fixed_size(dtype: &DataType) -> Result<usize> {
    match dtype.item_size() {
        Some(nbytes) if !matches!(dtype, DataType::Optional(_)) => Ok(nbytes),
        _ => Err(Error::Unsupported(format!(
            "elements of {dtype} have no layout on a device: read them to the CPU, without device="
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
