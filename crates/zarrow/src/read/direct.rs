//! Reads from stores that answer immediately: each task opens its chunk and decodes it.
//!
//! 1. The [chunk list](super::chunk_list) names each chunk once, with all the parts selected from it, so that several
//!    selections of a batch share a decoded chunk. A small read of one chunk needs no list.
//! 2. A chunk is one task, or several that read a share of it each.

use crate::decode::open_chunk::SharedChunk;
use crate::decode::reader::Reader;
use crate::error::{ErrorKind, Result};
use crate::place::output_claim::OutputClaim;
use crate::place::sink::Sink;
use crate::plan::axis_part::{PerAxis, whole_part};
use crate::pool;
use crate::read::chunk_list::{ChunkList, Pieces, room};
use crate::read::item::Item;
use crate::read::thread_count::TASKS_PER_THREAD;
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;
use zarrow_array::allocation::{self, Grow};

/// Reads each item into its sink; notes in `missed` that a chunk was missing.
///
/// # Errors
/// Any [`ErrorKind`], with array, chunk and codec; some elements may have been written then.
pub fn read_into(
    items: &[(Item<'_>, &Sink<'_>)],
    missed: &AtomicBool,
    interrupted: &dyn Fn() -> bool,
) -> Result<()> {
    let mut threads = 0usize;
    for (item, sink) in items {
        let Some(mut part) = whole_part(item.selection) else { continue };
        threads = threads.saturating_add(item.reader.threads(&part)).min(pool::num_threads());
        if items.len() == 1
            && threads == 1
            && let Some(chunk_index) = item.reader.single_chunk(&mut part)
        {
            let reader = Reader { missed: Some(missed), ..item.reader };
            return pool::run(1, 1, interrupted, &|_, worker, checkpoint| {
                // SAFETY: it is the only claim on the sink.
                let mut claim = [unsafe { OutputClaim::new(&part, sink) }];
                reader.chunk(&chunk_index, &mut claim, None, worker, checkpoint)
            });
        }
    }
    let list = ChunkList::new(items)?;
    let tasks = Tasks::new(items, &list, threads)?;
    let shared = tasks.shared_chunks()?;
    pool::run(tasks.count(), threads.max(1), interrupted, &|task, worker, checkpoint| {
        let (chunk, share) = tasks.get(task);
        let (mut chunk_index, mut pieces) = (PerAxis::new(), Pieces::new());
        list.get(chunk, &mut chunk_index, &mut pieces)?;
        let Some((first, _)) = pieces.first() else { return Ok(()) };
        let first = &items[*first].0;
        let reader = Reader { missed: Some(missed), ..first.reader };
        pieces.retain(|(_, part)| reader.narrow(part, share));
        let mut claims: SmallVec<[OutputClaim<'_>; 1]> = SmallVec::new();
        room(&mut claims, pieces.len())?;
        // SAFETY: the pieces of one item have no place in common (a property test of `ChunkParts` says so), nor have
        // different shares of an uncompressed one (another says so), the items' sinks are different memory, and each is
        // one task. Shares of a shard claim the same parts, and write through claims on their own inner chunks only.
        claims
            .extend(pieces.iter().map(|(number, part)| unsafe { OutputClaim::new(part, items[*number].1) }));
        let shared = shared.get(chunk as usize);
        if !claims.is_empty() {
            reader
                .chunk(&chunk_index, &mut claims, shared.map(|shared| (share.0, shared)), worker, checkpoint)
                .map_err(|error| first.place(error))?;
        }
        shared.inspect(|shared| shared.leave());
        Ok(())
    })
}

/// The tasks of a read (step 2), those of each chunk after those of the chunk before.
enum Tasks {
    /// The chunks of one item, with the same number of shares each.
    Even { chunks: u64, shares: u64, count: u64 },
    /// The chunk of each task, and the number and count of its shares.
    Listed { tasks: Vec<(u64, (u64, u64))>, chunks: u64 },
}

impl Tasks {
    fn new(items: &[(Item<'_>, &Sink<'_>)], list: &ChunkList<'_>, threads: usize) -> Result<Tasks> {
        let chunks = list.count();
        let shares_of = |chunk: u64| -> Result<u64> {
            let mut pieces = Pieces::new();
            list.get(chunk, &mut PerAxis::new(), &mut pieces)?;
            let Some((number, _)) = pieces.first() else { return Ok(1) };
            let (Item { reader, .. }, sink) = &items[*number];
            // Each share of a chunk that is not a shard would decode the chunk for all items; a sink takes a chunk once.
            let is_one = pieces.len() > 1 || matches!(sink, Sink::Chunks(_));
            if threads == 1 || is_one && !reader.is_sharded() {
                return Ok(1);
            }
            // The shares of a shard divide the inner chunks of all pieces.
            let wanted = (threads as u64 * TASKS_PER_THREAD).div_ceil(chunks.max(1));
            let shares = pieces.iter().map(|(_, part)| reader.shares(chunks, part, threads));
            Ok(shares.fold(0, u64::saturating_add).min(wanted))
        };
        if items.len() == 1 {
            // If the grid has a chunk that is not at an edge, the middle chunk is one.
            let shares = if threads > 1 { shares_of(chunks / 2)? } else { 1 };
            let too_many = || ErrorKind::Internal("more chunks than can be counted".into());
            let count = chunks.checked_mul(shares).ok_or_else(too_many)?;
            return Ok(Tasks::Even { chunks, shares, count });
        }
        let mut tasks = Vec::new();
        for chunk in 0..chunks {
            let shares = shares_of(chunk)?;
            for share in 0..shares {
                tasks.try_push((chunk, (share, shares)))?;
            }
        }
        Ok(Tasks::Listed { tasks, chunks })
    }

    fn count(&self) -> u64 {
        match self {
            Tasks::Even { count, .. } => *count,
            Tasks::Listed { tasks, .. } => tasks.len() as u64,
        }
    }

    /// Returns the chunk of a task, and the number and count of its shares.
    fn get(&self, task: u64) -> (u64, (u64, u64)) {
        match self {
            Tasks::Even { shares, .. } => (task / shares, (task % shares, *shares)),
            Tasks::Listed { tasks, .. } => tasks[task as usize],
        }
    }

    /// Returns one entry per chunk if some chunk has several shares, else none.
    fn shared_chunks<'a>(&self) -> Result<Vec<SharedChunk<'a>>> {
        let chunks = match self {
            Tasks::Even { chunks, .. } | Tasks::Listed { chunks, .. } => *chunks,
        };
        if self.count() == chunks {
            return Ok(Vec::new());
        }
        let firsts = (0..self.count()).map(|task| self.get(task).1).filter(|(share, _)| *share == 0);
        Ok(allocation::collected(firsts.map(|(_, shares)| SharedChunk::new(shares)))?)
    }
}
