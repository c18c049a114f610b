//! Chooses the leaves that land directly in the result: contiguous in the chunk and in the result, and stored in memory
//! form.
//!
//! 1. Either all leaves of an object land directly or none does: so each of its requests has either places only, or a
//!    body to decode.
//! 2. No byte of the value has two places: a shard's index may give one range to several inner chunks.
//! 3. An inner chunk of unexpected size is fetched whole, so that decoding reports the error.
//! 4. Bytes that were already received are decoded from there.

use crate::codec::{Chain, Layout, Swap};
use crate::decode::chunk::Chunk;
use crate::error::Result;
use crate::place::output_claim::OutputClaim;
use crate::place::sink::Sink;
use crate::plan::axis_part::run_of;
use crate::read::chunk_list::Pieces;
use crate::read::staged::direct_copy::{Place, are_apart};
use crate::read::staged::object::{Leaf, ObjectPlan, Split};
use zarrow_array::{allocation, shape};

/// Returns the sink of each item.
type Sinks<'a> = &'a dyn Fn(usize) -> &'a Sink<'a>;

impl ObjectPlan<'_> {
    /// Finds the leaves' places, if every leaf has one.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    ///
    /// # Safety
    /// While a place is used to write, no other code writes to the elements of its leaf.
    pub unsafe fn place_leaves<'a>(
        &self,
        chunk: &Chunk<'_>,
        sinks: Sinks<'a>,
        split: &mut Split,
    ) -> Result<()> {
        let mut places = allocation::with_capacity(split.leaves.len())?;
        for leaf in &split.leaves {
            // SAFETY: the caller's contract.
            let Some(place) = (unsafe { self.place_of(chunk, sinks, leaf) }) else {
                // Step 1.
                return Ok(());
            };
            places.push(place);
        }
        // Step 2.
        let mut sorted = allocation::collected(places.iter().cloned())?;
        sorted.sort_unstable_by_key(|place| place.range.start);
        if are_apart(&sorted) {
            split.leaves.iter_mut().zip(places).for_each(|(leaf, place)| leaf.place = Some(place));
        }
        Ok(())
    }

    /// # Safety
    /// As [`place_leaves`](ObjectPlan::place_leaves).
    unsafe fn place_of<'a>(&self, chunk: &Chunk<'_>, sinks: Sinks<'a>, leaf: &Leaf) -> Option<Place> {
        let Some(inner) = &leaf.inner else {
            // SAFETY: the caller's contract.
            return unsafe { place_of(&self.pieces, chunk.chain, &chunk.stored_shape(), 0, sinks) };
        };
        let inner_chunks = self.reader.inner_chunks()?;
        let (chain, shape, start) = (&inner_chunks.chain, &inner_chunks.chunk_shape[..], inner.range.start);
        let nbytes = shape::nbytes(shape, chain.item_size()?).ok()? as u64;
        // Steps 3 and 4.
        if !leaf.bodies.is_empty()
            || leaf.kept.is_some()
            || chain.order.is_some()
            || nbytes != inner.range.end - start
        {
            return None;
        }
        // SAFETY: the caller's contract.
        unsafe { place_of(&self.inner_pieces(&inner.wanted), chain, shape, start, sinks) }
    }
}

/// Returns the place for a chunk's selected part; the chunk begins at `start` in its value.
///
/// # Safety
/// As [`place_leaves`](ObjectPlan::place_leaves).
unsafe fn place_of<'a>(
    pieces: &Pieces<'_>,
    chain: &Chain,
    shape: &[u64],
    start: u64,
    sinks: Sinks<'a>,
) -> Option<Place> {
    let ([(item, part)], item_size) = (&pieces[..], chain.item_size()? as u64) else { return None };
    let is_stored_so = matches!(chain.stored_layout(), Layout::Elements(Swap::None));
    let sink = sinks(*item);
    if !is_stored_so || !matches!(sink, Sink::Fixed(_)) {
        return None;
    }
    let (first, count) = run_of(part, shape)?;
    // SAFETY: the caller's contract.
    let mut claim = unsafe { OutputClaim::new(part, sink) };
    let memory = claim.contiguous()?;
    let is_exact = count.checked_mul(item_size) == Some(memory.len() as u64);
    let start = start.checked_add(first.checked_mul(item_size)?)?;
    is_exact.then(|| Place::new(start, memory))
}
