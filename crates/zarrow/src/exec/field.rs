//! A field of structured elements: where it lies in each of them, so that it is read and written by itself.

use crate::codec::Swap;
use zarrow_array::DataType;

/// Where a field lies in each stored element.
#[derive(Debug, Clone)]
pub struct FieldPlace {
    /// What the field is, of a fixed size.
    pub data_type: DataType,
    /// Bytes from the start of an element to the field.
    pub offset: usize,
    /// Bytes from one element to the next.
    pub element_size: usize,
}

impl FieldPlace {
    /// What is reversed in the field, where `swap` says it for elements.
    pub fn swap(&self, swap: &Swap) -> Swap {
        swap.part(self.offset, &self.data_type)
    }
}
