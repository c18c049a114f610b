//! One read of an array: the selection, the options, and the target.

use crate::decode::reader::Reader;
use crate::error::{ErrorKind, Result};
use crate::metadata::missing_values::MissingValues;
use crate::node::array::Array;
use crate::node::array::field::FieldSelection;
use crate::place::caller_memory::Strided;
use crate::place::chunk_sink::ChunkSink;
use crate::plan::output_strides::c_strides;
use crate::pool::{Cancel, NEVER};
use crate::read::item::Item;
use crate::read::map::map;
use crate::read::output_memory::{ColumnMajor, NewMemory, ReadTarget, Stored, plain_item_size};
use crate::read::read;
use crate::selection::{IntoSelection, Selection};
use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use zarrow_array::{DataType, DecodedArray, Element, Error as ArrayError, SharedTensor, shape};

/// One read of an array, from [`Array::request`].
///
/// Its methods set what to read of each element ([`field`](ReadRequest::field)), which values mark missing elements
/// ([`missing`](ReadRequest::missing)), when to stop ([`cancel`](ReadRequest::cancel)), and the target. The type `T` is
/// the target, new memory by default. [`read`](ReadRequest::read) waits for the result, and
/// [`detach`](ReadRequest::detach) does not; [`read_many`](crate::read_many) and [`read_each`](crate::read_each) take
/// several requests.
///
/// ```
/// # use zarrow::{ArrayBuilder, Existing, Group};
/// # let folder = tempfile::tempdir()?;
/// # let metadata = ArrayBuilder::new([48, 6], zarrow::Number::UInt8).build()?;
/// # let array = Group::create(folder.path())?.create_array("x", metadata, Existing::Refuse)?;
/// use std::time::{Duration, Instant};
/// let (start, limit) = (Instant::now(), Duration::from_secs(60));
/// let is_late = || start.elapsed() > limit;
/// let days = array.request(0..24)?.cancel(&is_late).read()?;
/// assert_eq!(days.shape(), [24, 6]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a request reads nothing until `read` or `detach` is called"]
pub struct ReadRequest<'a, T = NewMemory> {
    pub(super) array: &'a Array,
    pub(super) selection: Cow<'a, Selection>,
    pub(super) field: Option<&'a FieldSelection>,
    pub(super) missing: Option<&'a MissingValues>,
    cancel: Option<Cancel<'a>>,
    pub(super) target: T,
}

impl Array {
    /// Returns a request to read `selection`, with default options.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a selection that does not fit the array's shape.
    pub fn request<'a>(&'a self, selection: impl IntoSelection<'a>) -> Result<ReadRequest<'a>> {
        let selection = self.selection(selection)?;
        Ok(ReadRequest {
            array: self,
            selection,
            field: None,
            missing: None,
            cancel: None,
            target: NewMemory,
        })
    }

    /// Reads `selection` into fresh memory, aligned to 64 bytes, on as many threads as [`crate::num_threads`] says.
    ///
    /// If writers replace values whole, all elements read from one chunk, or from one shard, are of the same version.
    /// Different chunks may be of different times: a read waits for no writer.
    ///
    /// If a chunk is missing, the read checks once that the array still exists, because its chunks may have been
    /// erased with it.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a selection that does not fit the array's shape; any kind for chunks that cannot be
    /// read or decoded, with store, array, chunk and codec; [`ErrorKind::NotFound`] and [`ErrorKind::Stale`] if a
    /// chunk is missing or cannot be decoded, and the array was erased, or replaced by an array with different chunks.
    ///
    /// ```
    /// # use zarrow::{ArrayBuilder, Existing, Group};
    /// # let folder = tempfile::tempdir()?;
    /// # let metadata = ArrayBuilder::new([48, 6, 8], zarrow::Number::Float32).build()?;
    /// # Group::create(folder.path())?.create_array("temperature", metadata, Existing::Refuse)?;
    /// # let group = Group::open(folder.path())?;
    /// let array = group.array("temperature")?;
    /// assert_eq!(array.read((0..24, .., 5))?.shape(), [24, 6]); // ranges and integers, one an axis
    /// assert_eq!(array.read(-1)?.shape(), [6, 8]);
    /// let everything = array.read(..)?.into_tensor()?;
    /// assert_eq!(everything.as_slice::<f32>()?.len(), 48 * 6 * 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read<'a>(&'a self, selection: impl IntoSelection<'a>) -> Result<DecodedArray> {
        self.request(selection)?.read()
    }

    /// Whether the elements of each chunk are stored in Fortran order, by a transpose of all axes.
    #[must_use]
    pub fn is_stored_column_major(&self) -> bool {
        let order = self.chain().order.as_ref();
        order.is_some_and(|order| order.iter().rev().copied().eq(0..order.len()))
    }

    /// Whether [`ReadRequest::stored`] can read `selection`: the elements have a fixed size and are contiguous in their
    /// decompressed chunks, and the positions on each axis are evenly spaced.
    #[must_use]
    pub fn hands_over(&self, selection: &Selection) -> bool {
        Item { array: 0, reader: self.reader(), selection }.hands_over()
    }
}

impl<'a> ReadRequest<'a> {
    /// Sets the values that mark missing elements. The result has a masked layout; elements that are missing by their
    /// type stay missing. Only for new memory in C order.
    pub fn missing(self, missing: &'a MissingValues) -> Self {
        ReadRequest { missing: Some(missing), ..self }
    }

    /// Reads into new memory in Fortran order: neighbours on the first axis are neighbours in memory. Only for tensors.
    ///
    /// ```
    /// # use zarrow::{ArrayBuilder, Existing, Group};
    /// # let folder = tempfile::tempdir()?;
    /// # let metadata = ArrayBuilder::new([2, 3], zarrow::Number::UInt8).build()?;
    /// let array = Group::create(folder.path())?.create_array("x", metadata, Existing::Refuse)?;
    /// let tensor = array.request(..)?.column_major().read()?;
    /// assert_eq!((tensor.shape(), tensor.strides()), (&[2, 3][..], &[1, 2][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column_major(self) -> ReadRequest<'a, ColumnMajor> {
        self.to(ColumnMajor)
    }

    /// Reads into the caller's memory, with the strides of `out`. Only for tensors.
    ///
    /// On an error some of the elements may have been written; nothing outside of `out`'s elements ever is.
    ///
    /// # Safety
    /// `out`'s memory may be written during each read of the request, and its strides (one for each axis of the
    /// selection's shape) give different positions different addresses. No other Rust code reads or writes it during
    /// a read; if other libraries do, they read a mixture, and the memory's final content is one as well. A detached
    /// read lasts until `done` is called or dropped.
    pub unsafe fn out(self, out: Strided) -> ReadRequest<'a, Strided> {
        self.to(out)
    }

    /// Passes the stored chunks to `sink`, each once, with its selected part: for memory that this engine does not
    /// write, such as a device's. Each stored byte is copied once, to the sink's memory. Only for arrays and
    /// selections that [`Array::hands_over`] accepts.
    pub fn stored(self, sink: &'a dyn ChunkSink) -> ReadRequest<'a, Stored<'a>> {
        self.to(Stored(sink))
    }

    /// Reads into the caller's memory in C order. `E` is the type of the elements, or bytes, which hold elements of any
    /// fixed size.
    ///
    /// On an error some of the elements may have been written.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`] if the length of `out` differs from the selection's; [`ErrorKind::Array`] for elements
    /// of another type; and as [`read`](ReadRequest::read).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, store::MemoryStore};
    /// # let metadata = ArrayBuilder::new([4, 3], zarrow::Number::Int16).build()?;
    /// # let store = Arc::new(MemoryStore::default());
    /// # let array = zarrow::create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// let mut row = [7i16; 3];
    /// array.request(0)?.read_into(&mut row)?;
    /// assert_eq!(row, [0; 3]);
    /// assert!(array.request(0)?.read_into(&mut [0f32; 3]).is_err());
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn read_into<E: Element>(self, out: &mut [E]) -> Result<()> {
        let array = self.array;
        let item_size =
            self.item().and_then(|item| plain_item_size(&item)).map_err(|error| array.place(error))?;
        let data_type = self.data_type();
        let is_own = |number| E::NUMBERS.contains(&number);
        if TypeId::of::<E>() != TypeId::of::<u8>() && !data_type.as_number().is_some_and(is_own) {
            let memory = std::any::type_name::<E>();
            let text = format!("cannot read elements of type {data_type} into memory of type {memory}");
            return Err(array.place(ArrayError::BadView(text).into()));
        }
        let shape = self.selection.shape();
        let expected = shape::nbytes(&shape, item_size).map_err(|error| array.place(error.into()))?;
        let nbytes = size_of_val(out);
        if nbytes != expected {
            let (expected, actual) = (expected as u64, nbytes as u64);
            return Err(array.place(ErrorKind::WrongSize { expected, actual }.into()));
        }
        let strides = c_strides(&shape, item_size).to_vec();
        let out = Strided::new(out.as_mut_ptr().cast(), nbytes, 0, strides);
        // SAFETY: the slice is exclusive for the call, C strides give each position its own place, and every bit
        // pattern is an element.
        unsafe { self.out(out) }.read()
    }

    /// Maps the selection from its files if they hold plain elements in the layout of a tensor. Otherwise returns
    /// `None`, and the caller has to [`read`](ReadRequest::read).
    ///
    /// The tensor is writable, and changes to it stay in this process. An in-place write by another process shows
    /// through, and if a mapped file is truncated, the next access kills this process: map only files that do not
    /// change. Nothing is copied; a page is loaded on first access.
    ///
    /// # Errors
    /// As [`Array::read`].
    pub fn map(&self) -> Result<Option<SharedTensor>> {
        if self.field.is_some() || self.missing.is_some() {
            return Ok(None);
        }
        self.item().and_then(|item| map(&item)).map_err(|error| self.array.place(error))
    }

    /// Returns the same request, which borrows the selection.
    pub fn by_ref(&self) -> ReadRequest<'_> {
        let selection = Cow::Borrowed(&*self.selection);
        let ReadRequest { array, field, missing, cancel, .. } = *self;
        ReadRequest { array, selection, field, missing, cancel, target: NewMemory }
    }

    /// Replaces the target.
    fn to<T>(self, target: T) -> ReadRequest<'a, T> {
        let ReadRequest { array, selection, field, missing, cancel, target: NewMemory } = self;
        ReadRequest { array, selection, field, missing, cancel, target }
    }
}

impl<'a, T> ReadRequest<'a, T> {
    /// Reads only `field` of each element; it must be a field of this array.
    pub fn field(self, field: &'a FieldSelection) -> Self {
        ReadRequest { field: Some(field), ..self }
    }

    /// Sets the function that says whether to stop: called from time to time, on the calling thread. If it returns true,
    /// the read ends with [`ErrorKind::Interrupted`].
    pub fn cancel(self, cancel: &'a dyn Fn() -> bool) -> Self {
        ReadRequest { cancel: Some(cancel), ..self }
    }

    /// Returns the array.
    #[must_use]
    pub fn array(&self) -> &'a Array {
        self.array
    }

    /// Returns the selection.
    #[must_use]
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns the field to read, if only one is read.
    #[must_use]
    pub fn selected_field(&self) -> Option<&'a FieldSelection> {
        self.field
    }

    /// Returns the values that mark missing elements, if any.
    #[must_use]
    pub fn missing_values(&self) -> Option<&'a MissingValues> {
        self.missing
    }

    /// Returns the type of the elements to read: that of the field, if only one is read.
    #[must_use]
    pub fn data_type(&self) -> &'a DataType {
        self.field.map_or_else(|| self.array.data_type(), FieldSelection::data_type)
    }

    /// Whether the read was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel())
    }

    pub(crate) fn cancel_function(&self) -> Option<Cancel<'a>> {
        self.cancel
    }

    pub(crate) fn target(&self) -> &T {
        &self.target
    }

    /// Returns the request as the engine reads it.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a field of another array.
    pub(crate) fn item(&self) -> Result<Item<'_>> {
        item(self.array, &self.selection, self.field, self.missing)
    }
}

impl<T: ReadTarget> ReadRequest<'_, T> {
    /// Reads to the target.
    ///
    /// # Errors
    /// As [`Array::read`]; [`ErrorKind::Interrupted`]; [`ErrorKind::Index`] for a field of another array;
    /// [`ErrorKind::Unsupported`] for elements, selections or missing values that the target does not take, and the
    /// errors of a sink.
    pub fn read(&self) -> Result<T::Output> {
        let cancel = self.cancel.unwrap_or(NEVER);
        self.item()
            .and_then(|item| read(&item, &self.target, cancel))
            .map_err(|error| self.array.place(error))
    }
}

/// Returns an item of the engine.
///
/// # Errors
/// [`ErrorKind::Index`] for a field of another array.
pub(super) fn item<'a>(
    array: &'a Array,
    selection: &'a Selection,
    field: Option<&'a FieldSelection>,
    missing: Option<&'a MissingValues>,
) -> Result<Item<'a>> {
    let mut reader = Reader { missing, ..array.reader() };
    if let Some(field) = field {
        reader.field = Some(field.place_in(array)?);
        reader.metadata = field.metadata();
    }
    Ok(Item { array: 0, reader, selection })
}

impl<T: fmt::Debug> fmt::Debug for ReadRequest<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReadRequest")
            .field("array", self.array)
            .field("selection", &self.selection)
            .field("field", &self.field.map(FieldSelection::data_type))
            .field("missing", &self.missing)
            .field("cancel", &self.cancel.map(|_| "Fn() -> bool"))
            .field("target", &self.target)
            .finish()
    }
}
