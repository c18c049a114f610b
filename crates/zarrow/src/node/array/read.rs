//! Reading an array: into fresh memory, into the caller's, or mapped from its files.

use crate::codec::{Layout, Swap};
use crate::decode::reader::Reader;
use crate::error::{ErrorKind, Result};
use crate::node::array::Array;
use crate::node::array::map::map;
use crate::place::chunk_sink::ChunkSink;
use crate::place::sink::Sink;
use crate::place::strided::Strided;
use crate::read::column_major::read_column_major;
use crate::read::options::ReadOptions;
use crate::read::read;
use crate::selection::{AxisSelection, IntoSelection, Selection};
use std::any::TypeId;
use zarrow_array::{DecodedArray, Element, Error as ArrayError, SharedTensor, shape};

impl Array {
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
    pub fn read<'s>(&self, selection: impl IntoSelection<'s>) -> Result<DecodedArray> {
        self.read_with(selection, &ReadOptions::default())
    }

    /// As [`read`](Array::read), with options: which values mark missing elements, and whether to stop.
    ///
    /// # Errors
    /// As [`read`](Array::read); [`ErrorKind::Interrupted`].
    pub fn read_with<'s>(
        &self,
        selection: impl IntoSelection<'s>,
        options: &ReadOptions<'_>,
    ) -> Result<DecodedArray> {
        let selection = self.selection(selection)?;
        let reader = Reader { missing: options.missing, ..self.reader() };
        read(reader, &selection, options.interrupted()).map_err(|error| self.place(error))
    }

    /// Reads `selection` into fresh memory in Fortran order: neighbours on the first axis are neighbours in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for arrays that are not tensors, and if `options` name missing values; and as
    /// [`read_with`](Array::read_with).
    ///
    /// ```
    /// # use zarrow::{ArrayBuilder, Existing, Group, ReadOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let metadata = ArrayBuilder::new([2, 3], zarrow::Number::UInt8).build()?;
    /// let array = Group::create(folder.path())?.create_array("x", metadata, Existing::Refuse)?;
    /// let tensor = array.read_column_major(.., &ReadOptions::default())?;
    /// assert_eq!((tensor.shape(), tensor.strides()), (&[2, 3][..], &[1, 2][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_column_major<'s>(
        &self,
        selection: impl IntoSelection<'s>,
        options: &ReadOptions<'_>,
    ) -> Result<SharedTensor> {
        let selection = self.selection(selection)?;
        self.tensor_item_size()?;
        let interrupted = options.strided().map_err(|error| self.place(error))?;
        read_column_major(self.reader(), &selection, self.data_type(), interrupted)
            .map_err(|error| self.place(error))
    }

    /// Whether the elements of each chunk are stored in Fortran order, by a transpose of all axes.
    #[must_use]
    pub fn is_stored_column_major(&self) -> bool {
        let order = self.chain().order.as_ref();
        order.is_some_and(|order| order.iter().rev().copied().eq(0..order.len()))
    }

    /// Reads `selection` into the caller's memory in C order. `T` is the array's type, or bytes, which hold elements
    /// of any fixed size.
    ///
    /// On an error some of the elements may have been written.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`] if the length of `out` differs from the selection's; [`ErrorKind::Array`] for elements
    /// of another type; [`ErrorKind::Unsupported`] for arrays that are not tensors; and as
    /// [`read_with`](Array::read_with).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, store::MemoryStore};
    /// # let metadata = ArrayBuilder::new([4, 3], zarrow::Number::Int16).build()?;
    /// # let store = Arc::new(MemoryStore::default());
    /// # let array = zarrow::create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// let mut row = [7i16; 3];
    /// array.read_into(0, &mut row)?;
    /// assert_eq!(row, [0; 3]);
    /// assert!(array.read_into(0, &mut [0f32; 3]).is_err());
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn read_into<'s, T: Element>(&self, selection: impl IntoSelection<'s>, out: &mut [T]) -> Result<()> {
        let selection = self.selection(selection)?;
        let item_size = self.tensor_item_size()?;
        let is_own = |number| T::NUMBERS.contains(&number);
        if TypeId::of::<T>() != TypeId::of::<u8>() && !self.data_type().as_number().is_some_and(is_own) {
            let text = format!(
                "cannot read elements of type {} into memory of type {}",
                self.data_type(),
                std::any::type_name::<T>()
            );
            return Err(self.place(ArrayError::BadView(text).into()));
        }
        let shape = selection.shape();
        let expected = shape::nbytes(&shape, item_size).map_err(|error| self.place(error.into()))?;
        let nbytes = size_of_val(out);
        if nbytes != expected {
            let (expected, actual) = (expected as u64, nbytes as u64);
            return Err(self.place(ErrorKind::WrongSize { expected, actual }.into()));
        }
        let strides = crate::plan::output_strides::c_strides(&shape, item_size).to_vec();
        let out = Strided::new(out.as_mut_ptr().cast(), nbytes, 0, strides);
        // SAFETY: the slice is exclusive for the call, C strides give each position its own place, and every bit
        // pattern is an element.
        unsafe { self.read_strided(&selection, out, &ReadOptions::default()) }
    }

    /// Reads `selection` into the caller's memory, with the strides of `out`.
    ///
    /// On an error some of the elements may have been written; nothing outside of `out`'s elements ever is.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for arrays that are not tensors, and if `options` name missing values; and as
    /// [`read_with`](Array::read_with).
    ///
    /// # Safety
    /// `out`'s memory may be written during the call, and its strides (one for each axis of the selection's shape)
    /// give different positions different addresses. No other Rust code reads or writes it during the call; if other
    /// libraries do, they read a mixture, and the memory's final content is one as well.
    pub unsafe fn read_strided(
        &self,
        selection: &Selection,
        out: Strided,
        options: &ReadOptions<'_>,
    ) -> Result<()> {
        self.check(selection)?;
        let item_size = self.tensor_item_size()?;
        let interrupted = options.strided().map_err(|error| self.place(error))?;
        // SAFETY: the caller's contract.
        let sink = Sink::Fixed(unsafe { out.destination(selection, item_size) });
        self.reader().read_into(selection, &sink, interrupted).map_err(|error| self.place(error))
    }

    /// Passes the stored chunks of `selection` to `sink`, each once, with its selected part: for memory that this
    /// engine does not write, such as a device's. Each stored byte is copied once, to the sink's memory.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for arrays and selections that [`hands_over`](Array::hands_over) refuses, and if
    /// `options` name missing values; the sink's errors; and as [`read_with`](Array::read_with).
    pub fn read_stored(
        &self,
        selection: &Selection,
        sink: &dyn ChunkSink,
        options: &ReadOptions<'_>,
    ) -> Result<()> {
        self.check(selection)?;
        let interrupted = options.strided().map_err(|error| self.place(error))?;
        if !self.hands_over(selection) {
            let text = "reading stored chunks of this array or selection".to_owned();
            return Err(self.place(ErrorKind::Unsupported(text).into()));
        }
        let sink = Sink::Chunks(sink);
        self.reader().read_into(selection, &sink, interrupted).map_err(|error| self.place(error))
    }

    /// Whether [`read_stored`](Array::read_stored) can read `selection`: the elements have a fixed size and are
    /// contiguous in their decompressed chunks, and the positions on each axis are evenly spaced.
    #[must_use]
    pub fn hands_over(&self, selection: &Selection) -> bool {
        let mut chain = self.chain();
        while let Layout::InnerChunks(sharding) = chain.layout() {
            chain = &sharding.inner;
        }
        let is_plain = matches!(chain.layout(), Layout::Elements(swap) if !matches!(swap, Swap::Fields(_)));
        let is_even = |axis: &AxisSelection| matches!(axis, AxisSelection::Even { .. });
        is_plain && chain.has_fixed_elements() && selection.axes().iter().all(is_even)
    }

    /// Maps `selection` from its files if they hold plain elements in the layout of a tensor. Otherwise returns
    /// `None`, and the caller has to [`read`](Array::read).
    ///
    /// The tensor is writable, and changes to it stay in this process. An in-place write by another process shows
    /// through, and if a mapped file is truncated, the next access kills this process: map only files that do not
    /// change. Nothing is copied; a page is loaded on first access.
    ///
    /// # Errors
    /// As [`read`](Array::read).
    pub fn map(&self, selection: &Selection) -> Result<Option<SharedTensor>> {
        self.check(selection)?;
        map(self, selection).map_err(|error| self.place(error))
    }
}
