//! The memory of a result, from its allocation to the decoded array.
//!
//! 1. [`ResultMemory::new`] allocates one buffer for each part of the layout, and does not fill it.
//! 2. [`ResultMemory::sinks`] lends the buffers to the read; a batch gets equal items of them.
//! 3. [`ResultMemory::finish`] assumes that they are filled.

use crate::error::Result;
use crate::metadata::FillValue;
use crate::metadata::missing_values::MissingValues;
use crate::place::destination::Destination;
use crate::place::read_bitmap::{Bitmap, BitmapMemory};
use crate::place::sentinel_masked::SentinelMasked;
use crate::place::sink::Sink;
use crate::place::variable::VariableSink;
use zarrow_array::shape::{self, Axes};
use zarrow_array::{
    Buffer, DataType, DecodedArray, FreshPages, Mask, MaskedTensor, MaskedVariable, Tensor, UninitBuffer,
};

/// Memory for elements of one type and shape.
pub struct ResultMemory<'v> {
    shape: Vec<u64>,
    element: DataType,
    missing: Option<&'v MissingValues>,
    /// One mask per level of optional types, and a last one for sentinel values, if any.
    masks: Vec<UninitBuffer>,
    /// The bitmap of a single mask; several masks are joined only when all are complete.
    bitmap: Option<BitmapMemory>,
    data: UninitBuffer,
    /// The data's pages, if the memory is fresh.
    pages: Option<FreshPages>,
    variable: Option<Box<VariableSink>>,
}

impl<'v> ResultMemory<'v> {
    /// Memory for elements of `data_type`.
    pub fn new(
        data_type: &DataType,
        shape: Vec<u64>,
        missing: Option<&'v MissingValues>,
    ) -> Result<ResultMemory<'v>> {
        let element = data_type.without_optional().clone();
        let mut masks = Vec::new();
        let mut level = data_type;
        while let DataType::Optional(inner) = level {
            masks.push(UninitBuffer::new(shape::nbytes(&shape, 1)?)?);
            level = inner;
        }
        if missing.is_some() && element.item_size().is_some() {
            masks.push(UninitBuffer::new(shape::nbytes(&shape, 1)?)?);
        }
        let bitmap = match masks.as_slice() {
            [mask] => Some(BitmapMemory::new(mask.len())?),
            _ => None,
        };
        let nbytes = element.item_size().map_or(Ok(0), |size| shape::nbytes(&shape, size))?;
        let variable = element.item_size().is_none().then(Box::default);
        if variable.is_some() {
            offsets_fit(&shape)?;
        }
        let data = UninitBuffer::new(nbytes)?;
        let pages = data.fresh_pages();
        Ok(ResultMemory { shape, element, missing, masks, bitmap, data, pages, variable })
    }

    /// Returns one sink per item, all the same size, each with the shape of its item.
    pub fn sinks<'a>(&'a mut self, items: &[Axes<u64>]) -> impl Iterator<Item = Sink<'a>>
    where
        'v: 'a,
    {
        // The product fitted when the memory was allocated.
        let elements = items.first().map_or(0, |item| shape::nbytes(item, 1).unwrap_or(0));
        let mut masks: Vec<_> = self.masks.iter_mut().map(|mask| mask.as_mut_slice()).collect();
        let mut bitmaps = self.bitmap.as_mut().map(|bitmap| bitmap.items(items.len(), elements));
        let mut data = self.data.as_mut_slice_and_spare();
        let (variable, item_size, pages) = (&self.variable, self.element.item_size(), self.pages.as_ref());
        let (missing, count) = (self.missing, items.len());
        items.iter().enumerate().map(move |(number, item)| {
            let mut sink = match (variable, item_size) {
                (None, Some(item_size)) => {
                    let (all, nbytes) = (std::mem::take(&mut data), elements * item_size);
                    let is_last = number + 1 == count;
                    let (own, rest) = all.split_at_mut(if is_last { all.len() } else { nbytes });
                    data = rest;
                    Sink::Fixed(Destination::with_spare(own, nbytes, item, item_size).with_pages(pages))
                }
                (variable, _) => {
                    let of_batch = variable.as_ref().map(|variable| variable.at(number * elements, item));
                    Sink::Variable(of_batch.unwrap_or_default())
                }
            };
            let mut bitmap: Option<Bitmap<'_>> =
                bitmaps.as_mut().and_then(|bitmaps| bitmaps.next().flatten());
            let mut values = missing;
            for mask in masks.iter_mut().rev() {
                let (own, rest) = std::mem::take(mask).split_at_mut(elements);
                *mask = rest;
                let (missing, bitmap) = (Destination::new(own, item, 1), bitmap.take());
                sink = match (sink, values.take()) {
                    (Sink::Fixed(data), Some(values)) => {
                        Sink::SentinelMasked(Box::new(SentinelMasked { data, missing, bitmap, values }))
                    }
                    (inner, _) => Sink::Optional { missing, bitmap, inner: Box::new(inner) },
                };
            }
            sink
        })
    }

    /// The decoded array.
    ///
    /// # Errors
    /// [`ErrorKind::Array`](crate::ErrorKind::Array) for text that is not UTF-8 and for short memory,
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    ///
    /// # Safety
    /// Every element of every sink has been placed or filled.
    pub unsafe fn finish(self, fill: &FillValue, interrupted: &dyn Fn() -> bool) -> Result<DecodedArray> {
        let ResultMemory { shape, element, missing, masks, bitmap, data, variable, pages: _ } = self;
        // SAFETY: the caller's contract.
        let mut masks: Vec<Buffer> = unsafe { masks.into_iter().map(|mask| mask.assume_init()).collect() };
        // SAFETY: as above; the writer of a mask packs it.
        let bitmap = bitmap.and_then(|bitmap| unsafe { bitmap.finish() });
        let joined = |masks: Vec<Buffer>| match masks.is_empty() {
            true => Ok(None),
            false => Mask::decoded(masks, bitmap).map(Some),
        };
        let Some(sink) = variable else {
            // SAFETY: the caller's contract.
            let tensor = Tensor::new(unsafe { data.assume_init() }, shape, element)?;
            return Ok(match joined(masks)? {
                Some(mask) => DecodedArray::MaskedTensor(MaskedTensor::new(tensor, mask)?),
                None => DecodedArray::Tensor(tensor),
            });
        };
        let variable = sink.finish(shape, element, variable_fill(fill), interrupted)?;
        if let Some(values) = missing {
            masks.push(values.mask_of(&variable)?);
        }
        Ok(match joined(masks)? {
            Some(mask) => DecodedArray::MaskedVariable(MaskedVariable::new(variable, mask)?),
            None => DecodedArray::Variable(variable),
        })
    }
}

/// Returns an error if elements have no fixed size and their offsets alone cannot be allocated, before any is read.
fn offsets_fit(shape: &[u64]) -> Result<()> {
    /// Smaller sizes are checked when they are needed.
    const LARGE_NBYTES: usize = 1 << 30;
    let nbytes = shape::nbytes(shape, size_of::<i64>())?;
    if nbytes >= LARGE_NBYTES {
        drop(UninitBuffer::new(nbytes)?);
    }
    Ok(())
}

/// The bytes of a variable-length fill value.
fn variable_fill(value: &FillValue) -> &[u8] {
    match value {
        FillValue::Variable(bytes) => bytes,
        FillValue::Present(value) => variable_fill(value),
        _ => &[],
    }
}
