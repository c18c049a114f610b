//! A staged read without a waiting caller: it owns its inputs and its output.
//!
//! 1. Everything borrowed by the read (the array, the selection, the result, and borrows from them) is held behind its
//!    own [`Arc`] and outlives the read. The borrows' lifetimes are erased here; the field order below sets the order
//!    of dropping.
//! 2. The job runs on the threads of the pool. When it has ended, no thread works on it any more, and no request's
//!    receiver refers to it: then the result is taken out, or dropped.
//! 3. Whatever keeps the caller's memory alive is dropped last.

use crate::error::{ErrorKind, Result};
use crate::metadata::missing::MissingValues;
use crate::node::array::Array;
use crate::place::result::ResultMemory;
use crate::place::sink::Sink;
use crate::place::strided::Strided;
use crate::pool::{OpenJob, OwnedTask};
use crate::read::chunk_list::ChunkList;
use crate::read::chunk_list::Item;
use crate::read::staged::driver::Staged;
use crate::selection::Selection;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use zarrow_array::DecodedArray;
use zarrow_array::fork::Mutex;

/// Keeps the caller's memory alive.
pub type Keeper = Box<dyn Any + Send + Sync>;

/// The destination of a detached read.
pub enum Target {
    /// Into fresh memory.
    Fresh,
    /// Into the caller's memory.
    Strided(Strided, Keeper),
}

/// The data that a read borrows (step 1).
struct Owned {
    array: Array,
    selection: Selection,
    missing: Option<Arc<MissingValues>>,
    missed: AtomicBool,
    _keeper: Option<Keeper>,
}

/// The memory of a result; sinks point to it.
struct Memory(*mut ResultMemory<'static>);

// SAFETY: it is owned, and used only by the owner of the read; the sinks write to different places.
unsafe impl Send for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was made by `Box::into_raw`, and no other code has taken it out.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Memory {
    fn take(self) -> Box<ResultMemory<'static>> {
        let memory = std::mem::ManuallyDrop::new(self);
        // SAFETY: as in `drop`, which does not run.
        unsafe { Box::from_raw(memory.0) }
    }
}

/// A read and everything that it borrows. The fields are dropped in this order.
struct DetachedRead {
    staged: Staged<'static, 'static>,
    _items: Arc<[(Item<'static>, &'static Sink<'static>)]>,
    _list: Arc<ChunkList<'static>>,
    _sink: Arc<Sink<'static>>,
    memory: Mutex<Option<Memory>>,
    owned: Arc<Owned>,
}

/// # Safety
/// The reference is not used after its target is gone.
unsafe fn extend<T: ?Sized>(short: &T) -> &'static T {
    // SAFETY: the caller's contract.
    unsafe { &*std::ptr::from_ref(short) }
}

/// Begins to read `selection` of an array of a remote store, and calls `done` on a thread of the pool with the decoded
/// array, or with `None` if the data went to the caller's memory.
///
/// # Errors
/// Any error of a selection that does not fit, [`zarrow_array::Error::OutOfMemory`], or no thread for the read; then
/// `done` is not called.
///
/// # Safety
/// The caller's memory is as [`Array::read_strided`] asks, until `done` is called.
pub unsafe fn read_detached(
    array: Array,
    selection: Selection,
    missing: Option<Arc<MissingValues>>,
    target: Target,
    done: impl FnOnce(Result<Option<DecodedArray>>) + Send + 'static,
) -> Result<OpenJob> {
    let (strided, keeper) = match target {
        Target::Fresh => (None, None),
        Target::Strided(strided, keeper) => (Some(strided), Some(keeper)),
    };
    let missed = AtomicBool::new(false);
    let owned = Arc::new(Owned { array, selection, missing, missed, _keeper: keeper });
    // SAFETY: `DetachedRead::owned` goes last of all that borrows from it.
    let lent: &'static Owned = unsafe { extend(&*owned) };
    let item_size = lent.array.metadata().data_type.item_size();
    let (memory, sink) = match strided {
        Some(strided) => {
            let no_tensor = || ErrorKind::Unsupported("out= needs an array that decodes to a tensor".into());
            // SAFETY: the caller's contract.
            let destination =
                unsafe { strided.destination(&lent.selection, item_size.ok_or_else(no_tensor)?) };
            (None, Sink::Fixed(destination))
        }
        None => {
            let data_type = &lent.array.metadata().data_type;
            let memory = ResultMemory::new(data_type, lent.selection.shape(), lent.missing.as_deref())?;
            let memory = Memory(Box::into_raw(Box::new(memory)));
            // SAFETY: the pointer was made above, and the sinks go before the memory, or are not used any more when it is
            // taken out.
            let sink = unsafe { &mut *memory.0 }.sinks(&[lent.selection.flat_shape()]).next();
            let no_sink = || ErrorKind::Internal("a read without a sink".into());
            (Some(memory), sink.ok_or_else(no_sink)?)
        }
    };
    let sink = Arc::new(sink);
    let reader = crate::decode::reader::Reader { missing: lent.missing.as_deref(), ..lent.array.reader() };
    let item = Item { array: 0, reader, selection: &lent.selection };
    let list = Arc::new(ChunkList::new(&[item])?);
    // SAFETY: as for `lent`, of the fields of the same names.
    let items: Arc<[_]> = Arc::new([(item, unsafe { extend(&*sink) })]);
    // SAFETY: as above.
    let staged = Staged::new(unsafe { extend(&*items) }, unsafe { extend(&*list) }, &lent.missed);
    let is_empty = list.count() == 0;
    let memory = Mutex::new(memory);
    let read = Arc::new(DetachedRead { staged, _items: items, _list: list, _sink: sink, memory, owned });
    let (job, ended) = (read.staged.job().clone(), Arc::clone(&read));
    let task: OwnedTask = Arc::new(move |_, worker, checkpoint| read.staged.step(worker, checkpoint));
    let on_end = move |result: Result<()>| {
        // Step 2.
        ended.staged.cancel();
        let memory = ended.memory.lock().take().map(Memory::take);
        let owned = Arc::clone(&ended.owned);
        drop(ended);
        let fill = &owned.array.metadata().fill_value;
        let finished = result.and_then(|()| match memory {
            // SAFETY: the read had no error, so that every part was placed or filled.
            Some(memory) => unsafe { memory.finish(fill, &|| false) }.map(Some),
            None => Ok(None),
        });
        let finished = finished.map_err(|error| owned.array.place(error));
        // Step 3.
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
