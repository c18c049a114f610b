//! A staged read without a waiting caller: it owns its inputs and its output.
//!
//! 1. Everything borrowed by the read (the array, the selection, the result, and borrows from them) is held behind its
//!    own [`Arc`] and outlives the read. The borrows' lifetimes are erased here; the field order below sets the order
//!    of dropping.
//! 2. The job runs on the threads of the pool. When it has ended, no thread works on it any more, and no request's
//!    receiver refers to it: then the result is taken out, or dropped.

use crate::error::{ErrorKind, Result};
use crate::metadata::missing_values::MissingValues;
use crate::node::array::Array;
use crate::node::array::field::FieldSelection;
use crate::node::array::request::item;
use crate::place::sink::Sink;
use crate::pool::{OpenJob, OwnedTask};
use crate::read::chunk_list::ChunkList;
use crate::read::item::Item;
use crate::read::output_memory::{FromFilled, ReadTarget, TargetMemory};
use crate::read::staged::driver::Staged;
use crate::selection::Selection;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use zarrow_array::fork::Mutex;

/// The data that a read borrows (step 1).
pub struct Owned<T> {
    pub array: Array,
    pub selection: Selection,
    pub field: Option<FieldSelection>,
    pub missing: Option<MissingValues>,
    pub target: T,
}

impl<T> Owned<T> {
    /// Returns the item to read.
    ///
    /// # Errors
    /// As [`item`].
    pub fn item(&self) -> Result<Item<'_>> {
        item(&self.array, &self.selection, self.field.as_ref(), self.missing.as_ref())
    }
}

/// The memory of a result; sinks point to it.
struct Memory(*mut TargetMemory<'static>);

// SAFETY: it is owned, and used only by the owner of the read; the sinks write to different places.
unsafe impl Send for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was made by `Box::into_raw`, and no other code has taken it out.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Memory {
    fn take(self) -> Box<TargetMemory<'static>> {
        let memory = std::mem::ManuallyDrop::new(self);
        // SAFETY: as in `drop`, which does not run.
        unsafe { Box::from_raw(memory.0) }
    }
}

/// A read and everything that it borrows. The fields are dropped in this order.
struct DetachedRead<T> {
    staged: Staged<'static, 'static>,
    _items: Arc<[(Item<'static>, &'static Sink<'static>)]>,
    _list: Arc<ChunkList<'static>>,
    _missed: Arc<AtomicBool>,
    _sink: Arc<Sink<'static>>,
    memory: Mutex<Option<Memory>>,
    owned: Arc<Owned<T>>,
}

/// # Safety
/// The reference is not used after its target is gone.
unsafe fn extend<T: ?Sized>(short: &T) -> &'static T {
    // SAFETY: the caller's contract.
    unsafe { &*std::ptr::from_ref(short) }
}

/// Begins to read from an array of a remote store, and calls `done` on a thread of the pool with the result.
///
/// # Errors
/// Any error of a target that does not take the elements, [`zarrow_array::Error::OutOfMemory`], or no thread for the
/// read; then `done` is not called.
pub fn read_detached<T: ReadTarget + Send + Sync + 'static>(
    owned: Owned<T>,
    done: impl FnOnce(Result<T::Output>) + Send + 'static,
) -> Result<OpenJob> {
    let owned = Arc::new(owned);
    // SAFETY: `DetachedRead::owned` goes last of all that borrows from it.
    let borrowed: &'static Owned<T> = unsafe { extend(&*owned) };
    let item = borrowed.item()?;
    let memory = Memory(Box::into_raw(Box::new(borrowed.target.as_target().memory(&item)?)));
    // SAFETY: the pointer was made above, and the sink goes before the memory, or is not used any more when it is taken
    // out.
    let sink = Arc::new(unsafe { &mut *memory.0 }.sink(&item)?);
    let missed = Arc::new(AtomicBool::new(false));
    // SAFETY: as for `borrowed`, of the fields of the same names.
    let items: Arc<[_]> = Arc::new([(item, unsafe { extend(&*sink) })]);
    let list = Arc::new(ChunkList::new(&items)?);
    // SAFETY: as above.
    let staged = unsafe { Staged::new(extend(&*items), extend(&*list), extend(&*missed)) };
    let is_empty = list.count() == 0;
    let memory = Mutex::new(Some(memory));
    let read =
        DetachedRead { staged, _items: items, _list: list, _missed: missed, _sink: sink, memory, owned };
    let read = Arc::new(read);
    let (job, ended) = (read.staged.job().clone(), Arc::clone(&read));
    let task: OwnedTask = Arc::new(move |_, worker, checkpoint| read.staged.step(worker, checkpoint));
    let on_end = move |result: Result<()>| {
        // Step 2.
        ended.staged.cancel();
        let memory = ended.memory.lock().take().map(Memory::take);
        let owned = Arc::clone(&ended.owned);
        drop(ended);
        let finish = || {
            let memory =
                memory.ok_or_else(|| ErrorKind::Internal("the read ended without a result".into()))?;
            // SAFETY: the read had no error, so that every part was placed or filled.
            T::Output::from_filled(unsafe { memory.finish(&owned.item()?, &|| false)? })
        };
        let finished = result.and_then(|()| finish()).map_err(|error| owned.array.place(error));
        drop(owned);
        done(finished);
    };
    job.spawn(task, Box::new(on_end))?;
    if is_empty {
        job.finish();
    }
    job.add(1);
    Ok(job)
}
