//! Part of an array's elements to read to a device: whole elements, or fields.

use zarrow::{Array, ArrayField, ReadOptions, Selection, Strided};
use zarrow_array::DataType;

/// The elements to read.
#[derive(Debug, Clone, Copy)]
pub enum Elements<'a> {
    /// Whole elements of an array.
    Whole(&'a Array),
    /// One or several fields of each element.
    Field(&'a ArrayField),
}

impl<'a> From<&'a Array> for Elements<'a> {
    fn from(array: &'a Array) -> Elements<'a> {
        Elements::Whole(array)
    }
}

impl<'a> From<&'a ArrayField> for Elements<'a> {
    fn from(field: &'a ArrayField) -> Elements<'a> {
        Elements::Field(field)
    }
}

impl<'a> Elements<'a> {
    /// Returns the array.
    #[must_use]
    pub fn array(self) -> &'a Array {
        match self {
            Elements::Whole(array) => array,
            Elements::Field(field) => field.array(),
        }
    }

    /// Returns the element type.
    #[must_use]
    pub fn data_type(self) -> &'a DataType {
        match self {
            Elements::Whole(array) => array.data_type(),
            Elements::Field(field) => field.data_type(),
        }
    }

    /// See [`Array::read_strided`].
    ///
    /// # Safety
    /// See [`Array::read_strided`].
    pub(crate) unsafe fn read_strided(
        self,
        selection: &Selection,
        out: Strided,
        options: &ReadOptions<'_>,
    ) -> zarrow::Result<()> {
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                Elements::Whole(array) => array.read_strided(selection, out, options),
                Elements::Field(field) => field.read_strided(selection, out, options),
            }
        }
    }
}
