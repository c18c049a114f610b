//! The requests to stores of Python that wait for the thread which asks them.
//!
//! 1. Whoever puts a request here holds no GIL and waits for nobody: a byte in a socket wakes the thread.
//! 2. The thread is Python's own (`zarrow.store_objects.event_loop`). It is started at the first store that is opened, with
//!    the GIL; in a forked child at the first request, by a thread that takes the GIL when it can have it.
//! 3. A thread that cannot be started, or that has ended, takes its queue with it. The next request tries again.
//! 4. A forked child makes a new queue. It never answers receivers of the parent's queue.

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

/// What the thread has to do.
#[derive(Default)]
struct Waiting {
    requests: Vec<StoreRequest>,
    /// Numbers of requests that nobody wants any more.
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
    /// The queue of this process, and whether it was made for this call, whose caller starts its thread then.
    fn of_process() -> io::Result<(Arc<Queue>, bool)> {
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

    /// Returns the waiting requests, and fails later ones; the next request makes another queue. Dropping a request fails it.
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
            // A socket that is full wakes the thread too.
            let _ = (&self.wake).write(&[0]);
        }
    }

    /// Notes that nobody wants the request with this number any more.
    pub fn cancel(&self, number: u64) {
        if self.generation == generation() {
            self.push(|waiting| waiting.cancelled.push(number));
        }
    }
}

/// Sees to it that the thread runs, for a store that is opened.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    match Queue::of_process()? {
        (queue, true) => queue.start(py).inspect_err(|_| drop(queue.end())),
        (_, false) => Ok(()),
    }
}

/// Puts a request, which is told where it cannot be.
pub fn submit(request: StoreRequest) -> io::Result<Arc<Queue>> {
    let (queue, is_new) = Queue::of_process()?;
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

/// The queue as its thread sees it.
#[pyclass(frozen, name = "_StoreQueue", module = "zarrow")]
pub struct StoreQueue(Arc<Queue>);

#[pymethods]
impl StoreQueue {
    /// Give the file that can be read when something waits.
    fn fileno(&self) -> RawFd {
        self.0.woken.as_raw_fd()
    }

    /// Fail what waits: the thread has ended. The next request starts another one, with another queue.
    fn end(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.end()));
    }

    /// Take the requests that wait, and the numbers of those that nobody wants any more.
    fn take(&self) -> (Vec<StoreRequest>, Vec<u64>) {
        let mut bytes = [0; 64];
        // Read first: whoever puts something after this wakes the thread again.
        while matches!((&self.0.woken).read(&mut bytes), Ok(64)) {}
        let mut waiting = self.0.waiting.lock();
        (std::mem::take(&mut waiting.requests), std::mem::take(&mut waiting.cancelled))
    }
}
