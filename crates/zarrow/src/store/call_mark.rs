//! A mark of the thread that began a call. Threads of the pool inherit it with the call's job, so that a store can tell
//! the requests of such a call from others. The engine itself gives it no meaning.

use std::cell::Cell;

thread_local! {
    static MARK: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns the mark of the call that this thread works for.
pub fn call_mark() -> Option<usize> {
    MARK.get()
}

/// A mark of this thread until it is dropped; then the mark before is back.
///
/// ```
/// use zarrow::store::remote::{CallMark, call_mark};
/// let mark = CallMark::set(Some(7));
/// assert_eq!(call_mark(), Some(7));
/// drop(mark);
/// assert_eq!(call_mark(), None);
/// ```
#[derive(Debug)]
pub struct CallMark(Option<usize>);

impl CallMark {
    /// Sets the mark.
    pub fn set(mark: Option<usize>) -> CallMark {
        CallMark(MARK.replace(mark))
    }
}

impl Drop for CallMark {
    fn drop(&mut self) {
        MARK.set(self.0);
    }
}
