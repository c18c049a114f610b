//! Reading and writing of an array by an index of Python.

use crate::device::read::Destination;
use crate::device::write;
use crate::index::advanced::{self, Indexing};
use crate::index::field::ElementPart;
use crate::node::array_input::{self, ArrayInput, Writing};
use crate::node::current::Current;
use crate::node::out::read_selection;
use crate::python::interrupt::interruptible;
use pyo3::prelude::*;
use zarrow::{Selection, WriteOptions};

impl Current<zarrow::Array> {
    /// Returns the selection for `index`.
    pub fn selection(&self, index: &Bound<'_, PyAny>, kind: Indexing) -> PyResult<Selection> {
        advanced::selection(&self.get(), index, kind)
    }

    /// Reads the selection for `index`, into `out` if given.
    pub fn read_by<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        kind: Indexing,
        out: Option<Bound<'py, PyAny>>,
        place: Option<Destination<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (elements, selection) = self.selected(index, kind)?;
        match place {
            Some(place) => place.read(index.py(), &elements, &selection),
            None => read_selection(index.py(), &elements, &selection, out),
        }
    }

    /// Splits `index` into the part of each element, and the selection of elements.
    pub fn selected(&self, index: &Bound<'_, PyAny>, kind: Indexing) -> PyResult<(ElementPart, Selection)> {
        let (elements, index) = ElementPart::of(self.get(), index)?;
        let selection = advanced::selection(&elements.array, &index, kind)?;
        Ok((elements, selection))
    }

    /// Writes `value` to the selection for `index`.
    pub fn write_by(
        &self,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        kind: Indexing,
        options: Writing<'_>,
    ) -> PyResult<()> {
        let py = index.py();
        let array = self.get();
        let Writing { durability, write_empty_chunks, casting } = options;
        let durability = durability.map_or(Ok(array.durability()), array_input::durability)?;
        let (elements, selection) = self.selected(index, kind)?;
        let on_device = write::Writing { durability, write_empty_chunks };
        if write::write(&elements, &selection, value, &on_device)? {
            return Ok(());
        }
        let input = ArrayInput::new(value, elements.data_type(), casting, Some(elements.metadata()))?;
        interruptible(py, |interrupt| {
            // SAFETY: the caller must not write to the values during the call, as with NumPy.
            let values = unsafe { input.values() }?;
            let options =
                WriteOptions::default().durability(durability).write_empty_chunks(write_empty_chunks);
            elements.write_request(&selection)?.options(&options.cancel(interrupt)).write(&values)
        })
    }
}
