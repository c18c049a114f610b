//! Where the elements of an Arrow array lie whose buffers are on a device: nothing of them is read here.
//!
//! The structs themselves are on the host, and are checked as those of any array.

use super::foreign::{Lent, Part};
use super::kind::{Element, Kind};
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::export::arrow_abi::{ArrowArray, ArrowSchema, Owner};
use std::sync::Arc;

/// Elements of a fixed size on a device, in C order of `shape`, none of them null.
#[derive(Debug)]
pub struct DeviceElements {
    /// The address of the first one, on the device; 0 where there are none.
    pub address: u64,
    /// Extents, outermost axis first.
    pub shape: Vec<i64>,
    /// In which order the axes of `shape` are meant, where that is another.
    pub permutation: Option<Vec<usize>>,
    /// The type of the elements.
    pub dtype: DataType,
    /// Releases the array.
    pub owner: Owner,
}

/// The elements of `array`, whose buffers are on a device.
///
/// # Errors
/// [`Error::UnknownType`] and [`Error::NeedsCopy`] for a type whose elements are not those of a tensor;
/// [`Error::LosesMeaning`] where elements may be null; [`Error::BadArrow`] for an array that breaks Arrow's rules.
pub fn device_elements(schema: &ArrowSchema, array: ArrowArray) -> Result<DeviceElements> {
    let owner = Arc::new(Lent::new(array));
    let kind = Kind::of(schema)?;
    let array = Part::of(&owner);
    let rows = array.length();
    let elements = array.elements_without_nulls(&kind.lists)?;
    let dtype = match kind.element {
        Element::Shared(dtype) => dtype,
        other => {
            let what = other.copied().unwrap_or("text");
            return Err(Error::NeedsCopy { protocol: "an import from a device", what });
        }
    };
    let overflow = || Error::BadArrow("more elements than memory can address".into());
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
