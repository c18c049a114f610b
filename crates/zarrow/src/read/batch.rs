//! Reads many selections at once: each chunk is fetched and decoded once, even if several selections need it.
//!
//! 1. The [chunk list](super::chunk_list) names each chunk once, together with all the parts selected from it.
//! 2. If all stores answer immediately, each chunk is a task. If a store is slow, the read is [staged](super::staged).
//! 3. Items with equal type and shape are stored side by side in one result; otherwise each item gets its own result.

use crate::decode::open_chunk::SharedChunk;
use crate::decode::presence::may_be_of_another;
use crate::decode::reader::Reader;
use crate::error::{Error, Result};
use crate::place::output_claim::OutputClaim;
use crate::place::result::ResultMemory;
use crate::place::sink::Sink;
use crate::plan::part::whole_part;
use crate::pool;
use crate::read::chunk_list::{ChunkList, Item};
use crate::read::staged;
use std::sync::atomic::{AtomicBool, Ordering};
use zarrow_array::DecodedArray;
use zarrow_array::allocation::{self, Grow};
use zarrow_array::shape::Axes;

/// The result of `read_many`.
#[derive(Debug)]
pub enum Batch {
    /// One array with a new first axis.
    Stacked(DecodedArray),
    /// One array per item.
    Ragged(Vec<DecodedArray>),
}

/// Reads all items.
///
/// # Errors
/// As [`read`](crate::read); the first error stops all.
pub fn read_many(items: &[Item<'_>], interrupted: &dyn Fn() -> bool) -> Result<Batch> {
    let shapes: Vec<Vec<u64>> = allocation::collected(items.iter().map(|item| item.selection.shape()))?;
    // A variable-length fill value is filled in at the end, for all items at once; a fixed-size one per missing chunk.
    let alike = |item: &Item<'_>| {
        let ((data_type, fill), (first, of_first)) = (item.element(), items[0].element());
        item.reader.missing.is_none()
            && data_type == first
            && (data_type.item_size().is_some() || fill == of_first)
    };
    let stacked =
        !items.is_empty() && items.iter().all(alike) && shapes.iter().all(|shape| *shape == shapes[0]);
    if stacked {
        let (data_type, fill) = items[0].element();
        let shape = [&[items.len() as u64], &shapes[0][..]].concat();
        let mut memory = ResultMemory::new(data_type, shape, None)?;
        let flat: Vec<Axes<u64>> =
            allocation::collected(items.iter().map(|item| item.selection.flat_shape()))?;
        let sinks: Vec<Sink<'_>> = allocation::collected(memory.sinks(&flat))?;
        read_into(items, &sinks, interrupted)?;
        drop(sinks);
        // SAFETY: the parts of each item cover its selection, and every part was placed or filled.
        return Ok(Batch::Stacked(unsafe { memory.finish(fill, interrupted)? }));
    }
    read_each(items, interrupted).map(Batch::Ragged)
}

/// Reads all items, each into its own memory.
///
/// # Errors
/// As [`read_many`].
pub fn read_each(items: &[Item<'_>], interrupted: &dyn Fn() -> bool) -> Result<Vec<DecodedArray>> {
    let shapes: Vec<Vec<u64>> = allocation::collected(items.iter().map(|item| item.selection.shape()))?;
    let memories = items
        .iter()
        .zip(&shapes)
        .map(|(item, shape)| ResultMemory::new(item.element().0, shape.clone(), item.reader.missing));
    let mut memories = allocation::try_collected(memories)?;
    let mut sinks: Vec<Sink<'_>> = allocation::with_capacity(items.len())?;
    for (memory, item) in memories.iter_mut().zip(items) {
        sinks.try_extend(memory.sinks(&[item.selection.flat_shape()]))?;
    }
    read_into(items, &sinks, interrupted)?;
    drop(sinks);
    let decoded = memories.into_iter().zip(items).map(|(memory, item)| {
        // SAFETY: as above.
        unsafe { memory.finish(item.element().1, interrupted) }
    });
    allocation::try_collected(decoded)
}

/// Reads each item into the sink of its number (steps 1 and 2).
///
/// # Errors
/// As [`read_many`]; some elements may have been written then.
pub fn read_into(items: &[Item<'_>], sinks: &[Sink<'_>], interrupted: &dyn Fn() -> bool) -> Result<()> {
    let missed = AtomicBool::new(false);
    let read = match items.iter().any(Item::is_remote) {
        false => {
            let sinks: Vec<&Sink<'_>> = allocation::collected(sinks)?;
            read_local(items, &sinks, &missed, interrupted)
        }
        true => {
            let of = |remote: bool| {
                let pairs = items.iter().zip(sinks).filter(move |(item, _)| item.is_remote() == remote);
                allocation::collected(pairs.map(|(item, sink)| (*item, sink)))
            };
            let (mut local, remote): (Vec<_>, Vec<_>) = (of(false)?, of(true)?);
            let (items, sinks): (Vec<_>, Vec<_>) = local.drain(..).unzip();
            read_local(&items, &sinks, &missed, interrupted)
                .and_then(|()| staged::read_into(&remote, &missed, interrupted))
        }
    };
    if read.as_ref().is_err_and(may_be_of_another) {
        missed.store(true, Ordering::Relaxed);
    }
    // Arrays are numbered in order of appearance.
    let arrays = items.iter().scan(0, |next, item| {
        let is_first = item.array == *next;
        *next += usize::from(is_first);
        Some(is_first.then_some(&item.reader))
    });
    arrays.flatten().try_fold(read, |read, reader| {
        let checked = reader.if_present(Ok(()), &missed);
        checked.map_err(|error| error.in_array(reader.store.name(), reader.path)).map(|()| read)
    })?
}

/// Reads from fast stores: each task opens its chunk and decodes it.
fn read_local(
    items: &[Item<'_>],
    sinks: &[&Sink<'_>],
    missed: &AtomicBool,
    interrupted: &dyn Fn() -> bool,
) -> Result<()> {
    let list = ChunkList::new(items)?;
    let (count, most, mut threads) = (list.count(), pool::num_threads(), 0usize);
    for item in items {
        let Some(part) = whole_part(item.selection) else { continue };
        threads = threads.saturating_add(item.reader.threads(&part)).min(most);
    }
    let threads = threads.max(1);
    let shares = |chunk: u64| {
        let (_, pieces) = list.get(chunk)?;
        let Some((item, part)) = pieces.first() else { return Ok(1) };
        let reader = items[*item].reader;
        // If several items need a non-sharded chunk, splitting it into shares would decode the whole chunk once per
        // share.
        let is_one = pieces.len() > 1 && !reader.is_sharded();
        Ok::<u64, Error>(if is_one { 1 } else { reader.shares(count, part, threads) })
    };
    // The tasks of each chunk, placed after the tasks of the previous chunks.
    let mut tasks: Vec<(u64, (u64, u64))> = Vec::new();
    for chunk in 0..count {
        let shares = shares(chunk)?;
        for share in 0..shares {
            tasks.try_push((chunk, (share, shares)))?;
        }
    }
    let first = tasks.iter().filter(|(_, (share, _))| *share == 0);
    let shared: Vec<SharedChunk<'_>> = match tasks.len() as u64 > count {
        true => allocation::collected(first.map(|(_, (_, shares))| SharedChunk::new(*shares)))?,
        false => Vec::new(),
    };
    pool::run(tasks.len() as u64, threads, interrupted, &|task, worker, checkpoint| {
        let (chunk, share) = tasks[task as usize];
        let (chunk_index, pieces) = list.get(chunk)?;
        let Some((first, _)) = pieces.first() else { return Ok(()) };
        let reader = Reader { missed: Some(missed), ..items[*first].reader };
        let own = pieces.into_iter().filter_map(|(item, part)| Some((item, reader.own_part(part, share)?)));
        let own = allocation::collected(own)?;
        // SAFETY: the pieces of one item have no place in common (a property test of `ChunkParts` says so), nor have
        // different shares of an uncompressed one (another says so), the items' sinks are different memory, and each is
        // one task. Shares of a shard claim the same parts, and write through claims on their own inner chunks only.
        let claims = own.iter().map(|(number, part)| unsafe { OutputClaim::new(part, sinks[*number]) });
        let mut claims: Vec<OutputClaim<'_>> = allocation::collected(claims)?;
        let shared = shared.get(chunk as usize);
        if !claims.is_empty() {
            reader
                .chunk(&chunk_index, &mut claims, shared.map(|shared| (share.0, shared)), worker, checkpoint)
                .map_err(|error| error.in_array(reader.store.name(), reader.path))?;
        }
        shared.inspect(|shared| shared.leave());
        Ok(())
    })
}
