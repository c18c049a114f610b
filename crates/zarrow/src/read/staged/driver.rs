//! The driver of a staged read: steps 1, 2 and 4 to 7 of [`staged`](super).

use crate::codec::{Input, Worker};
use crate::decode::chunk::{Chunk, Slot};
use crate::decode::missing_chunk;
use crate::decode::reader::Reader;
use crate::decode::stage_times::{BusyTime, StageTimes, TaskClock};
use crate::error::{Error, ErrorKind, Result};
use crate::place::chunk_sink::ChunkSink;
use crate::place::output_claim::OutputClaim;
use crate::place::sink::Sink;
use crate::plan::axis_part::{AxisPart, PerAxis};
use crate::pool;
use crate::pool::OpenJob;
use crate::pool::job::Checkpoint;
use crate::read::chunk_list::ChunkList;
use crate::read::item::Item;
use crate::read::staged::cached_data::{remember, slot};
use crate::read::staged::direct_copy::{DirectCopy, DirectFrames};
use crate::read::staged::inbox::{Arrival, Inbox, Reply};
use crate::read::staged::object::{Leaf, Object, ObjectPlan, RangeFetch, Split};
use crate::read::staged::state::{Answer, Next, Pending, Ready, State, Work};
use crate::store::remote::bodies::{InFlight, InFlightBody};
use crate::store::remote::body_memory::BodyFrames;
use crate::store::remote::in_flight::IN_FLIGHT_NBYTES;
use crate::store::remote::{
    ByteRange, Collector, FetchPolicy, Fetched, Receiver, RemoteStore, Request, RequestClass, RequestHandle,
};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use zarrow_array::fork::Mutex;

/// The number of shard indexes fetched ahead of the first index's arrival.
const INDEXES_AHEAD: usize = 64;

/// Maximum number of attempts per object, if its value keeps being replaced.
const ATTEMPTS: u32 = 8;

/// Reads each item into its sink; sets `missed` if a chunk was missing.
///
/// # Errors
/// Any [`ErrorKind`], with array, chunk and codec; some elements may have been written then.
pub fn read_into(
    items: &[(Item<'_>, &Sink<'_>)],
    missed: &AtomicBool,
    interrupted: &dyn Fn() -> bool,
) -> Result<()> {
    let list = ChunkList::new(items)?;
    if list.count() == 0 {
        return Ok(());
    }
    let staged = Staged::new(items, &list, missed);
    let begun = staged.busy.as_ref().map(|_| Instant::now());
    // The first task opens the first objects.
    staged.job().add(1);
    let task = |_, worker: &mut Worker, checkpoint: &Checkpoint<'_>| staged.step(worker, checkpoint);
    let read = staged.job().run(pool::num_threads(), interrupted, &task);
    staged.cancel();
    if let (Some((times, busy)), Some(begun)) = (&staged.busy, begun) {
        times.add_wait(begun.elapsed().saturating_sub(busy.total()));
    }
    read
}

/// A staged read.
pub struct Staged<'p, 'i> {
    items: &'p [(Item<'p>, &'p Sink<'p>)],
    list: &'p ChunkList<'i>,
    missed: &'p AtomicBool,
    pub(super) inbox: Arc<Inbox<Answer>>,
    pub(super) state: Mutex<State<'p>>,
    /// Measures how long nothing is decoded, if times are measured.
    busy: Option<(&'p StageTimes, BusyTime)>,
}

impl<'p, 'i> Staged<'p, 'i> {
    /// A read of the chunks of `list`; the items go to these sinks.
    pub fn new(
        items: &'p [(Item<'p>, &'p Sink<'p>)],
        list: &'p ChunkList<'i>,
        missed: &'p AtomicBool,
    ) -> Staged<'p, 'i> {
        let (inbox, state) = (Arc::new(Inbox::new()), Mutex::new(State::new(list.count())));
        let times = items.first().and_then(|(item, _)| item.reader.times);
        let busy = times.map(|times| (times, BusyTime::default()));
        Staged { items, list, missed, inbox, state, busy }
    }

    /// The read's job; the caller adds the first task.
    pub fn job(&self) -> &OpenJob {
        &self.inbox.job
    }

    /// Runs one task: handles an arrived answer, or does work that is ready, then keeps enough requests in flight.
    ///
    /// # Errors
    /// Any [`ErrorKind`], with array, chunk and codec.
    pub fn step(&self, worker: &mut Worker, checkpoint: &Checkpoint<'_>) -> Result<()> {
        let ready = self.state.lock().take();
        match ready {
            Some(ready) => self.work(ready, worker, checkpoint)?,
            None => {
                let arrival = self.inbox.arrivals.lock().pop_front();
                if let Some(arrival) = arrival {
                    self.receive(arrival)?;
                }
            }
        }
        self.advance(checkpoint)?;
        if self.state.lock().is_finished() {
            self.inbox.job.finish();
        }
        Ok(())
    }

    /// Returns the sink for encoded chunks, if the read has one.
    fn chunk_sink(&self) -> Option<&'p dyn ChunkSink> {
        match self.items.first()?.1 {
            Sink::Chunks(sink) => Some(*sink),
            _ => None,
        }
    }

    fn reader(&self, item: usize) -> Reader<'p> {
        Reader { missed: Some(self.missed), ..self.items[item].0.reader }
    }

    pub(super) fn store(&self, plan: &ObjectPlan<'p>) -> Result<&'p dyn RemoteStore> {
        let lost = || Error::from(ErrorKind::Internal("a staged read of a local store".into()));
        plan.reader.store.remote().ok_or_else(lost)
    }

    /// The error of an object, with its place.
    fn place(plan: &ObjectPlan<'p>, error: Error) -> Error {
        error.in_chunk(&plan.chunk_index).in_array(plan.reader.store.name(), plan.reader.path)
    }

    /// Opens objects and submits requests as long as there is room (step 2).
    fn advance(&self, checkpoint: &Checkpoint<'_>) -> Result<()> {
        loop {
            checkpoint.pass()?;
            match self.next()? {
                Next::Open(number) => self.open(number)?,
                Next::Submit { number, object, fetch, request, frames } => {
                    self.submit(number, object, &fetch, request, frames)?;
                }
                Next::Nothing => return Ok(()),
            }
        }
    }

    fn next(&self) -> Result<Next> {
        let mut state = self.state.lock();
        let in_flight = self.inbox.in_flight.load(Ordering::Relaxed);
        let policy = self.policy();
        let first = state.turns.front().copied();
        let fetch = first.and_then(|object| state.open.get(&object)?.queue.front());
        let continues = fetch.is_some_and(|fetch| fetch.continues);
        let reserve = state.likely(fetch);
        let is_full = state.requests.len() >= policy.requests.max(1)
            || in_flight > 0 && in_flight.saturating_add(reserve) > IN_FLIGHT_NBYTES;
        if is_full && !continues {
            return Ok(Next::Nothing);
        }
        let has_more = state.next < state.count;
        let is_sharded = has_more && self.items[0].0.reader.inner_chunks().is_some();
        let opens = match (first, is_sharded) {
            _ if !has_more || continues => false,
            (None, _) => true,
            (Some(_), true) => state.unsplit < INDEXES_AHEAD.min(policy.requests),
            (Some(_), false) => false,
        };
        if opens {
            let number = state.next;
            (state.next, state.opening) = (number + 1, state.opening + 1);
            return Ok(Next::Open(number));
        }
        let Some(object) = state.turns.pop_front() else { return Ok(Next::Nothing) };
        let Some(open) = state.open.get_mut(&object) else { return Ok(Next::Nothing) };
        let Some(fetch) = open.queue.pop_front() else { return Ok(Next::Nothing) };
        let request = Request::new(open.plan.key.as_str(), fetch.range.clone())
            .if_version(open.version.clone())
            .with_class(fetch.class);
        // SAFETY: a leaf with a place is never decoded, and no other leaf has that place. Each byte of it is fetched by
        // one request of this attempt; the requests of a void attempt were forgotten, and their direct copies closed.
        let direct_copy = open.places(&fetch)?.map(|places| unsafe { DirectCopy::new(places) });
        // Step 2: all ranges of a leaf are requested in succession, then the next object has its turn.
        match open.queue.front().map(|next| next.continues) {
            Some(true) => state.turns.push_front(object),
            Some(false) => state.turns.push_back(object),
            None => {}
        }
        let number = state.next_request;
        state.next_request += 1;
        let reserved = InFlight::new(reserve, &self.inbox.in_flight);
        let frames = direct_copy.as_ref().map(DirectCopy::frames);
        let pending = Pending { object, fetch: fetch.clone(), handle: None, reserved, direct_copy };
        state.requests.insert(number, pending);
        Ok(Next::Submit { number, object, fetch, request, frames })
    }

    /// The policy of the first item's store and array, applied to a batch over several stores too.
    fn policy(&self) -> FetchPolicy {
        self.items[0].0.reader.policy()
    }

    /// Plans chunk `number`, and queues its first step.
    fn open(&self, number: u64) -> Result<()> {
        let is_handed_over = self.chunk_sink().is_some();
        let plan = ObjectPlan::new(self.list, number, |item| self.reader(item), is_handed_over);
        let mut state = self.state.lock();
        state.opening -= 1;
        let plan = Arc::new(plan?);
        state.unsplit += usize::from(plan.reader.inner_chunks().is_some());
        state.open.insert(number, Object::new(plan));
        state.add(number, Work::Begin);
        drop(state);
        self.inbox.job.add(1);
        Ok(())
    }

    /// Submits a request already noted in the state.
    fn submit(
        &self,
        number: u64,
        object: u64,
        fetch: &RangeFetch,
        request: Request,
        frames: Option<DirectFrames>,
    ) -> Result<()> {
        let plan = self.state.lock().open.get(&object).map(|open| Arc::clone(&open.plan));
        let Some(plan) = plan else { return Ok(()) };
        let reply = Reply::new(&self.inbox, number, frames.is_none());
        let done = Box::new(move |answer| reply.answer(answer));
        let receiver: Box<dyn Receiver> = match frames {
            Some(frames) => Box::new(Collector::to(frames, fetch.limit, done)),
            None => {
                let of_chunk = self.chunk_sink().filter(|_| fetch.class == RequestClass::Chunk);
                let frames = BodyFrames::new(of_chunk.and_then(ChunkSink::bodies));
                Box::new(Collector::to(frames, fetch.limit, done))
            }
        };
        let handle = self.store(&plan)?.submit(request, receiver);
        let late = match self.state.lock().requests.get_mut(&number) {
            Some(pending) => {
                pending.handle = Some(handle);
                None
            }
            None => Some(handle),
        };
        // Either its attempt was abandoned while it was submitted, or it has ended already.
        late.iter().for_each(RequestHandle::cancel);
        Ok(())
    }

    /// Handles a request's answer (step 4).
    fn receive(&self, arrival: Arrival<Answer>) -> Result<()> {
        let mut state = self.state.lock();
        let Some(pending) = state.requests.remove(&arrival.request) else { return Ok(()) };
        let Pending { object, fetch, reserved, direct_copy, .. } = pending;
        drop(reserved);
        let copied_in_place = direct_copy.as_ref().map(DirectCopy::close);
        let Some(open) = state.open.get_mut(&object) else { return Ok(()) };
        let plan = Arc::clone(&open.plan);
        let answer = arrival
            .answer
            .unwrap_or_else(|| Err(ErrorKind::Internal("the store did not answer a request".into()).into()));
        let fetched = match answer {
            Ok(fetched) => fetched,
            Err(error) => {
                drop(state);
                return Err(Self::place(&plan, error));
            }
        };
        // If a value has no version, bytes received earlier prove that it existed.
        let is_first = open.version.is_none() && open.nbytes.is_none() && !open.has_landed;
        match fetched {
            Fetched::Missing if is_first => {
                // Requests still in flight for the object must not land where the fill value goes.
                let cancelled = state.abandon(object);
                let tasks = self.split_to(&mut state, object, Split::missing())?;
                drop(state);
                cancelled.iter().for_each(RequestHandle::cancel);
                self.inbox.job.add(tasks);
            }
            Fetched::Missing | Fetched::Changed => return self.restart(state, object),
            Fetched::TooLarge(actual) => {
                drop(state);
                let error = match fetch.range {
                    ByteRange::Whole => {
                        ErrorKind::Limit { what: "the size of an encoded chunk", actual, limit: fetch.limit }
                    }
                    _ => ErrorKind::Internal("the store sent more bytes than requested".into()),
                };
                return Err(Self::place(&plan, error.into()));
            }
            Fetched::Body(body) => {
                if let (Some(known), Some(other)) = (&open.version, &body.version)
                    && known != other
                {
                    return self.restart(state, object);
                }
                open.has_landed = true;
                open.version = open.version.take().or_else(|| body.version.clone());
                open.nbytes = open.nbytes.or(body.nbytes);
                if copied_in_place.is_none() {
                    let end = body.start.saturating_add(body.bytes.len() as u64);
                    open.nbytes = open.nbytes.or_else(|| fetch.cut_at(end));
                }
                if let Some((nbytes, is_complete)) = copied_in_place {
                    let error = plan.wrong_size(open.nbytes, body.start.saturating_add(nbytes), is_complete);
                    if let Some(error) = error {
                        drop(state);
                        return Err(Self::place(&plan, error));
                    }
                }
                let actual = body.bytes.len() as u64;
                let landed = Arc::new(InFlightBody::new(body, &self.inbox.in_flight));
                let tasks = if !open.is_split {
                    state.add(object, Work::Split(landed, Box::new(fetch.clone())));
                    1
                } else if fetch.leaves.is_empty() {
                    // The cached index belongs to the current version.
                    open.left = open.left.saturating_sub(1);
                    state.settle(object)
                } else {
                    let leaves = open.land(&landed, &fetch.leaves);
                    match copied_in_place {
                        // The frames are in their places already.
                        Some(_) => {
                            open.left = open.left.saturating_sub(leaves.len());
                            state.settle(object)
                        }
                        None => {
                            let tasks = leaves.len() as u64;
                            let decode = |leaf| state.add(object, Work::Decode(Box::new(leaf)));
                            leaves.into_iter().for_each(decode);
                            tasks
                        }
                    }
                };
                state.observe(&fetch, actual);
                drop(state);
                self.inbox.job.add(tasks);
            }
        }
        Ok(())
    }

    /// Step 5.
    fn restart(&self, mut state: zarrow_array::fork::MutexGuard<'_, State<'p>>, object: u64) -> Result<()> {
        let Some(open) = state.open.get(&object) else { return Ok(()) };
        let plan = Arc::clone(&open.plan);
        // Gathered elements of no fixed size cannot be taken back, nor can chunks already handed over.
        let sink = self.chunk_sink().filter(|_| open.has_placed);
        let is_kept = open.has_placed && plan.is_variable() || sink.is_some();
        if open.attempt + 1 >= ATTEMPTS || is_kept {
            drop(state);
            sink.inspect(|sink| sink.is_replaced());
            let error = std::io::Error::other("the value was replaced while it was read: read again");
            return Err(Self::place(&plan, error.into()));
        }
        let cancelled = state.restart(object);
        let tasks = state.settle(object);
        drop(state);
        cancelled.iter().for_each(RequestHandle::cancel);
        self.inbox.job.add(tasks);
        Ok(())
    }

    /// Does ready work, and what follows from it.
    fn work(&self, ready: Ready<'p>, worker: &mut Worker, checkpoint: &Checkpoint<'_>) -> Result<()> {
        let Ready { object, attempt, plan, work } = ready;
        let is_counted = matches!(work, Work::Decode(_) | Work::Fill);
        let done = match work {
            Work::Begin => self.begin(object, attempt, &plan, checkpoint),
            Work::Split(landed, fetch) => self.split(object, attempt, &plan, &landed, &fetch, checkpoint),
            Work::Fill => self.fill(&plan),
            Work::Decode(leaf) => {
                let mut decode = || self.decode(object, &plan, &leaf, worker, checkpoint);
                match &self.busy {
                    Some((_, busy)) => busy.during(decode),
                    None => decode(),
                }
            }
        };
        done.map_err(|error| Self::place(&plan, error))?;
        let mut state = self.state.lock();
        if state.end_work(object, attempt)
            && is_counted
            && let Some(open) = state.open.get_mut(&object)
        {
            open.left -= 1;
        }
        let tasks = state.settle(object);
        drop(state);
        if tasks > 0 {
            self.inbox.job.add(tasks);
        }
        Ok(())
    }

    /// Claims the selected parts of an object.
    ///
    /// # Safety
    /// As [`OutputClaim::new`]: no other code has claims on the object.
    unsafe fn claim<'c, 'x: 'c>(
        &'c self,
        pieces: &'c [(usize, PerAxis<AxisPart<'x>>)],
    ) -> SmallVec<[OutputClaim<'c>; 1]> {
        // SAFETY: the caller's contract. Pieces of different items go to different memory.
        pieces.iter().map(|(item, part)| unsafe { OutputClaim::new(part, self.items[*item].1) }).collect()
    }

    /// Fills the selected parts of a missing object.
    fn fill(&self, plan: &Arc<ObjectPlan<'p>>) -> Result<()> {
        plan.reader.note_missing(&plan.chunk_index);
        let fill = &plan.reader.metadata.fill_value;
        // SAFETY: no leaf of an object that is not stored is decoded, and what an earlier attempt decoded has ended.
        missing_chunk::fill(&mut unsafe { self.claim(&plan.pieces) }, fill)
    }

    /// Fills the selected parts of missing inner chunks.
    pub(super) fn fill_inner(&self, plan: &Arc<ObjectPlan<'p>>, split: &Split) -> Result<()> {
        for wanted in &split.absent {
            let pieces = plan.inner_pieces(wanted);
            // SAFETY: a missing inner chunk has no leaf, so nothing else writes its elements, and the list names it once.
            let mut claims = unsafe { self.claim(&pieces) };
            missing_chunk::fill(&mut claims, &plan.reader.metadata.fill_value)?;
        }
        Ok(())
    }

    /// Finds the leaves' places in the result, if every leaf can land there directly.
    pub(super) fn place_leaves(
        &self,
        plan: &ObjectPlan<'p>,
        chunk: &Chunk<'_>,
        split: &mut Split,
    ) -> Result<()> {
        // SAFETY: leaves have no place in common, and a leaf with a place is never decoded: its bytes arrive through
        // the direct copies of its requests. The direct copies of a void attempt are closed, and work on it has ended.
        unsafe { plan.place_leaves(chunk, &|item| self.items[item].1, split) }
    }

    /// Decodes a leaf after all its bytes have arrived.
    fn decode(
        &self,
        object: u64,
        plan: &Arc<ObjectPlan<'p>>,
        leaf: &Leaf,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        plan.reader.task(|clock| self.decode_with(object, plan, leaf, worker, (checkpoint, clock)))
    }

    fn decode_with(
        &self,
        object: u64,
        plan: &Arc<ObjectPlan<'p>>,
        leaf: &Leaf,
        worker: &mut Worker,
        (checkpoint, clock): (&Checkpoint<'_>, Option<&TaskClock>),
    ) -> Result<()> {
        let chunk = Chunk { clock, ..plan.reader.chunk_of(&plan.shape, checkpoint) };
        let (version, nbytes) = {
            let state = self.state.lock();
            let open = state.open.get(&object);
            (open.and_then(|open| open.version.clone()), open.and_then(|open| open.nbytes))
        };
        let slot = slot(plan, version.as_ref()).map(|slot| Slot { kept: leaf.kept.clone(), ..slot });
        let Some(inner) = &leaf.inner else {
            let shape = chunk.stored_shape();
            let chunk = Chunk { shape: &shape, slot: slot.as_ref(), ..chunk };
            // Without a size, and with all bytes of each range, elements are as many as they must be.
            let end = leaf.bodies.end();
            let nbytes = nbytes.unwrap_or_else(|| end.max(chunk.elements_nbytes().unwrap_or(0)));
            let input = Input::from_bodies(&leaf.bodies, 0, nbytes);
            // SAFETY: the object is one leaf, which is decoded by one task: that of a void attempt has ended.
            let mut claims = unsafe { self.claim(&plan.pieces) };
            chunk.read_stored(&input, &mut claims, None, worker)?;
            // Step 6.
            if let Some(version) = version.filter(|_| slot.is_some() && leaf.kept.is_none()) {
                remember(plan, &version, input.nbytes()?);
            }
            return Ok(());
        };
        let Some(inner_chunks) = plan.reader.inner_chunks() else { return Ok(()) };
        let slot = slot.map(|slot| Slot { kept: leaf.kept.clone(), ..slot.inner(inner.number) });
        let chunk = Chunk {
            chain: &inner_chunks.chain,
            shape: &inner_chunks.chunk_shape,
            slot: slot.as_ref(),
            ..chunk
        };
        let input = Input::from_bodies(&leaf.bodies, inner.range.start, inner.range.end - inner.range.start);
        let pieces = plan.inner_pieces(&inner.wanted);
        // SAFETY: inner chunks have no place in common, each is one leaf, and a leaf is decoded by one task: that of a void
        // attempt has ended.
        let mut claims = unsafe { self.claim(&pieces) };
        chunk.read(&input, &mut claims, None, worker)
    }

    /// Step 7.
    pub fn cancel(&self) {
        let requests = std::mem::take(&mut self.state.lock().requests);
        requests.values().filter_map(|pending| pending.handle.as_ref()).for_each(RequestHandle::cancel);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
