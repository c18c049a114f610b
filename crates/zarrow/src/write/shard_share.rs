//! The shares of a shard, which threads encode concurrently and write in order.
//!
//! 1. The first share opens the shard: it locks the key, and opens the old shard.
//! 2. Shares write in order. A thread waits with a later share while two per thread are unwritten: otherwise, if one
//!    thread or the disk is slow, the others would encode the whole shard into memory.
//! 3. Small inner chunks are gathered in a piece. A large piece is written if all earlier shares have ended.
//! 4. A large inner chunk is then written directly from the encoder's memory. The last one also ends the share, under
//!    the same lock, so that a waiting thread can write the next share at once.
//! 5. Before the share's turn, everything is kept in the piece. If the share ends before its turn, an earlier share
//!    writes the piece.
//! 6. The last share adds the index and publishes the shard.

use crate::codec::{InnerChunks, Input, ShardIndex};
use crate::error::{ErrorKind, Result};
use crate::pool::job::{Checkpoint, INTERRUPT_INTERVAL};
use crate::store::{Draft, Durability, Lock, StoreWriter, Value};
use crate::write::chunk::Bytes;
use crate::write::shard::{Entries, Output, Pieces};
use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, MutexGuard};
use zarrow_array::fork::{Condvar, Forked, Mutex, ProcessMutex};
use zarrow_array::thread::OccupiedThread;

/// Encoded bytes of a shard to gather before writing them.
const PIECE_NBYTES: usize = 1 << 20;

/// The shares per thread that may be encoded and not yet written.
const SHARES_PER_THREAD: u64 = 2;

/// A shard that one or several tasks write.
pub struct OpenShard<'a> {
    /// The shard, after the first task has locked it.
    shard: ProcessMutex<Option<Arc<Shard<'a>>>>,
    /// The number of the share that writes next; `None` if a share will not be written: no thread waits any more then.
    turn: Mutex<Option<u64>>,
    turn_changed: Condvar,
}

impl Default for OpenShard<'_> {
    fn default() -> Self {
        let (shard, turn) = (ProcessMutex::default(), Mutex::new(Some(0)));
        OpenShard { shard, turn, turn_changed: Condvar::default() }
    }
}

impl<'a> OpenShard<'a> {
    /// Calls `write` for share `number`, once it is not too far ahead for `threads` threads (step 2). It returns whether
    /// the share has ended; otherwise, and after an error, no share waits any more.
    ///
    /// # Errors
    /// The errors of `write` and of [`Checkpoint::pass`].
    pub fn at_turn(
        &self,
        number: u64,
        threads: usize,
        checkpoint: &Checkpoint<'_>,
        write: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        let ended = self.wait_for_turn(number, threads, checkpoint).and_then(|()| write());
        if !matches!(ended, Ok(true)) {
            self.set_turn(None);
        }
        ended.map(drop)
    }

    /// Waits while share `number` is too far ahead. Tasks begin in order, so that some thread is at the share that
    /// writes next, which never waits.
    fn wait_for_turn(&self, number: u64, threads: usize, checkpoint: &Checkpoint<'_>) -> Result<()> {
        let ahead = (threads as u64).saturating_mul(SHARES_PER_THREAD);
        let is_far_ahead = |turn: Option<u64>| turn.is_some_and(|turn| number >= turn.saturating_add(ahead));
        if !is_far_ahead(*self.turn.lock()) {
            return Ok(());
        }
        let _occupied = OccupiedThread::enter();
        loop {
            let turn = self.turn.lock();
            if !is_far_ahead(*turn) {
                return Ok(());
            }
            drop(self.turn_changed.wait(turn, Some(INTERRUPT_INTERVAL)));
            checkpoint.pass()?;
        }
    }

    /// Lets shares that wait continue: share `next` writes next, or a share will not be written, which is for good.
    fn set_turn(&self, next: Option<u64>) {
        let mut turn = self.turn.lock();
        *turn = turn.and(next);
        drop(turn);
        self.turn_changed.notify_all();
    }

    /// Returns the shard, which the first caller opens by `open` (step 1).
    ///
    /// # Errors
    /// The errors of `open`; [`Forked`].
    pub fn shard(&self, open: impl FnOnce() -> Result<Shard<'a>>) -> Result<Arc<Shard<'a>>> {
        let mut opened = self.shard.lock()?;
        match &*opened {
            Some(shard) => Ok(Arc::clone(shard)),
            None => Ok(Arc::clone(opened.insert(Arc::new(open()?)))),
        }
    }
}

/// A shard under its lock.
pub struct Shard<'a> {
    /// The old shard, unless it is fully overwritten.
    pub old: Option<(Box<dyn Value + 'a>, Arc<ShardIndex>)>,
    output: ProcessMutex<ShardOutput<'a>>,
}

impl<'a> Shard<'a> {
    /// Creates a shard under `lock`, with its `entries` and the position of its index, if that is not the end.
    pub fn new(
        (store, durability): (&'a dyn StoreWriter, Durability),
        old: Option<(Box<dyn Value + 'a>, Arc<ShardIndex>)>,
        entries: Entries,
        index_at: Option<u64>,
        lock: Box<dyn Lock + 'a>,
    ) -> Shard<'a> {
        let (ready, lock) = (BTreeMap::new(), Some(lock));
        let output = ShardOutput { store, durability, draft: None, entries, index_at, next: 0, ready, lock };
        Shard { old, output: ProcessMutex::new(output) }
    }

    fn output(&self) -> Result<MutexGuard<'_, ShardOutput<'a>>, Forked> {
        self.output.lock()
    }
}

/// The new shard: the parts already written, and the parts waiting for their turn.
struct ShardOutput<'a> {
    store: &'a dyn StoreWriter,
    durability: Durability,
    /// Created with the first bytes.
    draft: Option<Box<dyn Draft + 'a>>,
    entries: Entries,
    /// Position of the index, if it is not at the end.
    index_at: Option<u64>,
    /// The share that writes next.
    next: u64,
    /// Later shares that are already encoded.
    ready: BTreeMap<u64, Pieces>,
    /// The lock of its key, until the shard is published.
    lock: Option<Box<dyn Lock + 'a>>,
}

/// One share of a shard, written behind all earlier shares (steps 3 to 5).
pub struct Share<'s, 'a> {
    open: &'s OpenShard<'a>,
    shard: &'s Shard<'a>,
    number: u64,
    /// The number of the last inner chunk.
    last: u64,
    pieces: Pieces,
    /// The share that writes next, once this one has ended.
    next: Option<u64>,
}

impl<'s, 'a> Share<'s, 'a> {
    /// Creates share `number` of `shard`; the number of its last inner chunk is `last`.
    pub fn new(open: &'s OpenShard<'a>, shard: &'s Shard<'a>, number: u64, last: u64) -> Share<'s, 'a> {
        Share { open, shard, number, last, pieces: Pieces::default(), next: None }
    }

    /// Ends the share after its last inner chunk. If all `count` shares have ended, publishes the shard.
    ///
    /// # Errors
    /// The errors of the store; [`Forked`].
    pub fn end(mut self, inner_chunks: &InnerChunks, count: u64) -> Result<()> {
        let next = match self.next {
            Some(next) => next,
            None => self.end_under(&mut *self.shard.output()?)?,
        };
        if next == count { self.shard.output()?.publish(inner_chunks) } else { Ok(()) }
    }

    /// Ends the share under the lock of its output, and returns the share that writes next.
    fn end_under(&mut self, output: &mut ShardOutput<'a>) -> Result<u64> {
        let next = output.end(self.number, mem::take(&mut self.pieces))?;
        self.open.set_turn(Some(next));
        Ok(next)
    }

    /// Writes the piece if it is large (step 3).
    fn write_piece(&mut self) -> Result<()> {
        if self.pieces.bytes.len() < PIECE_NBYTES {
            return Ok(());
        }
        let mut output = self.shard.output()?;
        if output.next == self.number { output.write_pieces(&mut self.pieces) } else { Ok(()) }
    }
}

impl Output for Share<'_, '_> {
    fn push(&mut self, number: u64, bytes: &Bytes<'_, '_>) -> Result<()> {
        if bytes.nbytes() >= PIECE_NBYTES {
            let mut output = self.shard.output()?;
            if output.next == self.number {
                output.write_pieces(&mut self.pieces)?;
                let parts = [bytes.body.to_be_written(), &bytes.tail];
                output.write(&parts, &[(number, bytes.nbytes() as u64)])?;
                if number == self.last {
                    self.next = Some(self.end_under(&mut output)?);
                }
                return Ok(());
            }
            // The lock may be held during a write: once is enough.
            return self.pieces.push(number, bytes);
        }
        self.pieces.push(number, bytes)?;
        self.write_piece()
    }

    fn carry(&mut self, number: u64, input: &Input<'_>) -> Result<()> {
        self.pieces.carry(number, input)?;
        self.write_piece()
    }
}

impl<'a> ShardOutput<'a> {
    /// Writes the concatenated `parts`, which are inner chunks with these numbers and lengths.
    fn write(&mut self, parts: &[&[u8]], lengths: &[(u64, u64)]) -> Result<()> {
        let draft = match &mut self.draft {
            Some(draft) => draft,
            empty => {
                let lock = self.lock.as_deref().ok_or_else(published)?;
                empty.insert(self.store.draft_under(lock, self.durability)?)
            }
        };
        draft.write_at(self.entries.end(), parts)?;
        self.entries.add(lengths)
    }

    /// Writes pieces, and empties them.
    fn write_pieces(&mut self, pieces: &mut Pieces) -> Result<()> {
        if !pieces.lengths.is_empty() {
            self.write(&[&pieces.bytes], &pieces.lengths)?;
            pieces.bytes.clear();
            pieces.lengths.clear();
        }
        Ok(())
    }

    /// Adds the last bytes of share `number`, then writes all complete shares in order. Returns the number of the first
    /// incomplete share.
    fn end(&mut self, number: u64, pieces: Pieces) -> Result<u64> {
        self.ready.insert(number, pieces);
        while let Some(mut pieces) = self.ready.remove(&self.next) {
            self.write_pieces(&mut pieces)?;
            self.next += 1;
        }
        Ok(self.next)
    }

    /// Adds the index and publishes the shard; erases it if it has no inner chunk.
    fn publish(&mut self, inner_chunks: &InnerChunks) -> Result<()> {
        let lock = self.lock.take().ok_or_else(published)?;
        match self.draft.take() {
            Some(draft) => {
                let index = self.entries.encode(inner_chunks)?;
                draft.write_at(self.index_at.unwrap_or(self.entries.end()), &[&index])?;
                draft.publish()?;
            }
            None => drop(self.store.erase_under(&*lock, self.durability)?),
        }
        Ok(())
    }
}

fn published() -> ErrorKind {
    ErrorKind::Internal("the shard was already published".into())
}

/// The numbers of a share among `total`.
pub fn share_of(total: u64, number: u64, count: u64) -> Range<u64> {
    let bound = |number: u64| {
        let product = u128::from(total) * u128::from(number) / u128::from(count);
        u64::try_from(product).unwrap_or(u64::MAX)
    };
    bound(number)..bound(number + 1)
}
