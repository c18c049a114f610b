//! A field of an array of structures, which is read and written by itself.

use crate::array::Array;
use crate::error::{ErrorKind, Result};
use crate::exec::{FieldPlace, Reader, Sink, read};
use crate::memory::Strided;
use crate::metadata::{ArrayMetadata, FillValue};
use crate::options::WriteOptions;
use crate::selection::Selection;
use crate::{Values, exec::Writer};
use zarrow_array::{DataType, DecodedArray, Field};

/// One field of the elements of an array of structures.
///
/// A chunk is decoded as a whole; of its elements only the field's bytes are kept. Where elements are written, the other
/// fields of each stay as they are.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::MemoryStore;
/// use zarrow::{Node, Selection};
/// let metadata = br#"{"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": [["id", "|u1"], ["x", "<i2"]],
///   "fill_value": null, "compressor": null, "filters": null, "order": "C"}"#;
/// let store = MemoryStore::new([(".zarray", metadata.to_vec()), ("0", vec![7, 1, 0, 8, 2, 0])])?;
/// let Node::Array(array) = zarrow::open(Arc::new(store), "")? else { panic!() };
/// let decoded = array.field("x")?.read(&Selection::all(array.shape()), &|| false)?;
/// let zarrow_array::DecodedArray::Tensor(tensor) = decoded else { panic!() };
/// assert_eq!(tensor.bytes(), [1i16, 2].map(i16::to_ne_bytes).as_flattened());
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrayField {
    array: Array,
    /// Those of an array of which an element is the field.
    metadata: ArrayMetadata,
    place: FieldPlace,
}

impl Array {
    /// The field called `name`, where elements are structures.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] where they have no such field, [`ErrorKind::Unsupported`] for a field of several items.
    pub fn field(&self, name: &str) -> Result<ArrayField> {
        let element_size = self.data_type().without_optional().item_size().unwrap_or(0);
        let place = FieldPlace { data_type: self.data_type().without_optional().clone(), offset: 0, element_size };
        ArrayField { array: self.clone(), metadata: self.metadata().clone(), place }.field(name)
    }
}

impl ArrayField {
    /// The field called `name` of this field, where that is a structure itself.
    ///
    /// # Errors
    /// As [`Array::field`].
    pub fn field(&self, name: &str) -> Result<ArrayField> {
        let found = match &self.place.data_type {
            DataType::Struct(structure) => structure.field(name),
            _ => None,
        };
        let no_field = || ErrorKind::Index(format!("elements of {} have no field {name:?}", self.data_type()));
        let field = found.ok_or_else(|| self.array.place(no_field().into()))?;
        if !field.shape.is_empty() {
            let text = format!("field {name:?} by itself, which has {:?} items in each element", field.shape);
            return Err(self.array.place(ErrorKind::Unsupported(text).into()));
        }
        let mut metadata = self.metadata.clone();
        metadata.data_type = with_element(&metadata.data_type, &field.data_type);
        metadata.fill_value = fill_of(&metadata.fill_value, field);
        let (data_type, offset) = (field.data_type.clone(), self.place.offset + field.offset);
        Ok(ArrayField {
            array: self.array.clone(),
            metadata,
            place: FieldPlace { data_type, offset, ..self.place },
        })
    }

    /// The type of the field; optional where the array's elements are.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.metadata.data_type
    }

    /// The array.
    #[must_use]
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Reads `selection` into fresh memory: as [`Array::read`].
    ///
    /// # Errors
    /// As [`Array::read`].
    pub fn read(&self, selection: &Selection, interrupted: &dyn Fn() -> bool) -> Result<DecodedArray> {
        self.array.check(selection)?;
        read(self.reader(), selection, interrupted).map_err(|error| self.array.place(error))
    }

    /// Reads `selection` into memory of the caller's: as [`Array::read_strided`].
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
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.array.check(selection)?;
        self.array.tensor_item_size()?;
        let item_size = self.place.data_type.item_size().unwrap_or(0);
        // SAFETY: the caller's contract.
        let sink = Sink::Fixed(unsafe { out.destination(selection, item_size) }).of_field(Some(&self.place));
        self.reader().read_into(selection, &sink, interrupted).map_err(|error| self.array.place(error))
    }

    /// Writes `values` to the field of the selected elements, whose other fields stay as they are: as [`Array::write`].
    ///
    /// # Errors
    /// As [`Array::write`]; [`ErrorKind::Unsupported`] where elements may be missing.
    pub fn write(
        &self,
        selection: &Selection,
        values: &Values<'_>,
        options: &WriteOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.array.check(selection)?;
        let write = || {
            if values.dtype() != self.data_type() || values.mask_depth() > 0 {
                let text = format!("writing {} to a field of {}", values.dtype(), self.data_type());
                return Err(ErrorKind::Unsupported(text).into());
            }
            let values = values.broadcast(&selection.shape())?.in_field(&self.place);
            let store = self.array.store().writer().ok_or(ErrorKind::ReadOnly)?;
            let writer = Writer { reader: self.array.reader(), store, options: *options };
            writer.write(selection, &values, interrupted)
        };
        write().map_err(|error| self.array.place(error))
    }

    fn reader(&self) -> Reader<'_> {
        Reader { metadata: &self.metadata, field: Some(&self.place), ..self.array.reader() }
    }
}

/// The type with another element at its core.
fn with_element(data_type: &DataType, element: &DataType) -> DataType {
    match data_type {
        DataType::Optional(inner) => DataType::Optional(Box::new(with_element(inner, element))),
        _ => element.clone(),
    }
}

/// The field of a structure's fill value.
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
