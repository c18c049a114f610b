//! Reads and writes an array without blocking, for event loops.

use crate::error::Result;
use crate::node::array::detached_read::{Owned, read_detached};
use crate::node::array::detached_write::{OwnedWrite, ValueSource, write_detached};
use crate::node::array::request::ReadRequest;
use crate::node::array::write_request::WriteRequest;
use crate::pool;
use crate::pool::OpenJob;
use crate::read::output_memory::ReadTarget;
use crate::read::read;
use std::fmt;
use std::sync::Arc;

/// Work in progress on the engine's own threads.
///
/// Dropping it does not stop the work.
#[derive(Clone)]
pub struct Detached(OpenJob);

impl Detached {
    pub(crate) fn new(job: OpenJob) -> Detached {
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

impl<T: ReadTarget + Send + Sync + 'static> ReadRequest<'_, T> {
    /// Reads on the engine's own threads: returns at once, and calls `done` on one of them once nothing writes to the
    /// target any more.
    ///
    /// If the store's requests complete asynchronously, a read holds no thread while it waits, so that thousands can
    /// run concurrently. [`Detached::cancel`] stops it; the function set by [`cancel`](ReadRequest::cancel) is ignored.
    ///
    /// # Errors
    /// As [`read`](ReadRequest::read) for errors known at once; then `done` is not called.
    ///
    /// ```
    /// # use std::sync::{Arc, mpsc};
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, store::MemoryStore};
    /// # let metadata = ArrayBuilder::new([4, 3], zarrow::Number::Int16).build()?;
    /// # let store = Arc::new(MemoryStore::default());
    /// # let array = zarrow::create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// let (sender, receiver) = mpsc::channel();
    /// array.request(..)?.detach(move |decoded| sender.send(decoded).unwrap())?;
    /// assert_eq!(receiver.recv()??.shape(), [4, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detach(self, done: impl FnOnce(Result<T::Output>) + Send + 'static) -> Result<Detached> {
        let array = self.array;
        let detach = || {
            self.target.as_target().check(&self.item()?)?;
            let (field, missing) = (self.field.cloned(), self.missing.cloned());
            let (array, selection) = (array.clone(), self.selection.into_owned());
            let owned = Owned { array, selection, field, missing, target: self.target };
            if owned.array.store().remote().is_some() {
                return read_detached(owned, done).map(Detached);
            }
            let work = move |cancel: &dyn Fn() -> bool| {
                let read = owned.item().and_then(|item| read(&item, &owned.target, cancel));
                read.map_err(|error| owned.array.place(error))
            };
            Detached::spawn(work, done)
        };
        detach().map_err(|error| array.place(error))
    }
}

impl WriteRequest<'_> {
    /// Writes on the engine's own threads: returns at once, and calls `done` on one of them once nothing reads the
    /// values any more.
    ///
    /// If the store's requests complete asynchronously, a write holds no thread while it waits, so that thousands can
    /// run concurrently. [`Detached::cancel`] stops it; the `cancel` of the options is ignored.
    ///
    /// # Errors
    /// As [`write`](WriteRequest::write) for errors known at once; then `done` is not called.
    ///
    /// ```
    /// # use std::sync::{Arc, mpsc};
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, Selection, store::MemoryStore};
    /// # let metadata = ArrayBuilder::new([4], zarrow::Number::Int16).build()?;
    /// # let store = Arc::new(MemoryStore::default());
    /// # let array = zarrow::create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// # array.write(2.., &[5i16, 6])?;
    /// let (sender, receiver) = mpsc::channel();
    /// let (values, start) = (array.read(2..)?, Selection::new(&[4], &[(0..2).into()])?);
    /// let done = move |written| sender.send(written).unwrap();
    /// array.write_request(start)?.detach(Box::new(values), done)?;
    /// receiver.recv()??;
    /// assert_eq!(array.read(..)?.into_tensor()?.as_slice::<i16>()?, [5, 6, 5, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detach(
        self,
        values: Box<dyn ValueSource>,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<Detached> {
        let array = self.array;
        let write = OwnedWrite::new(self, Arc::from(values));
        if array.store().remote().is_none() {
            return Detached::spawn(move |cancel| write.write(cancel), done)
                .map_err(|error| array.place(error));
        }
        write_detached(Arc::new(write), done).map(Detached).map_err(|error| array.place(error))
    }
}
