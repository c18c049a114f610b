//! Waiting for an answer, on the thread of a caller who has nothing else to do.

use super::interrupt::pass_here;
use crate::error::{ErrorKind, Result};
use crate::store::remote::{OnDone, RequestHandle};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use zarrow_array::fork::{Condvar, Mutex, generation};

/// How often a waiting caller looks whether to go on.
const LOOK: Duration = Duration::from_millis(40);

/// Waits for what `begin` asks for, and asks `pass` now and then whether to go on: an error of it cancels the request.
///
/// # Errors
/// The request's; what `pass` gives; [`ErrorKind::Internal`] where the store lost the request.
pub fn wait<T: Send + 'static>(
    begin: impl FnOnce(OnDone<T>) -> RequestHandle,
    pass: &dyn Fn() -> Result<()>,
) -> Result<T> {
    Waiting::begin(begin).wait(pass)
}

/// A request that is to be waited for. Where it is dropped instead, the request is cancelled.
pub struct Waiting<T> {
    shared: Arc<Shared<T>>,
    handle: RequestHandle,
    /// The process that began it.
    generation: u64,
}

impl<T: Send + 'static> Waiting<T> {
    /// Begins a request.
    pub fn begin(begin: impl FnOnce(OnDone<T>) -> RequestHandle) -> Waiting<T> {
        let shared = Arc::new(Shared { answer: Mutex::new(Answer::None), told: Condvar::default() });
        let (teller, generation) = (Teller(Arc::clone(&shared)), generation());
        let handle = begin(Box::new(move |result| teller.tell(Answer::Some(result))));
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
                    return Err(ErrorKind::Internal("the store lost a request".into()).into());
                }
                Answer::None => {}
            }
            drop(self.shared.told.wait(answer, Some(LOOK)));
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
        // One that has ended stays as it is.
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

struct Shared<T> {
    answer: Mutex<Answer<T>>,
    told: Condvar,
}

/// Tells the waiting thread, where it is dropped untold too.
struct Teller<T>(Arc<Shared<T>>);

impl<T> Teller<T> {
    fn tell(&self, told: Answer<T>) {
        let mut answer = self.0.answer.lock();
        let replaced = match &*answer {
            Answer::None => Some(std::mem::replace(&mut *answer, told)),
            _ => Some(told),
        };
        drop(answer);
        drop(replaced);
        self.0.told.notify_all();
    }
}

impl<T> Drop for Teller<T> {
    fn drop(&mut self) {
        self.tell(Answer::Lost);
    }
}
