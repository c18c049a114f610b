//! The class `Array`: a stored array, read by selections and by chunks.

use crate::export::{arrow, numpy};
use crate::index::advanced::Indexing;
use crate::layout::arrow_stream;
use crate::layout::arrow_stream::ArrowStream;
use crate::layout::decoded_array::wrap;
use crate::node::array_input::{self, ArrayInput, Writing};
use crate::node::current::Current;
use crate::node::indexer::Indexer;
use crate::node::origin::{self, Origin, Reduced};
use crate::node::reading::Reading;
use crate::node::{array_summary, attributes, creation_options, fill_value, missing};
use crate::python::argument::{argument, axis_to_append, known, refused};
use crate::python::error::{Attempt, Raise, indexing};
use crate::python::importing::import;
use crate::python::interrupt::{changing, interruptible, report, waiting};
use crate::python::json;
use crate::python::summary::Summary;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyCapsule, PyDict, PyEllipsis, PyRange, PySlice, PyTuple};
use serde_json::Value;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use zarrow::arrow::{Table, TableOptions};
use zarrow::metadata::CodecMetadata;
use zarrow::{AppendParts, WriteOptions};
use zarrow_array::shape::element_count;

/// Operators that an `Array` refuses: its elements must be read first.
//
// A separate class, so that `help(zarrow.Array)` does not begin with these operators.
#[pyclass(frozen, subclass, name = "_Unread", module = "zarrow")]
pub struct Unread;

#[doc = help!("Array")]
#[pyclass(frozen, extends = Unread, module = "zarrow")]
pub struct Array {
    array: Current<zarrow::Array>,
}

impl Array {
    /// Creates the Python object of `array`.
    pub fn create(py: Python<'_>, array: zarrow::Array) -> PyResult<Bound<'_, Array>> {
        Bound::new(py, (Array { array: Current::new(array) }, Unread))
    }

    /// Changes the array. Afterwards this object has the new state, even if the change failed halfway.
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut zarrow::Array, &dyn Fn() -> bool) -> zarrow::Result<T> + Send,
    ) -> PyResult<T> {
        let mut array = (*self.inner()).clone();
        let result = changing(py, |interrupt| change(&mut array, interrupt));
        self.array.set_later(array, zarrow::Array::revision);
        result
    }

    /// Returns the state, which indexers share.
    pub fn state(&self) -> &Current<zarrow::Array> {
        &self.array
    }

    /// Returns the current state of the array.
    pub fn inner(&self) -> Arc<zarrow::Array> {
        self.array.get()
    }

    fn summary(&self, py: Python<'_>) -> PyResult<Summary> {
        array_summary::summary(py, &self.inner())
    }
}

#[pymethods]
impl Array {
    #[doc = help!("Array.shape")]
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner().shape())
    }

    #[doc = help!("Array.dtype")]
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::dtype(py, self.inner().data_type())
    }

    #[doc = help!("Array.data_type")]
    #[getter]
    fn data_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::value(py, &zarrow::metadata::data_type_document(self.inner().data_type()))
    }

    #[doc = help!("Array.ndim")]
    #[getter]
    fn ndim(&self) -> usize {
        self.inner().shape().len()
    }

    #[doc = help!("Array.size")]
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        element_count(self.inner().shape()).raise(py)
    }

    #[doc = help!("Array.nbytes")]
    #[getter]
    fn nbytes(&self) -> Option<u64> {
        self.inner().nbytes()
    }

    #[doc = help!("Array.nbytes_stored")]
    fn nbytes_stored(&self, py: Python<'_>) -> PyResult<u64> {
        waiting(py, || self.inner().stored_nbytes())
    }

    #[doc = help!("Array.chunks")]
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner().chunk_shape().map(|shape| PyTuple::new(py, shape)).transpose()
    }

    #[doc = help!("Array.shards")]
    #[getter]
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner().shard_shape().map(|shape| PyTuple::new(py, shape)).transpose()
    }

    #[doc = help!("Array.attrs")]
    #[getter]
    fn attrs<'py>(slf: &Bound<'py, Array>) -> PyResult<Bound<'py, PyAny>> {
        attributes::live(slf.as_any())
    }

    #[setter(attrs)]
    fn set_attrs(slf: &Bound<'_, Self>, attributes: &Bound<'_, PyAny>) -> PyResult<()> {
        attributes::live(slf.as_any())?.call_method1("put", (attributes,)).map(drop)
    }

    /// Return this object's state of the attributes, as a new dict.
    fn _attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::from_attributes(py, &self.inner().metadata().attributes)
    }

    /// Change the attributes, and update this object's state of them.
    fn _change_attributes(&self, how: &str, attributes: &Bound<'_, PyDict>) -> PyResult<()> {
        let change = attributes::change(how, attributes)?;
        self.change(attributes.py(), |array, _| array.change_attributes(&change))
    }

    #[doc = help!("Array.dimension_names")]
    #[getter]
    fn dimension_names<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let array = self.inner();
        let names = array.metadata().dimension_names.as_ref();
        names.map(|names| PyTuple::new(py, names)).transpose()
    }

    /// Return whether the metadata define a fill value; version 2 may not.
    fn _has_fill_value(&self) -> bool {
        self.inner().metadata().has_fill_value
    }

    #[doc = help!("Array.fill_value")]
    #[getter]
    fn fill_value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.inner();
        let metadata = array.metadata();
        fill_value::to_python(py, &metadata.fill_value, metadata.data_type.without_optional())
    }

    #[doc = help!("Array.metadata")]
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut document = self.inner().metadata().v3_document().map_err(zarrow::Error::from).raise(py)?;
        document.insert("zarr_format".to_owned(), self.zarr_format().into());
        let document = json::object(py, &document)?;
        document.set_item("attributes", self._attributes(py)?)?;
        Ok(document)
    }

    #[doc = help!("Array.path")]
    #[getter]
    fn path(&self) -> String {
        self.inner().path().to_owned()
    }

    #[doc = help!("Array.name")]
    #[getter]
    fn name(&self) -> String {
        format!("/{}", self.inner().path())
    }

    #[doc = help!("Array.store")]
    #[getter]
    fn store(&self) -> String {
        self.inner().store().name().to_owned()
    }

    #[doc = help!("Array.zarr_format")]
    #[getter]
    fn zarr_format(&self) -> u8 {
        creation_options::version(self.inner().metadata().zarr_format)
    }

    /// Return the codecs as lists of metadata: filters, the serializer, compressors.
    fn _codec_stages<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let stages = self.inner().codec_stages().raise(py)?;
        let documents = |codecs: &[CodecMetadata]| codecs.iter().map(CodecMetadata::document).collect();
        let all =
            [documents(&stages.filters), documents(&[stages.serializer]), documents(&stages.compressors)];
        all.iter().map(|codecs: &Value| json::value(py, codecs)).collect()
    }

    /// Return whether elements are stored in order `F`.
    fn _is_column_major(&self) -> bool {
        self.inner().is_column_major()
    }

    /// Return whether the array is read-only.
    fn _is_read_only(&self) -> bool {
        self.inner().is_read_only()
    }

    /// Return this array with an empty cache of decoded chunks, in memory and, with a folder, in a file there.
    fn _with_cache<'py>(
        &self,
        py: Python<'py>,
        nbytes: usize,
        folder: Option<PathBuf>,
        disk_nbytes: u64,
    ) -> PyResult<Bound<'py, Array>> {
        let disk = folder.as_deref().map(|folder| (folder, disk_nbytes));
        let cached = py.detach(|| self.inner().with_cache(nbytes, disk)).raise(py)?;
        Array::create(py, cached)
    }

    /// Return how many chunks were found in the cache, how many were decoded, and how many were found on disk;
    /// zeros without a cache.
    fn _cache_counts(&self) -> (u64, u64, u64) {
        let counts = self.inner().cache_counts().unwrap_or_default();
        (counts.hits, counts.misses, counts.disk_hits)
    }

    /// Return the number of stored chunks, or shards.
    fn _stored_chunk_count(&self, py: Python<'_>) -> PyResult<u64> {
        waiting(py, || self.inner().stored_chunk_count())
    }

    /// Return the numbers of stored and of all inner chunks of the shard at a place of the grid; None if the array has
    /// no shards, or if the shard is not stored.
    fn _inner_chunks_of(&self, py: Python<'_>, place: Vec<u64>) -> PyResult<Option<(u64, u64)>> {
        let counted = interruptible(py, |interrupt| self.inner().inner_chunks_of(&place, interrupt))?;
        Ok(counted.map(|counted| (counted.stored.unwrap_or_default(), counted.count)))
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.array.read_by(index, Indexing::Plain, None, None)
    }

    #[doc = help!("Array.read")]
    #[pyo3(
        signature = (selection = None, *more, out = None, dtype = None, mmap = false, mask = None, decode = None,
                     order = "C", device = None, stream = None, decompress = None, progress = None, **unknown),
        text_signature = "($self, selection=None, *, out=None, dtype=None, mmap=False, mask=None, decode=None, \
                          order=\"C\", device=None, stream=None, decompress=None, progress=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn read<'py>(
        slf: &Bound<'py, Array>,
        selection: Option<Bound<'py, PyAny>>,
        more: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        dtype: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument)] mmap: bool,
        mask: Option<Bound<'py, PyAny>>,
        decode: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument)] order: &str,
        device: Option<Bound<'py, PyAny>>,
        stream: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument)] decompress: Option<&str>,
        progress: Option<Bound<'py, PyAny>>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        known(slf.py(), "Array.read", unknown)?;
        if !more.is_empty() {
            let text = "read takes one selection: type array.read((0, slice(1, 3))), or array[0, 1:3]";
            return Err(PyTypeError::new_err(text));
        }
        let options = Reading { out, dtype, mmap, mask, decode, order, device, stream, decompress, progress };
        options.read(slf.as_any(), &slf.get().array, selection)
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.array.write_by(index, value, Indexing::Plain, Writing::default())
    }

    /// Writes values at once: `write` without a report of its progress.
    #[pyo3(signature = (selection, value, casting, durability, write_empty_chunks, /))]
    fn _write(
        &self,
        selection: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument)] casting: &str,
        #[pyo3(from_py_with = argument)] durability: Option<&str>,
        #[pyo3(from_py_with = argument)] write_empty_chunks: bool,
    ) -> PyResult<()> {
        let options = Writing { durability, write_empty_chunks, casting };
        self.array.write_by(selection, value, Indexing::Plain, options)
    }

    #[doc = help!("Array.oindex")]
    #[getter]
    fn oindex(slf: &Bound<'_, Array>) -> Indexer {
        Indexer::new(slf.as_any(), slf.get().state(), Indexing::Orthogonal)
    }

    #[doc = help!("Array.vindex")]
    #[getter]
    fn vindex(slf: &Bound<'_, Array>) -> Indexer {
        Indexer::new(slf.as_any(), slf.get().state(), Indexing::Vectorized)
    }

    #[doc = help!("Array.blocks")]
    #[getter]
    fn blocks(slf: &Bound<'_, Array>) -> Indexer {
        Indexer::new(slf.as_any(), slf.get().state(), Indexing::Block)
    }

    #[doc = help!("Array.write_unit")]
    #[getter]
    fn write_unit<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner().write_unit().map(|shape| PyTuple::new(py, shape)).transpose()
    }

    #[doc = help!("Array.resize")]
    #[pyo3(signature = (shape = None, *more, **unknown), text_signature = "($self, shape)")]
    fn resize(
        &self,
        py: Python<'_>,
        shape: Option<&Bound<'_, PyAny>>,
        more: &Bound<'_, PyTuple>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        known(py, "Array.resize", unknown)?;
        let Some(shape) = shape else {
            return Err(PyTypeError::new_err("type array.resize(shape)"));
        };
        let shape = match more.is_empty() {
            true => shape,
            // As NumPy takes `resize(365, 100)`.
            false => &PyTuple::new(py, [shape])?.add(more)?.into_any(),
        };
        let extents = match shape.try_iter().attempt(py)? {
            Some(_) => shape.extract::<Vec<u64>>(),
            None => shape.extract::<u64>().map(|extent| vec![extent]),
        };
        let shape = extents.map_err(|error| match () {
            () if error.is_instance_of::<PyOverflowError>(py) => {
                PyValueError::new_err(format!("shape is {shape}, expected integers from 0 to 2^63 - 1"))
            }
            () if error.is_instance_of::<PyTypeError>(py) => {
                refused(shape, "a tuple of ints, or one int, as shape")
            }
            () => error,
        })?;
        self.change(py, |array, interrupt| {
            let options = WriteOptions::default().durability(array.durability()).cancel(interrupt);
            array.resize_with(&shape, &options)
        })
    }

    #[doc = help!("Array.append")]
    #[pyo3(
        signature = (value, axis = 0, *, progress = None, **unknown),
        text_signature = "($self, value, axis=0, *, progress=None)"
    )]
    fn append<'py>(
        slf: &Bound<'py, Array>,
        value: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = argument)] axis: isize,
        progress: Option<Bound<'py, PyAny>>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        known(py, "Array.append", unknown)?;
        if let Some(progress) = progress {
            let append = import(py, "zarrow.api.reported_writes")?.getattr("append")?;
            return append.call1((slf, value, axis, progress));
        }
        Ok(slf.get()._append(value, axis, None)?.into_any())
    }

    /// Appends like `append`; with `parts`, the size of a part in bytes and a function, part by part: the function is
    /// called after each part but the last, with the number of new rows that are written and of all.
    fn _append<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        axis: isize,
        parts: Option<(u64, Py<PyAny>)>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = value.py();
        let array = self.inner();
        let axis = axis_to_append(py, axis, array.shape().len())?;
        let input = ArrayInput::new(value, array.data_type(), array_input::CASTING, Some(array.metadata()))?;
        let shape = self.change(py, |array, interrupt| {
            // SAFETY: as for writing.
            let values = unsafe { input.values() }?;
            let options = WriteOptions::default().durability(array.durability()).cancel(interrupt);
            match &parts {
                None => array.append_with(&values, axis, &options)?,
                Some((nbytes, function)) => {
                    let report = |done, count| report(function, done, count);
                    array.append_in_parts(
                        &values,
                        axis,
                        &options,
                        &AppendParts { nbytes: *nbytes, report: &report },
                    )?
                }
            };
            Ok(array.shape().to_vec())
        })?;
        PyTuple::new(py, shape)
    }

    #[doc = help!("Array.refresh")]
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |array, _| array.refresh())
    }

    #[doc = help!("Array.retrieve_chunk")]
    fn retrieve_chunk<'py>(&self, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = indices.py();
        let indices = match indices.extract::<i64>().attempt(py)? {
            Some(index) => vec![index],
            None => argument::<Vec<i64>>(indices)?,
        };
        let place: Option<Vec<u64>> = indices.iter().map(|index| u64::try_from(*index).ok()).collect();
        let place =
            place.ok_or_else(|| indexing(py, format!("chunk {indices:?} is outside the chunk grid")))?;
        let array = self.inner();
        let chunk = array.chunk(&place).raise(py)?;
        wrap(py, interruptible(py, |interrupt| array.request(&chunk)?.cancel(interrupt).read())?)
    }

    #[doc = help!("Array.__array__")]
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        numpy::new_array(py, dtype, copy, || {
            numpy::module(py)?.call_method1(
                "asarray",
                (self.array.read_by(
                    &PyEllipsis::get(py).to_owned().into_any(),
                    Indexing::Plain,
                    None,
                    None,
                )?,),
            )
        })
    }

    #[doc = help!("Array.to_arrow")]
    #[pyo3(
        signature = (*, rows = None, layout = "tensor", bools = "bits", strings = "large", mask = None,
                     batch_rows = None, **unknown),
        text_signature = "($self, *, rows=None, layout=\"tensor\", bools=\"bits\", strings=\"large\", mask=None, \
                          batch_rows=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn to_arrow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument)] rows: Option<Bound<'_, PySlice>>,
        #[pyo3(from_py_with = argument)] layout: &str,
        #[pyo3(from_py_with = argument)] bools: &str,
        #[pyo3(from_py_with = argument)] strings: &str,
        #[pyo3(from_py_with = argument)] mask: Option<&str>,
        #[pyo3(from_py_with = argument)] batch_rows: Option<NonZeroU64>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ArrowStream> {
        known(py, "Array.to_arrow", unknown)?;
        let form = arrow::form(layout, bools, strings)?;
        let options = TableOptions::default().form(form).mask(missing::choice(mask)?).batch_rows(batch_rows);
        ArrowStream::new(Table::from_array((*self.inner()).clone(), options).raise(py)?, rows)
    }

    #[doc = help!("Array.__arrow_c_schema__")]
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow_stream::schema(
            py,
            &Table::from_array((*self.inner()).clone(), TableOptions::default()).raise(py)?,
        )
    }

    #[doc = help!("Array.__arrow_c_stream__")]
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let table = Table::from_array((*self.inner()).clone(), TableOptions::default()).raise(py)?;
        arrow_stream::stream(py, table, requested_schema.as_ref())
    }

    #[doc = help!("Array.__reduce__")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let array = self.inner();
        origin::reduce(py, array.store(), array.path(), array.options())
    }

    #[doc = help!("Array.__copy__")]
    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Array>> {
        Array::create(py, (*self.inner()).clone())
    }

    /// Return whether both are the array at the same path of the same store. Comparing with values is refused,
    /// since the elements are not compared.
    fn __richcmp__(
        slf: &Bound<'_, Array>,
        other: &Bound<'_, PyAny>,
        operation: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if let Ok(other) = other.cast::<Array>() {
            let (array, other) = (slf.get().inner(), other.get().inner());
            let own = Origin::new(array.store(), array.path());
            return Ok(own.compare(py, &Origin::new(other.store(), other.path()), operation));
        }
        let text =
            "comparing an Array with a value does not compare its elements: read them by array[...] first";
        origin::refuse_values(other, text)?;
        Ok(py.NotImplemented())
    }

    fn __hash__(&self) -> u64 {
        let array = self.inner();
        Origin::new(array.store(), array.path()).hash_value()
    }

    fn __iter__<'py>(slf: &Bound<'py, Array>) -> PyResult<Bound<'py, PyAny>> {
        let rows = PyRange::new(slf.py(), 0, slf.len()?.cast_signed())?;
        slf.py().import("builtins")?.call_method1("map", (slf.getattr("__getitem__")?, rows))
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.inner().shape().first() {
            Some(extent) => Ok(*extent as usize),
            None => Err(PyTypeError::new_err("a 0-d array has no len()")),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.summary(py)?.text())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.summary(py)?.html(""))
    }
}
