//! Reads selections.
//!
//! 1. Each selection of an array is an [item](item::Item), and its result goes to a [target](target): new memory, one
//!    piece for each part of its layout and not filled, the caller's memory, or a sink of stored chunks.
//! 2. Every read calls [`read_into`], which picks the driver by where bytes come from: [direct](direct) from a store
//!    that answers immediately, [staged](staged) from a slow one. [`map`](map) maps files instead.
//! 3. A driver cuts the selections along the chunk grid; each touched chunk is a task. If there are few chunks and they
//!    are shards, a task is a share of a shard's inner chunks.
//! 4. A chunk is opened once, as described in [`open_chunk`](crate::decode::open_chunk). A missing chunk gives the fill value;
//!    any other is read as described in [`chunk`](crate::decode::chunk).
//! 5. If a chunk was missing, its array may have been erased: [`missing_chunk`](crate::decode::missing_chunk).
//! 6. When all tasks have succeeded the memory is filled, and becomes the result.

pub(crate) mod chunk_list;
pub(crate) mod direct;
pub(crate) mod item;
pub(crate) mod map;
pub(crate) mod output_memory;
pub(crate) mod staged;
pub(crate) mod thread_count;

use crate::decode::missing_chunk::may_be_of_another;
use crate::error::Result;
use crate::place::result::ResultMemory;
use crate::place::sink::Sink;
use crate::read::item::Item;
use crate::read::output_memory::{Filled, FromFilled, ReadTarget, Target, TargetMemory};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
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

/// Reads one item to its target.
///
/// # Errors
/// Any [`ErrorKind`](crate::ErrorKind), with chunk and codec; new memory of a failed read is dropped.
pub fn read<T: ReadTarget>(item: &Item<'_>, target: &T, interrupted: &dyn Fn() -> bool) -> Result<T::Output> {
    T::Output::from_filled(match target.as_target() {
        Target::New => Filled::Decoded(read_new(item, interrupted)?),
        target => read_to(item, target, interrupted)?,
    })
}

/// Reads one item into new memory in C order: the most frequent target, which a small read does not wrap and unwrap.
fn read_new(item: &Item<'_>, interrupted: &dyn Fn() -> bool) -> Result<DecodedArray> {
    let (data_type, fill) = item.element();
    let mut memory = ResultMemory::new(data_type, item.selection.shape(), item.reader.missing)?;
    for mut sink in memory.sinks(&[item.selection.flat_shape()]) {
        sink.set_field(item.reader.field);
        read_into(&[(*item, &sink)], interrupted)?;
    }
    // SAFETY: the parts of all chunks cover the selection (tested by a property test of `ChunkParts`), and every part
    // was placed or filled, else there was an error.
    unsafe { memory.finish(fill, interrupted) }.map_err(|error| item.at_text(error))
}

fn read_to(item: &Item<'_>, target: Target<'_>, interrupted: &dyn Fn() -> bool) -> Result<Filled> {
    let mut memory = target.memory(item)?;
    let sink = memory.sink(item)?;
    read_into(&[(*item, &sink)], interrupted)?;
    drop(sink);
    // SAFETY: as in `read_new`.
    unsafe { memory.finish(item, interrupted) }
}

/// Reads each item to its target; the first error stops all.
///
/// # Errors
/// As [`read`].
pub fn read_each<'t, T: ReadTarget + 't>(
    items: &[Item<'t>],
    targets: impl Iterator<Item = &'t T>,
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<T::Output>> {
    let memories = targets.zip(items).map(|(target, item)| target.as_target().memory(item));
    let mut memories: Vec<TargetMemory<'_>> = allocation::try_collected(memories)?;
    let sinks = memories.iter_mut().zip(items).map(|(memory, item)| memory.sink(item));
    let sinks: Vec<Sink<'_>> = allocation::try_collected(sinks)?;
    read_all(items, &sinks, interrupted)?;
    drop(sinks);
    let outputs = memories.into_iter().zip(items).map(|(memory, item)| {
        // SAFETY: as in `read_new`.
        T::Output::from_filled(unsafe { memory.finish(item, interrupted)? })
    });
    allocation::try_collected(outputs)
}

/// Reads items of equal type and shape into one array with a new first axis; `None` if the items differ.
///
/// # Errors
/// As [`read`].
pub fn read_stacked(items: &[Item<'_>], interrupted: &dyn Fn() -> bool) -> Result<Option<DecodedArray>> {
    let Some(first) = items.first() else { return Ok(None) };
    let (data_type, fill) = first.element();
    let shape = first.selection.shape();
    // A variable-length fill value is filled in at the end, for all items at once; a fixed-size one per missing chunk.
    let is_alike = |item: &Item<'_>| {
        item.reader.missing.is_none()
            && item.element().0 == data_type
            && (data_type.item_size().is_some() || item.element().1 == fill)
            && item.selection.shape() == shape
    };
    if !items.iter().all(is_alike) {
        return Ok(None);
    }
    let mut memory = ResultMemory::new(data_type, [&[items.len() as u64], &shape[..]].concat(), None)?;
    let flat: Vec<Axes<u64>> = allocation::collected(items.iter().map(|item| item.selection.flat_shape()))?;
    let mut sinks: Vec<Sink<'_>> = allocation::collected(memory.sinks(&flat))?;
    sinks.iter_mut().zip(items).for_each(|(sink, item)| sink.set_field(item.reader.field));
    read_all(items, &sinks, interrupted)?;
    drop(sinks);
    // SAFETY: as in `read_new`, for each item.
    unsafe { memory.finish(fill, interrupted) }.map(Some)
}

/// Reads each item into the sink of its number.
fn read_all(items: &[Item<'_>], sinks: &[Sink<'_>], interrupted: &dyn Fn() -> bool) -> Result<()> {
    let pairs: Vec<_> = allocation::collected(items.iter().copied().zip(sinks))?;
    read_into(&pairs, interrupted)
}

/// Reads each item into its sink (steps 2 to 5).
///
/// # Errors
/// As [`read`]; some elements may have been written then.
pub fn read_into(items: &[(Item<'_>, &Sink<'_>)], interrupted: &dyn Fn() -> bool) -> Result<()> {
    let missed = AtomicBool::new(false);
    let times = items.first().and_then(|(item, _)| item.reader.times);
    let begun = times.map(|times| (times, Instant::now()));
    let remote = items.iter().filter(|(item, _)| item.is_remote()).count();
    let read = match remote {
        0 => direct::read_into(items, &missed, interrupted),
        _ if remote == items.len() => staged::read_into(items, &missed, interrupted),
        _ => {
            let (mut near, mut far) = (Vec::new(), Vec::new());
            for (item, sink) in items {
                if item.is_remote() { &mut far } else { &mut near }.try_push((*item, *sink))?;
            }
            direct::read_into(&near, &missed, interrupted)
                .and_then(|()| staged::read_into(&far, &missed, interrupted))
        }
    };
    if let Some((times, begun)) = begun {
        times.add_read(begun.elapsed());
    }
    if read.as_ref().is_err_and(may_be_of_another) {
        missed.store(true, Ordering::Relaxed);
    }
    if missed.into_inner() {
        // Arrays are numbered in order of appearance.
        let mut next = 0;
        for (item, _) in items {
            if item.array == next {
                next += 1;
                item.reader.presence.check().map_err(|error| item.place(error))?;
            }
        }
    }
    read
}
