//! Strings in an index: fields of structured elements to read or write. The rest of the index selects the elements.
//!
//! Source: zarr-python, `zarr.core.indexing.pop_fields`; NumPy, "Structured arrays", for lists of names.

use crate::python::error::{Raise, indexing};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::sync::Arc;
use zarrow::metadata::ArrayMetadata;
use zarrow::{
    Array, ArrayField, MissingValues, ReadOptions, Result, Selection, Strided, Values, WriteOptions,
};
use zarrow_array::{DataType, DecodedArray, SharedTensor};

/// Part of each element to read or write.
pub enum ElementPart {
    /// The whole element.
    Whole(Arc<Array>),
    /// One or several fields.
    Field(Box<ArrayField>),
}

impl ElementPart {
    /// Splits `index` into the part of each element of `array`, and the index of elements.
    pub fn of<'py>(
        array: Arc<Array>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<(ElementPart, Bound<'py, PyAny>)> {
        let py = index.py();
        let items = match index.cast::<PyTuple>() {
            Ok(items) if items.iter().any(|item| is_name(&item)) => items.clone(),
            Err(_) if is_name(index) => PyTuple::new(py, [index])?,
            _ => return Ok((ElementPart::Whole(array), index.clone())),
        };
        let (names, rest): (Vec<_>, Vec<_>) = items.iter().partition(is_name);
        let field = match &names[..] {
            [name] if name.is_instance_of::<PyString>() => array.field(&name.extract::<String>()?),
            _ => {
                let names = names.iter().map(of_item).collect::<PyResult<Vec<_>>>()?.concat();
                array.fields(&names.iter().map(String::as_str).collect::<Vec<_>>())
            }
        };
        Ok((ElementPart::Field(Box::new(field.raise(py)?)), PyTuple::new(py, rest)?.into_any()))
    }

    /// Returns the array of the elements.
    pub fn array(&self) -> &Array {
        match self {
            ElementPart::Whole(array) => array,
            ElementPart::Field(field) => field.array(),
        }
    }

    /// Returns the type of the part.
    pub fn data_type(&self) -> &DataType {
        match self {
            ElementPart::Whole(array) => array.data_type(),
            ElementPart::Field(field) => field.data_type(),
        }
    }

    /// Returns the metadata of an array of such elements.
    pub fn metadata(&self) -> &ArrayMetadata {
        match self {
            ElementPart::Whole(array) => array.metadata(),
            ElementPart::Field(field) => field.metadata(),
        }
    }

    /// See [`Array::read_with`].
    pub fn read(
        &self,
        selection: &Selection,
        missing: Option<&MissingValues>,
        interrupt: &dyn Fn() -> bool,
    ) -> Result<DecodedArray> {
        let mut options = ReadOptions::from(interrupt);
        options.missing = missing;
        match self {
            ElementPart::Whole(array) => array.read_with(selection, &options),
            ElementPart::Field(field) => field.read_with(selection, &options),
        }
    }

    /// See [`Array::read_strided`].
    ///
    /// # Safety
    /// See [`Array::read_strided`].
    pub unsafe fn read_strided(
        &self,
        selection: &Selection,
        out: Strided,
        interrupt: &dyn Fn() -> bool,
    ) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                ElementPart::Whole(array) => array.read_strided(selection, out, &interrupt.into()),
                ElementPart::Field(field) => field.read_strided(selection, out, &interrupt.into()),
            }
        }
    }

    /// See [`Array::read_column_major`].
    pub fn read_column_major(
        &self,
        selection: &Selection,
        interrupt: &dyn Fn() -> bool,
    ) -> Result<SharedTensor> {
        match self {
            ElementPart::Whole(array) => array.read_column_major(selection, &ReadOptions::from(interrupt)),
            ElementPart::Field(field) => field.read_column_major(selection, &ReadOptions::from(interrupt)),
        }
    }

    /// Returns whether the part decodes to a tensor: fixed-size elements, none missing.
    pub fn is_tensor(&self) -> bool {
        let data_type = self.data_type();
        !matches!(data_type, DataType::Optional(_)) && data_type.item_size().is_some()
    }

    /// Returns whether elements are stored in Fortran order.
    pub fn is_stored_column_major(&self) -> bool {
        match self {
            ElementPart::Whole(array) => array.is_stored_column_major(),
            ElementPart::Field(field) => field.array().is_stored_column_major(),
        }
    }

    /// See [`Array::write_with`].
    pub fn write(
        &self,
        selection: &Selection,
        values: &Values<'_>,
        options: &WriteOptions<'_>,
    ) -> Result<()> {
        match self {
            ElementPart::Whole(array) => array.write_with(selection, values, options),
            ElementPart::Field(field) => field.write_with(selection, values, options),
        }
    }
}

/// Returns whether an index item names one or several fields.
fn is_name(item: &Bound<'_, PyAny>) -> bool {
    let of_list =
        || item.cast::<PyList>().is_ok_and(|list| list.get_item(0).is_ok_and(|item| is_text(&item)));
    is_text(item) || of_list()
}

fn is_text(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyString>()
}

/// Returns the field names of an index item.
fn of_item(item: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match item.cast::<PyString>() {
        Ok(name) => Ok(vec![name.to_str()?.to_owned()]),
        Err(_) => item.extract().map_err(|_| indexing(item.py(), "expected a list of field names (str)")),
    }
}
