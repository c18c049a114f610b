//! Writes to several arrays at once.
//!
//! 1. Writes to a remote store are begun one after the other, without waiting for the answers, as long as their elements
//!    fit a common limit. No thread waits for each.
//! 2. Local writes run one after the other, each on all threads.
//! 3. The first error, or the caller, stops all; this returns when no request is in flight and no value is read any more.

use crate::error::{Error, ErrorKind, Result};
use crate::node::array::detached_write::{OwnedWrite, ValueSource, write_detached};
use crate::node::array::write_request::WriteRequest;
use crate::pool::OpenJob;
use crate::store::remote::in_flight::IN_FLIGHT_NBYTES;
use std::sync::Arc;
use std::time::Duration;
use zarrow_array::fork::{Condvar, Forked, Mutex, generation};

/// Maximum number of writes in flight.
const IN_FLIGHT: usize = 1024;

/// Interval between checks for interruption.
const LOOK: Duration = Duration::from_millis(40);

/// The writes in flight.
#[derive(Default)]
struct WritesInFlight {
    state: Mutex<InFlight>,
    news: Condvar,
}

#[derive(Default)]
struct InFlight {
    count: usize,
    nbytes: u64,
    error: Option<Error>,
}

/// Performs several writes, each of the elements of its source, with the chunks of all in flight together. `cancel` says
/// whether to stop; that of the requests is ignored.
///
/// # Errors
/// As [`WriteRequest::write`]; the first error stops all. Values that do not fit are errors before the first write.
///
/// ```
/// # use std::sync::Arc;
/// # use zarrow::{ArrayBuilder, Existing, OpenOptions, ValueSource, create_array, store::MemoryStore};
/// # let metadata = ArrayBuilder::new([4], zarrow::Number::Int16).build()?;
/// # let store = Arc::new(MemoryStore::default());
/// # let array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
/// let values: Arc<dyn ValueSource> = Arc::new(array.read(0..2)?);
/// let writes = vec![(array.write_request(0..2)?, Arc::clone(&values)), (array.write_request(2..)?, values)];
/// zarrow::write_many(writes, &|| false)?;
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn write_many(
    writes: Vec<(WriteRequest<'_>, Arc<dyn ValueSource>)>,
    cancel: &dyn Fn() -> bool,
) -> Result<()> {
    let writes: Vec<OwnedWrite> =
        writes.into_iter().map(|(request, source)| OwnedWrite::new(request, source)).collect();
    writes.iter().try_for_each(OwnedWrite::check)?;
    write_each(writes, cancel)
}

/// Performs all writes.
///
/// # Errors
/// The first error of a write; [`ErrorKind::Interrupted`].
pub(crate) fn write_each(writes: Vec<OwnedWrite>, interrupted: &dyn Fn() -> bool) -> Result<()> {
    let is_single = writes.len() == 1;
    let (remote, local): (Vec<_>, Vec<_>) =
        writes.into_iter().partition(|write| !is_single && write.array().store().remote().is_some());
    let shared = Arc::new(WritesInFlight::default());
    let mut jobs = Vec::new();
    let begun = remote.into_iter().try_for_each(|write| {
        shared.wait(write.nbytes(), interrupted)?;
        begin(&shared, write, interrupted, &mut jobs)
    });
    let done = begun.and_then(|()| shared.wait(u64::MAX, interrupted));
    if done.is_err() {
        // Step 3.
        jobs.iter().for_each(OpenJob::cancel);
        shared.drain()?;
    }
    done?;
    local.iter().try_for_each(|write| write.write(interrupted))
}

/// Begins a write of step 1. If no thread can start, it is performed here.
fn begin(
    shared: &Arc<WritesInFlight>,
    write: OwnedWrite,
    interrupted: &dyn Fn() -> bool,
    jobs: &mut Vec<OpenJob>,
) -> Result<()> {
    let nbytes = write.nbytes();
    let write = Arc::new(write);
    let own = Arc::clone(shared);
    shared.add(nbytes);
    let done = move |written: Result<()>| own.end(nbytes, written);
    match write_detached(Arc::clone(&write), done) {
        Ok(job) => jobs.push(job),
        Err(_) => {
            let written = write.write(interrupted);
            shared.end(nbytes, written);
        }
    }
    Ok(())
}

impl WritesInFlight {
    fn add(&self, nbytes: u64) {
        let mut state = self.state.lock();
        state.count += 1;
        state.nbytes = state.nbytes.saturating_add(nbytes);
    }

    fn end(&self, nbytes: u64, written: Result<()>) {
        let mut state = self.state.lock();
        state.count -= 1;
        state.nbytes = state.nbytes.saturating_sub(nbytes);
        let late = match written {
            Err(error) if state.error.is_none() => {
                state.error = Some(error);
                None
            }
            written => written.err(),
        };
        drop(state);
        drop(late);
        self.news.notify_all();
    }

    /// Waits until a write of this size may begin; with [`u64::MAX`], until all have ended.
    fn wait(&self, nbytes: u64, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let process = generation();
        loop {
            let mut state = self.state.lock();
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if state.count == 0
                || state.count < IN_FLIGHT && state.nbytes.saturating_add(nbytes) <= IN_FLIGHT_NBYTES
            {
                return Ok(());
            }
            drop(self.news.wait(state, Some(LOOK)));
            if generation() != process {
                return Err(Forked.into());
            }
            if interrupted() {
                return Err(ErrorKind::Interrupted.into());
            }
        }
    }

    /// Waits until all have ended.
    fn drain(&self) -> Result<()> {
        let process = generation();
        let mut state = self.state.lock();
        while state.count > 0 {
            state = self.news.wait(state, Some(LOOK)).0;
            if generation() != process {
                return Err(Forked.into());
            }
        }
        Ok(())
    }
}
