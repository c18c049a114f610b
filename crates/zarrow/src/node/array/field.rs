//! Single fields of an array of structures, for reading and writing.

use crate::decode::reader::Reader;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{ArrayMetadata, FillValue};
use crate::node::array::Array;
use crate::place::sink::Sink;
use crate::place::strided::Strided;
use crate::plan::field::FieldPlace;
use crate::read::column_major::read_column_major;
use crate::read::options::ReadOptions;
use crate::read::read;
use crate::selection::{IntoSelection, Selection};
use crate::write::Writer;
use crate::write::options::WriteOptions;
use crate::write::staged::Guard;
use crate::write::values::Values;
use zarrow_array::{DataType, DecodedArray, Field, SharedTensor, Struct};

/// One or several fields of an array of structures.
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
/// x.write(.., &[3i16, 4])?;
/// assert_eq!(array.read(..)?.into_tensor()?.bytes(), [7, 3, 0, 8, 4, 0]);
/// assert_eq!(x.read(..)?.into_tensor()?.as_slice::<i16>()?, [3, 4]);
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrayField {
    array: Array,
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
    pub fn field(&self, name: &str) -> Result<ArrayField> {
        let whole = self.all_fields();
        let found = whole.find(name).map_err(|error| self.place(error))?;
        found.ok_or_else(|| self.place(whole.no_field(name).into()))
    }

    /// Returns the fields `names` as structures of only these fields, at their offsets in the elements; the bytes
    /// between them belong to other fields. These can be read, but not written.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if there are no such fields, or if `names` are not in the order of the fields in memory.
    pub fn fields(&self, names: &[&str]) -> Result<ArrayField> {
        self.all_fields().select(names).map_err(|error| self.place(error))
    }

    fn all_fields(&self) -> ArrayField {
        let data_type = self.data_type().without_optional().clone();
        let element_size = data_type.item_size().unwrap_or(0);
        let place = FieldPlace { data_type, offset: 0, element_size };
        ArrayField { array: self.clone(), metadata: self.metadata().clone(), place, has_others: false }
    }
}

impl ArrayField {
    fn no_field(&self, name: &str) -> ErrorKind {
        ErrorKind::Index(format!("unknown field {name:?}: the elements are {}", self.place.data_type))
    }

    /// Finds the field `name` within this one.
    fn find(&self, name: &str) -> Result<Option<ArrayField>> {
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

    fn of(&self, field: &Field) -> Result<ArrayField> {
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
        Ok(ArrayField { array: self.array.clone(), metadata, place, has_others: false })
    }

    fn select(self, names: &[&str]) -> Result<ArrayField> {
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
        Ok(ArrayField { metadata, place, has_others, ..self })
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

    /// Returns the array.
    #[must_use]
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Reads `selection` into fresh memory: as [`Array::read`].
    ///
    /// # Errors
    /// As [`Array::read`].
    pub fn read<'s>(&self, selection: impl IntoSelection<'s>) -> Result<DecodedArray> {
        self.read_with(selection, &ReadOptions::default())
    }

    /// Reads `selection` in Fortran order: as [`Array::read_column_major`].
    ///
    /// # Errors
    /// As [`Array::read_column_major`].
    pub fn read_column_major<'s>(
        &self,
        selection: impl IntoSelection<'s>,
        options: &ReadOptions<'_>,
    ) -> Result<SharedTensor> {
        let selection = self.array.selection(selection)?;
        self.array.tensor_item_size()?;
        let interrupted = options.strided().map_err(|error| self.array.place(error))?;
        read_column_major(self.reader(), &selection, &self.place.data_type, interrupted)
            .map_err(|error| self.array.place(error))
    }

    /// Reads `selection` with options: as [`Array::read_with`].
    ///
    /// # Errors
    /// As [`Array::read_with`].
    pub fn read_with<'s>(
        &self,
        selection: impl IntoSelection<'s>,
        options: &ReadOptions<'_>,
    ) -> Result<DecodedArray> {
        let selection = self.array.selection(selection)?;
        let reader = Reader { missing: options.missing, ..self.reader() };
        read(reader, &selection, options.interrupted()).map_err(|error| self.array.place(error))
    }

    /// Reads `selection` into the caller's memory: as [`Array::read_strided`].
    ///
    /// # Errors
    /// As [`Array::read_strided`].
    ///
    /// # Safety
    /// As [`Array::read_strided`].
    pub unsafe fn read_strided(
        &self,
        selection: &Selection,
        out: Strided,
        options: &ReadOptions<'_>,
    ) -> Result<()> {
        self.array.check(selection)?;
        self.array.tensor_item_size()?;
        let interrupted = options.strided().map_err(|error| self.array.place(error))?;
        let item_size = self.place.data_type.item_size().unwrap_or(0);
        // SAFETY: the caller's contract.
        let mut sink = Sink::Fixed(unsafe { out.destination(selection, item_size) });
        sink.set_field(Some(&self.place));
        self.reader().read_into(selection, &sink, interrupted).map_err(|error| self.array.place(error))
    }

    /// Writes `values` to the field of the selected elements, and leaves the other fields unchanged: as
    /// [`Array::write`].
    ///
    /// # Errors
    /// As [`Array::write`]; [`ErrorKind::Unsupported`] for several fields unless they are all fields, and if elements
    /// may be missing.
    pub fn write<'s, 'v, V: TryInto<Values<'v>>>(
        &self,
        selection: impl IntoSelection<'s>,
        values: V,
    ) -> Result<()>
    where
        Error: From<V::Error>,
    {
        let values = values.try_into().map_err(|error| self.array.place(Error::from(error)))?;
        self.write_with(selection, &values, &self.array.write_options())
    }

    /// As [`write`](ArrayField::write), with options: as [`Array::write_with`].
    ///
    /// # Errors
    /// As [`write`](ArrayField::write); [`ErrorKind::Interrupted`].
    pub fn write_with<'s>(
        &self,
        selection: impl IntoSelection<'s>,
        values: &Values<'_>,
        options: &WriteOptions<'_>,
    ) -> Result<()> {
        let selection = self.array.selection(selection)?;
        let write = |array: &Array, guard: Option<&dyn Guard>| {
            if self.has_others {
                return Err(ErrorKind::Unsupported(
                    "writing several fields at once: write one field at a time".into(),
                )
                .into());
            }
            if values.dtype() != self.data_type() || values.mask_depth() > 0 {
                let text = format!("writing {} to a field of {}", values.dtype(), self.data_type());
                return Err(ErrorKind::Unsupported(text).into());
            }
            let values = values.broadcast(&selection.shape())?;
            let store = array.store().writer().ok_or(ErrorKind::ReadOnly)?;
            let reader = Reader { field: Some(&self.place), ..array.reader() };
            Writer::new(reader, store, options, false).write(
                &selection,
                &values,
                guard,
                options.interrupted(),
            )
        };
        self.array.write_stored(&selection, options, write).map_err(|error| self.array.place(error))
    }

    fn reader(&self) -> Reader<'_> {
        Reader { metadata: &self.metadata, field: Some(&self.place), ..self.array.reader() }
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
