//! Interrupts a thread that waits for a store, for calls without a parameter for it.

use crate::error::{ErrorKind, Result};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use zarrow_array::fork::OnceCell;

/// Returns whether to stop.
type Interrupt = Rc<dyn Fn() -> bool>;

/// Interval between two checks in long work: the check of the Python package takes the GIL.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static INTERRUPT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// Does `work`, and interrupts this thread's waits for remote stores as soon as `interrupt` returns true; it is called
/// some ten times a second while waiting. An interrupted wait fails with [`ErrorKind::Interrupted`], and so does every
/// later wait in the same `work`.
///
/// ```
/// use std::rc::Rc;
/// use zarrow::store::{MemoryStore, Store, remote::interrupted_by};
/// let store = MemoryStore::new([("a", vec![1])])?;
/// let value = interrupted_by(Rc::new(|| false), || store.get("a", 10))?;
/// assert_eq!(value, Some(vec![1]));
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn interrupted_by<T>(interrupt: Rc<dyn Fn() -> bool>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous state, also if `work` panics.
    struct Before(Option<Interrupt>);
    impl Drop for Before {
        fn drop(&mut self) {
            INTERRUPT.with(|own| own.replace(self.0.take()));
        }
    }
    let stopped = Cell::new(false);
    let lasting: Interrupt = Rc::new(move || {
        // After the first true, the function is not called again: it might return false.
        stopped.set(stopped.get() || interrupt());
        stopped.get()
    });
    let _before = Before(INTERRUPT.with(|own| own.replace(Some(lasting))));
    work()
}

/// Check for threads outside of [`interrupted_by`].
static SIGNAL_CHECK: OnceCell<fn() -> bool> = OnceCell::new();

/// Sets the check of system calls on local files that signals keep interrupting, on threads outside of
/// [`interrupted_by`]: it returns whether to stop. Short calls are never checked. The first check set stays.
pub fn set_signal_check(check: fn() -> bool) {
    SIGNAL_CHECK.set(check);
}

/// Returns an error if this thread is to stop, for a system call that signals keep interrupting.
pub(crate) fn pass_signal() -> Result<()> {
    if INTERRUPT.with(|own| own.borrow().is_some()) {
        return pass_now_and_then();
    }
    match SIGNAL_CHECK.get() {
        Some(check) if check() => Err(ErrorKind::Interrupted.into()),
        _ => Ok(()),
    }
}

/// Returns an error if this thread is to stop.
pub(crate) fn pass_here() -> Result<()> {
    // Clone it out of the cell before the call, which may come back here.
    let interrupt = INTERRUPT.with(|own| own.borrow().clone());
    match interrupt {
        Some(interrupt) if interrupt() => Err(ErrorKind::Interrupted.into()),
        _ => Ok(()),
    }
}

/// Checks as [`pass_here`] does, for each step of long work on local files: at most several times a second.
pub(crate) fn pass_now_and_then() -> Result<()> {
    let now = Instant::now();
    if ASKED.get().is_none_or(|last| now.duration_since(last) >= INTERVAL) {
        ASKED.set(Some(now));
        pass_here()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stopped_once_stays_stopped_until_the_work_ends() {
        let calls = Rc::new(Cell::new(0));
        let own = Rc::clone(&calls);
        let interrupt = move || {
            own.set(own.get() + 1);
            own.get() == 2
        };
        let found = interrupted_by(Rc::new(interrupt), || [(); 4].map(|()| pass_here().is_ok()));
        assert_eq!(found, [true, false, false, false]);
        assert_eq!(calls.get(), 2);
        assert!(pass_here().is_ok());
    }
}
