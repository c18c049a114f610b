//! Fields of structures, as an option of reads and writes.

use crate::error::{ErrorKind, Result};
use crate::metadata::{ArrayMetadata, FillValue};
use crate::node::array::Array;
use crate::plan::field::FieldPlace;
use std::sync::Arc;
use zarrow_array::{DataType, Field, Struct};

/// One or several fields of an array's structures, for [`ReadRequest::field`](crate::ReadRequest::field) and
/// [`WriteRequest::field`](crate::WriteRequest::field).
///
/// A read decodes whole chunks, and keeps only the field's bytes. A write leaves the other fields unchanged: it reads,
/// changes and stores each chunk that it touches.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::MemoryStore;
/// let metadata = br#"{"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": [["id", "|u1"], ["x", "<i2"]],
///   "fill_value": null, "compressor": null, "filters": null, "order": "C"}"#;
/// let store = Arc::new(MemoryStore::new([(".zarray", metadata.to_vec()), ("0", vec![7, 1, 0, 8, 2, 0])])?);
/// let array = zarrow::open(store, "")?.into_array()?;
/// let x = array.field("x")?;
/// array.write_request(..)?.field(&x).write(&[3i16, 4])?;
/// assert_eq!(array.read(..)?.into_tensor()?.bytes(), [7, 3, 0, 8, 4, 0]);
/// assert_eq!(array.request(..)?.field(&x).read()?.into_tensor()?.as_slice::<i16>()?, [3, 4]);
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FieldSelection {
    /// Metadata of the array.
    whole: Arc<ArrayMetadata>,
    /// Metadata of an array with only the field as its elements.
    metadata: ArrayMetadata,
    place: FieldPlace,
    /// Whether there are other fields between these.
    has_others: bool,
}

impl Array {
    /// Returns the field `name` of the structures. A field of a nested structure is named by its path, joined by dots;
    /// a field with the whole name takes precedence.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if there is no such field, [`ErrorKind::Unsupported`] for a field of several items.
    pub fn field(&self, name: &str) -> Result<FieldSelection> {
        let whole = self.all_fields();
        let found = whole.find(name).map_err(|error| self.place(error))?;
        found.ok_or_else(|| self.place(whole.no_field(name).into()))
    }

    /// Returns the fields `names` as structures of only these fields, at their offsets in the elements; the bytes
    /// between them belong to other fields. These can be read, but not written.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if there are no such fields, or if `names` are not in the order of the fields in memory.
    pub fn fields(&self, names: &[&str]) -> Result<FieldSelection> {
        self.all_fields().select(names).map_err(|error| self.place(error))
    }

    fn all_fields(&self) -> FieldSelection {
        let data_type = self.data_type().without_optional().clone();
        let element_size = data_type.item_size().unwrap_or(0);
        let place = FieldPlace { data_type, offset: 0, element_size };
        let whole = Arc::clone(&self.metadata);
        FieldSelection { metadata: (*whole).clone(), whole, place, has_others: false }
    }
}

impl FieldSelection {
    fn no_field(&self, name: &str) -> ErrorKind {
        let mut text = format!("unknown field {name:?}: the elements are {}", self.place.data_type);
        let names = self.whole.dimension_names.iter().flatten();
        if names.flatten().any(|axis| axis == name) {
            text = format!(
                "{text}; for the coordinates of the axis {name:?} read its group's array, group[{name:?}]"
            );
        }
        ErrorKind::Index(text)
    }

    /// Finds the field `name` within this one.
    fn find(&self, name: &str) -> Result<Option<FieldSelection>> {
        let DataType::Struct(structure) = &self.place.data_type else { return Ok(None) };
        if let Some(field) = structure.field(name) {
            return self.of(field).map(Some);
        }
        for (dot, _) in name.match_indices('.') {
            let Some(outer) = structure.field(&name[..dot]) else { continue };
            if let Some(found) = self.of(outer)?.find(&name[dot + 1..])? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn of(&self, field: &Field) -> Result<FieldSelection> {
        if !field.shape.is_empty() {
            let (name, shape) = (&field.name, &field.shape);
            let text = format!(
                "selecting the single field {name:?}, an array of shape {shape:?}: pass a list of \
                 fields, [{name:?}]"
            );
            return Err(ErrorKind::Unsupported(text).into());
        }
        let mut metadata = self.metadata.clone();
        metadata.data_type = with_element(&metadata.data_type, &field.data_type);
        metadata.fill_value = fill_of(&metadata.fill_value, field);
        let (data_type, offset) = (field.data_type.clone(), self.place.offset + field.offset);
        let place = FieldPlace { data_type, offset, element_size: self.place.element_size };
        Ok(FieldSelection { whole: Arc::clone(&self.whole), metadata, place, has_others: false })
    }

    fn select(self, names: &[&str]) -> Result<FieldSelection> {
        let DataType::Struct(structure) = &self.place.data_type else {
            return Err(self.no_field(names.first().unwrap_or(&"")).into());
        };
        if let Some(name) = names.iter().find(|name| structure.field(name).is_none()) {
            return Err(self.no_field(name).into());
        }
        let is_asked = |field: &&Field| names.contains(&&*field.name);
        let fields: Vec<Field> = structure.fields().iter().filter(is_asked).cloned().collect();
        let in_order: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        if in_order != names || names.is_empty() {
            let text = format!("expected each field once, in their stored order, got {names:?}");
            return Err(ErrorKind::Index(text).into());
        }
        let has_others = fields.len() < structure.fields().len();
        let element = DataType::Struct(Struct::new(fields, structure.item_size())?);
        let mut metadata = self.metadata;
        metadata.data_type = with_element(&metadata.data_type, &element);
        let place = FieldPlace { data_type: element, ..self.place };
        Ok(FieldSelection { metadata, place, has_others, ..self })
    }

    /// Returns the type of the field; optional if the array's elements are optional.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.metadata.data_type
    }

    /// Returns the array's metadata, with the field's data type and fill value.
    #[must_use]
    pub fn metadata(&self) -> &ArrayMetadata {
        &self.metadata
    }

    /// Returns the location of the field in the elements of `array`.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if the field was made for an array with other metadata.
    pub(crate) fn place_in(&self, array: &Array) -> Result<&FieldPlace> {
        if Arc::ptr_eq(&self.whole, &array.metadata) || *self.whole == *array.metadata {
            return Ok(&self.place);
        }
        let text = "the field belongs to another array, or the array has changed: call `array.field()` again";
        Err(ErrorKind::Index(text.into()).into())
    }

    /// Refuses a write of several of the fields.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`].
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.has_others {
            true => Err(ErrorKind::Unsupported(
                "writing several fields at once: write one field at a time".into(),
            )
            .into()),
            false => Ok(()),
        }
    }
}

/// Replaces the innermost element type.
fn with_element(data_type: &DataType, element: &DataType) -> DataType {
    match data_type {
        DataType::Optional(inner) => DataType::Optional(Box::new(with_element(inner, element))),
        _ => element.clone(),
    }
}

/// Returns the field's part of a structure's fill value.
fn fill_of(value: &FillValue, field: &Field) -> FillValue {
    match value {
        FillValue::Present(inner) => FillValue::Present(Box::new(fill_of(inner, field))),
        FillValue::Fixed(bytes) => {
            let nbytes = field.nbytes().unwrap_or(0);
            FillValue::Fixed(bytes.get(field.offset..field.offset + nbytes).unwrap_or(&[]).to_vec())
        }
        other => other.clone(),
    }
}
