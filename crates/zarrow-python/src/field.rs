//! Strings in an index: the fields of structures that are read or written, of which the rest of the index says the
//! elements.
//!
//! Source: zarr-python, `zarr.core.indexing.pop_fields`; NumPy, "Structured arrays", for lists of names.

use crate::error::{Raise, indexing};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::sync::Arc;
use zarrow::metadata::ArrayMetadata;
use zarrow::{Array, ArrayField, MissingValues, Result, Selection, Strided, Values, WriteOptions};
use zarrow_array::{DataType, DecodedArray};

/// What of each element is read or written.
pub enum Elements {
    /// All of it.
    Whole(Arc<Array>),
    /// One field, or several.
    Field(Box<ArrayField>),
}

impl Elements {
    /// What `index` asks for of the elements of `array`, and the index without that.
    pub fn of<'py>(array: Arc<Array>, index: &Bound<'py, PyAny>) -> PyResult<(Elements, Bound<'py, PyAny>)> {
        let py = index.py();
        let items = match index.cast::<PyTuple>() {
            Ok(items) if items.iter().any(|item| is_name(&item)) => items.clone(),
            Err(_) if is_name(index) => PyTuple::new(py, [index])?,
            _ => return Ok((Elements::Whole(array), index.clone())),
        };
        let (names, rest): (Vec<_>, Vec<_>) = items.iter().partition(is_name);
        let field = match &names[..] {
            [name] if name.is_instance_of::<PyString>() => array.field(&name.extract::<String>()?),
            _ => {
                let names = names.iter().map(of_item).collect::<PyResult<Vec<_>>>()?.concat();
                array.fields(&names.iter().map(String::as_str).collect::<Vec<_>>())
            }
        };
        Ok((Elements::Field(Box::new(field.raise(py)?)), PyTuple::new(py, rest)?.into_any()))
    }

    /// Their type.
    pub fn data_type(&self) -> &DataType {
        match self {
            Elements::Whole(array) => array.data_type(),
            Elements::Field(field) => field.data_type(),
        }
    }

    /// The metadata of an array of such elements.
    pub fn metadata(&self) -> &ArrayMetadata {
        match self {
            Elements::Whole(array) => array.metadata(),
            Elements::Field(field) => field.metadata(),
        }
    }

    /// As [`Array::read`], or [`Array::read_masked`] where values mean that an element is missing.
    pub fn read(
        &self,
        selection: &Selection,
        missing: Option<&MissingValues>,
        interrupt: &dyn Fn() -> bool,
    ) -> Result<DecodedArray> {
        match (self, missing) {
            (Elements::Whole(array), None) => array.read(selection, interrupt),
            (Elements::Whole(array), Some(missing)) => array.read_masked(selection, missing, interrupt),
            (Elements::Field(field), None) => field.read(selection, interrupt),
            (Elements::Field(field), Some(missing)) => field.read_masked(selection, missing, interrupt),
        }
    }

    /// As [`Array::read_strided`].
    ///
    /// # Safety
    /// As [`Array::read_strided`].
    pub unsafe fn read_strided(
        &self,
        selection: &Selection,
        out: Strided,
        interrupt: &dyn Fn() -> bool,
    ) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                Elements::Whole(array) => array.read_strided(selection, out, interrupt),
                Elements::Field(field) => field.read_strided(selection, out, interrupt),
            }
        }
    }

    /// As [`Array::write`].
    pub fn write(
        &self,
        selection: &Selection,
        values: &Values<'_>,
        options: &WriteOptions,
        interrupt: &dyn Fn() -> bool,
    ) -> Result<()> {
        match self {
            Elements::Whole(array) => array.write(selection, values, options, interrupt),
            Elements::Field(field) => field.write(selection, values, options, interrupt),
        }
    }
}

/// Whether an item of an index names a field, or several.
fn is_name(item: &Bound<'_, PyAny>) -> bool {
    let of_list =
        || item.cast::<PyList>().is_ok_and(|list| list.get_item(0).is_ok_and(|item| is_text(&item)));
    is_text(item) || of_list()
}

fn is_text(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyString>()
}

/// The names of an item that names fields.
fn of_item(item: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match item.cast::<PyString>() {
        Ok(name) => Ok(vec![name.to_str()?.to_owned()]),
        Err(_) => item.extract().map_err(|_| indexing(item.py(), "a list of fields has their names only")),
    }
}
