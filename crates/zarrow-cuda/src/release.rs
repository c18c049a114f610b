//! Release of memory that may still be in use: a thread waits for that on behalf of all other code.
//!
//! 1. The thread gets the owners of borrowed memory, to drop when our stream no longer uses it, and exported memory
//!    of ours, to free when other libraries no longer use it. It is started on first use.
//! 2. It waits, then releases. It holds no lock while it waits: the driver may run Python functions in its own
//!    threads, and an owner may be a Python object.
//! 3. A forked child has no device, and nothing to release.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use zarrow_array::fork::OnceCell;
use zarrow_array::thread;

const NAME: &str = "zarrow-release";

type Work = Box<dyn FnOnce() + Send>;

/// Queues `work` for the thread. If no thread can be started, the caller runs it.
pub(crate) fn later(work: impl FnOnce() + Send + 'static) {
    static THREAD: OnceCell<Sender<Work>> = OnceCell::new();
    let work: Work = Box::new(work);
    // After a failed start, the next call tries again.
    match THREAD.get().or_else(|| start().map(|sender| THREAD.set(sender))) {
        Some(thread) => thread.send(work).unwrap_or_else(|SendError(work)| work()),
        None => work(),
    }
}

/// Waits until the thread has done all work queued so far; returns at once in the thread itself.
pub(crate) fn wait() {
    if std::thread::current().name() == Some(NAME) {
        return;
    }
    let (sender, receiver) = channel::<()>();
    later(move || drop(sender));
    let _ = receiver.recv();
}

fn start() -> Option<Sender<Work>> {
    let (sender, receiver) = channel();
    thread::start(NAME, move || run(receiver)).ok().map(|_| sender)
}

/// Step 2. A panic in a deleter does not affect other memory.
fn run(works: Receiver<Work>) {
    for work in works {
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
}
