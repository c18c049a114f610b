//! One filter and the chain after it, which encode the elements of a chunk together.

use crate::codec::Uninit;
use crate::codec::array_to_array::element::not_computable;
use crate::codec::array_to_array::filter::Filter;
use crate::codec::chain::{ArrayToBytes, Chain};
use crate::codec::decompress::wrong_elements_size;
use crate::codec::permutation::{inverse, permuted};
use crate::codec::user_codecs::ChunkDescription;
use crate::codec::{ChunkElements, Codecs, Decoded, EncodedChunk, Swap, Worker};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::FillValue;
use std::ops::Range;
use zarrow_array::shape;

/// A filter and the codecs after it.
#[derive(Debug)]
pub struct Filtered {
    /// The filter's name, for errors.
    pub name: String,
    /// The filter.
    pub filter: Filter,
    /// Chain that stores the filter's output.
    pub stored: Chain,
    /// Whether the elements before the filter have the same size and none can be missing.
    pub is_fixed: bool,
}

impl Filtered {
    /// Returns the stored shape of a chunk of `shape`, and the same shape in the order of the stored axes.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], with the codec.
    fn stored_shape(&self, shape: &[u64]) -> Result<(Vec<u64>, Vec<u64>)> {
        let shape = self.filter.stored_shape(shape).map_err(|error| error.in_codec(&self.name))?;
        let in_order = match &self.stored.order {
            Some(order) => order.iter().map(|axis| shape[*axis]).collect(),
            None => shape.clone(),
        };
        Ok((shape, in_order))
    }

    /// Decodes all elements of a chunk.
    fn decode_all(&self, chunk: &EncodedChunk<'_>, worker: &mut Worker) -> Result<Decoded> {
        let (_, stored_shape) = self.stored_shape(chunk.shape)?;
        let stored = 0..shape::nbytes(&stored_shape, 1)?;
        self.elements_of(self.stored.decode(chunk.input, &stored_shape, stored, worker)?, chunk.shape)
    }

    /// Decodes the output of the chain after the filter to the elements of a chunk of `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], [`ErrorKind::Limit`], with the codec; [`zarrow_array::Error::OutOfMemory`].
    fn elements_of(&self, stored: Decoded, shape: &[u64]) -> Result<Decoded> {
        let (_, in_order) = self.stored_shape(shape)?;
        let in_filter = |error: Error| error.in_codec(&self.name);
        let count = shape::nbytes(shape, 1)?;
        let (mut bytes, swap) = match stored {
            Decoded::Fixed { bytes, swap } => (bytes, swap),
            other if matches!(self.filter, Filter::Shape(_)) => return Ok(other),
            _ => return Err(in_filter(not_computable())),
        };
        let item_size = self.stored.item_size().unwrap_or(0);
        swap.in_place(&mut bytes, item_size);
        if let Some(order) = &self.stored.order {
            bytes = permuted(&bytes, &in_order, &inverse(order), item_size)?;
        }
        let bytes = match &self.filter {
            Filter::Values(values, _) => values.decode(bytes, count),
            Filter::Shape(_) => Ok(bytes),
            Filter::UserCodec(codec) => {
                let data_type = &self.stored.data_type;
                codec.decoded(&bytes, ChunkDescription { data_type, shape }, bytes.len())
            }
            Filter::Words(words, _) => {
                return words.decode(&bytes, self.stored.limits.max_variable_nbytes).map_err(in_filter);
            }
        };
        Ok(Decoded::Fixed { bytes: bytes.map_err(in_filter)?, swap: Swap::None })
    }

    /// Encodes the elements of a chunk of `shape`; the result is in the order of the stored axes.
    ///
    /// # Errors
    /// [`ErrorKind::BadValue`], with the codec; [`zarrow_array::Error::OutOfMemory`].
    fn stored_of<'a>(&self, elements: ChunkElements<'a>, shape: &[u64]) -> Result<ChunkElements<'a>> {
        let (shape, _) = self.stored_shape(shape)?;
        let in_filter = |error: Error| error.in_codec(&self.name);
        let bytes = match (&self.filter, elements) {
            (Filter::Values(values, _), ChunkElements::Fixed(bytes)) => values.encode(bytes),
            (Filter::Words(words, _), elements) => words.encode(elements),
            (Filter::Shape(_), ChunkElements::Fixed(bytes)) => Ok(bytes),
            (Filter::UserCodec(codec), ChunkElements::Fixed(bytes)) => {
                let data_type = &self.stored.data_type;
                codec.encode_elements(&bytes, ChunkDescription { data_type, shape: &shape })
            }
            (Filter::Shape(_), elements) => return Ok(elements),
            _ => Err(not_computable()),
        };
        let bytes = bytes.map_err(in_filter)?;
        Ok(ChunkElements::Fixed(match &self.stored.order {
            Some(order) => permuted(&bytes, &shape, order, self.stored.item_size().unwrap_or(0))?,
            None => bytes,
        }))
    }
}

impl ArrayToBytes for Filtered {
    fn elements_chain(&self) -> Option<&Chain> {
        matches!(self.filter, Filter::Shape(_)).then_some(&self.stored)
    }

    fn decode(&self, chunk: &EncodedChunk<'_>, run: Range<usize>, worker: &mut Worker) -> Result<Decoded> {
        if self.is_fixed {
            return chunk.fixed(&run, |memory| self.decode_run(chunk, run.clone(), memory, worker));
        }
        self.decode_all(chunk, worker)
    }

    fn decode_run(
        &self,
        chunk: &EncodedChunk<'_>,
        run: Range<usize>,
        memory: &mut Uninit,
        worker: &mut Worker,
    ) -> Result<Swap> {
        let Decoded::Fixed { bytes, swap } = self.decode_all(chunk, worker)? else {
            return Err(ErrorKind::Internal("elements of no fixed size".into()).into());
        };
        let wrong_size = || wrong_elements_size(chunk.nbytes as u64, bytes.len() as u64);
        memory.write_copy_of_slice(bytes.get(chunk.bytes_of(&run)).ok_or_else(wrong_size)?);
        Ok(swap)
    }

    fn encode(&self, elements: ChunkElements<'_>, shape: &[u64], codecs: &mut Codecs) -> Result<Vec<u8>> {
        let (_, stored_shape) = self.stored_shape(shape)?;
        self.stored.encode(self.stored_of(elements, shape)?, &stored_shape, codecs)
    }

    /// Checks that the filter can store `fill_value` too. numcodecs stores no fill values, so its filters need not
    /// support one.
    ///
    /// Source: zarr-extensions `scale_offset` and `cast_value`, fill value.
    fn check_settings(&self, fill_value: &FillValue) -> Result<()> {
        let stored = match (&self.filter, fill_value, self.name.as_str()) {
            (Filter::Values(values, _), FillValue::Fixed(bytes), "scale_offset" | "cast_value") => {
                let stored = values.encode(bytes.clone()).map_err(|error| {
                    let text = format!("cannot store the fill value ({error}): choose another fill_value");
                    Error::from(ErrorKind::BadCodec(text)).in_codec(&self.name)
                })?;
                FillValue::Fixed(stored)
            }
            (Filter::Shape(_), other, _) => other.clone(),
            _ => FillValue::Variable(Vec::new()),
        };
        self.stored.check_settings(&stored)
    }
}
