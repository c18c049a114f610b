//! Reads the selected parts of one chunk.
//!
//! 1. A transposed chunk is treated as the same chunk with permuted axes; parts and strides are permuted with it.
//! 2. Uncompressed elements are read directly into the output if they are contiguous there. Otherwise only the selected
//!    byte range is read, and its elements are moved to their places.
//! 3. Compressed elements are decompressed directly into the output if they are contiguous there, else into the
//!    worker's memory, and moved from there. The chunk is decompressed once, for any number of parts. If the codec can
//!    decode ranges, only a contiguous or small selection is decompressed.
//! 4. A shard's inner chunks are read as described in [`shard`](super::shard), each by these same steps, at any depth.
//! 5. Elements behind a mask are decoded from the first selected element to the last. Mask and elements are decoded
//!    directly into the result if the selected elements are contiguous both in the chunk and in the result.
//! 6. Chunks of other layouts are decoded whole, then placed.
//! 7. Output memory that is not written here, such as a device's, gets the encoded chunk:
//!    [`encoded_to_sink`](super::encoded_to_sink).

use crate::codec::{
    Chain, Codecs, Input, Layout, Output, Swap, Worker, decode, decode_elements, decode_range,
    wrong_elements_size,
};
use crate::decode::cache::Key;
use crate::decode::chunk_cache::ChunkCache;
use crate::decode::range::{read_range, small_span, span};
use crate::decode::shard_share::Share;
use crate::decode::stage_times::TaskClock;
use crate::error::{ErrorKind, Result};
use crate::metadata::FillValue;
use crate::place::destination::Source;
use crate::place::output_claim::OutputClaim;
use crate::place::sink::Sink;
use crate::plan::axis_part::{AxisPart, PerAxis, run_of};
use crate::plan::output_strides::c_strides;
use crate::pool::job::Checkpoint;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::{Buffer, shape};

/// A chunk, or an inner chunk.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    /// Its codecs.
    pub chain: &'a Chain,
    /// Fill value of missing inner chunks.
    pub fill: &'a FillValue,
    /// Its shape.
    pub shape: &'a [u64],
    /// Cache slot of the decoded elements, if caching is enabled.
    pub slot: Option<&'a Slot<'a>>,
    /// Stops a long read.
    pub checkpoint: &'a Checkpoint<'a>,
    /// Measures placement, if times are measured.
    pub clock: Option<&'a TaskClock>,
}

/// The place of one decoded chunk in a cache.
pub struct Slot<'a> {
    /// The cache.
    pub cache: &'a ChunkCache,
    /// The chunk's location and version.
    pub key: Key,
    /// The cached elements, if the chunk was in the cache.
    pub kept: Option<Arc<Buffer>>,
}

impl<'a> Slot<'a> {
    /// Returns the elements, if present, and counts the chunk.
    pub fn get(&self) -> Option<Arc<Buffer>> {
        let found = self.kept.clone().or_else(|| self.cache.get(&self.key));
        self.cache.count(found.is_some());
        found
    }

    /// The slot of the inner chunk `number`.
    pub fn inner(&self, number: u64) -> Slot<'a> {
        Slot { cache: self.cache, key: [&self.key[..], &[number]].concat(), kept: None }
    }
}

impl Chunk<'_> {
    /// Reads the selected parts, at least one; for a shard, only the given share, if any.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that bytes can give, with the codec.
    pub fn read(
        &self,
        input: &Input<'_>,
        claims: &mut [OutputClaim<'_>],
        share: Option<Share<'_>>,
        worker: &mut Worker,
    ) -> Result<()> {
        if self.chain.order.is_none() {
            return self.read_stored(input, claims, share, worker);
        }
        let shape = self.stored_shape();
        let parts: Vec<PerAxis<AxisPart<'_>>> =
            claims.iter().map(|claim| stored_part(self.chain, claim.part())).collect();
        // SAFETY: each covers the places of the claim that it replaces, and that claim is not used meanwhile.
        let claims =
            parts.iter().zip(&*claims).map(|(part, claim)| unsafe { OutputClaim::new(part, claim.sink()) });
        let mut claims: Vec<OutputClaim<'_>> = claims.collect();
        Chunk { shape: &shape, ..*self }.read_stored(input, &mut claims, share, worker)
    }

    /// Returns the shape in stored axis order.
    pub fn stored_shape(&self) -> Vec<u64> {
        match &self.chain.order {
            Some(order) => order.iter().map(|axis| self.shape[*axis]).collect(),
            None => self.shape.to_vec(),
        }
    }

    /// Same as [`read`](Chunk::read), but the chunk's shape and parts are in stored axis order.
    pub fn read_stored(
        &self,
        input: &Input<'_>,
        claims: &mut [OutputClaim<'_>],
        share: Option<Share<'_>>,
        worker: &mut Worker,
    ) -> Result<()> {
        let (layout, compressors) = (self.chain.layout(), &self.chain.bytes_to_bytes);
        if let [claim] = &*claims
            && let Sink::Chunks(sink) = claim.sink()
            && !matches!(layout, Layout::InnerChunks(_))
        {
            return self.hand_over(*sink, claim.part(), input, worker);
        }
        match layout {
            Layout::Elements(swap) if compressors.is_empty() => {
                self.read_uncompressed(input, claims, swap, worker)?;
            }
            Layout::Elements(swap) => self.read_compressed(input, claims, swap, worker)?,
            Layout::InnerChunks(inner_chunks) if compressors.is_empty() => {
                return self.read_shard(inner_chunks, input, claims, share, worker);
            }
            Layout::InnerChunks(inner_chunks) => {
                // A shard that was compressed as a whole must be read as a whole.
                let limit = self.encoded_limit()?;
                let encoded = input.load(limit, &mut worker.encoded)?;
                let mut shard = Vec::new();
                decode(compressors, encoded, Output::Growing(&mut shard, limit), &mut worker.codecs)?;
                return self.read_shard(inner_chunks, &Input::from_bytes(&shard), claims, None, worker);
            }
            Layout::Masked => {
                let run = run_of_all(claims, self.shape)?;
                self.read_run(run, input, claims, worker)?;
            }
            Layout::Whole => self.read_run(0..shape::nbytes(self.shape, 1)?, input, claims, worker)?,
        }
        // SAFETY: every claim was read without an error, so its places have been written.
        claims.iter_mut().try_for_each(|claim| unsafe { claim.mark() })
    }

    /// Size of one element in bytes; 0 if elements have no fixed size.
    fn item_size(&self) -> usize {
        self.chain.item_size().unwrap_or(0)
    }

    /// The maximum encoded size of this chunk, if it is valid.
    pub fn encoded_limit(&self) -> Result<usize> {
        self.chain.encoded_limit(self.shape)
    }

    /// Step 2.
    fn read_uncompressed(
        &self,
        input: &Input<'_>,
        claims: &mut [OutputClaim<'_>],
        swap: &Swap,
        worker: &mut Worker,
    ) -> Result<()> {
        let expected = shape::nbytes(self.shape, self.item_size())? as u64;
        if let [claim] = claims
            && claim.is_whole(self.shape)
            && let Some((memory, length)) = claim.contiguous_and_spare()
        {
            let Some(filled) = input.read_whole(memory, length)? else {
                return Err(wrong_elements_size(expected, input.nbytes()?));
            };
            swap.in_place(filled, self.item_size());
            return Ok(());
        }
        let input = input.measured()?;
        if input.nbytes()? != expected {
            return Err(wrong_elements_size(expected, input.nbytes()?));
        }
        if let [claim] = claims
            && let Some((first, _)) = run_of(claim.part(), self.shape)
            && let Some(memory) = claim.contiguous()
        {
            swap.in_place(input.read(first * self.item_size() as u64, memory)?, self.item_size());
            return Ok(());
        }
        let strides = c_strides(self.shape, self.item_size());
        for claim in claims {
            match input.bytes() {
                Some(bytes) => {
                    let source = Source { bytes, origin: 0, strides: &strides, swap };
                    self.placing(|| claim.scatter(&source))?;
                }
                None => self.placing(|| {
                    read_range(claim, &input, &strides, (self.item_size(), swap), worker, self.checkpoint)
                })?,
            }
        }
        Ok(())
    }

    /// Step 3.
    fn read_compressed(
        &self,
        input: &Input<'_>,
        claims: &mut [OutputClaim<'_>],
        swap: &Swap,
        worker: &mut Worker,
    ) -> Result<()> {
        let Worker { codecs, encoded, decoded, .. } = worker;
        let (chain, limit) = (&self.chain.bytes_to_bytes, self.encoded_limit()?);
        let nbytes = shape::nbytes(self.shape, self.item_size())?;
        let strides = c_strides(self.shape, self.item_size());
        let decode_elements = |encoded: &[u8], memory: &mut [MaybeUninit<u8>], codecs: &mut Codecs| {
            self.chain.limits.check_ratio(nbytes, encoded.len())?;
            decode_elements(chain, encoded, memory, codecs)
        };
        if let Some(slot) = self.slot {
            let buffer = match self.cached(slot) {
                Some(buffer) => buffer,
                None => {
                    let (mut memory, place) = slot.cache.buffer(&slot.key, nbytes)?;
                    decode_elements(input.load(limit, encoded)?, memory.as_mut_slice(), codecs)?;
                    // SAFETY: a decoder that returns without an error has written every byte of `Output::Exact`.
                    slot.cache.store(&slot.key, unsafe { memory.assume_init() }, place)
                }
            };
            let source = Source { bytes: &buffer, origin: 0, strides: &strides, swap };
            return self.placing(|| claims.iter_mut().try_for_each(|claim| claim.scatter(&source)));
        }
        let encoded = input.load(limit, encoded)?;
        if let [claim] = claims
            && claim.is_whole(self.shape)
            && let Some(memory) = claim.contiguous()
        {
            decode_elements(encoded, memory, codecs)?;
            // SAFETY: as above.
            swap.in_place(unsafe { memory.assume_init_mut() }, self.item_size());
            return Ok(());
        }
        if let [claim] = claims
            && let Some((first, _)) = run_of(claim.part(), self.shape)
            && let Some(memory) = claim.contiguous()
            // It is inside the chunk, and the chunk's size in bytes was computed above.
            && let start = first as usize * self.item_size()
            && let Some(range) = decode_range(chain, encoded, nbytes, start, memory, codecs)
        {
            range?;
            // SAFETY: `decode_range` has written every byte.
            swap.in_place(unsafe { memory.assume_init_mut() }, self.item_size());
            return Ok(());
        }
        if let [claim] = claims
            && let Some((low, length)) = small_span(claim.part(), &strides, self.item_size(), nbytes)
            && let Some(range) = decode_range(chain, encoded, nbytes, low, decoded.take(length)?, codecs)
        {
            range?;
            // SAFETY: `decode_range` has written every byte of the same memory.
            let bytes = unsafe { decoded.take(length)?.assume_init_ref() };
            let origin = -isize::try_from(low).unwrap_or(isize::MAX);
            return self.placing(|| claim.scatter(&Source { bytes, origin, strides: &strides, swap }));
        }
        let memory = decoded.take(nbytes)?;
        decode_elements(encoded, memory, codecs)?;
        // SAFETY: as above.
        let bytes = unsafe { memory.assume_init_ref() };
        let source = Source { bytes, origin: 0, strides: &strides, swap };
        self.placing(|| claims.iter_mut().try_for_each(|claim| claim.scatter(&source)))
    }

    /// Returns the elements in a slot; a cache on disk is measured as a store, if times are.
    pub(super) fn cached(&self, slot: &Slot<'_>) -> Option<Arc<Buffer>> {
        match self.clock {
            Some(clock) => clock.in_store(|| slot.get()),
            None => slot.get(),
        }
    }

    /// Runs placement, measured if times are.
    fn placing<T>(&self, run: impl FnOnce() -> T) -> T {
        match self.clock {
            Some(clock) => clock.in_placement(run),
            None => run(),
        }
    }

    /// Steps 5 and 6: decodes the elements in `run`, and places them.
    fn read_run(
        &self,
        run: Range<usize>,
        input: &Input<'_>,
        claims: &mut [OutputClaim<'_>],
        worker: &mut Worker,
    ) -> Result<()> {
        let input = input.within(self.encoded_limit()?)?;
        if let (Layout::Masked, [claim]) = (self.chain.layout(), &mut *claims)
            && run_of(claim.part(), self.shape).is_some()
            && let Some((mask, elements)) = claim.contiguous_optional()
        {
            self.chain.decode_masked(&input, self.shape, run, mask, elements, worker)?;
            // SAFETY: the mask was decoded to all of its places.
            unsafe { claim.pack() };
            return Ok(());
        }
        let decoded = self.chain.decode(&input, self.shape, run.clone(), worker)?;
        self.placing(|| claims.iter_mut().try_for_each(|claim| claim.place(&decoded, run.start, self.shape)))
    }
}

/// Returns the run from the first selected element to the last.
fn run_of_all(claims: &[OutputClaim<'_>], extents: &[u64]) -> Result<Range<usize>> {
    let strides = c_strides(extents, 1);
    let mut run = None;
    for claim in claims {
        let own = span(claim.part(), &strides, 1)?;
        run =
            Some(run.map_or(own.clone(), |run: Range<usize>| run.start.min(own.start)..run.end.max(own.end)));
    }
    let (run, count) = (run.unwrap_or(0..0), shape::nbytes(extents, 1)?);
    if run.end > count {
        return Err(ErrorKind::Internal("a part exceeds its chunk".into()).into());
    }
    Ok(run)
}

/// Returns a chunk's part with its axes in stored order.
pub fn stored_part<'a>(chain: &Chain, part: &[AxisPart<'a>]) -> PerAxis<AxisPart<'a>> {
    match &chain.order {
        Some(order) => order.iter().map(|axis| part[*axis]).collect(),
        None => PerAxis::from_slice(part),
    }
}
