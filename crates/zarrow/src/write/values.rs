//! The values of a write: elements in the caller's memory, read in place, which other code may change meanwhile (see
//! [`Borrowed`]).

use crate::codec::Swap;
use crate::codec::borrowed::Borrowed;
pub(crate) use crate::codec::mismatch;
use crate::error::{ErrorKind, Result};
use crate::place::element_offsets::StridedLayout;
use crate::place::placement::copy;
use crate::plan::axis_part::{AxisPart, PerAxis};
use crate::plan::output_strides::{OutputStrides, c_strides};
use crate::selection::Selection;
use crate::write::cast::Cast;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use zarrow_array::{DataType, DecodedArray, Mask, Number, Tensor, Variable};

/// Elements of one type and shape in the caller's memory, to be written to an array.
///
/// Creating values copies nothing, not even to repeat an element, to reverse an axis, or for non-native byte order.
///
/// ```
/// use zarrow::Values;
/// use zarrow_array::Number;
/// let row = [1i16, 2, 3];
/// let bytes: Vec<u8> = row.iter().flat_map(|item| item.to_ne_bytes()).collect();
/// let values = Values::contiguous(&bytes, Number::Int16.into(), &[3])?;
/// assert_eq!(values.broadcast(&[4, 3])?.shape(), [4, 3]);
/// assert!(values.broadcast(&[4]).is_err());
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Values<'a> {
    dtype: DataType,
    shape: Vec<u64>,
    /// Missing elements at each level of an optional type, outermost first.
    masks: Vec<Memory<'a>>,
    data: Data<'a>,
}

/// The elements behind all masks.
#[derive(Debug, Clone)]
pub(crate) enum Data<'a> {
    /// Elements of a fixed size, and their byte swap.
    Fixed(Memory<'a>, Swap),
    /// Strings or bytes.
    Variable(VariableElements<'a>),
}

/// Strided elements of a fixed size.
#[derive(Debug, Clone)]
pub(crate) struct Memory<'a> {
    pointer: *const u8,
    nbytes: usize,
    item_size: usize,
    /// The cast of each element, if the values have another type.
    cast: Option<Cast>,
    /// Byte offset of the element at position 0 of every axis.
    origin: isize,
    /// Distance in bytes between positions on each axis.
    strides: OutputStrides,
    lifetime: PhantomData<&'a [u8]>,
}

// SAFETY: the memory is only read, and may be read by any thread.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

/// Elements of variable length.
#[derive(Debug, Clone)]
pub(crate) struct VariableElements<'a> {
    variable: &'a Variable,
    /// Distance in elements between positions on each axis.
    strides: OutputStrides,
}

impl<'a> Values<'a> {
    /// Contiguous elements in C order, in native byte order.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`] if the size of `bytes` does not match the shape, [`ErrorKind::Unsupported`] for a type
    /// without a fixed size.
    pub fn contiguous(bytes: &'a [u8], dtype: DataType, shape: &[u64]) -> Result<Values<'a>> {
        let item_size = fixed_size(&dtype)?;
        let expected = zarrow_array::shape::nbytes(shape, item_size)?;
        if bytes.len() != expected {
            return Err(ErrorKind::WrongSize { expected: expected as u64, actual: bytes.len() as u64 }.into());
        }
        Ok(Values::in_c_order(bytes, item_size, dtype, shape))
    }

    /// Same as [`contiguous`](Values::contiguous), for bytes of a size known to match.
    pub(crate) fn in_c_order(
        bytes: &'a [u8],
        item_size: usize,
        dtype: DataType,
        shape: &[u64],
    ) -> Values<'a> {
        let (pointer, nbytes) = (bytes.as_ptr(), bytes.len());
        let strides = c_strides(shape, item_size).into();
        let memory =
            Memory { pointer, nbytes, item_size, cast: None, origin: 0, strides, lifetime: PhantomData };
        Values { dtype, shape: shape.to_vec(), masks: Vec::new(), data: Data::Fixed(memory, Swap::None) }
    }

    /// Elements among the `nbytes` bytes from `pointer` on: the first is at `origin`, neighbours on each axis are
    /// `strides` bytes apart, which may be negative, or 0 to repeat an element. With `swapped` they are in non-native
    /// byte order.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a type without a fixed size, [`ErrorKind::Shape`] unless each axis has one
    /// stride. Elements outside of the memory are found when they are written.
    ///
    /// # Safety
    /// During `'a` the memory can be read. Other code may write to it meanwhile: each element is then written as it was
    /// at some moment, so the result may mix old and new elements.
    pub unsafe fn strided(
        (pointer, nbytes, origin): (*const u8, usize, usize),
        dtype: DataType,
        shape: &[u64],
        strides: &[isize],
        swapped: bool,
    ) -> Result<Values<'a>> {
        let item_size = fixed_size(&dtype)?;
        if strides.len() != shape.len() {
            return Err(ErrorKind::Shape(format!(
                "expected one stride per axis, got {} for {} axes",
                strides.len(),
                shape.len()
            ))
            .into());
        }
        let origin = isize::try_from(origin).unwrap_or(isize::MAX);
        let strides = PerAxis::from_slice(strides).into();
        let memory =
            Memory { pointer, nbytes, item_size, cast: None, origin, strides, lifetime: PhantomData };
        let swap = if swapped { Swap::all(&dtype) } else { Swap::None };
        Ok(Values { dtype, shape: shape.to_vec(), masks: Vec::new(), data: Data::Fixed(memory, swap) })
    }

    /// The elements of a tensor.
    ///
    /// # Errors
    /// As [`contiguous`](Values::contiguous), which no tensor gives.
    pub fn tensor(tensor: &'a Tensor) -> Result<Values<'a>> {
        Values::contiguous(tensor.bytes(), tensor.dtype().clone(), tensor.shape())
    }

    /// Strings or bytes.
    #[must_use]
    pub fn variable(variable: &'a Variable) -> Values<'a> {
        let elements = VariableElements { variable, strides: c_strides(variable.shape(), 1).into() };
        Values {
            dtype: variable.dtype().clone(),
            shape: variable.shape().to_vec(),
            masks: Vec::new(),
            data: Data::Variable(elements),
        }
    }

    /// The elements of any of the four layouts.
    ///
    /// # Errors
    /// As [`contiguous`](Values::contiguous), which no layout gives.
    pub fn decoded(array: &'a DecodedArray) -> Result<Values<'a>> {
        match array {
            DecodedArray::Tensor(tensor) => Values::tensor(tensor),
            DecodedArray::Variable(variable) => Ok(Values::variable(variable)),
            DecodedArray::MaskedTensor(masked) => Values::tensor(masked.data())?.with_levels(masked.mask()),
            DecodedArray::MaskedVariable(masked) => {
                Values::variable(masked.data()).with_levels(masked.mask())
            }
        }
    }

    /// Returns the same elements with a C-contiguous mask for every level.
    ///
    /// # Errors
    /// As [`with_mask`](Values::with_mask).
    pub fn with_levels(self, mask: &'a Mask) -> Result<Values<'a>> {
        let shape = self.shape.clone();
        (0..mask.depth()).try_fold(self, |values, level| {
            let missing = mask.level(level).unwrap_or(&[]);
            values.with_mask(&Values::contiguous(missing, Number::UInt8.into(), &shape)?)
        })
    }

    /// Returns the same elements with some marked missing: those with a nonzero `mask`, which has one-byte elements. A
    /// second mask belongs to the next level of a nested optional type.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the mask has another shape, [`ErrorKind::Unsupported`] if its elements are not single
    /// bytes.
    pub fn with_mask(mut self, mask: &Values<'a>) -> Result<Values<'a>> {
        if mask.shape != self.shape {
            let text = format!("the mask has shape {:?}, the elements have {:?}", mask.shape, self.shape);
            return Err(ErrorKind::Shape(text).into());
        }
        match &mask.data {
            Data::Fixed(memory, _) if memory.item_size == 1 && mask.masks.is_empty() => {
                self.masks.push(memory.clone());
                Ok(self)
            }
            _ => Err(ErrorKind::Unsupported(format!("a mask of {}", mask.dtype)).into()),
        }
    }

    /// Whether [`cast`](Values::cast) supports this pair of types.
    #[must_use]
    pub fn can_be_cast(from: &DataType, to: &DataType) -> bool {
        Cast::new(from, to, false).is_ok()
    }

    /// Returns the same numbers as another type: each is cast on its way into a chunk, without an extra copy.
    ///
    /// Floats are rounded, and too large ones become infinite; integers that do not fit keep their low bits; a float is
    /// truncated towards zero to become an integer. Bools, integers and floats of 16 to 64 bits can be cast.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for elements of any other type.
    ///
    /// ```
    /// use zarrow::Values;
    /// use zarrow_array::Number;
    /// let bytes = [1.5f64, -2.0].map(f64::to_ne_bytes);
    /// let values = Values::contiguous(bytes.as_flattened(), Number::Float64.into(), &[2])?;
    /// assert_eq!(values.cast(&Number::Float32.into())?.dtype(), &Number::Float32.into());
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn cast(mut self, dtype: &DataType) -> Result<Values<'a>> {
        match &mut self.data {
            Data::Fixed(memory, swap) if memory.cast.is_none() => {
                let is_swapped = std::mem::replace(swap, Swap::None) != Swap::None;
                memory.cast = Some(Cast::new(&self.dtype, dtype, is_swapped)?);
                self.dtype = dtype.clone();
                Ok(self)
            }
            _ => Err(ErrorKind::Unsupported(format!("casting {} to {dtype}", self.dtype)).into()),
        }
    }

    /// Extents, outermost axis first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        &self.dtype
    }

    /// The number of masks.
    #[must_use]
    pub fn mask_depth(&self) -> usize {
        self.masks.len()
    }

    /// The same elements repeated to `shape`, by NumPy's rules: axes are matched from the last on, and one of a single
    /// element fits any. Axes of one element in front of the others do not count.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the shapes do not fit.
    pub fn broadcast(&self, shape: &[u64]) -> Result<Values<'a>> {
        let surplus = self.shape.len().saturating_sub(shape.len());
        let (front, own) = self.shape.split_at(surplus);
        let missing = shape.len() - own.len();
        let fits = own.iter().zip(&shape[missing..]).all(|(own, extent)| own == extent || *own == 1);
        if !fits || front.iter().any(|extent| *extent != 1) {
            let text = format!(
                "values of shape {:?} cannot be broadcast to the selection's shape {shape:?}",
                self.shape
            );
            return Err(ErrorKind::Shape(text).into());
        }
        Ok(self.laid_out(shape, |strides| {
            let own = strides.axes()[surplus..].iter().zip(own);
            let kept = own.map(|(stride, own)| if *own == 1 { 0 } else { *stride });
            std::iter::repeat_n(0, missing).chain(kept).collect::<PerAxis<_>>().into()
        }))
    }

    /// Returns the elements from `start` to `stop` along an axis; `None` for strings and bytes.
    pub(crate) fn part(&self, axis: usize, start: u64, stop: u64) -> Option<Values<'a>> {
        let mut part = self.clone();
        *part.shape.get_mut(axis)? = stop.checked_sub(start)?;
        let Data::Fixed(memory, _) = &mut part.data else { return None };
        for memory in part.masks.iter_mut().chain([memory]) {
            let offset = memory.strides.axes().get(axis)?.checked_mul(isize::try_from(start).ok()?)?;
            memory.origin = memory.origin.checked_add(offset)?;
        }
        Some(part)
    }

    /// Returns the same elements, which have the shape of the result of `selection`, with the axes of its plan.
    pub(crate) fn for_selection(&self, selection: &Selection) -> Values<'a> {
        self.laid_out(&selection.flat_shape(), |strides| OutputStrides::new(strides.axes(), selection))
    }

    /// Returns the same elements with another shape; `turned` maps the old strides to the new ones.
    fn laid_out(&self, shape: &[u64], turned: impl Fn(&OutputStrides) -> OutputStrides) -> Values<'a> {
        let memory = |memory: &Memory<'a>| Memory { strides: turned(&memory.strides), ..memory.clone() };
        let data = match &self.data {
            Data::Fixed(fixed, swap) => Data::Fixed(memory(fixed), swap.clone()),
            Data::Variable(elements) => {
                Data::Variable(VariableElements { strides: turned(&elements.strides), ..elements.clone() })
            }
        };
        let masks = self.masks.iter().map(memory).collect();
        Values { dtype: self.dtype.clone(), shape: shape.to_vec(), masks, data }
    }

    /// All levels.
    pub(crate) fn level(&self) -> Level<'_, 'a> {
        Level { masks: &self.masks, data: &self.data }
    }
}

fn fixed_size(dtype: &DataType) -> Result<usize> {
    match dtype {
        DataType::Optional(_) => None,
        other => other.item_size(),
    }
    .ok_or_else(|| {
        ErrorKind::Unsupported(format!(
            "values of {dtype} as fixed-size memory: give a Variable or a masked layout"
        ))
        .into()
    })
}

/// Values from one level of an optional type on.
#[derive(Clone, Copy)]
pub(crate) struct Level<'v, 'a> {
    /// The masks from this level on; if there are too few, nothing is missing.
    pub masks: &'v [Memory<'a>],
    /// The elements.
    pub data: &'v Data<'a>,
}

impl<'v, 'a> Level<'v, 'a> {
    /// The mask of this level, and the next level.
    pub fn split(self) -> (Option<&'v Memory<'a>>, Level<'v, 'a>) {
        match self.masks.split_first() {
            Some((mask, masks)) => (Some(mask), Level { masks, ..self }),
            None => (None, self),
        }
    }

    /// Returns elements of this size, and their byte swap.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for others, which a check before rules out.
    pub fn fixed(self, item_size: usize) -> Result<(&'v Memory<'a>, &'v Swap)> {
        match self.data {
            Data::Fixed(memory, swap) if memory.made_size() == item_size => Ok((memory, swap)),
            _ => Err(mismatch()),
        }
    }
}

fn outside() -> crate::Error {
    ErrorKind::Shape("the strides exceed the memory of the values".into()).into()
}

impl<'a> Memory<'a> {
    /// Returns the layout of `part`; `None` if it is outside the memory.
    fn side(&self, part: &[AxisPart<'_>]) -> Result<Option<StridedLayout>> {
        let layout = StridedLayout::in_output(part, self.origin, &self.strides)?;
        Ok(layout.filter(|layout| layout.range(self.item_size).is_some_and(|range| range.end <= self.nbytes)))
    }

    /// Size of an element in a chunk, in bytes.
    fn made_size(&self) -> usize {
        self.cast.map_or(self.item_size, |cast| cast.item_size)
    }

    /// Returns the bytes of `part`, if they are one run in the part's own C order, with no other elements in the chunk.
    pub fn run(&self, part: &[AxisPart<'_>]) -> Option<Borrowed<'a>> {
        if self.cast.is_some() {
            return None;
        }
        // If the check itself cannot allocate, gather the elements; gathering then reports the error.
        let layout = self.side(part).ok()??;
        let (first, nbytes) = (usize::try_from(layout.first).ok()?, layout.run(self.item_size)?);
        // SAFETY: `side` checked that the run lies inside the memory, which can be read during `'a` by the contract of
        // `Values::strided`.
        Some(unsafe { Borrowed::new(self.pointer.add(first), nbytes) })
    }

    /// Copies the elements of `part` to their places in a chunk with these strides, byte-swapped as `swap` says.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if elements are out of bounds of the memory or of the chunk.
    pub fn gather(
        &self,
        part: &[AxisPart<'_>],
        chunk: &mut [MaybeUninit<u8>],
        strides: &[isize],
        swap: &Swap,
    ) -> Result<()> {
        let mut from = self.side(part)?.ok_or_else(outside)?;
        let mut to = StridedLayout::in_chunk(part, 0, strides)?.ok_or_else(outside)?;
        if to.range(self.made_size()).is_none_or(|range| range.end > chunk.len())
            || strides.len() != part.len()
        {
            return Err(outside());
        }
        let (first, place) = (from.first, to.first);
        let axes = from.axes_to(&mut to)?;
        let source = self.pointer.wrapping_offset(first);
        let destination = chunk.as_mut_ptr().cast::<u8>().wrapping_offset(place);
        // SAFETY: every element's range was checked on both sides. The chunk is exclusive memory, and the values' can be
        // read, by the contract of `Values::strided`.
        unsafe {
            match self.cast {
                Some(cast) => cast.copy(swap, &axes, source, destination)?,
                None => copy(self.item_size, swap, &axes, source, destination, false),
            }
        }
        Ok(())
    }
}

impl Memory<'_> {
    /// Same as [`gather`](Memory::gather), over initialised bytes.
    ///
    /// # Errors
    /// As [`gather`](Memory::gather).
    pub fn gather_over(
        &self,
        part: &[AxisPart<'_>],
        chunk: &mut [u8],
        strides: &[isize],
        swap: &Swap,
    ) -> Result<()> {
        // SAFETY: only initialised bytes are gathered, so that every byte stays initialised.
        let chunk = unsafe { &mut *(std::ptr::from_mut(chunk) as *mut [MaybeUninit<u8>]) };
        self.gather(part, chunk, strides, swap)
    }

    /// A mask for `part` without missing elements.
    pub fn nothing_missing(part: &[AxisPart<'_>]) -> Memory<'static> {
        static PRESENT: [u8; 1] = [0];
        let axes = part.iter().filter_map(|axis| axis.output).max().map_or(0, |last| last + 1);
        let strides = PerAxis::from_elem(0, axes).into();
        Memory {
            pointer: PRESENT.as_ptr(),
            nbytes: 1,
            item_size: 1,
            cast: None,
            origin: 0,
            strides,
            lifetime: PhantomData,
        }
    }
}

impl<'a> VariableElements<'a> {
    /// Calls `each` with every element of `part`: its place in a chunk with these axis strides, in elements, and its
    /// bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if elements are out of bounds of the memory.
    pub fn each(
        &self,
        part: &[AxisPart<'_>],
        strides: &[isize],
        mut each: impl FnMut(usize, &'a [u8]) -> Result<()>,
    ) -> Result<()> {
        let from = StridedLayout::in_output(part, 0, &self.strides)?.ok_or_else(outside)?;
        let to = StridedLayout::in_chunk(part, 0, strides)?.ok_or_else(outside)?;
        let count: u64 = part.iter().map(|axis| axis.count).product();
        for (from, to) in from.iter().zip(to.iter()).take(usize::try_from(count).unwrap_or(usize::MAX)) {
            let element = usize::try_from(from).ok().and_then(|index| self.variable.element(index));
            each(usize::try_from(to).map_err(|_| outside())?, element.ok_or_else(outside)?)?;
        }
        Ok(())
    }
}
