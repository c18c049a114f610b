//! Queue of requests to Python stores, served by one Python thread.
//!
//! 1. Submitting a request needs no GIL and never waits: a byte in a socket wakes the thread.
//! 2. The thread is a Python thread (`zarrow.store_objects.event_loop`). It is started when the first store is
//!    opened, with the GIL; in a forked child at the first request, by a thread that waits for the GIL.
//! 3. If the thread cannot be started, or has ended, its queue is dropped. The next request tries again.
//! 4. A forked child creates a new queue. It never answers receivers of the parent's queue.

use super::request::StoreRequest;
use crate::python::gil;
use crate::python::importing::import;
use pyo3::prelude::*;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use zarrow_array::fork::{Mutex, generation};
use zarrow_array::thread;

/// Work for the thread.
#[derive(Default)]
struct Waiting {
    requests: Vec<StoreRequest>,
    /// Numbers of cancelled requests.
    cancelled: Vec<u64>,
    /// Whether the thread could not be started.
    is_dead: bool,
}

/// The queue of a process.
pub struct Queue {
    generation: u64,
    waiting: Mutex<Waiting>,
    wake: UnixStream,
    woken: UnixStream,
}

static QUEUE: Mutex<Option<Arc<Queue>>> = Mutex::new(None);

impl Queue {
    /// Returns the queue of this process, and whether it is new: then the caller must start its thread.
    fn for_process() -> io::Result<(Arc<Queue>, bool)> {
        let own = generation();
        let known =
            |queue: &Option<Arc<Queue>>| queue.as_ref().filter(|queue| queue.generation == own).cloned();
        if let Some(queue) = known(&QUEUE.lock()) {
            return Ok((queue, false));
        }
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let made = Arc::new(Queue { generation: own, waiting: Mutex::new(Waiting::default()), wake, woken });
        let mut place = QUEUE.lock();
        if let Some(first) = known(&place) {
            return Ok((first, false));
        }
        let parents = place.replace(Arc::clone(&made));
        drop(place);
        // Step 4.
        std::mem::forget(parents);
        Ok((made, true))
    }

    fn start(self: &Arc<Queue>, py: Python<'_>) -> PyResult<()> {
        let queue = StoreQueue(Arc::clone(self));
        import(py, "zarrow.store_objects.event_loop")?.call_method1("start", (queue,)).map(drop)
    }

    /// Returns the waiting requests, and fails later ones; the next request creates another queue. Dropping a
    /// request fails it.
    fn end(self: &Arc<Queue>) -> Vec<StoreRequest> {
        let dead = Waiting { is_dead: true, ..Waiting::default() };
        let left = std::mem::replace(&mut *self.waiting.lock(), dead).requests;
        let mut place = QUEUE.lock();
        let own = place.take_if(|queue| Arc::ptr_eq(queue, self));
        drop(place);
        drop(own);
        left
    }

    fn push(&self, put: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.waiting.lock();
        let sleeps = waiting.requests.is_empty() && waiting.cancelled.is_empty();
        if !waiting.is_dead {
            put(&mut waiting);
        }
        drop(waiting);
        if sleeps {
            // A full socket wakes the thread too.
            let _ = (&self.wake).write(&[0]);
        }
    }

    /// Cancels the request with this number.
    pub fn cancel(&self, number: u64) {
        if self.generation == generation() {
            self.push(|waiting| waiting.cancelled.push(number));
        }
    }
}

/// Starts the thread, for a store that is being opened.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    match Queue::for_process()? {
        (queue, true) => queue.start(py).inspect_err(|_| drop(queue.end())),
        (_, false) => Ok(()),
    }
}

/// Submits a request; on failure, the request gets the error.
pub fn submit(request: StoreRequest) -> io::Result<Arc<Queue>> {
    let (queue, is_new) = Queue::for_process()?;
    queue.push(|waiting| waiting.requests.push(request));
    if is_new {
        // Step 2.
        let own = Arc::clone(&queue);
        let start = move || {
            gil::with(|py| {
                if let Err(error) = own.start(py) {
                    let error = error.into_value(py).into_bound(py).into_any();
                    own.end().iter().for_each(|request| request.failed(py, error.clone()));
                }
            });
        };
        if let Err(error) = thread::start("zarrow-start", start) {
            drop(queue.end());
            return Err(error);
        }
    }
    Ok(queue)
}

/// The queue, as its thread uses it.
#[pyclass(frozen, name = "_StoreQueue", module = "zarrow")]
pub struct StoreQueue(Arc<Queue>);

#[pymethods]
impl StoreQueue {
    /// Return the file descriptor that becomes readable when there is work.
    fn fileno(&self) -> RawFd {
        self.0.woken.as_raw_fd()
    }

    /// Fail the waiting requests: the thread has ended. The next request starts another one, with another queue.
    fn end(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.end()));
    }

    /// Take the waiting requests, and the numbers of cancelled ones.
    fn take(&self) -> (Vec<StoreRequest>, Vec<u64>) {
        let mut bytes = [0; 64];
        // Read first: a request submitted after this wakes the thread again.
        while matches!((&self.0.woken).read(&mut bytes), Ok(64)) {}
        let mut waiting = self.0.waiting.lock();
        (std::mem::take(&mut waiting.requests), std::mem::take(&mut waiting.cancelled))
    }
}
