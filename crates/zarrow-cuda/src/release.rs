//! Giving back what may still be in use: a thread waits for that, so that nobody else does.
//!
//! 1. The thread is handed the owners of memory that was lent to us, until our stream has done what uses it, and memory of
//!    ours that other libraries have used, until they have done theirs. It is started when it is first needed.
//! 2. It waits, and lets go. It holds no lock meanwhile: the driver may run functions of Python's in threads of its own,
//!    and an owner may be an object of Python's.
//! 3. A forked child has no device, and nothing to give back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use zarrow_array::fork::OnceCell;
use zarrow_array::thread;

const NAME: &str = "zarrow-release";

type Work = Box<dyn FnOnce() + Send>;

/// Has the thread do `work`, after what it was handed before. Where no thread can be started, the caller does it.
pub(crate) fn later(work: impl FnOnce() + Send + 'static) {
    static THREAD: OnceCell<Sender<Work>> = OnceCell::new();
    let work: Work = Box::new(work);
    // A thread that the system refused is tried again the next time.
    match THREAD.get().or_else(|| start().map(|sender| THREAD.set(sender))) {
        Some(thread) => thread.send(work).unwrap_or_else(|SendError(work)| work()),
        None => work(),
    }
}

/// Waits until the thread has done what it was handed before. For the thread itself that is so.
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

/// Step 2. A deleter that panics keeps nobody else's memory.
fn run(works: Receiver<Work>) {
    for work in works {
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
}
