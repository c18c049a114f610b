//! How a staged read begins an object: it requests the index of a shard, and splits the shard into leaves by it.
//!
//! 1. The position of an index at the end follows from the shard's size. If the store does not report the size, it
//!    follows from an answer (`object_size.rs`); otherwise another request asks for it.
//! 2. The index is in the landed bytes, or is fetched.
//! 3. Inner chunks that landed with the index are decoded from there. The others are fetched.

use crate::error::{ErrorKind, Result};
use crate::pool::job::Checkpoint;
use crate::read::staged::cached_data::{index_key, kept, kept_whole, remember};
use crate::read::staged::driver::Staged;
use crate::read::staged::object::{Beginning, Leaf, ObjectPlan, RangeFetch, Split, one};
use crate::read::staged::object_size::object_size;
use crate::read::staged::state::{State, Work};
use crate::store::remote::bodies::InFlightBody;
use crate::store::remote::{Body, ByteRange, ObjectVersion};
use std::sync::Arc;
use zarrow_array::allocation::{self, Grow};

impl<'p> Staged<'p, '_> {
    /// Begins an object: with its index, or with the needs of its leaf.
    pub fn begin(
        &self,
        object: u64,
        attempt: u32,
        plan: &Arc<ObjectPlan<'p>>,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        let policy = plan.reader.policy();
        let chunk = plan.reader.chunk_of(&plan.shape, checkpoint);
        let beginning = plan.begin(&chunk, &policy)?;
        if let Beginning::Index(_) = &beginning
            && attempt == 0
            && let Some(seen) = plan.reader.versions.get(&plan.chunk_index.to_vec())
            && let Some(index) = plan.reader.indexes.get(&index_key(plan, &seen.version))
        {
            // Step 6.
            let version = Some(seen.version.clone());
            let mut split = plan.split(
                &chunk,
                &index,
                Some(seen.nbytes),
                &policy,
                &|number| kept(plan, version.as_ref(), number),
                None,
            )?;
            // Fill values of no fixed size cannot be taken back either: they wait for an index that is certainly
            // current.
            if split.absent.is_empty() || !plan.is_variable() {
                self.fill_inner(plan, &split)?;
                self.place_leaves(plan, &chunk, &mut split)?;
                if split.fetches.is_empty() {
                    split.fetches.try_push(RangeFetch::nothing())?;
                }
                return self.add_split(object, attempt, split, version, Some(seen.nbytes));
            }
        }
        if let Beginning::Leaf(_) = &beginning
            && attempt == 0
            && let Some((seen, elements)) = kept_whole(plan)
        {
            let leaf = Leaf { kept: Some(elements), ..Leaf::default() };
            let split =
                Split { leaves: one(leaf)?, fetches: one(RangeFetch::nothing())?, ..Split::default() };
            return self.add_split(object, attempt, split, Some(seen.version.clone()), Some(seen.nbytes));
        }
        match beginning {
            Beginning::Leaf(mut split) => {
                self.place_leaves(plan, &chunk, &mut split)?;
                self.add_split(object, attempt, split, None, None)
            }
            Beginning::Index(fetch) => {
                let mut state = self.state.lock();
                if state.open.get(&object).is_some_and(|open| open.attempt == attempt) {
                    state.queue(object, [fetch]);
                }
                Ok(())
            }
        }
    }

    /// Splits a shard by its index, given `landed`, the answer to `fetch`, which holds some or all of the index.
    pub fn split(
        &self,
        object: u64,
        attempt: u32,
        plan: &Arc<ObjectPlan<'p>>,
        landed: &Arc<InFlightBody>,
        fetch: &RangeFetch,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        let policy = plan.reader.policy();
        let chunk = plan.reader.chunk_of(&plan.shape, checkpoint);
        let Some(inner_chunks) = plan.reader.inner_chunks() else { return Ok(()) };
        let Body { bytes, version, .. } = landed.body();
        let Some((start, known)) = self.start_of(object, attempt, landed) else { return Ok(()) };
        // Step 1.
        let Some(nbytes) = known.or_else(|| object_size(landed, &fetch.range)) else {
            let (range, limit) = inner_chunks.index_span(&chunk.stored_shape())?;
            let fetch = match range {
                ByteRange::Suffix(_) if policy.has_suffix => {
                    RangeFetch { range, limit, expected: limit, ..RangeFetch::nothing() }
                }
                _ => RangeFetch::nothing(),
            };
            return self.ask_for_index(object, attempt, start, fetch);
        };
        // Step 2.
        let grid = inner_chunks.grid(&chunk.stored_shape())?;
        let (offset, length) = inner_chunks.index_range(&grid, nbytes)?;
        let range = offset..offset.saturating_add(length as u64);
        let found = [Some(landed), start.as_ref()].into_iter().flatten().find_map(|body| body.get(&range));
        let Some(bytes) = found else {
            let is_refused = self.ask_for_index(object, attempt, start, RangeFetch::index(range));
            return is_refused.map_err(|_| inner_chunks.wrong_index_size(length, bytes.len()));
        };
        let index = Arc::new(inner_chunks.parse_index(bytes, &grid, nbytes)?);
        if let Some(version) = version {
            plan.reader.indexes.insert(&index_key(plan, version), Arc::clone(&index), index.nbytes());
            remember(plan, version, nbytes);
        }
        // Step 3.
        let kept = |number| kept(plan, version.as_ref(), number);
        let mut split = plan.split(&chunk, &index, Some(nbytes), &policy, &kept, start.as_ref())?;
        self.fill_inner(plan, &split)?;
        self.place_leaves(plan, &chunk, &mut split)?;
        self.add_split(object, attempt, split, version.clone(), Some(nbytes))
    }

    /// Returns the landed bytes of an object from its first byte on, `landed` included, and its size in bytes, if
    /// known; `None` if the attempt is void.
    fn start_of(
        &self,
        object: u64,
        attempt: u32,
        landed: &Arc<InFlightBody>,
    ) -> Option<(Option<Arc<InFlightBody>>, Option<u64>)> {
        let mut state = self.state.lock();
        let open = state.open.get_mut(&object).filter(|open| open.attempt == attempt)?;
        let body = landed.body();
        let begins = body.start == 0 && !body.bytes.is_empty();
        Some((open.start.take().or_else(|| begins.then(|| Arc::clone(landed))), body.nbytes.or(open.nbytes)))
    }

    /// Sends another request for a shard's index, after `start` has landed.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if that request was already sent.
    fn ask_for_index(
        &self,
        object: u64,
        attempt: u32,
        start: Option<Arc<InFlightBody>>,
        fetch: RangeFetch,
    ) -> Result<()> {
        /// After the first request: one for the shard's size, and one for its index.
        const MOST_REQUESTS: u32 = 2;
        let mut state = self.state.lock();
        let Some(open) = state.open.get_mut(&object).filter(|open| open.attempt == attempt) else {
            return Ok(());
        };
        open.index_requests += 1;
        if open.index_requests > MOST_REQUESTS {
            let text = "the store sends a shard in parts without its size";
            return Err(ErrorKind::Unsupported(text.into()).into());
        }
        let continues = start.is_some();
        open.start = start;
        state.queue(object, [RangeFetch { continues, ..fetch }]);
        Ok(())
    }

    /// Adds an object's leaves and their fetches.
    fn add_split(
        &self,
        object: u64,
        attempt: u32,
        split: Split,
        version: Option<ObjectVersion>,
        nbytes: Option<u64>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        let Some(open) = state.open.get_mut(&object).filter(|open| open.attempt == attempt) else {
            return Ok(());
        };
        open.version = open.version.take().or(version);
        open.nbytes = open.nbytes.or(nbytes);
        let tasks = self.split_to(&mut state, object, split)?;
        drop(state);
        if tasks > 0 {
            self.inbox.job.add(tasks);
        }
        Ok(())
    }

    /// Same as [`add_split`](Staged::add_split), under the lock; returns the number of new tasks.
    pub fn split_to(&self, state: &mut State<'p>, object: u64, split: Split) -> Result<u64> {
        let Split { leaves, fetches, absent, is_missing } = split;
        let Some(open) = state.open.get_mut(&object) else { return Ok(0) };
        open.has_placed |= !absent.is_empty();
        if !open.is_split && open.plan.reader.inner_chunks().is_some() {
            state.unsplit -= 1;
        }
        let Some(open) = state.open.get_mut(&object) else { return Ok(0) };
        let of_no_leaf = fetches.iter().filter(|fetch| fetch.leaves.is_empty()).count();
        // Pending work keeps the object open: work begun earlier may end later.
        (open.is_split, open.left) = (true, leaves.len() + of_no_leaf + usize::from(is_missing));
        // Leaves without pending fetches are decoded at once.
        open.leaves = allocation::collected(leaves.into_iter().map(Some))?;
        let is_ready = |leaf: &mut Leaf| leaf.waits == 0;
        let ready = open.leaves.iter_mut().filter_map(|leaf| leaf.take_if(is_ready));
        let ready: Vec<Leaf> = allocation::collected(ready)?;
        state.queue(object, fetches);
        let tasks = ready.len() as u64 + u64::from(is_missing);
        ready.into_iter().for_each(|leaf| state.add(object, Work::Decode(Box::new(leaf))));
        if is_missing {
            state.add(object, Work::Fill);
        }
        Ok(tasks)
    }
}
