//! A field of structured elements: its offset in each element, so that the field alone is read and written.

use crate::codec::Swap;
use zarrow_array::DataType;

/// A field's location in each stored element.
#[derive(Debug, Clone)]
pub struct FieldPlace {
    /// The field's type, which has a fixed size.
    pub data_type: DataType,
    /// Byte offset of the field in an element.
    pub offset: usize,
    /// Distance between elements in bytes.
    pub element_size: usize,
}

impl FieldPlace {
    /// Returns the byte swap of the field, given the byte swap of the elements.
    pub fn swap(&self, swap: &Swap) -> Swap {
        swap.part(self.offset, &self.data_type)
    }
}
