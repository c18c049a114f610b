//! The stream of a table: reads its batches one by one.
//!
//! 1. A batch is the rows up to the next multiple of the table's batch length.
//! 2. All arrays of all columns are read as one list of tasks.
//! 3. Each column converts its arrays to Arrow memory; a batch is a struct of the columns.
//! 4. After an error the stream is over: every later call gets the same error.

use crate::error::{Error, ErrorKind, Result};
use crate::node::array::Array;
use crate::node::batch::read_each;
use crate::node::table::arrow::table::Table;
use crate::selection::{Index, Selection};
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::allocation;
use zarrow_array::export::arrow_abi::{ArrayNode, ArrowArray, ArrowSchema};
use zarrow_array::export::arrow_stream::{ArrowArrayStream, BatchSource, StreamError};

/// Position in the stream of a table.
pub(super) struct Batches {
    table: Arc<Table>,
    next: u64,
    failed: Option<StreamError>,
    interrupted: Box<dyn Fn() -> bool + Send>,
}

impl Batches {
    /// Returns the batches of `table`, starting at its first row.
    pub(super) fn new(table: Arc<Table>, interrupted: Box<dyn Fn() -> bool + Send>) -> Batches {
        Batches { next: table.rows().start, table, failed: None, interrupted }
    }

    /// Returns the rows of the next batch (step 1).
    fn rows(&self) -> Option<Range<u64>> {
        let (end, length) = (self.table.rows().end, self.table.batch_rows().get());
        let boundary = (self.next / length).saturating_add(1).saturating_mul(length);
        (self.next < end).then(|| self.next..boundary.min(end))
    }

    fn read(&self, rows: &Range<u64>) -> Result<ArrayNode> {
        let table = &*self.table;
        let columns =
            table.columns().flat_map(|(column, _)| column.arrays().map(move |array| (column, array)));
        let requests = columns.map(|(column, array)| {
            let request = array.request(select(array, rows)?)?.cancel(&*self.interrupted);
            Ok::<_, Error>(match column.missing() {
                Some(missing) => request.missing(missing),
                None => request,
            })
        });
        let mut decoded = read_each(&allocation::try_collected(requests)?)?.into_iter();
        let columns = table.columns().map(|(column, form)| {
            let own = allocation::collected(decoded.by_ref().take(column.arrays().count()))?;
            column.batch(own, *form, &*self.interrupted)
        });
        let mut children = allocation::try_collected(columns)?;
        if !table.is_struct() {
            return Ok(children.pop().unwrap_or_default());
        }
        let length = (rows.end - rows.start) as i64;
        Ok(ArrayNode { length, buffers: vec![std::ptr::null()], children, ..ArrayNode::default() })
    }
}

/// Selects `rows` along the first axis.
fn select(array: &Array, rows: &Range<u64>) -> Result<Selection> {
    let bound = |row: u64| i64::try_from(row).ok();
    let rows = Index::Slice { start: bound(rows.start), stop: bound(rows.end), step: None };
    Selection::new(array.shape(), &[rows])
}

impl Table {
    /// Returns the batches, each read on request. `interrupted` is called from time to time during a read, on the
    /// consumer's thread; if it returns true, the stream ends with an error.
    #[must_use]
    pub fn stream(self: Arc<Self>, interrupted: Box<dyn Fn() -> bool + Send>) -> ArrowArrayStream {
        ArrowArrayStream::new(Box::new(self.batches(interrupted)))
    }

    /// As [`stream`](Table::stream), for a caller that does its own work around each batch.
    #[must_use]
    pub fn batches(self: Arc<Self>, interrupted: Box<dyn Fn() -> bool + Send>) -> impl BatchSource + use<> {
        Batches::new(self, interrupted)
    }
}

impl BatchSource for Batches {
    fn schema(&self) -> Result<ArrowSchema, StreamError> {
        Ok(self.table.schema().map_err(|error| stream_error(&error))?.into_c())
    }

    fn next_batch(&mut self) -> Result<Option<ArrowArray>, StreamError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(rows) = self.rows() else { return Ok(None) };
        self.next = rows.end;
        let batch = self.read(&rows).map_err(|error| self.failed.insert(stream_error(&error)).clone())?;
        Ok(Some(batch.into_c()))
    }
}

/// Converts an error to one of the stream interface.
fn stream_error(error: &Error) -> StreamError {
    let code = match error.kind() {
        ErrorKind::Array(zarrow_array::Error::OutOfMemory { .. }) => libc::ENOMEM,
        ErrorKind::Unsupported(_) | ErrorKind::Array(zarrow_array::Error::NoSuchType { .. }) => libc::ENOSYS,
        ErrorKind::Interrupted => libc::EINTR,
        _ => libc::EIO,
    };
    StreamError { code, message: error.to_string() }
}
