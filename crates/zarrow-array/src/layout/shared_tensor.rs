//! A tensor shared by several libraries: raw memory, kept alive by a reference-counted owner.
//!
//! Any holder of a view may write at any time, so there are no safe slices, only a pointer and an `unsafe fn` for a
//! slice.

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

/// A strided view of memory with a shared owner.
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

// SAFETY: the pointer is only handed out raw; code that dereferences it is responsible for races, as with NumPy.
unsafe impl Send for SharedTensor {}
// SAFETY: as above.
unsafe impl Sync for SharedTensor {}

impl SharedTensor {
    pub(crate) fn from_buffer(buffer: Buffer, extents: &[u64], dtype: DataType) -> Result<SharedTensor> {
        let pointer = buffer.pointer();
        let read_only = false;
        Self::from_owner(Arc::new(buffer), pointer, extents, dtype, read_only)
    }

    /// Creates a C-contiguous tensor over memory-mapped files.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`].
    ///
    /// # Safety
    /// The bytes of `extents` and `dtype` from `pointer` must be readable and writable while `owner` lives.
    pub unsafe fn from_map(
        owner: Arc<dyn Send + Sync>,
        pointer: NonNull<u8>,
        extents: &[u64],
        dtype: DataType,
    ) -> Result<SharedTensor> {
        shape::nbytes(extents, dtype.item_size().unwrap_or(0))?;
        Ok(SharedTensor { mapped: true, ..Self::from_owner(owner, pointer, extents, dtype, false)? })
    }

    /// Creates a read-only view of immutable bytes.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the length of the buffer does not match shape and type.
    pub fn read_only(bytes: &SharedBytes, extents: &[u64], dtype: DataType) -> Result<SharedTensor> {
        let expected = shape::nbytes(extents, dtype.item_size().unwrap_or(0))?;
        if expected != bytes.len() {
            return Err(Error::LengthMismatch { what: "the data buffer", expected, actual: bytes.len() });
        }
        Self::from_owner(bytes.owner(), bytes.pointer(), extents, dtype, true)
    }

    /// Creates a tensor over memory of another library. Nothing is copied.
    ///
    /// # Safety
    /// While `owner` lives, every byte of the elements must be readable by any thread, and writable unless the
    /// memory is read-only.
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

    /// Returns the address of the first element. It must not be read if the tensor is empty.
    #[must_use]
    pub fn pointer(&self) -> NonNull<u8> {
        self.pointer
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

    /// Returns whether exports of this memory must be read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns whether the memory is a file mapping.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.mapped
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

    /// Returns whether the elements are C-contiguous.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.layout.is_c_contiguous()
    }

    /// Returns whether all elements are aligned for their word size, as C code of other libraries expects. Foreign
    /// memory may be misaligned.
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        let word = match self.dtype {
            // Fields may be misaligned, as in NumPy.
            DataType::Struct(_) => 1,
            ref plain => plain.word_size().max(1),
        };
        let steps_align = || {
            let step = |stride: &i64| (*stride as isize).wrapping_mul(self.item_size as isize);
            self.strides().iter().all(|stride| step(stride) % word as isize == 0)
        };
        self.size() == 0 || (self.pointer.as_ptr().addr().is_multiple_of(word) && steps_align())
    }

    /// Returns the owner of the memory. Holding a clone keeps the memory alive.
    #[must_use]
    pub fn owner(&self) -> Arc<dyn Send + Sync> {
        Arc::clone(&self.owner)
    }

    /// Returns the bytes of a contiguous tensor; `None` if there are gaps.
    ///
    /// # Safety
    /// The memory must not be written to while the slice lives.
    #[must_use]
    pub unsafe fn bytes(&self) -> Option<&[u8]> {
        if !self.is_c_contiguous() {
            return None;
        }
        // SAFETY: contiguous elements span `nbytes` bytes from `pointer`, inside the owner's memory (every
        // constructor checked that); the caller rules out writers.
        Some(unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.nbytes()) })
    }

    /// Returns a view by basic indexing: one step per axis, and [`IndexStep::New`] anywhere.
    ///
    /// # Errors
    /// [`Error::BadView`] if a position is outside its axis, or the number of steps is wrong.
    pub fn view(&self, steps: &[IndexStep]) -> Result<SharedTensor> {
        let (offset, layout) = self.layout.view(steps)?;
        Ok(self.with_layout(offset, layout))
    }

    /// Permutes the axes without a copy.
    ///
    /// # Errors
    /// [`Error::BadView`] if `axes` is not a permutation.
    pub fn transpose(&self, axes: &[usize]) -> Result<SharedTensor> {
        Ok(self.with_layout(0, self.layout.transpose(axes)?))
    }

    /// Changes the shape without a copy.
    ///
    /// # Errors
    /// [`Error::BadView`] if the number of elements differs, [`Error::NeedsCopy`] if no strides give that shape.
    pub fn reshape(&self, shape: &[i64]) -> Result<SharedTensor> {
        Ok(self.with_layout(0, self.layout.reshape(shape)?))
    }

    /// Reinterprets the memory as another type of the same size.
    ///
    /// # Errors
    /// [`Error::BadView`] if the sizes differ.
    pub fn cast(&self, dtype: DataType) -> Result<SharedTensor> {
        if dtype.item_size() != Some(self.item_size) {
            return Err(Error::BadView(format!("cannot view {} as {dtype}: their sizes differ", self.dtype)));
        }
        Ok(SharedTensor { dtype, ..self.clone() })
    }

    /// Copies the elements to a contiguous tensor in new memory.
    ///
    /// # Safety
    /// The memory must not be written to during the call.
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

    /// Copies the elements to `target` in C order.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `target` does not have the size of all elements.
    ///
    /// # Safety
    /// The memory must not be written to during the call.
    pub unsafe fn copy_into(&self, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        let (expected, actual) = (self.nbytes(), target.len());
        if expected != actual {
            return Err(Error::LengthMismatch { what: "the memory to copy to", expected, actual });
        }
        // SAFETY: the elements are inside the owner's memory (every constructor checked that), and `target`,
        // borrowed mutably by the caller, does not overlap it; the caller rules out writers.
        unsafe { copy_elements(self.pointer.as_ptr(), self.shape(), self.strides(), self.item_size, target) };
        Ok(())
    }

    /// `offset` is in elements; the layout's methods checked that it stays inside the memory.
    fn with_layout(&self, offset: i64, layout: StridedLayout) -> SharedTensor {
        let byte_offset = offset as isize * self.item_size as isize;
        // SAFETY: `StridedLayout` checked every position against its axis, so the view's first element is inside
        // the owner's memory (or the view is empty, with offset 0).
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
