//! Strings in an index: fields of structured elements to read or write. The rest of the index selects the elements.
//!
//! Source: zarr-python, `zarr.core.indexing.pop_fields`; NumPy, "Structured arrays", for lists of names.

use crate::python::error::{Raise, indexing};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::sync::Arc;
use zarrow::metadata::ArrayMetadata;
use zarrow::{Array, FieldSelection, ReadRequest, Result, Selection, WriteRequest};
use zarrow_array::DataType;
use zarrow_array::allocation;

/// Part of each element to read or write.
pub struct ElementPart {
    /// The array.
    pub array: Arc<Array>,
    /// One or several fields; `None` for the whole element.
    pub field: Option<Box<FieldSelection>>,
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
            _ => return Ok((ElementPart { array, field: None }, index.clone())),
        };
        let (names, rest): (Vec<_>, Vec<_>) = items.iter().partition(is_name);
        let field = match &names[..] {
            [name] if name.is_instance_of::<PyString>() => array.field(&name.extract::<String>()?),
            _ => {
                let names = names.iter().map(names_in).collect::<PyResult<Vec<_>>>()?.concat();
                array.fields(&names.iter().map(String::as_str).collect::<Vec<_>>())
            }
        };
        let field = Some(Box::new(field.raise(py)?));
        Ok((ElementPart { array, field }, PyTuple::new(py, rest)?.into_any()))
    }

    /// Returns the type of the part.
    pub fn data_type(&self) -> &DataType {
        &self.metadata().data_type
    }

    /// Returns the metadata of an array of such elements.
    pub fn metadata(&self) -> &ArrayMetadata {
        self.field.as_ref().map_or_else(|| self.array.metadata(), |field| field.metadata())
    }

    /// Returns a request to read `selection`.
    pub fn request<'a>(&'a self, selection: &'a Selection) -> Result<ReadRequest<'a>> {
        let request = self.array.request(selection)?;
        Ok(match &self.field {
            Some(field) => request.field(field),
            None => request,
        })
    }

    /// Returns a request to write to `selection`.
    pub fn write_request<'a>(&'a self, selection: &'a Selection) -> Result<WriteRequest<'a>> {
        let request = self.array.write_request(selection)?;
        Ok(self.field.as_deref().into_iter().fold(request, WriteRequest::field))
    }

    /// Returns whether the part decodes to a tensor: fixed-size elements, none missing.
    pub fn is_tensor(&self) -> bool {
        let data_type = self.data_type();
        !matches!(data_type, DataType::Optional(_)) && data_type.item_size().is_some()
    }
}

/// Returns a request to read each of `items`.
pub fn requests<'a>(
    items: &'a [(Arc<Array>, Selection)],
    interrupt: &'a dyn Fn() -> bool,
) -> Result<Vec<ReadRequest<'a>>> {
    let request =
        |(array, selection): &'a (Arc<Array>, Selection)| Ok(array.request(selection)?.cancel(interrupt));
    allocation::try_collected(items.iter().map(request))
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
fn names_in(item: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match item.cast::<PyString>() {
        Ok(name) => Ok(vec![name.to_str()?.to_owned()]),
        Err(_) => item.extract().map_err(|_| indexing(item.py(), "expected a list of field names (str)")),
    }
}
