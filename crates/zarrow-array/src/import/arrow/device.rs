//! Locates the elements of an Arrow array in device memory, without reading them.
//!
//! Arrow's structs are in host memory, and are checked as for arrays in host memory.

use super::foreign::{ForeignArray, ForeignPart};
use super::kind::{Element, Kind};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::export::arrow_abi::{ArrowArray, ArrowSchema, Owner};
use std::sync::Arc;

/// Fixed-size elements on a device, without nulls, in C order of `shape`.
#[derive(Debug)]
pub struct DeviceElements {
    /// Address of the first element on the device; 0 if there are no elements.
    pub address: u64,
    /// Extents, outermost axis first.
    pub shape: Vec<i64>,
    /// Permutation from `shape` to the logical axes, if they differ.
    pub permutation: Option<Vec<usize>>,
    /// Type of the elements.
    pub dtype: DataType,
    /// Releases the array on drop.
    pub owner: Owner,
}

/// Locates the elements of `array` in device memory.
///
/// # Errors
/// [`Error::UnknownType`] and [`Error::NeedsCopy`] for types that are not tensors; [`Error::LosesMeaning`] if
/// elements may be null; [`Error::BadArrow`] for an array that violates Arrow's rules.
pub fn device_elements(schema: &ArrowSchema, array: ArrowArray) -> Result<DeviceElements> {
    let owner = Arc::new(ForeignArray::new(array));
    let kind = Kind::from_schema(schema)?;
    let array = ForeignPart::new(&owner);
    let rows = array.length();
    let elements = array.elements_without_nulls(&kind.lists)?;
    let dtype = match kind.element {
        Element::Shared(dtype) => dtype,
        other => {
            let what = other.copied().unwrap_or("text");
            return Err(Error::NeedsCopy { protocol: "an import from a device", what });
        }
    };
    let overflow = || Error::BadArrow("the array exceeds the address space".into());
    let address = match elements.is_empty() {
        true => 0,
        false => {
            let offset = elements.start().checked_mul(dtype.item_size().unwrap_or(0)).ok_or_else(overflow)?;
            let start = elements.present(1)?.addr() as u64;
            start.checked_add(offset as u64).ok_or_else(overflow)?
        }
    };
    let shape = std::iter::once(rows as i64).chain(kind.row).collect();
    Ok(DeviceElements {
        address,
        shape,
        permutation: kind.permutation,
        dtype,
        owner: Owner::new(array.owner()),
    })
}
