//! Which leaves go straight to the result: those that are one run of a chunk and of the result, stored as they are in memory.
//!
//! 1. All leaves of an object do, or none: so each of its requests has places alone, or a body that is decoded.
//! 2. No byte of the value has two places: a shard's index may give one range to several inner chunks.
//! 3. An inner chunk of another size than it should have is fetched whole, for decoding to say what is wrong with it.
//! 4. What has landed already is decoded from there.

use crate::codec::{Chain, Layout, Swap};
use crate::error::Result;
use crate::exec::chunk::Chunk;
use crate::exec::chunk_list::Pieces;
use crate::exec::output_claim::OutputClaim;
use crate::exec::part::run_of;
use crate::exec::sink::Sink;
use crate::exec::staged::landing::{Place, are_apart};
use crate::exec::staged::object::{Leaf, ObjectPlan, Split};
use zarrow_array::{allocation, shape};

/// Where each item goes.
type Sinks<'a> = &'a dyn Fn(usize) -> &'a Sink<'a>;

impl ObjectPlan<'_> {
    /// Finds the places of the leaves, if all of them have one.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    ///
    /// # Safety
    /// While a place is used to write, nobody else writes to the elements that its leaf is for.
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
        let sharding = self.reader.sharding()?;
        let (chain, shape, start) = (&sharding.inner, &sharding.chunk_shape[..], inner.range.start);
        let nbytes = shape::nbytes(shape, chain.item_size()?).ok()? as u64;
        // Steps 3 and 4.
        if !leaf.bodies.is_empty()
            || inner.kept.is_some()
            || chain.order.is_some()
            || nbytes != inner.range.end - start
        {
            return None;
        }
        // SAFETY: the caller's contract.
        unsafe { place_of(&self.inner_pieces(&inner.wanted), chain, shape, start, sinks) }
    }
}

/// The place of what is wanted of a chunk that begins at `start` in its value.
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
