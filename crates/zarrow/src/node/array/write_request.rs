//! One write to an array: the selection and the options.

use crate::error::{Error, ErrorKind, Result};
use crate::node::array::Array;
use crate::node::array::field::FieldSelection;
use crate::selection::{IntoSelection, Selection};
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use std::borrow::Cow;

/// One write to an array, from [`Array::write_request`].
///
/// ```
/// # use zarrow::{ArrayBuilder, Existing, Group};
/// # let folder = tempfile::tempdir()?;
/// # let metadata = ArrayBuilder::new([48, 6], zarrow::Number::UInt8).build()?;
/// # let array = Group::create(folder.path())?.create_array("x", metadata, Existing::Refuse)?;
/// use zarrow::{WriteOptions, store::Durability};
/// let options = WriteOptions::default().durability(Durability::Full);
/// array.write_request(0)?.options(&options).write(&[7u8; 6])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a request writes nothing until `write` or `detach` is called"]
pub struct WriteRequest<'a> {
    pub(super) array: &'a Array,
    pub(super) selection: Cow<'a, Selection>,
    pub(super) field: Option<&'a FieldSelection>,
    pub(super) options: WriteOptions<'a>,
}

impl Array {
    /// Returns a request to write to `selection`, with the options set at opening.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a selection that does not fit the array's shape.
    pub fn write_request<'a>(&'a self, selection: impl IntoSelection<'a>) -> Result<WriteRequest<'a>> {
        let (selection, options) = (self.selection(selection)?, self.write_options());
        Ok(WriteRequest { array: self, selection, field: None, options })
    }

    /// Writes `values` to `selection`, broadcast to its shape by NumPy's rules, on as many threads as
    /// [`num_threads`](crate::num_threads) says.
    ///
    /// Chunks are encoded straight from the values' memory; at most one chunk per thread is copied. Each chunk is
    /// written whole or not at all, even if this process is killed. If the selection covers only part of a chunk, the
    /// rest of the chunk is kept: writers to the same chunk wait for each other by a lock, also across processes.
    ///
    /// `values` may be a slice, a [`Tensor`](zarrow_array::Tensor), an array of `ndarray` in any order, or any
    /// [`Values`]. The options of the opening set how durable the data are when the call returns
    /// ([`durability`](Array::durability)).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the array was erased since, [`ErrorKind::Stale`] if it was replaced by an array with
    /// different chunks, or made smaller than the selection. If that happened before the call, the error comes before
    /// the first chunk is written, else after the last one. [`ErrorKind::Shape`] if values do not fit the selection;
    /// [`ErrorKind::Index`] for a selection of another shape; [`ErrorKind::Unsupported`] for values of another type;
    /// [`ErrorKind::ReadOnly`]; any kind for chunks that cannot be encoded or written, with store, array, chunk and
    /// codec. After such an error some chunks may be new.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{Values, store::{MemoryStore, Store}};
    /// # let metadata = br#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16",
    /// #   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    /// #   "chunk_key_encoding": {"name": "default"}, "fill_value": 7,
    /// #   "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}"#;
    /// let store = Arc::new(MemoryStore::new([("zarr.json", metadata.to_vec())])?);
    /// let array = zarrow::open(store.clone(), "")?.into_array()?;
    /// array.write(.., &[1i16, 2, 3, 4])?;
    /// assert_eq!(store.get("c/1", 4)?, Some(vec![3, 0, 4, 0]));
    /// array.write(1.., Values::scalar(&5i16))?;
    /// assert_eq!(array.read(..)?.into_tensor()?.as_slice::<i16>()?, [1, 5, 5, 5]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn write<'a, 'v, V: TryInto<Values<'v>>>(
        &'a self,
        selection: impl IntoSelection<'a>,
        values: V,
    ) -> Result<()>
    where
        Error: From<V::Error>,
    {
        self.write_request(selection)?.write(values)
    }
}

impl<'a> WriteRequest<'a> {
    /// Writes only `field` of each element, and leaves the other fields unchanged; it must be a field of this array.
    pub fn field(self, field: &'a FieldSelection) -> Self {
        WriteRequest { field: Some(field), ..self }
    }

    /// Sets the options: the durability, whether chunks of the fill value are stored, and whether to stop.
    pub fn options(self, options: &WriteOptions<'a>) -> Self {
        WriteRequest { options: *options, ..self }
    }

    /// Writes `values`, as described at [`Array::write`].
    ///
    /// # Errors
    /// As [`Array::write`]; [`ErrorKind::Interrupted`]; [`ErrorKind::Index`] for a field of another array;
    /// [`ErrorKind::Unsupported`] for several fields unless they are all fields, and for a field of elements that may
    /// be missing.
    pub fn write<'v, V: TryInto<Values<'v>>>(&self, values: V) -> Result<()>
    where
        Error: From<V::Error>,
    {
        let WriteRequest { array, selection, field, options } = self;
        let write = || {
            let values = values.try_into()?;
            array.write_stored(selection, options, |stored, guard| {
                check_values(array, *field, &values)?;
                let place = field.map(|field| field.place_in(array)).transpose()?;
                stored.put(selection, place, &values, guard, options, false)
            })
        };
        write().map_err(|error| array.place(error))
    }
}

/// Refuses values that do not fit the elements, or the field, and fields that cannot be written.
pub(super) fn check_values(array: &Array, field: Option<&FieldSelection>, values: &Values<'_>) -> Result<()> {
    let Some(field) = field else { return array.check_values(values) };
    field.check_writable()?;
    if values.dtype() != field.data_type() || values.mask_depth() > 0 {
        let text = format!("writing {} to a field of {}", values.dtype(), field.data_type());
        return Err(ErrorKind::Unsupported(text).into());
    }
    Ok(())
}
