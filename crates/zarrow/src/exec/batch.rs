//! Reading many selections at once: every chunk is fetched and decoded once, however many want a part of it.
//!
//! 1. Each item's selection is cut along its array's chunk grid.
//! 2. The pieces are gathered by chunk: each chunk is a task, with all that is wanted of it.
//! 3. Items of one type and shape lie side by side in one result; else each has its own.

use crate::error::Result;
use crate::exec::part::{AxisPart, PerAxis, whole_part};
use crate::exec::pool;
use crate::exec::read::{OpenShard, Reader};
use crate::exec::result::ResultMemory;
use crate::exec::sink::Sink;
use crate::exec::want::Want;
use crate::metadata::FillValue;
use crate::selection::Selection;
use std::collections::HashMap;
use zarrow_array::{DataType, DecodedArray};

/// What is wanted of one chunk: for each, the item's number and the part.
type Wanted = Vec<(usize, Vec<AxisPart>)>;

/// One selection of one array.
pub struct Item<'a> {
    /// The array's number: items with the same number read the same array.
    pub array: usize,
    /// What to read from.
    pub reader: Reader<'a>,
    /// What to read.
    pub selection: &'a Selection,
}

impl<'a> Item<'a> {
    /// What one element is, and what it is where no chunk is stored.
    fn element(&self) -> (&'a DataType, &'a FillValue) {
        (&self.reader.metadata.data_type, &self.reader.metadata.fill_value)
    }
}

/// The result of [`read_many`].
pub enum Batch {
    /// One array with a new first axis.
    Stacked(DecodedArray),
    /// One array an item.
    Ragged(Vec<DecodedArray>),
}

/// Reads all items.
///
/// # Errors
/// As [`read`](super::read); the first error stops all.
pub fn read_many(items: &[Item<'_>], interrupted: &dyn Fn() -> bool) -> Result<Batch> {
    let shapes: Vec<Vec<u64>> = items.iter().map(|item| item.selection.shape()).collect();
    // A variable-length fill value is filled in at the end, for all items at once; others are where a chunk is missing.
    let alike = |item: &Item<'_>| {
        let ((data_type, fill), (first, of_first)) = (item.element(), items[0].element());
        data_type == first && (data_type.item_size().is_some() || fill == of_first)
    };
    let stacked =
        !items.is_empty() && items.iter().all(alike) && shapes.iter().all(|shape| *shape == shapes[0]);
    if stacked {
        let (data_type, fill) = items[0].element();
        let mut memory = ResultMemory::new(data_type, &[items.len() as u64], &shapes[0])?;
        read_into(items, &memory.sinks(items.len(), &shapes[0]), interrupted)?;
        // SAFETY: the parts of each item cover its selection, and every part was placed or filled.
        return Ok(Batch::Stacked(unsafe { memory.finish(fill, interrupted)? }));
    }
    read_each(items, interrupted).map(Batch::Ragged)
}

/// Reads all items, each into memory of its own.
///
/// # Errors
/// As [`read_many`].
pub fn read_each(items: &[Item<'_>], interrupted: &dyn Fn() -> bool) -> Result<Vec<DecodedArray>> {
    let shapes: Vec<Vec<u64>> = items.iter().map(|item| item.selection.shape()).collect();
    let memories =
        items.iter().zip(&shapes).map(|(item, shape)| ResultMemory::new(item.element().0, &[], shape));
    let mut memories = memories.collect::<Result<Vec<_>>>()?;
    let sinks: Vec<Sink<'_>> =
        memories.iter_mut().zip(&shapes).flat_map(|(memory, shape)| memory.sinks(1, shape)).collect();
    read_into(items, &sinks, interrupted)?;
    drop(sinks);
    let decoded = memories.into_iter().zip(items).map(|(memory, item)| {
        // SAFETY: as above.
        unsafe { memory.finish(item.element().1, interrupted) }
    });
    decoded.collect()
}

/// Reads each item into the sink of its number (steps 1 and 2).
///
/// # Errors
/// As [`read_many`]; some elements may have been written then.
pub fn read_into(items: &[Item<'_>], sinks: &[Sink<'_>], interrupted: &dyn Fn() -> bool) -> Result<()> {
    let mut chunks: HashMap<(usize, Vec<u64>), Wanted> = HashMap::new();
    let (mut threads, mut most) = (1usize, 1usize);
    let mut readers: HashMap<usize, Reader<'_>> = HashMap::new();
    for (number, item) in items.iter().enumerate() {
        let Some(part) = whole_part(item.selection) else { continue };
        readers.insert(item.array, item.reader);
        most = most.max(item.reader.most_threads());
        threads = threads.saturating_add(item.reader.threads(&part)).min(most);
        let cells = item.reader.cells(&part)?;
        for at in 0..cells.count() {
            let (mut cell, mut part) = (PerAxis::new(), PerAxis::new());
            cells.get(at, &mut cell, &mut part);
            chunks.entry((item.array, cell.to_vec())).or_default().push((number, part.to_vec()));
        }
    }
    let chunks: Vec<((usize, Vec<u64>), Wanted)> = chunks.into_iter().collect();
    let count = chunks.len() as u64;
    let shares = chunks.iter().map(|((array, _), wanted)| match (readers[array], wanted.as_slice()) {
        // Each share of a chunk that is no shard would decode all of it for more than one.
        (reader, [_, _, ..]) if !reader.is_sharded() => 1,
        (reader, wanted) => reader.shares(count, &wanted[0].1, threads),
    });
    let shares: Vec<u64> = shares.collect();
    // The tasks of each chunk, behind those of the chunks before it.
    let mut tasks: Vec<(usize, u64)> = Vec::new();
    for (chunk, shares) in shares.iter().enumerate() {
        tasks.extend((0..*shares).map(|share| (chunk, share)));
    }
    let open: Vec<OpenShard<'_>> = chunks.iter().map(|_| OpenShard::default()).collect();
    pool::run(tasks.len() as u64, threads, interrupted, &|task, worker, checkpoint| {
        let (chunk, share) = tasks[task as usize];
        let ((array, cell), wanted) = &chunks[chunk];
        let (reader, share) = (&readers[array], (share, shares[chunk]));
        let own_part = |part: &[AxisPart]| reader.own_part(PerAxis::from_slice(part), share);
        let own: Vec<_> =
            wanted.iter().filter_map(|(number, part)| Some((*number, own_part(part)?))).collect();
        // SAFETY: the pieces of one item have no place in common (a property test of `AxisCells` says so), nor have
        // different shares of an uncompressed one (another says so), the items' sinks are different memory, and each is
        // one task. Shares of a shard claim the same parts, and write through claims on their own inner chunks only.
        let wants = own.iter().map(|(number, part)| unsafe { Want::new(part, &sinks[*number]) });
        let mut wants: Vec<Want<'_>> = wants.collect();
        let read = match share {
            (_, 2..) if reader.is_sharded() => {
                reader.share(cell, &mut wants, share, &open[chunk], worker, checkpoint)
            }
            _ if wants.is_empty() => Ok(()),
            _ => reader.chunk(cell, &mut wants, worker, checkpoint),
        };
        read.map_err(|error| error.in_array(reader.store.name(), reader.path))
    })
}
