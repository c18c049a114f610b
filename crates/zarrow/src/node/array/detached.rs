//! Reads and writes an array without blocking, for event loops.

use crate::error::Result;
use crate::metadata::missing::MissingValues;
use crate::node::array::Array;
use crate::node::array::detached_read::read_detached;
use crate::node::array::detached_read::{Keeper, Target};
use crate::node::array::detached_write::ValueSource;
use crate::node::array::detached_write::write_detached;
use crate::place::strided::Strided;
use crate::pool;
use crate::pool::OpenJob;
use crate::read::options::ReadOptions;
use crate::selection::Selection;
use crate::write::options::WriteOptions;
use std::fmt;
use std::sync::Arc;
use zarrow_array::DecodedArray;

/// Work in progress on the engine's own threads.
///
/// Dropping it does not stop the work.
#[derive(Clone)]
pub struct Detached(OpenJob);

impl Detached {
    pub(crate) fn of_job(job: OpenJob) -> Detached {
        Detached(job)
    }

    /// Stops the work soon: its requests are cancelled, and it ends with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) unless it has ended already.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Runs `work` on one of the engine's threads, and calls `done` there. The argument of `work` says whether to
    /// stop.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the system refuses the first of these threads; then `done` is not
    /// called.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let (sender, receiver) = mpsc::channel();
    /// let work = zarrow::Detached::spawn(|_| Ok(6 * 7), move |result| sender.send(result).unwrap())?;
    /// assert_eq!(receiver.recv()??, 42);
    /// work.cancel(); // it has ended: this does nothing
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn<T: Send + 'static>(
        work: impl FnOnce(&dyn Fn() -> bool) -> Result<T> + Send + 'static,
        done: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<Detached> {
        pool::spawn(work, done).map(Detached)
    }
}

impl fmt::Debug for Detached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Detached").finish_non_exhaustive()
    }
}

impl Array {
    /// As [`read_with`](Array::read_with), on the engine's own threads: returns at once, and calls `done` on one of
    /// them.
    ///
    /// If the store's requests complete asynchronously, a read holds no thread while it waits, so that thousands can
    /// run concurrently. `missing` are the values that mark missing elements.
    ///
    /// # Errors
    /// As [`read_with`](Array::read_with) for errors known at once; then `done` is not called.
    ///
    /// ```
    /// # use std::sync::{Arc, mpsc};
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, Selection, store::MemoryStore};
    /// # let metadata = ArrayBuilder::new([4, 3], zarrow::Number::Int16).build()?;
    /// # let store = Arc::new(MemoryStore::default());
    /// # let array = zarrow::create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// let (sender, receiver) = mpsc::channel();
    /// let selection = Selection::all(array.shape());
    /// array.read_detached(selection, None, move |decoded| sender.send(decoded).unwrap())?;
    /// assert_eq!(receiver.recv()??.shape(), [4, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_detached(
        &self,
        selection: Selection,
        missing: Option<Arc<MissingValues>>,
        done: impl FnOnce(Result<DecodedArray>) + Send + 'static,
    ) -> Result<Detached> {
        self.check(&selection)?;
        let array = self.clone();
        if self.store().remote().is_none() {
            let work = move |cancel: &dyn Fn() -> bool| {
                let options =
                    ReadOptions { missing: missing.as_deref(), ..ReadOptions::default().cancel(cancel) };
                array.read_with(&selection, &options)
            };
            return Detached::spawn(work, done).map_err(|error| self.place(error));
        }
        let done = |decoded: Result<Option<DecodedArray>>| {
            let none = || crate::ErrorKind::Internal("the read ended without a result".into()).into();
            done(decoded.and_then(|decoded| decoded.ok_or_else(none)));
        };
        // SAFETY: there is no memory of the caller's.
        let job = unsafe { read_detached(array, selection, missing, Target::Fresh, done) };
        job.map(Detached).map_err(|error| self.place(error))
    }

    /// As [`read_strided`](Array::read_strided), on the engine's own threads: returns at once, and calls `done` on one
    /// of them once nothing writes to the memory any more. `keeper` is dropped before that.
    ///
    /// # Errors
    /// As [`read_strided`](Array::read_strided) for errors known at once; then `done` is not called.
    ///
    /// # Safety
    /// As [`read_strided`](Array::read_strided), until `done` is called: `keeper` keeps the memory alive.
    pub unsafe fn read_strided_detached(
        &self,
        selection: Selection,
        out: Strided,
        keeper: Keeper,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<Detached> {
        self.check(&selection)?;
        self.tensor_item_size()?;
        let array = self.clone();
        if self.store().remote().is_none() {
            let work = move |cancel: &dyn Fn() -> bool| {
                let options = ReadOptions::default().cancel(cancel);
                // SAFETY: the caller's contract.
                let read = unsafe { array.read_strided(&selection, out, &options) };
                drop(keeper);
                read
            };
            return Detached::spawn(work, done).map_err(|error| self.place(error));
        }
        let done = |read: Result<Option<DecodedArray>>| done(read.map(drop));
        // SAFETY: the caller's contract.
        let job = unsafe { read_detached(array, selection, None, Target::Strided(out, keeper), done) };
        job.map(Detached).map_err(|error| self.place(error))
    }

    /// As [`write_with`](Array::write_with), on the engine's own threads: returns at once, and calls `done` on one of
    /// them once nothing reads the values any more.
    ///
    /// If the store's requests complete asynchronously, a write holds no thread while it waits, so that thousands can
    /// run concurrently. [`Detached::cancel`] stops it; `options.cancel` is ignored.
    ///
    /// # Errors
    /// As [`write_with`](Array::write_with) for errors known at once; then `done` is not called.
    ///
    /// ```
    /// # use std::sync::{Arc, mpsc};
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, Selection, WriteOptions, store::MemoryStore};
    /// # let metadata = ArrayBuilder::new([4], zarrow::Number::Int16).build()?;
    /// # let store = Arc::new(MemoryStore::default());
    /// # let array = zarrow::create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// # array.write(2.., &[5i16, 6])?;
    /// let (sender, receiver) = mpsc::channel();
    /// let (values, start) = (array.read(2..)?, Selection::new(&[4], &[(0..2).into()])?);
    /// let done = move |written| sender.send(written).unwrap();
    /// array.write_detached(start, Box::new(values), &WriteOptions::default(), done)?;
    /// receiver.recv()??;
    /// assert_eq!(array.read(..)?.into_tensor()?.as_slice::<i16>()?, [5, 6, 5, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_detached(
        &self,
        selection: Selection,
        values: Box<dyn ValueSource>,
        options: &WriteOptions<'_>,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<Detached> {
        self.check(&selection)?;
        let array = self.clone();
        if self.store().remote().is_none() {
            let (durability, write_empty_chunks) = (options.durability, options.write_empty_chunks);
            let work = move |cancel: &dyn Fn() -> bool| {
                let options =
                    WriteOptions::default().durability(durability).write_empty_chunks(write_empty_chunks);
                let values = values.values().map_err(|error| array.place(error))?;
                array.write_with(&selection, &values, &options.cancel(cancel))
            };
            return Detached::spawn(work, done).map_err(|error| self.place(error));
        }
        let job = write_detached(array, selection, values, options, done);
        job.map(Detached).map_err(|error| self.place(error))
    }
}
