//! The class `Array`: a stored array, which is read by selections and by chunks.

use crate::arrow_stream::ArrowStream;
use crate::current::Current;
use crate::decoded_array::wrap;
use crate::error::{Attempt, Raise, indexing};
use crate::field::Elements;
use crate::index_array::{self, Indexing};
use crate::indexer::Indexer;
use crate::interrupt::interruptible;
use crate::origin::{self, Origin, Reduced};
use crate::out::Out;
use crate::summary::Summary;
use crate::tensor::Tensor;
use crate::written::{self, Written};
use crate::{array_summary, arrow, arrow_stream, attributes, json, metadata, missing, numpy};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyCapsule, PyDict, PyEllipsis, PyRange, PySlice, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU64;
use std::sync::Arc;
use zarrow::arrow::{Table, TableOptions};
use zarrow::{Selection, WriteOptions};
use zarrow_array::shape::element_count;

/// An array in a store: its metadata is read, its chunks are read when they are asked for.
#[pyclass(frozen, module = "zarrow")]
pub struct Array {
    array: Current<zarrow::Array>,
}

impl Array {
    /// The Python side of `array`.
    pub fn new(array: zarrow::Array) -> Array {
        Array { array: Current::new(array) }
    }

    /// Changes the array, which this object stands for then as it is after it, also where the change fails half-way.
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut zarrow::Array, &dyn Fn() -> bool) -> zarrow::Result<T> + Send,
    ) -> PyResult<T> {
        let mut array = (*self.inner()).clone();
        let result = interruptible(py, |interrupt| change(&mut array, interrupt));
        self.array.set_later(array, zarrow::Array::revision);
        result
    }

    /// The array as it is now.
    pub fn inner(&self) -> Arc<zarrow::Array> {
        self.array.get()
    }

    /// The selection that `index` asks for.
    pub fn selection(&self, index: &Bound<'_, PyAny>, kind: Indexing) -> PyResult<Selection> {
        index_array::selection(&self.inner(), index, kind)
    }

    /// Reads what `index` asks for, into `out` where there is one.
    pub fn read_by<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        kind: Indexing,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (elements, selection) = self.asked(index, kind)?;
        read_selection(index.py(), &elements, &selection, out)
    }

    /// What of each element `index` asks for, and which elements.
    fn asked(&self, index: &Bound<'_, PyAny>, kind: Indexing) -> PyResult<(Elements, Selection)> {
        let array = self.inner();
        let (elements, index) = Elements::of(Arc::clone(&array), index)?;
        Ok((elements, index_array::selection(&array, &index, kind)?))
    }

    /// Writes `value` to what `index` asks for.
    pub fn write_by(
        &self,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        kind: Indexing,
        durability: Option<&str>,
        write_empty_chunks: bool,
    ) -> PyResult<()> {
        let py = index.py();
        let array = self.inner();
        let durability = durability.map_or(Ok(array.durability()), written::durability)?;
        let options = WriteOptions { durability, write_empty_chunks };
        let (elements, selection) = self.asked(index, kind)?;
        let written = Written::new(value, elements.data_type())?;
        interruptible(py, |interrupt| {
            // SAFETY: that nobody writes to the values meanwhile is what the call asks, as NumPy does.
            let values = unsafe { written.values() }?;
            elements.write(&selection, &values, &options, interrupt)
        })
    }

    fn summary(&self, py: Python<'_>) -> Summary {
        py.detach(|| array_summary::summary(&self.inner()))
    }
}

fn read_selection<'py>(
    py: Python<'py>,
    elements: &Elements,
    selection: &Selection,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(object) = out else {
        return wrap(py, interruptible(py, |interrupt| elements.read(selection, None, interrupt))?);
    };
    let out = Out::new(&object, elements.data_type(), &selection.shape())?;
    interruptible(py, |interrupt| {
        // SAFETY: `Out` checked that the memory is writable and that elements have places of their own, and keeps it
        // alive. That nobody else uses it meanwhile is what `out=` asks of the caller, as NumPy does.
        unsafe { elements.read_strided(selection, out.strided.clone(), interrupt) }
    })?;
    Ok(object)
}

#[pymethods]
impl Array {
    /// The extent of each axis, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner().shape())
    }

    /// The NumPy dtype of the elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::dtype(py, self.inner().data_type())
    }

    /// The data type as Zarr version 3 names it, whichever version is stored.
    #[getter]
    fn data_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::value(py, &zarrow::metadata::data_type_document(self.inner().data_type()))
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner().shape().len()
    }

    /// The number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        element_count(self.inner().shape()).raise(py)
    }

    /// The bytes of all elements when decoded; None where they have no fixed size.
    #[getter]
    fn nbytes(&self) -> Option<u64> {
        self.inner().nbytes()
    }

    /// The bytes that the store holds for the array, metadata included; looks at every chunk.
    #[getter]
    fn nbytes_stored(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.inner().stored_nbytes()).raise(py)
    }

    /// The shape of what is decoded at once, inside shards if there are any.
    ///
    /// None for a rectilinear grid.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner().chunk_shape().map(|shape| PyTuple::new(py, shape)).transpose()
    }

    /// The shape of a shard; None where the array has none.
    #[getter]
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner().shard_shape().map(|shape| PyTuple::new(py, shape)).transpose()
    }

    /// The attributes: a mapping that reads as a dict does, and stores what is changed.
    #[getter]
    fn attrs<'py>(slf: &Bound<'py, Array>) -> PyResult<Bound<'py, PyAny>> {
        attributes::live(slf.as_any())
    }

    /// The attributes as this object knows them, as a new dict.
    fn _attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::of_attributes(py, &self.inner().metadata().attributes)
    }

    /// Change the attributes, and know them as they are stored then.
    fn _change_attributes(&self, how: &str, attributes: &Bound<'_, PyDict>) -> PyResult<()> {
        let change = attributes::change(how, attributes)?;
        self.change(attributes.py(), |array, _| array.change_attributes(&change))
    }

    /// The name of each axis, None where it has none; None where no axis has one.
    #[getter]
    fn dimension_names<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let array = self.inner();
        let names = array.metadata().dimension_names.as_ref();
        names.map(|names| PyTuple::new(py, names)).transpose()
    }

    /// What an element is where no chunk is stored: a NumPy scalar, str, bytes, or None if missing.
    #[getter]
    fn fill_value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.inner();
        let metadata = array.metadata();
        metadata::fill_value(py, &metadata.fill_value, metadata.data_type.without_optional())
    }

    /// The metadata in the words of a `zarr.json`, whichever version is stored, as a new dict.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut document = self.inner().metadata().v3_document().map_err(zarrow::Error::from).raise(py)?;
        document.insert("zarr_format".to_owned(), self.zarr_format().into());
        let document = json::object(py, &document)?;
        document.set_item("attributes", self._attributes(py)?)?;
        Ok(document)
    }

    /// The path in the store, without a slash before it; "" is the root.
    #[getter]
    fn path(&self) -> String {
        self.inner().path().to_owned()
    }

    /// The path in the store, with a slash before it.
    #[getter]
    fn name(&self) -> String {
        format!("/{}", self.inner().path())
    }

    /// The store, as it calls itself.
    #[getter]
    fn store(&self) -> String {
        self.inner().store().name().to_owned()
    }

    /// The version of the Zarr format: 2 or 3.
    #[getter]
    fn zarr_format(&self) -> u8 {
        metadata::version(self.inner().metadata().zarr_format)
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.read_by(index, Indexing::Plain, None)
    }

    /// Read a selection; all of the array where none is given.
    #[pyo3(signature = (selection = None, *, out = None, mmap = false, mask = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        selection: Option<Bound<'py, PyAny>>,
        out: Option<Bound<'py, PyAny>>,
        mmap: bool,
        mask: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if out.is_some() && mmap {
            return Err(PyValueError::new_err("mmap=True fills no memory: give either out or mmap"));
        }
        let index = selection.unwrap_or_else(|| PyEllipsis::get(py).to_owned().into_any());
        let (elements, selection) = self.asked(&index, Indexing::Plain)?;
        if let Some(mask) = mask {
            if out.is_some() {
                return Err(PyValueError::new_err("a mask needs memory beside out: give one of both"));
            }
            let missing = missing::values(elements.metadata(), &mask)?;
            let read = interruptible(py, |interrupt| elements.read(&selection, Some(&missing), interrupt));
            return wrap(py, read?);
        }
        if mmap
            && let Elements::Whole(array) = &elements
            && let Some(mapped) = py.detach(|| array.map(&selection)).raise(py)?
        {
            return Ok(Tensor::create(py, mapped)?.into_any());
        }
        read_selection(py, &elements, &selection, out)
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write_by(index, value, Indexing::Plain, None, false)
    }

    /// Write values to a selection.
    #[pyo3(signature = (selection, value, *, durability = None, write_empty_chunks = false))]
    fn write(
        &self,
        selection: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        durability: Option<&str>,
        write_empty_chunks: bool,
    ) -> PyResult<()> {
        self.write_by(selection, value, Indexing::Plain, durability, write_empty_chunks)
    }

    /// The array by lists, masks and slices of single axes, all of whose combinations are taken.
    #[getter]
    fn oindex(slf: &Bound<'_, Array>) -> Indexer {
        Indexer::new(slf, Indexing::Orthogonal)
    }

    /// The array by lists and masks that are taken together, position by position.
    #[getter]
    fn vindex(slf: &Bound<'_, Array>) -> Indexer {
        Indexer::new(slf, Indexing::Vectorized)
    }

    /// The array by chunks: integers and slices (of step 1) count those of the grid.
    #[getter]
    fn blocks(slf: &Bound<'_, Array>) -> Indexer {
        Indexer::new(slf, Indexing::Block)
    }

    /// The shape of the smallest region to write without regard to others: of a shard, or of a chunk.
    ///
    /// None for a rectilinear grid.
    #[getter]
    fn write_unit<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.inner().write_unit().map(|shape| PyTuple::new(py, shape)).transpose()
    }

    /// Make the array of another shape, of as many axes.
    fn resize(&self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = shape.py();
        let extents = match shape.try_iter().attempt(py)? {
            Some(_) => shape.extract::<Vec<u64>>(),
            None => shape.extract::<u64>().map(|extent| vec![extent]),
        };
        let shape = extents.map_err(|error| match error.is_instance_of::<PyOverflowError>(py) {
            true => PyValueError::new_err(format!("shape is {shape}, not extents from 0 to 2^64 - 1")),
            false => error,
        })?;
        self.change(py, |array, interrupt| array.resize(&shape, interrupt))
    }

    /// Make the array longer along an axis, by elements that are written there.
    #[pyo3(signature = (value, axis = 0))]
    fn append<'py>(&self, value: &Bound<'py, PyAny>, axis: usize) -> PyResult<Bound<'py, PyTuple>> {
        let py = value.py();
        let array = self.inner();
        let written = Written::new(value, array.data_type())?;
        let options = WriteOptions { durability: array.durability(), ..WriteOptions::default() };
        let shape = self.change(py, |array, interrupt| {
            // SAFETY: as for writing.
            let values = unsafe { written.values() }?;
            array.append(&values, axis, &options, interrupt)?;
            Ok(array.shape().to_vec())
        })?;
        PyTuple::new(py, shape)
    }

    /// Read the metadata again, so that the array is as the store has it now.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |array, _| array.refresh())
    }

    /// Read one chunk by its place in the grid, cut to the array at its end.
    fn retrieve_chunk<'py>(&self, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = indices.py();
        let indices = match indices.extract::<i64>().attempt(py)? {
            Some(index) => vec![index],
            None => indices.extract::<Vec<i64>>()?,
        };
        let place: Option<Vec<u64>> = indices.iter().map(|index| u64::try_from(*index).ok()).collect();
        let place = place.ok_or_else(|| indexing(py, format!("chunk {indices:?} is outside the grid")))?;
        wrap(py, interruptible(py, |interrupt| self.inner().retrieve_chunk(&place, interrupt))?)
    }

    /// NumPy's protocol: reads all of the array.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        numpy::new_array(py, dtype, copy, || {
            numpy::module(py)?.call_method1("asarray", (self.read(py, None, None, false, None)?,))
        })
    }

    /// Give the rows along the first axis as a stream that Arrow libraries read, in bounded memory.
    #[pyo3(signature = (*, rows = None, layout = "tensor", bools = "bits", strings = "large", mask = None,
                        batch_rows = None))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn to_arrow(
        &self,
        py: Python<'_>,
        rows: Option<Bound<'_, PySlice>>,
        layout: &str,
        bools: &str,
        strings: &str,
        mask: Option<&str>,
        batch_rows: Option<NonZeroU64>,
    ) -> PyResult<ArrowStream> {
        let options = TableOptions {
            form: arrow::form(layout, bools, strings)?,
            mask: missing::choice(mask)?,
            rows: None,
            batch_rows,
        };
        ArrowStream::new(Table::of_array((*self.inner()).clone(), options).raise(py)?, rows)
    }

    /// Arrow: the type of the rows along the first axis in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow_stream::schema(
            py,
            &Table::of_array((*self.inner()).clone(), TableOptions::default()).raise(py)?,
        )
    }

    /// Arrow: a stream of the rows along the first axis in a capsule, read while it is consumed.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let table = Table::of_array((*self.inner()).clone(), TableOptions::default()).raise(py)?;
        arrow_stream::stream(py, table, requested_schema.as_ref())
    }

    /// Pickle: by its store, path and options; loading opens it anew.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let array = self.inner();
        origin::reduce(py, array.store(), array.path(), array.options())
    }

    /// Give another handle of the same array.
    fn __copy__(&self) -> Array {
        Array::new((*self.inner()).clone())
    }

    /// Whether both are the array at one path of one store.
    fn __richcmp__(slf: &Bound<'_, Array>, other: &Bound<'_, Array>, operation: CompareOp) -> Py<PyAny> {
        let (array, other) = (slf.get().inner(), other.get().inner());
        let own = Origin::new(array.store(), array.path());
        own.compare(slf.py(), &Origin::new(other.store(), other.path()), operation)
    }

    fn __hash__(&self) -> u64 {
        let array = self.inner();
        let mut hasher = DefaultHasher::new();
        Origin::new(array.store(), array.path()).hash(&mut hasher);
        hasher.finish()
    }

    fn __iter__<'py>(slf: &Bound<'py, Array>) -> PyResult<Bound<'py, PyAny>> {
        let rows = PyRange::new(slf.py(), 0, slf.len()?.cast_signed())?;
        slf.py().import("builtins")?.call_method1("map", (slf.getattr("__getitem__")?, rows))
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.inner().shape().first() {
            Some(extent) => Ok(*extent as usize),
            None => Err(PyTypeError::new_err("an array of no axes has no len()")),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.summary(py).text()
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        self.summary(py).html("")
    }
}
