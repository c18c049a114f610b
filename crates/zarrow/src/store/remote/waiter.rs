//! Waiting for an answer on the caller's thread.

use super::interrupt::pass_here;
use crate::error::{ErrorKind, Result};
use crate::store::remote::{OnDone, RequestHandle};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use zarrow_array::fork::{Condvar, Mutex, generation};

/// Interval between a waiting caller's checks for cancellation.
const LOOK: Duration = Duration::from_millis(40);

/// Waits for the answer to the request that `begin` starts, and calls `pass` now and then: an error of `pass` cancels
/// the request.
///
/// # Errors
/// Errors of the request and of `pass`; [`ErrorKind::Internal`] if the store lost the request.
pub fn wait<T: Send + 'static>(
    begin: impl FnOnce(OnDone<T>) -> RequestHandle,
    pass: &dyn Fn() -> Result<()>,
) -> Result<T> {
    Waiting::begin(begin).wait(pass)
}

/// A request to be waited for. Dropping it cancels the request.
pub struct Waiting<T> {
    shared: Arc<Mailbox<T>>,
    handle: RequestHandle,
    /// The process that started it.
    generation: u64,
}

impl<T: Send + 'static> Waiting<T> {
    /// Starts a request.
    pub fn begin(begin: impl FnOnce(OnDone<T>) -> RequestHandle) -> Waiting<T> {
        let shared = Arc::new(Mailbox { answer: Mutex::new(Answer::None), answered: Condvar::default() });
        let (teller, generation) = (Sender(Arc::clone(&shared)), generation());
        let handle = begin(Box::new(move |result| teller.send(Answer::Some(result))));
        Waiting { shared, handle, generation }
    }

    /// Waits for the answer, as [`wait`] does.
    ///
    /// # Errors
    /// As [`wait`].
    pub fn wait(self, pass: &dyn Fn() -> Result<()>) -> Result<T> {
        loop {
            let mut answer = self.shared.answer.lock();
            match std::mem::replace(&mut *answer, Answer::None) {
                Answer::Some(result) => return result,
                Answer::Lost => {
                    return Err(ErrorKind::Internal("the store did not answer a request".into()).into());
                }
                Answer::None => {}
            }
            drop(self.shared.answered.wait(answer, Some(LOOK)));
            if generation() != self.generation {
                return Err(zarrow_array::fork::Forked.into());
            }
            pass().and_then(|()| pass_here())?;
        }
    }
}

impl<T> fmt::Debug for Waiting<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Waiting").finish_non_exhaustive()
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        // Cancelling a request that has ended has no effect.
        if generation() == self.generation {
            self.handle.cancel();
        }
    }
}

enum Answer<T> {
    None,
    Some(Result<T>),
    Lost,
}

struct Mailbox<T> {
    answer: Mutex<Answer<T>>,
    answered: Condvar,
}

/// Notifies the waiting thread, also if it is dropped without an answer.
struct Sender<T>(Arc<Mailbox<T>>);

impl<T> Sender<T> {
    fn send(&self, given: Answer<T>) {
        let mut answer = self.0.answer.lock();
        let replaced = match &*answer {
            Answer::None => Some(std::mem::replace(&mut *answer, given)),
            _ => Some(given),
        };
        drop(answer);
        drop(replaced);
        self.0.answered.notify_all();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.send(Answer::Lost);
    }
}
