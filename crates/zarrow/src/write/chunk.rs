//! Encoding one chunk, or one inner chunk of a shard.
//!
//! 1. A transposed chunk is treated as the same chunk with permuted axes; parts and strides are permuted with it.
//! 2. If the part is the whole chunk, and its elements are one run of bytes in the caller's memory, they are encoded
//!    from there, provided that the codecs read each byte once, because other code may write to that memory at the same
//!    time. Otherwise they are gathered in memory that the thread keeps, and byte-swapped on the way.
//! 3. Elements outside the part keep their old value, beyond the array's edge too: another writer may be appending
//!    there, or have appended since the array was opened. Without an old chunk they are the fill value.
//! 4. If the old chunk cannot be decoded, a part that covers the whole chunk inside the array replaces it. Any other
//!    part is an error; a caller that only clears elements leaves the chunk unchanged.
//! 5. A chunk with only fill values is not stored, unless the caller asks for it or the array has no fill value.
//! 6. Other layouts are encoded from a list of their elements.
//! 7. A chunk that could not be read again is refused: one with more encoded bytes, or more strings, than a read
//!    accepts.

use crate::codec::borrowed::Borrowed;
use crate::codec::{
    Chain, ChunkElements, Encoded, FromBorrowed, InnerChunks, Input, Layout, Output, ShardIndex, Swap,
    Worker, decode, encode, encode_borrowed,
};
use crate::decode::chunk::{Chunk, stored_part};
use crate::decode::shard::read_index;
use crate::error::{ErrorKind, Result};
use crate::metadata::FillValue;
use crate::place::destination::Destination;
use crate::place::output_claim::OutputClaim;
use crate::place::sink::Sink;
use crate::plan::axis_part::{AxisPart, IndexList, PerAxis};
use crate::plan::field::FieldPlace;
use crate::plan::output_strides::c_strides;
use crate::pool::job::Checkpoint;
use crate::write::body::Body;
use crate::write::fill::{is_filled, is_filled_with};
use crate::write::values::{Level, mismatch};
use std::borrow::Cow;
use std::mem::MaybeUninit;
use zarrow_array::allocation;
use zarrow_array::shape;

/// A chunk or inner chunk to be written.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Its codecs.
    pub chain: &'a Chain,
    /// The value of missing chunks.
    pub fill: &'a FillValue,
    /// Its shape.
    pub shape: &'a [u64],
    /// Extents of its section inside the array.
    pub bounds: &'a [u64],
    /// The field to write; `None` for whole elements.
    pub field: Option<&'a FieldPlace>,
    /// Whether to store a chunk with only fill values.
    pub keep_filled: bool,
    /// Whether the write only clears elements: an inner chunk that cannot be decoded is then left unchanged (step 4).
    pub only_clears: bool,
    /// Whether a covered section inside the array replaces the old chunk.
    pub replace_edges: bool,
    /// Stops a long write.
    pub checkpoint: &'a Checkpoint<'a>,
}

/// An encoded chunk.
#[derive(Debug)]
pub struct Bytes<'w, 'v> {
    /// The bytes without the trailing checksums.
    pub body: Body<'w, 'v>,
    /// The checksums.
    pub tail: Vec<u8>,
}

impl Bytes<'_, '_> {
    /// Size in bytes.
    pub fn nbytes(&self) -> usize {
        self.body.nbytes() + self.tail.len()
    }
}

impl<'w> From<Encoded<'w>> for Bytes<'w, '_> {
    fn from(encoded: Encoded<'w>) -> Self {
        Bytes { body: Body::Own(Cow::Borrowed(encoded.body)), tail: encoded.tail }
    }
}

impl From<Vec<u8>> for Bytes<'_, '_> {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes { body: Body::Own(Cow::Owned(bytes)), tail: Vec::new() }
    }
}

/// Whether a part covers a chunk of these bounds, each position once, in either direction.
fn covers(part: &[AxisPart<'_>], bounds: &[u64]) -> bool {
    let all = |(axis, bound): (&AxisPart<'_>, &u64)| {
        let in_turn = |list: IndexList<'_>| !list.vectorized && list.iter().eq(0..*bound);
        axis.start == 0 && axis.count == *bound && axis.list.map_or(axis.step == 1, in_turn)
    };
    part.iter().zip(bounds).all(all)
}

impl<'a> Target<'a> {
    /// Whether the values of `part` replace all of the old chunk inside the array; when one field is written, the other
    /// fields remain.
    pub fn is_covered_inside(&self, part: &[AxisPart<'_>]) -> bool {
        self.field.is_none() && covers(part, self.bounds)
    }

    /// Whether the write replaces the old chunk without reading it.
    pub fn replaces_old(&self, part: &[AxisPart<'_>]) -> bool {
        self.is_covered(part) || self.replace_edges && self.is_covered_inside(part)
    }

    /// Whether the values of `part` are all elements of the chunk.
    pub fn is_covered(&self, part: &[AxisPart<'_>]) -> bool {
        self.field.is_none() && covers(part, self.shape)
    }

    /// Passes on what was decoded of the old chunk; `None` if decoding failed and the old chunk is replaced anyway
    /// (step 4).
    ///
    /// # Errors
    /// The error of `decoded`.
    pub fn unless_replaced<T>(&self, part: &[AxisPart<'_>], decoded: Result<T>) -> Result<Option<T>> {
        match decoded {
            Err(error) if error.is_of_stored_bytes() && self.is_covered_inside(part) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Encodes the chunk with the values of `part`, over its `old` bytes if the part does not cover it; `None` if the
    /// chunk must not be stored.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that old bytes or codecs can give, with the codec.
    pub fn encode<'w, 'v>(
        &self,
        part: &[AxisPart<'_>],
        values: Level<'_, 'v>,
        old: Option<&Input<'_>>,
        worker: &'w mut Worker,
    ) -> Result<Option<Bytes<'w, 'v>>> {
        if self.chain.order.is_none() {
            return self.encode_stored(part, values, old, worker);
        }
        let part = stored_part(self.chain, part);
        let (shape, bounds) = (self.in_stored_order(self.shape), self.in_stored_order(self.bounds));
        Target { shape: &shape, bounds: &bounds, ..*self }.encode_stored(&part, values, old, worker)
    }

    /// Returns the extents in stored axis order.
    pub fn in_stored_order(&self, extents: &[u64]) -> PerAxis<u64> {
        match &self.chain.order {
            Some(order) => order.iter().map(|axis| extents[*axis]).collect(),
            None => PerAxis::from_slice(extents),
        }
    }

    fn encode_stored<'w, 'v>(
        &self,
        part: &[AxisPart<'_>],
        values: Level<'_, 'v>,
        old: Option<&Input<'_>>,
        worker: &'w mut Worker,
    ) -> Result<Option<Bytes<'w, 'v>>> {
        let old = old.filter(|_| !self.replaces_old(part));
        match self.chain.layout() {
            Layout::Elements(swap) => self.encode_bytes(part, values, old, swap, worker),
            Layout::InnerChunks(inner_chunks) => {
                let mut decoded = Vec::new();
                let old = match old {
                    Some(old) => {
                        let open = self.open_shard(inner_chunks, old, &mut decoded, worker);
                        self.unless_replaced(part, open)?
                    }
                    None => None,
                };
                let old = old.as_ref().map(|(input, index)| (input, index));
                let Some(shard) = self.encode_shard(inner_chunks, part, values, old, worker)? else {
                    return Ok(None);
                };
                if self.chain.bytes_to_bytes.is_empty() {
                    return Ok(Some(shard.into()));
                }
                let Worker { codecs, encoded, .. } = worker;
                let encoded = encode(self.chain.compressors()?, &shard, encoded, codecs)?;
                Ok(Some(allocation::concatenated(&[encoded.body, &encoded.tail])?.into()))
            }
            Layout::Masked | Layout::Whole => self.encode_elements(part, values, old, worker),
        }
    }

    /// Returns the bytes of an old shard and its index; a shard compressed as a whole is decompressed to `decoded`.
    fn open_shard<'o>(
        &self,
        inner_chunks: &InnerChunks,
        old: &Input<'o>,
        decoded: &'o mut Vec<u8>,
        worker: &mut Worker,
    ) -> Result<(Input<'o>, ShardIndex)> {
        let input = match self.chain.bytes_to_bytes.as_slice() {
            [] => old.measured()?,
            compressors => {
                let limit = self.as_stored().encoded_limit()?;
                let encoded = old.load(limit, &mut worker.encoded)?;
                decode(compressors, encoded, Output::Growing(decoded, limit), &mut worker.codecs)?;
                Input::from_bytes(decoded)
            }
        };
        let index = read_index(inner_chunks, self.shape, &input, worker)?;
        Ok((input, index))
    }

    /// Returns the chunk as a chunk to read.
    pub fn as_stored(&self) -> Chunk<'a> {
        let Target { chain, fill, shape, checkpoint, .. } = *self;
        Chunk { chain, fill, shape, slot: None, checkpoint, clock: None }
    }

    /// Steps 2 to 5.
    fn encode_bytes<'w, 'v>(
        &self,
        part: &[AxisPart<'_>],
        values: Level<'_, 'v>,
        old: Option<&Input<'_>>,
        swap: &Swap,
        worker: &'w mut Worker,
    ) -> Result<Option<Bytes<'w, 'v>>> {
        let FillValue::Fixed(item) = self.fill else { return Err(mismatch()) };
        let mut item = allocation::copied(item)?;
        let item_size = item.len();
        swap.in_place(&mut item, item_size);
        let (offset, value_size, stored) = match self.field {
            Some(field) => (field.offset, field.data_type.item_size().unwrap_or(0), field.swap(swap)),
            None => (0, item_size, swap.clone()),
        };
        let (memory, swapped) = values.fixed(value_size)?;
        let turn = swapped.and(&stored);
        let is_covered = self.is_covered(part);
        let (compressors, nbytes) = (self.chain.compressors()?, shape::nbytes(self.shape, item.len())?);
        if turn == Swap::None
            && is_covered
            && let Some(way) = FromBorrowed::new(compressors)
            && let Some(borrowed) = memory.run(part)
        {
            return self.encode_borrowed(borrowed, way, &item, worker);
        }
        // Taken out, so that an old chunk can be read into it while the rest of the worker is in use.
        let mut scratch = std::mem::take(&mut worker.elements);
        if !is_covered {
            self.lay_out(part, old, &item, swap, scratch.take(nbytes)?, worker)?;
        }
        let places = scratch.take(nbytes)?.get_mut(offset..).ok_or_else(mismatch)?;
        memory.gather(part, places, &c_strides(self.shape, item.len()), &turn)?;
        worker.elements = scratch;
        let Worker { codecs, encoded, elements, .. } = worker;
        // SAFETY: `lay_out` has written every byte, or `gather` did: the part then covers the chunk, and has each of
        // its elements once.
        let elements = unsafe { elements.take(nbytes)?.assume_init_ref() };
        if !self.keep_filled && is_filled(elements, &item) {
            return Ok(None);
        }
        Ok(Some(encode(compressors, elements, encoded, codecs)?.into()))
    }

    /// Steps 2 and 5, from the caller's memory.
    fn encode_borrowed<'w, 'v>(
        &self,
        borrowed: Borrowed<'v>,
        way: FromBorrowed<'_>,
        item: &[u8],
        worker: &'w mut Worker,
    ) -> Result<Option<Bytes<'w, 'v>>> {
        if !self.keep_filled && is_filled_with(borrowed, item) {
            return Ok(None);
        }
        let Worker { codecs, encoded, .. } = worker;
        Ok(Some(match way {
            FromBorrowed::Plain => Bytes { body: Body::Borrowed(borrowed), tail: Vec::new() },
            FromBorrowed::Encoder(encoder, name, rest) => {
                encode_borrowed((encoder, name, rest), borrowed, encoded, codecs)?.into()
            }
        }))
    }

    /// Lays out the chunk's previous elements in stored form, before the values of `values_part` are put into it (step
    /// 3).
    fn lay_out(
        &self,
        values_part: &[AxisPart<'_>],
        old: Option<&Input<'_>>,
        item: &[u8],
        swap: &Swap,
        memory: &mut [MaybeUninit<u8>],
        worker: &mut Worker,
    ) -> Result<()> {
        let laid_out = match old {
            Some(old) => {
                let read = self.read_old(old, item.len(), swap, memory, worker);
                self.unless_replaced(values_part, read)?
            }
            None => None,
        };
        if laid_out.is_none() {
            for place in memory.chunks_exact_mut(item.len().max(1)) {
                place.write_copy_of_slice(item);
            }
        }
        Ok(())
    }

    /// Decodes the old chunk to `memory`, in stored form.
    fn read_old(
        &self,
        old: &Input<'_>,
        item_size: usize,
        swap: &Swap,
        memory: &mut [MaybeUninit<u8>],
        worker: &mut Worker,
    ) -> Result<()> {
        let all = |(axis, extent): (usize, &u64)| AxisPart {
            start: 0,
            step: 1,
            count: *extent,
            place: 0,
            reversed: false,
            output: Some(axis),
            list: None,
        };
        let part: PerAxis<AxisPart<'_>> = self.shape.iter().enumerate().map(all).collect();
        let sink = Sink::Fixed(Destination::new(memory, self.shape, item_size));
        // SAFETY: it is the only claim on this memory.
        let claim = unsafe { OutputClaim::new(&part, &sink) };
        self.as_stored().read_stored(old, &mut [claim], None, worker)?;
        drop(sink);
        // SAFETY: a read without an error has placed or filled every element that was wanted: here, all.
        swap.in_place(unsafe { memory.assume_init_mut() }, item_size);
        Ok(())
    }

    /// Step 6.
    fn encode_elements<'w, 'v>(
        &self,
        part: &[AxisPart<'_>],
        values: Level<'_, '_>,
        old: Option<&Input<'_>>,
        worker: &mut Worker,
    ) -> Result<Option<Bytes<'w, 'v>>> {
        let count = shape::nbytes(self.shape, 1)?;
        self.check_readable_count(count)?;
        let decoded = match old {
            Some(input) => {
                let limit = self.as_stored().encoded_limit()?;
                let decoded = input
                    .within(limit)
                    .and_then(|input| self.chain.decode(&input, self.shape, 0..count, worker));
                self.unless_replaced(part, decoded)?
            }
            None => None,
        };
        let mut elements = match &decoded {
            Some(decoded) => ChunkElements::new(decoded, count)?,
            None => ChunkElements::repeated(&self.chain.data_type, self.fill, count)?,
        };
        let offset = self.field.map_or(0, |field| field.offset);
        elements.put(values, part, self.shape, (offset, self.chain.item_size().unwrap_or(0)))?;
        if !self.keep_filled && elements.are(self.fill) {
            return Ok(None);
        }
        let encoded = self.chain.encode(elements, self.shape, &mut worker.codecs)?;
        let limit = self.as_stored().encoded_limit()?;
        match encoded.len() {
            nbytes if nbytes > limit => Err(too_large(nbytes as u64, limit as u64)),
            _ => Ok(Some(encoded.into())),
        }
    }

    /// Refuses more strings than a read would accept, before memory is allocated for them (step 7): a chunk stores a
    /// four-byte length for each string, including the empty ones beyond the array's edge.
    fn check_readable_count(&self, count: usize) -> Result<()> {
        let (actual, limit) = (self.chain.least_encoded(count), self.chain.limits.max_variable_nbytes);
        if actual > limit {
            let what =
                "the minimum size of a chunk with this many strings (DecodeLimits.max_variable_nbytes)";
            return Err(ErrorKind::Limit { what, actual: actual as u64, limit: limit as u64 }.into());
        }
        Ok(())
    }
}

/// Error for more encoded bytes than a valid chunk has.
pub fn too_large(actual: u64, limit: u64) -> crate::Error {
    ErrorKind::Limit { what: "the size of an encoded chunk", actual, limit }.into()
}
