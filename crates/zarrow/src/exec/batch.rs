//! Reading many selections at once: every chunk is fetched and decoded once, however many want a part of it.
//!
//! 1. Each item's selection is cut along its array's chunk grid.
//! 2. The pieces are numbered by chunk, and sorted by that number: each chunk is a task, with all that is wanted of it.
//! 3. Items of one type and shape lie side by side in one result; else each has its own.

use crate::error::{ErrorKind, Result};
use crate::exec::cells::Cells;
use crate::exec::open_chunk::SharedChunk;
use crate::exec::part::{PerAxis, whole_part};
use crate::exec::pool;
use crate::exec::read::Reader;
use crate::exec::result::ResultMemory;
use crate::exec::sink::Sink;
use crate::exec::want::Want;
use crate::metadata::FillValue;
use crate::selection::{Selection, with_room};
use zarrow_array::{DataType, DecodedArray};

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

/// The result of `read_many`.
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
        let flat: Vec<Vec<u64>> = items.iter().map(|item| item.selection.flat_shape()).collect();
        read_into(items, &memory.sinks(&flat), interrupted)?;
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
    let memories = items
        .iter()
        .zip(&shapes)
        .map(|(item, shape)| ResultMemory::new(item.element().0, shape.clone(), item.reader.missing));
    let mut memories = memories.collect::<Result<Vec<_>>>()?;
    let own = memories.iter_mut().zip(items);
    let sinks: Vec<Sink<'_>> =
        own.flat_map(|(memory, item)| memory.sinks(&[item.selection.flat_shape()])).collect();
    read_into(items, &sinks, interrupted)?;
    drop(sinks);
    let decoded = memories.into_iter().zip(items).map(|(memory, item)| {
        // SAFETY: as above.
        unsafe { memory.finish(item.element().1, interrupted) }
    });
    decoded.collect()
}

/// What an item wants of a chunk. Sorted, those of one chunk follow one another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    /// The array's number, and the chunk's in the C order of its grid.
    chunk: (usize, u64),
    item: usize,
    /// The chunk's number among those of the item.
    at: u64,
}

/// Reads each item into the sink of its number (steps 1 and 2).
///
/// # Errors
/// As [`read_many`]; some elements may have been written then.
pub fn read_into(items: &[Item<'_>], sinks: &[Sink<'_>], interrupted: &dyn Fn() -> bool) -> Result<()> {
    let (mut threads, mut most) = (0usize, 1usize);
    let mut plans: Vec<Option<Cells<'_>>> = with_room(items.len())?;
    let mut wanted: Vec<Wanted> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let part = whole_part(item.selection);
        plans.push(part.as_ref().map(|part| item.reader.cells(part)).transpose()?);
        let (Some(part), Some(Some(cells))) = (&part, plans.last()) else { continue };
        most = most.max(item.reader.most_threads());
        threads = threads.saturating_add(item.reader.threads(part)).min(most);
        gather(number, item, cells, &mut wanted)?;
    }
    let threads = threads.max(1);
    wanted.sort_unstable();
    let chunks: Vec<&[Wanted]> = wanted.chunk_by(|one, next| one.chunk == next.chunk).collect();
    let count = chunks.len() as u64;
    let piece = |wanted: &Wanted| {
        let (mut cell, mut part) = (PerAxis::new(), PerAxis::new());
        if let Some(cells) = &plans[wanted.item] {
            cells.get(wanted.at, &mut cell, &mut part);
        }
        (cell, part)
    };
    let shares = |wanted: &[Wanted]| {
        let reader = items[wanted[0].item].reader;
        // Each share of a chunk that is no shard would decode all of it for more than one.
        if wanted.len() > 1 && !reader.is_sharded() {
            1
        } else {
            reader.shares(count, &piece(&wanted[0]).1, threads)
        }
    };
    // The tasks of each chunk, behind those of the chunks before it.
    let mut tasks: Vec<(usize, (u64, u64))> = with_room(chunks.len())?;
    for (chunk, wanted) in chunks.iter().enumerate() {
        let shares = shares(wanted);
        tasks.extend((0..shares).map(|share| (chunk, (share, shares))));
    }
    let first = tasks.iter().filter(|(_, (share, _))| *share == 0);
    let shared: Vec<SharedChunk<'_>> = match tasks.len() > chunks.len() {
        true => first.map(|(_, (_, shares))| SharedChunk::new(*shares)).collect(),
        false => Vec::new(),
    };
    pool::run(tasks.len() as u64, threads, interrupted, &|task, worker, checkpoint| {
        let (chunk, share) = tasks[task as usize];
        let wanted = chunks[chunk];
        let reader = &items[wanted[0].item].reader;
        let (cell, _) = piece(&wanted[0]);
        let own = wanted.iter().filter_map(|one| Some((one.item, reader.own_part(piece(one).1, share)?)));
        let own: Vec<_> = own.collect();
        // SAFETY: the pieces of one item have no place in common (a property test of `Cells` says so), nor have
        // different shares of an uncompressed one (another says so), the items' sinks are different memory, and each is
        // one task. Shares of a shard claim the same parts, and write through claims on their own inner chunks only.
        let wants = own.iter().map(|(number, part)| unsafe { Want::new(part, &sinks[*number]) });
        let mut wants: Vec<Want<'_>> = wants.collect();
        let shared = shared.get(chunk);
        if !wants.is_empty() {
            reader
                .chunk(&cell, &mut wants, shared.map(|shared| (share.0, shared)), worker, checkpoint)
                .map_err(|error| error.in_array(reader.store.name(), reader.path))?;
        }
        shared.inspect(|shared| shared.leave());
        Ok(())
    })
}

/// Adds what an item, of which these are the cells, wants of each chunk.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a grid of 2⁶⁴ chunks and more, [`zarrow_array::Error::OutOfMemory`].
fn gather(number: usize, item: &Item<'_>, cells: &Cells<'_>, wanted: &mut Vec<Wanted>) -> Result<()> {
    let metadata = item.reader.metadata;
    let grid = metadata.chunk_grid.grid_shape(&metadata.shape);
    let too_many = || ErrorKind::Unsupported("a batch over more chunks than can be counted".into());
    grid.iter().try_fold(1u64, |count, extent| count.checked_mul(*extent)).ok_or_else(too_many)?;
    let count = usize::try_from(cells.count()).unwrap_or(usize::MAX);
    let nbytes = count.saturating_mul(size_of::<Wanted>());
    wanted.try_reserve(count).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
    let (mut cell, mut part) = (PerAxis::new(), PerAxis::new());
    for at in 0..cells.count() {
        cells.get(at, &mut cell, &mut part);
        let chunk = cell.iter().zip(&grid).fold(0, |number, (index, extent)| number * extent + index);
        wanted.push(Wanted { chunk: (item.array, chunk), item: number, at });
    }
    Ok(())
}
