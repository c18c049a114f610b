//! Staged writes: many requests to a slow store in flight at once, without a waiting thread.
//!
//! 1. A fully covered chunk is encoded and put. A partial chunk is fetched, changed, and put on the condition that it is
//!    unchanged in the store; after a conflict it is fetched again. A shard is written like a chunk.
//! 2. The array's document is requested at the same time ([`Guard`]). No chunk is put before the answer confirms that the
//!    stored array is still the handle's. The document is requested again after the last put.
//! 3. The store's policy bounds the requests in flight, independent of the number of threads; [`IN_FLIGHT_NBYTES`] bounds
//!    their bytes.
//! 4. Chunks that become empty are deleted in batches.
//! 5. Threads of the pool encode chunks and handle answers. Answers reach the write through its inbox alone.
//! 6. The first error, or the caller, stops the job; then all requests are cancelled, and none is sent again.
//! 7. A chunk with a very large old value is written by a thread that waits, range by range.
//! 8. A chunk that needs no encoding is borrowed by the store from the caller's memory (`borrowed_put.rs`).

mod borrowed_put;
mod state;

use crate::codec::{Input, Worker};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::axis_part::whole_part;
use crate::plan::chunk_parts::ChunkParts;
use crate::pool;
use crate::pool::OpenJob;
use crate::pool::job::Checkpoint;
use crate::read::staged::inbox::{Arrival, Inbox, Reply};
use crate::selection::Selection;
use crate::store::remote::bodies::InFlight;
use crate::store::remote::in_flight::IN_FLIGHT_NBYTES;
use crate::store::remote::{
    ByteRange, Collector, Condition, Fetched, Put, PutBody, RemoteStore, RemoteWriter, Request, RequestClass,
    RequestHandle,
};
use crate::write::Writer;
use crate::write::body::Body;
use crate::write::values::Values;
use borrowed_put::Lease;
use state::{Answer, Attempt, Encoded, Gate, Next, Pending, Purpose, State};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zarrow_array::allocation::Grow;
use zarrow_array::fork::Mutex;

/// Smaller values are copied, not borrowed.
const BORROWED_NBYTES: usize = 64 << 10;

/// Old values with more bytes are read range by range (step 7).
const LARGE_NBYTES: u64 = 64 << 20;

/// Maximum number of attempts to fetch, change and put one chunk, if other writers are faster.
const MOST_TRIES: u32 = 100;

/// Maximum number of keys per delete request.
const KEYS_PER_DELETE: usize = 1000;

/// Checks that the stored array is still the handle's.
pub trait Guard: Send + Sync {
    /// The request for the array's document, and the maximum size in bytes of its answer.
    fn request(&self) -> (Request, u64);

    /// Checks the answer to `request`: `None` if the array is still the handle's, or the next request.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the array was erased, and [`ErrorKind::Stale`] if it was replaced or made smaller.
    fn judge(&self, request: &Request, fetched: Fetched) -> Result<Option<(Request, u64)>>;
}

/// Writes `values`, laid out for the selection, to `selection` of an array of a remote store.
///
/// # Errors
/// As [`Writer::write`].
pub fn write(
    writer: &Writer<'_>,
    selection: &Selection,
    values: &Values<'_>,
    guard: Option<&dyn Guard>,
    interrupted: &dyn Fn() -> bool,
) -> Result<()> {
    let part = whole_part(selection);
    let chunk_parts = part.as_deref().map(|part| writer.reader.chunk_parts(part)).transpose()?;
    if chunk_parts.is_none() && guard.is_none() {
        return Ok(());
    }
    let staged = StagedWrite::new(writer, chunk_parts.as_ref(), values, guard);
    staged.start();
    let task = |_, worker: &mut Worker, checkpoint: &Checkpoint<'_>| staged.step(worker, checkpoint);
    let written = staged.job().run(pool::num_threads(), interrupted, &task);
    staged.cancel();
    written
}

/// A staged write.
pub struct StagedWrite<'p, 'i> {
    writer: &'p Writer<'p>,
    chunk_parts: Option<&'p ChunkParts<'i>>,
    values: &'p Values<'p>,
    guard: Option<&'p dyn Guard>,
    inbox: Arc<Inbox<Answer>>,
    state: Mutex<State<'p>>,
}

impl<'p, 'i> StagedWrite<'p, 'i> {
    /// A write of these chunks, `None` for an empty selection.
    pub fn new(
        writer: &'p Writer<'p>,
        chunk_parts: Option<&'p ChunkParts<'i>>,
        values: &'p Values<'p>,
        guard: Option<&'p dyn Guard>,
    ) -> StagedWrite<'p, 'i> {
        let count = chunk_parts.map_or(0, ChunkParts::count);
        let inbox = Inbox::new();
        let state = State {
            gate: if guard.is_some() { Gate::Unasked } else { Gate::Open },
            next: 0,
            count,
            working: 0,
            requests: HashMap::new(),
            next_request: 0,
            waiting: VecDeque::new(),
            deleted: Vec::new(),
            late: VecDeque::new(),
        };
        StagedWrite { writer, chunk_parts, values, guard, inbox: Arc::new(inbox), state: Mutex::new(state) }
    }

    /// Its job.
    pub fn job(&self) -> &OpenJob {
        &self.inbox.job
    }

    /// Adds the first tasks: one per thread that could encode.
    pub fn start(&self) {
        let threads = pool::num_threads() as u64;
        self.inbox.job.add(self.state.lock().count.clamp(1, threads.max(1)));
    }

    /// Cancels all requests (step 6).
    pub fn cancel(&self) {
        let requests = std::mem::take(&mut self.state.lock().requests);
        requests.values().filter_map(|pending| pending.handle.as_ref()).for_each(RequestHandle::cancel);
    }

    /// Runs one task: handles an answer; then opens chunks and submits requests as long as there is room.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn step(&self, worker: &mut Worker, checkpoint: &Checkpoint<'_>) -> Result<()> {
        let arrival = self.inbox.arrivals.lock().pop_front();
        if let Some(arrival) = arrival {
            self.receive(arrival, worker, checkpoint)?;
        }
        loop {
            checkpoint.pass()?;
            match self.next() {
                Next::Guard => self.begun(self.ask_guard())?,
                Next::Open(number, reserved) => {
                    let opened = self.open(number, worker, checkpoint);
                    drop(reserved);
                    self.state.lock().working -= 1;
                    opened?;
                }
                Next::Put(encoded) => self.begun(self.submit_put(encoded))?,
                Next::Delete(keys) => self.begun(self.submit_delete(keys))?,
                Next::Wait(chunk) => {
                    let written = self.write_waiting(chunk, worker, checkpoint);
                    self.state.lock().working -= 1;
                    written?;
                }
                Next::Finish => {
                    self.inbox.job.finish();
                    return Ok(());
                }
                Next::Nothing => return Ok(()),
            }
        }
    }

    /// Ends a step that submitted a request. Until then the step counts as work: to another thread, a write without requests
    /// would look complete.
    fn begun(&self, submitted: Result<()>) -> Result<()> {
        self.state.lock().working -= 1;
        submitted
    }

    fn remote(&self) -> Result<(&'p dyn RemoteStore, &'p dyn RemoteWriter)> {
        let remote = self.writer.reader.store.remote();
        let lost = || Error::from(ErrorKind::Internal("a staged write to a local store".into()));
        let remote = remote.ok_or_else(lost)?;
        Ok((remote, remote.writer().ok_or(ErrorKind::ReadOnly)?))
    }

    /// Steps 2 to 4.
    fn next(&self) -> Next<'p> {
        let mut state = self.state.lock();
        if state.gate == Gate::Unasked {
            state.gate = Gate::Closed;
            state.working += 1;
            return Next::Guard;
        }
        if state.gate == Gate::Open
            && let Some(encoded) = state.waiting.pop_front()
        {
            state.working += 1;
            return Next::Put(encoded);
        }
        if state.gate == Gate::Open
            && let Some(chunk) = state.late.pop_front()
        {
            state.working += 1;
            return Next::Wait(chunk);
        }
        let is_idle = state.working == 0 && state.waiting.is_empty() && state.late.is_empty();
        let is_last = state.next == state.count && is_idle;
        let deletes = state.deleted.len() >= KEYS_PER_DELETE || is_last && !state.deleted.is_empty();
        if state.gate == Gate::Open && deletes {
            let most = state.deleted.len().min(KEYS_PER_DELETE);
            state.working += 1;
            return Next::Delete(state.deleted.drain(..most).collect());
        }
        if is_last && state.requests.is_empty() {
            return match state.gate {
                Gate::Open if self.guard.is_some() => {
                    state.gate = Gate::Leaving;
                    state.working += 1;
                    Next::Guard
                }
                Gate::Open | Gate::Leaving => Next::Finish,
                Gate::Unasked | Gate::Closed => Next::Nothing,
            };
        }
        let most = self.remote().map_or(1, |(remote, _)| remote.policy().requests.max(1));
        let (in_flight, nbytes) = (self.inbox.in_flight.load(Ordering::Relaxed), self.chunk_nbytes());
        let is_full = state.requests.len() + state.waiting.len() + state.working >= most
            || in_flight > 0 && in_flight.saturating_add(nbytes) > IN_FLIGHT_NBYTES;
        if state.next == state.count || is_full {
            return Next::Nothing;
        }
        let number = state.next;
        (state.next, state.working) = (number + 1, state.working + 1);
        Next::Open(number, InFlight::new(nbytes, &self.inbox.in_flight))
    }

    /// Estimates the maximum size in bytes of an encoded chunk.
    fn chunk_nbytes(&self) -> u64 {
        /// Assumed size in bytes of an element of variable length.
        const VARIABLE_NBYTES: u64 = 32;
        let metadata = self.writer.reader.metadata;
        let item_size = metadata.data_type.item_size().map_or(VARIABLE_NBYTES, |size| size as u64);
        metadata
            .chunk_grid
            .largest_chunk()
            .iter()
            .fold(item_size, |nbytes, extent| nbytes.saturating_mul(*extent))
    }

    /// Notes a request, and submits it.
    fn begin(
        &self,
        purpose: Purpose,
        reserved: InFlight,
        lease: Option<Lease<'p>>,
        submit: impl FnOnce(Reply<Answer>) -> RequestHandle,
    ) {
        let number = {
            let mut state = self.state.lock();
            let number = state.next_request;
            state.next_request += 1;
            state
                .requests
                .insert(number, Pending { purpose, handle: None, _reserved: reserved, _lease: lease });
            number
        };
        let handle = submit(Reply::new(&self.inbox, number, true));
        // A request that has ended already is not in the list.
        if let Some(pending) = self.state.lock().requests.get_mut(&number) {
            pending.handle = Some(handle);
        }
    }

    fn fetch(&self, purpose: Purpose, request: Request, limit: u64, reserved: InFlight) -> Result<()> {
        let (remote, _) = self.remote()?;
        self.begin(purpose, reserved, None, |reply| {
            let done = Box::new(move |fetched| reply.answer(Answer::Fetched(fetched)));
            remote.submit(request, Box::new(Collector::new(limit, done)))
        });
        Ok(())
    }

    fn occupy(&self, nbytes: u64) -> InFlight {
        InFlight::new(nbytes, &self.inbox.in_flight)
    }

    fn ask_guard(&self) -> Result<()> {
        let Some(guard) = self.guard else { return Ok(()) };
        let (request, limit) = guard.request();
        self.fetch(Purpose::Guard(request.clone()), request, limit, self.occupy(0))
    }

    fn submit_put(&self, encoded: Encoded<'p>) -> Result<()> {
        let (_, puts) = self.remote()?;
        let Encoded { attempt, key, body, lease, reserved } = encoded;
        let condition = attempt.condition.clone();
        self.begin(Purpose::Put(attempt), reserved, lease, |reply| {
            puts.put(&key, body, condition, Box::new(move |put| reply.answer(Answer::Put(put))))
        });
        Ok(())
    }

    fn submit_delete(&self, keys: Vec<String>) -> Result<()> {
        let (_, puts) = self.remote()?;
        self.begin(Purpose::Delete, self.occupy(0), None, |reply| {
            puts.delete(keys, Box::new(move |deleted| reply.answer(Answer::Deleted(deleted))))
        });
        Ok(())
    }

    /// Begins a chunk: encodes it, or fetches the stored one (step 1).
    fn open(&self, number: u64, worker: &mut Worker, checkpoint: &Checkpoint<'_>) -> Result<()> {
        let Some(chunk_parts) = self.chunk_parts else { return Ok(()) };
        let attempt = Attempt::first(number);
        let (_, puts) = self.remote()?;
        let is_covered =
            self.writer.with_target(chunk_parts, number, checkpoint, |chunk_index, target, part| {
                let is_covered =
                    target.replaces_old(part) || !puts.has_conditions() && target.is_covered_inside(part);
                if !is_covered && !puts.has_conditions() {
                    // The lock attempt returns the error that says why.
                    drop(self.writer.store.try_lock(&self.writer.reader.key(chunk_index))?);
                }
                Ok(is_covered)
            })?;
        if is_covered { self.encode(attempt, None, worker, checkpoint) } else { self.fetch_old(attempt) }
    }

    fn key(&self, number: u64) -> String {
        let Some(chunk_parts) = self.chunk_parts else { return String::new() };
        let (mut chunk_index, mut part) = (Default::default(), Default::default());
        chunk_parts.get(number, &mut chunk_index, &mut part);
        self.writer.reader.key(&chunk_index)
    }

    fn fetch_old(&self, attempt: Attempt) -> Result<()> {
        let (_, puts) = self.remote()?;
        let key = self.key(attempt.chunk);
        if puts.tells_versions() {
            let request = Request::new(key, ByteRange::Whole);
            return self.fetch(
                Purpose::Old(attempt),
                request,
                LARGE_NBYTES,
                self.occupy(self.chunk_nbytes()),
            );
        }
        let request = Request::new(key, ByteRange::Range(0..0)).with_class(RequestClass::Metadata);
        self.fetch(Purpose::Version(attempt), request, 0, self.occupy(0))
    }

    /// Encodes a chunk over its old bytes, and puts it once puts are allowed.
    fn encode(
        &self,
        attempt: Attempt,
        old: Option<&[u8]>,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        let Some(chunk_parts) = self.chunk_parts else { return Ok(()) };
        self.writer.with_target(chunk_parts, attempt.chunk, checkpoint, |chunk_index, target, part| {
            let key = self.writer.reader.key(chunk_index);
            let input = old.map(Input::from_bytes);
            let encoded = match target.encode(part, self.values.level(), input.as_ref(), worker) {
                Err(error) if self.writer.only_clears && error.is_of_stored_bytes() => return Ok(()),
                encoded => encoded?,
            };
            let Some(bytes) = encoded else {
                let mut state = self.state.lock();
                match attempt.condition {
                    Condition::Always => state.deleted.try_push(key)?,
                    Condition::IfAbsent => {}
                    // No store supports conditional deletes: the store's writer checks once more.
                    Condition::IfVersion(_) => state.late.push_back(attempt.chunk),
                }
                return Ok(());
            };
            let nbytes = bytes.body.nbytes() + bytes.tail.len();
            let (body, lease) = match bytes.body {
                Body::Borrowed(borrowed) if nbytes >= BORROWED_NBYTES && bytes.tail.is_empty() => {
                    // SAFETY: the state keeps the lease until the request is over, and is dropped with the write, within
                    // the lifetime of the values.
                    let lease = unsafe { Lease::new(borrowed) };
                    (PutBody::Borrowed(lease.bytes()), Some(lease))
                }
                body => {
                    let mut copy = Vec::new();
                    copy.make_room(nbytes).map_err(Error::from)?;
                    body.append_to(&mut copy)?;
                    copy.extend_from_slice(&bytes.tail);
                    (copy.into(), None)
                }
            };
            let reserved = self.occupy(nbytes as u64);
            let encoded = Encoded { attempt, key, body, lease, reserved };
            let mut state = self.state.lock();
            if state.gate != Gate::Open {
                state.waiting.push_back(encoded);
                return Ok(());
            }
            drop(state);
            self.submit_put(encoded)
        })
    }

    /// Handles the answer to a request.
    fn receive(
        &self,
        arrival: Arrival<Answer>,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        let pending = {
            let mut state = self.state.lock();
            let Some(pending) = state.requests.remove(&arrival.request) else { return Ok(()) };
            state.working += 1;
            pending
        };
        let handled = self.handle(pending.purpose, arrival.answer, worker, checkpoint);
        self.state.lock().working -= 1;
        handled
    }

    fn handle(
        &self,
        purpose: Purpose,
        answer: Option<Answer>,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        let place = |attempt: &Attempt, error: Error| self.in_chunk(attempt, error);
        match (purpose, answer) {
            (Purpose::Guard(request), Some(Answer::Fetched(fetched))) => {
                let Some(guard) = self.guard else { return Ok(()) };
                match guard.judge(&request, fetched?)? {
                    Some((request, limit)) => {
                        self.fetch(Purpose::Guard(request.clone()), request, limit, self.occupy(0))
                    }
                    None => {
                        let mut state = self.state.lock();
                        if state.gate == Gate::Closed {
                            state.gate = Gate::Open;
                        }
                        Ok(())
                    }
                }
            }
            (Purpose::Version(attempt), Some(Answer::Fetched(fetched))) => {
                let condition = match fetched.map_err(|error| place(&attempt, error))? {
                    Fetched::Body(body) => Condition::IfVersion(body.version.ok_or_else(no_version)?),
                    Fetched::Missing => Condition::IfAbsent,
                    Fetched::Changed | Fetched::TooLarge(_) => return self.again(attempt),
                };
                let attempt = Attempt { condition, ..attempt };
                if attempt.condition == Condition::IfAbsent {
                    return self.change(attempt, None, worker, checkpoint);
                }
                let request = Request::new(self.key(attempt.chunk), ByteRange::Whole);
                let reserved = self.occupy(self.chunk_nbytes());
                self.fetch(Purpose::Old(attempt), request, LARGE_NBYTES, reserved)
            }
            (Purpose::Old(attempt), Some(Answer::Fetched(fetched))) => {
                match fetched.map_err(|error| place(&attempt, error))? {
                    Fetched::Body(body) => {
                        let condition = match (attempt.condition, body.version) {
                            (Condition::Always, Some(version)) => Condition::IfVersion(version),
                            (Condition::Always, None) => return Err(no_version()),
                            (known, _) => known,
                        };
                        self.change(Attempt { condition, ..attempt }, Some(&body.bytes), worker, checkpoint)
                    }
                    Fetched::Missing if attempt.condition == Condition::Always => {
                        let attempt = Attempt { condition: Condition::IfAbsent, ..attempt };
                        self.change(attempt, None, worker, checkpoint)
                    }
                    Fetched::Missing | Fetched::Changed => self.again(attempt),
                    Fetched::TooLarge(_) => {
                        self.state.lock().late.push_back(attempt.chunk);
                        Ok(())
                    }
                }
            }
            (Purpose::Put(attempt), Some(Answer::Put(put))) => match put {
                Ok(Put::Done(_)) => Ok(()),
                Ok(Put::Conflict) => self.again(attempt),
                // The server turned out not to support conditions.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Unsupported(_))
                        && attempt.condition != Condition::Always =>
                {
                    self.open(attempt.chunk, worker, checkpoint).map_err(|again| match again.kind() {
                        ErrorKind::Unsupported(_) => place(&attempt, error),
                        _ => again,
                    })
                }
                Err(error) => Err(place(&attempt, error)),
            },
            (Purpose::Delete, Some(Answer::Deleted(deleted))) => deleted,
            _ => Err(ErrorKind::Internal("the store did not answer a request".into()).into()),
        }
    }

    /// Changes the fetched chunk, unless it is missing and elements are only removed.
    fn change(
        &self,
        attempt: Attempt,
        old: Option<&[u8]>,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        if old.is_none() && self.writer.only_clears {
            return Ok(());
        }
        self.encode(attempt, old, worker, checkpoint)
    }

    /// Restarts a chunk after another writer's put.
    fn again(&self, attempt: Attempt) -> Result<()> {
        let tries = attempt.tries + 1;
        if tries >= MOST_TRIES {
            return Err(self.in_chunk(&attempt, ErrorKind::Conflict.into()));
        }
        self.fetch_old(Attempt { tries, condition: Condition::Always, ..attempt })
    }

    /// Step 7, once chunks may be put.
    fn write_waiting(&self, chunk: u64, worker: &mut Worker, checkpoint: &Checkpoint<'_>) -> Result<()> {
        let Some(chunk_parts) = self.chunk_parts else { return Ok(()) };
        self.writer.write_target(chunk_parts, chunk, self.values, (0, 1), None, worker, checkpoint)
    }

    fn in_chunk(&self, attempt: &Attempt, error: Error) -> Error {
        let Some(chunk_parts) = self.chunk_parts else { return error };
        let (mut chunk_index, mut part) = (Default::default(), Default::default());
        chunk_parts.get(attempt.chunk, &mut chunk_index, &mut part);
        error.in_chunk(&chunk_index)
    }
}

/// Error for a store that supports conditions but returned no version.
fn no_version() -> Error {
    ErrorKind::Unsupported("changing part of a chunk, because the store sent no version of it".into()).into()
}
