//! The tensor that several libraries hold at once: raw memory, kept alive by a counted owner.
//!
//! Whoever holds a view of it may write at any time, so that it lends no safe slice: it gives a pointer, and
//! a slice by an `unsafe fn`.

use crate::buffer::{Buffer, UninitBuffer};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::layout::ForeignMemory;
use crate::layout::strided_copy::copy_elements;
use crate::layout::strided_layout::{IndexStep, StridedLayout};
use crate::shape;
use crate::shared_bytes::SharedBytes;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// A strided view of memory that an owner, shared by all views, keeps alive.
///
/// A clone is another view of the same memory.
///
/// ```
/// use zarrow_array::{Buffer, IndexStep, Number, Tensor};
/// let tensor = Tensor::new(Buffer::zeroed(24).unwrap(), vec![2, 3], Number::Int32.into()).unwrap();
/// let shared = tensor.into_shared().unwrap();
/// let column = shared.view(&[IndexStep::Range { start: 0, step: 1, count: 2 }, IndexStep::At(1)]).unwrap();
/// assert_eq!((column.shape(), column.strides()), (&[2][..], &[3][..]));
/// assert_eq!(column.pointer().as_ptr() as usize, shared.pointer().as_ptr() as usize + 4);
/// ```
#[derive(Clone)]
pub struct SharedTensor {
    owner: Arc<dyn Send + Sync>,
    pointer: NonNull<u8>,
    layout: StridedLayout,
    dtype: DataType,
    item_size: usize,
    read_only: bool,
    mapped: bool,
}

// SAFETY: the pointer is only given out raw; whoever dereferences it answers for races, as with NumPy's memory.
unsafe impl Send for SharedTensor {}
// SAFETY: as above.
unsafe impl Sync for SharedTensor {}

impl SharedTensor {
    pub(crate) fn from_buffer(buffer: Buffer, extents: &[u64], dtype: DataType) -> Result<SharedTensor> {
        let pointer = buffer.pointer();
        let read_only = false;
        Self::from_owner(Arc::new(buffer), pointer, extents, dtype, read_only)
    }

    /// A C-contiguous tensor in memory that is a map of files.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`].
    ///
    /// # Safety
    /// As long as `owner` lives, the bytes of `extents` and `dtype` from `pointer` on may be read and written.
    pub unsafe fn from_map(
        owner: Arc<dyn Send + Sync>,
        pointer: NonNull<u8>,
        extents: &[u64],
        dtype: DataType,
    ) -> Result<SharedTensor> {
        shape::nbytes(extents, dtype.item_size().unwrap_or(0))?;
        Ok(SharedTensor { mapped: true, ..Self::from_owner(owner, pointer, extents, dtype, false)? })
    }

    /// A read-only view of bytes that stay as they are.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] where the buffer is shorter or longer than shape and type ask for.
    pub fn read_only(bytes: &SharedBytes, extents: &[u64], dtype: DataType) -> Result<SharedTensor> {
        let expected = shape::nbytes(extents, dtype.item_size().unwrap_or(0))?;
        if expected != bytes.len() {
            return Err(Error::LengthMismatch { what: "the data buffer", expected, actual: bytes.len() });
        }
        Self::from_owner(bytes.owner(), bytes.pointer(), extents, dtype, true)
    }

    /// A tensor in memory of another library. Nothing is copied.
    ///
    /// # Safety
    /// As long as `owner` lives, every byte that the elements lie in may be read by any thread, and be written to
    /// unless it is read-only.
    #[must_use]
    pub unsafe fn from_foreign(memory: ForeignMemory, owner: Arc<dyn Send + Sync>) -> SharedTensor {
        let ForeignMemory { pointer, shape, strides, dtype, item_size, read_only } = memory;
        let layout = StridedLayout::new(shape, strides);
        SharedTensor { owner, pointer, layout, dtype, item_size, read_only, mapped: false }
    }

    fn from_owner(
        owner: Arc<dyn Send + Sync>,
        pointer: NonNull<u8>,
        extents: &[u64],
        dtype: DataType,
        read_only: bool,
    ) -> Result<SharedTensor> {
        let layout = StridedLayout::c_order(extents)?;
        let item_size = dtype.item_size().unwrap_or(0);
        Ok(SharedTensor { owner, pointer, layout, dtype, item_size, read_only, mapped: false })
    }

    /// The address of the first element. Memory of an empty tensor has no element to read.
    #[must_use]
    pub fn pointer(&self) -> NonNull<u8> {
        self.pointer
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

    /// Whether no face of this memory may write to it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether the memory is a map of files, and was not read from them.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.mapped
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

    /// Whether the elements lie in C order without gaps.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.layout.is_c_contiguous()
    }

    /// Whether each element lies at a multiple of its word's size, as other libraries' C code asks; memory of
    /// another library may not.
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        let word = match self.dtype {
            // Fields lie anywhere, as in NumPy.
            DataType::Struct(_) => 1,
            ref plain => plain.word_size().max(1),
        };
        let steps_align = || {
            let step = |stride: &i64| (*stride as isize).wrapping_mul(self.item_size as isize);
            self.strides().iter().all(|stride| step(stride) % word as isize == 0)
        };
        self.size() == 0 || (self.pointer.as_ptr().addr().is_multiple_of(word) && steps_align())
    }

    /// What keeps the memory alive: holding a clone is enough.
    #[must_use]
    pub fn owner(&self) -> Arc<dyn Send + Sync> {
        Arc::clone(&self.owner)
    }

    /// The bytes of a contiguous tensor; `None` where there are gaps.
    ///
    /// # Safety
    /// Nobody writes to the memory while the slice lives.
    #[must_use]
    pub unsafe fn bytes(&self) -> Option<&[u8]> {
        if !self.is_c_contiguous() {
            return None;
        }
        // SAFETY: contiguous elements span `nbytes` bytes from `pointer`, inside the owner's memory (every
        // constructor checked that); the caller rules out writers.
        Some(unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.nbytes()) })
    }

    /// A view by basic indexing, of the same memory: one step for each axis, and [`IndexStep::New`] anywhere.
    ///
    /// # Errors
    /// [`Error::BadView`] where a position lies outside its axis, or the steps are not one for each axis.
    pub fn view(&self, steps: &[IndexStep]) -> Result<SharedTensor> {
        let (offset, layout) = self.layout.view(steps)?;
        Ok(self.with_layout(offset, layout))
    }

    /// The same memory with its axes in another order.
    ///
    /// # Errors
    /// [`Error::BadView`] where `axes` is not a permutation.
    pub fn transpose(&self, axes: &[usize]) -> Result<SharedTensor> {
        Ok(self.with_layout(0, self.layout.transpose(axes)?))
    }

    /// The same memory with another shape of as many elements.
    ///
    /// # Errors
    /// [`Error::BadView`] where the number of elements differs, [`Error::NeedsCopy`] where no strides over the
    /// same memory have that shape.
    pub fn reshape(&self, shape: &[i64]) -> Result<SharedTensor> {
        Ok(self.with_layout(0, self.layout.reshape(shape)?))
    }

    /// The same memory as elements of another type of the same size.
    ///
    /// # Errors
    /// [`Error::BadView`] where the sizes differ.
    pub fn cast(&self, dtype: DataType) -> Result<SharedTensor> {
        if dtype.item_size() != Some(self.item_size) {
            return Err(Error::BadView(format!("{} and {dtype} differ in size", self.dtype)));
        }
        Ok(SharedTensor { dtype, ..self.clone() })
    }

    /// A contiguous tensor with memory of its own and the same elements.
    ///
    /// # Safety
    /// Nobody writes to the memory during the call.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub unsafe fn copy(&self) -> Result<SharedTensor> {
        let extents: Vec<u64> = self.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        let mut buffer = UninitBuffer::new(self.nbytes())?;
        // SAFETY: the caller rules out writers; `copy_into` then fills every byte.
        let buffer = unsafe {
            self.copy_into(buffer.as_mut_slice())?;
            buffer.assume_init()
        };
        SharedTensor::from_buffer(buffer, &extents, self.dtype.clone())
    }

    /// Fills `target` with the elements, side by side in C order.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] where `target` has another length than all elements.
    ///
    /// # Safety
    /// Nobody writes to the memory during the call.
    pub unsafe fn copy_into(&self, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        let (expected, actual) = (self.nbytes(), target.len());
        if expected != actual {
            return Err(Error::LengthMismatch { what: "the memory to copy to", expected, actual });
        }
        // SAFETY: the elements lie inside the owner's memory (every constructor checked that), which `target`, lent
        // to the caller alone, is no part of; the caller rules out writers.
        unsafe { copy_elements(self.pointer.as_ptr(), self.shape(), self.strides(), self.item_size, target) };
        Ok(())
    }

    /// `offset` is in elements; the layout's methods checked that it stays inside the memory.
    fn with_layout(&self, offset: i64, layout: StridedLayout) -> SharedTensor {
        let byte_offset = offset as isize * self.item_size as isize;
        // SAFETY: `StridedLayout` checked every position against its axis, so that the first element of the view
        // lies inside the owner's memory (or the view is empty, with offset 0).
        let pointer = unsafe { self.pointer.offset(byte_offset) };
        SharedTensor {
            owner: Arc::clone(&self.owner),
            pointer,
            layout,
            dtype: self.dtype.clone(),
            item_size: self.item_size,
            read_only: self.read_only,
            mapped: self.mapped,
        }
    }
}

impl fmt::Debug for SharedTensor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SharedTensor")
            .field("pointer", &self.pointer)
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("dtype", &self.dtype)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}
