//! A staged write without a waiting caller: it owns the array and the values.
//!
//! 1. Each borrowed part (array, selection, values) is behind an [`Arc`] and outlives the write. The lifetimes of the
//!    borrows are erased here; the order of the fields below is the order of their drops.
//! 2. The job runs on the threads of the pool. After its end no thread and no request refers to it: memory borrowed by puts
//!    has been taken back.

use crate::decode::reader::Reader;
use crate::error::{ErrorKind, Result};
use crate::node::array::Array;
use crate::node::array::field::FieldSelection;
use crate::node::array::write_request::{WriteRequest, check_values};
use crate::node::hierarchy::document_guard::DocumentGuard;
use crate::plan::axis_part::whole_part;
use crate::plan::chunk_parts::ChunkParts;
use crate::pool::{OpenJob, OwnedTask};
use crate::selection::Selection;
use crate::store::Durability;
use crate::write::Writer;
use crate::write::options::WriteOptions;
use crate::write::staged::{Guard, StagedWrite};
use crate::write::values::Values;
use std::borrow::Cow;
use std::sync::Arc;
use zarrow_array::DecodedArray;

/// Elements and their memory.
pub trait ValueSource: Send + Sync {
    /// The elements.
    ///
    /// # Errors
    /// What making [`Values`] gives.
    fn values(&self) -> Result<Values<'_>>;
}

impl ValueSource for DecodedArray {
    fn values(&self) -> Result<Values<'_>> {
        Values::decoded(self)
    }
}

/// The data that a write borrows (step 1).
pub struct OwnedWrite {
    array: Array,
    selection: Selection,
    field: Option<FieldSelection>,
    durability: Durability,
    write_empty_chunks: bool,
    replace_edges: bool,
    /// Whether the write checks that the stored array is still that of the handle.
    is_guarded: bool,
    source: Arc<dyn ValueSource>,
}

impl OwnedWrite {
    /// Takes over the request, but for its `cancel`.
    pub fn new(request: WriteRequest<'_>, source: Arc<dyn ValueSource>) -> OwnedWrite {
        let WriteRequest { array, selection, field, options } = request;
        let WriteOptions { durability, write_empty_chunks, replace_edges, .. } = options;
        let (array, selection) = (array.clone(), selection.into_owned());
        let field = field.cloned();
        OwnedWrite {
            array,
            selection,
            field,
            durability,
            write_empty_chunks,
            replace_edges,
            is_guarded: true,
            source,
        }
    }

    /// Returns a write that does not check the stored array: it is being created, or the place was reserved.
    pub(crate) fn unguarded(self) -> OwnedWrite {
        OwnedWrite { is_guarded: false, ..self }
    }

    pub(crate) fn array(&self) -> &Array {
        &self.array
    }

    /// Returns the size in memory of the elements to write.
    pub(crate) fn nbytes(&self) -> u64 {
        /// Assumed size in bytes of an element of variable length.
        const VARIABLE_NBYTES: u64 = 32;
        let item_size = self.array.data_type().item_size().map_or(VARIABLE_NBYTES, |size| size as u64);
        self.selection.shape().iter().fold(item_size, |nbytes, extent| nbytes.saturating_mul(*extent))
    }

    /// Refuses values that do not fit.
    ///
    /// # Errors
    /// Errors of values of another type or shape.
    pub(crate) fn check(&self) -> Result<()> {
        let check = || {
            let values = self.source.values()?;
            check_values(&self.array, self.field.as_ref(), &values)?;
            values.broadcast(&self.selection.shape()).map(drop)
        };
        check().map_err(|error| self.array.place(error))
    }

    fn options(&self) -> WriteOptions<'static> {
        WriteOptions::default()
            .durability(self.durability)
            .write_empty_chunks(self.write_empty_chunks)
            .replace_edges(self.replace_edges)
    }

    /// Writes, and waits for the end.
    ///
    /// # Errors
    /// As [`WriteRequest::write`].
    pub fn write(&self, cancel: &dyn Fn() -> bool) -> Result<()> {
        let values = self.source.values().map_err(|error| self.array.place(error))?;
        let (selection, field) = (Cow::Borrowed(&self.selection), self.field.as_ref());
        let options = self.options().cancel(cancel);
        if !self.is_guarded {
            let written = self.array.write_elements(&self.selection, &values, None, &options);
            return written.map_err(|error| self.array.place(error));
        }
        WriteRequest { array: &self.array, selection, field, options }.write(&values)
    }
}

/// A write and everything it borrows. Fields are dropped in this order.
struct DetachedWrite {
    staged: StagedWrite<'static, 'static>,
    _chunk_parts: Option<Arc<ChunkParts<'static>>>,
    _values: Arc<Values<'static>>,
    guard: Option<Arc<DocumentGuard<'static>>>,
    _writer: Arc<Writer<'static>>,
    owned: Arc<OwnedWrite>,
}

/// # Safety
/// The reference is dropped before its target.
unsafe fn extend<T: ?Sized>(short: &T) -> &'static T {
    // SAFETY: the caller's contract.
    unsafe { &*std::ptr::from_ref(short) }
}

/// Begins to write to an array of a remote store, and calls `done` on a thread of the pool.
///
/// # Errors
/// [`ErrorKind::ReadOnly`], and errors of values that do not fit; then `done` is not called.
pub fn write_detached(
    owned: Arc<OwnedWrite>,
    done: impl FnOnce(Result<()>) + Send + 'static,
) -> Result<OpenJob> {
    // SAFETY: `DetachedWrite::owned` goes last of all that borrows from it.
    let borrowed: &'static OwnedWrite = unsafe { extend(&*owned) };
    let values = borrowed.source.values()?;
    check_values(&borrowed.array, borrowed.field.as_ref(), &values)?;
    let place = borrowed.field.as_ref().map(|field| field.place_in(&borrowed.array)).transpose()?;
    let values = Arc::new(values.broadcast(&borrowed.selection.shape())?.for_selection(&borrowed.selection));
    let store = borrowed.array.store().writer().ok_or(ErrorKind::ReadOnly)?;
    let writer = Arc::new(Writer::new(
        Reader { field: place, ..borrowed.array.reader() },
        store,
        &borrowed.options(),
        false,
    ));
    let part = whole_part(&borrowed.selection);
    let chunk_parts = part.as_deref().map(|part| writer.reader.chunk_parts(part)).transpose()?.map(Arc::new);
    let guard = DocumentGuard::new(&borrowed.array, &borrowed.selection);
    let guard = borrowed.is_guarded.then(|| Arc::new(guard));
    // SAFETY: as for `borrowed`, of the fields of the same names.
    let (borrowed_writer, borrowed_values) = unsafe { (extend(&*writer), extend(&*values)) };
    // SAFETY: as above.
    let borrowed_parts: Option<&'static ChunkParts<'static>> =
        unsafe { chunk_parts.as_deref().map(|parts| extend(parts)) };
    // SAFETY: as above.
    let borrowed_guard: Option<&'static dyn Guard> =
        guard.as_deref().map(|guard| unsafe { extend::<DocumentGuard<'static>>(guard) } as &dyn Guard);
    let staged = StagedWrite::new(borrowed_writer, borrowed_parts, borrowed_values, borrowed_guard);
    let write = Arc::new(DetachedWrite {
        staged,
        _chunk_parts: chunk_parts,
        _values: values,
        guard,
        _writer: writer,
        owned,
    });
    let (job, ended) = (write.staged.job().clone(), Arc::clone(&write));
    let begun = Arc::clone(&write);
    let task: OwnedTask = Arc::new(move |_, worker, checkpoint| write.staged.step(worker, checkpoint));
    let on_end = move |result: Result<()>| {
        // Step 2.
        ended.staged.cancel();
        let options = ended.owned.options();
        let settled = match &ended.guard {
            Some(guard) => guard.settle(result, &options),
            None => result,
        };
        let settled = settled.map_err(|error| ended.owned.array.place(error));
        drop(ended);
        done(settled);
    };
    job.spawn(task, Box::new(on_end))?;
    begun.staged.start();
    Ok(job)
}
