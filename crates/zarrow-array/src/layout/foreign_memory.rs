//! Checked description of memory of another library.
//!
//! 1. Extents are at least 0, and their product in bytes fits into memory. Zeros count as ones, so that every
//!    C-order stride fits too.
//! 2. Strides are converted to elements. Axes of length 1 and all axes of empty tensors get the C-order stride,
//!    whatever their own stride is.
//! 3. The addresses of the first and the last element are not NULL and do not wrap.

use crate::alignment::HOST_ALIGNMENT;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::shape::Axes;
use std::ptr::NonNull;

/// Strides in the form of a protocol.
#[derive(Debug, Clone, Copy)]
pub enum ForeignStrides<'a> {
    /// In elements.
    Elements(&'a [i64]),
    /// In bytes.
    Bytes(&'a [i64]),
    /// C order.
    COrder,
}

/// Borrowed elements of another library, with a checked description.
///
/// ```
/// use zarrow_array::{Error, ForeignMemory, ForeignStrides, Number};
/// let numbers = [1i32, 2, 3, 4];
/// let at = numbers.as_ptr().cast_mut().cast();
/// let every_second = ForeignStrides::Bytes(&[8]);
/// assert!(ForeignMemory::check(at, &[2], every_second, Number::Int32.into(), true).is_ok());
/// let uneven = ForeignMemory::check(at, &[2], ForeignStrides::Bytes(&[6]), Number::Int32.into(), true);
/// assert!(matches!(uneven, Err(Error::UnevenStride { stride: 6, item_size: 4 })));
/// ```
#[derive(Debug)]
pub struct ForeignMemory {
    pub(super) pointer: NonNull<u8>,
    pub(super) shape: Axes<i64>,
    pub(super) strides: Axes<i64>,
    pub(super) dtype: DataType,
    pub(super) item_size: usize,
    pub(super) read_only: bool,
}

impl ForeignMemory {
    /// Checks a tensor of `dtype` with its first element (index 0 of every axis) at `pointer`.
    ///
    /// # Errors
    /// [`Error::NoSuchType`] for a type without a fixed size; [`Error::BadView`] for a negative extent, a wrong
    /// number of strides, or elements at NULL or beyond the address space; [`Error::UnevenStride`];
    /// [`Error::ShapeOverflow`].
    pub fn check(
        pointer: *mut u8,
        shape: &[i64],
        strides: ForeignStrides<'_>,
        dtype: DataType,
        read_only: bool,
    ) -> Result<ForeignMemory> {
        let item_size = match dtype {
            DataType::Optional(_) => None,
            ref dtype => dtype.item_size(),
        };
        let Some(item_size) = item_size.filter(|size| *size > 0) else {
            return Err(Error::NoSuchType { protocol: "a tensor", dtype });
        };
        let strides = normal_strides(pointer, shape, strides, item_size)?;
        // An empty tensor is never read; this address is aligned for every type.
        let nowhere = || NonNull::new(std::ptr::without_provenance_mut(HOST_ALIGNMENT));
        let pointer = NonNull::new(pointer).or_else(nowhere).unwrap_or(NonNull::dangling());
        Ok(ForeignMemory { pointer, shape: shape.into(), strides, dtype, item_size, read_only })
    }
}

fn normal_strides(
    pointer: *mut u8,
    shape: &[i64],
    strides: ForeignStrides<'_>,
    item_size: usize,
) -> Result<Axes<i64>> {
    let bad = |what: &str| Error::BadView(format!("shape {shape:?} with strides {strides:?} {what}"));
    let overflow = || Error::ShapeOverflow {
        shape: shape.iter().map(|extent| extent.unsigned_abs()).collect(),
        item_size,
    };
    let item = item_size as i64;
    let mut normal: Axes<i64> = shape.into();
    let mut step = 1i64;
    for (extent, stride) in shape.iter().zip(&mut normal).rev() {
        if *extent < 0 {
            return Err(bad("has a negative extent"));
        }
        *stride = step;
        step = step.checked_mul((*extent).max(1)).ok_or_else(overflow)?;
    }
    if step.checked_mul(item).is_none() {
        return Err(overflow());
    }
    let given = match strides {
        ForeignStrides::Elements(strides) => Some((strides, 1)),
        ForeignStrides::Bytes(strides) => Some((strides, item)),
        ForeignStrides::COrder => None,
    };
    if given.is_some_and(|(strides, _)| strides.len() != shape.len()) {
        return Err(bad("needs one stride per axis"));
    }
    if shape.contains(&0) {
        return Ok(normal);
    }
    // Without strides the elements are contiguous.
    let (mut low, mut high) = (0i64, if given.is_some() { 1 } else { step });
    if let Some((given, unit)) = given {
        for ((extent, stride), normal) in shape.iter().zip(given).zip(&mut normal) {
            if *extent == 1 {
                continue;
            }
            if stride % unit != 0 {
                return Err(Error::UnevenStride { stride: *stride, item_size });
            }
            *normal = stride / unit;
            let reach = (*extent - 1).checked_mul(*normal).ok_or_else(overflow)?;
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.checked_add(reach).ok_or_else(overflow)?;
        }
    }
    if pointer.is_null() {
        return Err(bad("has elements at address NULL"));
    }
    let at = |end: i64| pointer.addr().checked_add_signed(isize::try_from(end.checked_mul(item)?).ok()?);
    if at(low).is_none() || at(high).is_none() || high.checked_sub(low).is_none() {
        return Err(bad("reaches beyond the address space"));
    }
    Ok(normal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Number;

    fn check(shape: &[i64], strides: ForeignStrides<'_>) -> Result<(Vec<i64>, Vec<i64>)> {
        // No element is read here.
        let somewhere = std::ptr::without_provenance_mut(1 << 20);
        let memory = ForeignMemory::check(somewhere, shape, strides, Number::Int16.into(), false)?;
        Ok((memory.shape.to_vec(), memory.strides.to_vec()))
    }

    #[test]
    fn strides_become_elements() {
        use ForeignStrides::{Bytes, COrder, Elements};
        assert_eq!(check(&[2, 3], COrder).unwrap().1, [3, 1]);
        assert_eq!(check(&[2, 3], Bytes(&[-6, 2])).unwrap().1, [-3, 1]);
        assert_eq!(check(&[2, 3], Elements(&[-6, 2])).unwrap().1, [-6, 2]);
        assert!(matches!(check(&[2, 3], Bytes(&[6, 3])), Err(Error::UnevenStride { stride: 3, .. })));
        assert_eq!(check(&[1, 3], Bytes(&[7, 2])).unwrap().1, [3, 1]);
        assert_eq!(check(&[0, 3], Bytes(&[7, 5])).unwrap().1, [3, 1]);
        assert_eq!(check(&[], COrder).unwrap(), (vec![], vec![]));
    }

    #[test]
    fn malformed_descriptions_are_errors() {
        use ForeignStrides::{Bytes, COrder, Elements};
        let half = i64::MAX / 2;
        assert!(matches!(check(&[-1], COrder), Err(Error::BadView(_))));
        assert!(matches!(check(&[half + 1], COrder), Err(Error::ShapeOverflow { .. })));
        assert!(matches!(check(&[half, 3], COrder), Err(Error::ShapeOverflow { .. })));
        assert!(matches!(check(&[half, 0, 3], COrder), Err(Error::ShapeOverflow { .. })));
        assert!(matches!(check(&[2], Elements(&[])), Err(Error::BadView(_))));
        assert!(matches!(check(&[0], Elements(&[1, 1])), Err(Error::BadView(_))));
        assert!(matches!(check(&[3], Elements(&[i64::MAX])), Err(Error::ShapeOverflow { .. })));
        assert!(matches!(check(&[2, 2], Elements(&[half, half + 2])), Err(Error::ShapeOverflow { .. })));
        assert!(matches!(check(&[2], Bytes(&[i64::MIN])), Err(Error::BadView(_))));
        assert!(matches!(check(&[1 << 20], Elements(&[-2])), Err(Error::BadView(_))));
        let null = |shape: &[i64]| {
            ForeignMemory::check(std::ptr::null_mut(), shape, COrder, Number::Int8.into(), true)
        };
        assert!(matches!(null(&[1]), Err(Error::BadView(_))));
        assert_eq!(null(&[0]).unwrap().pointer.addr().get(), HOST_ALIGNMENT);
        assert!(matches!(
            ForeignMemory::check(std::ptr::null_mut(), &[0], COrder, DataType::String, true),
            Err(Error::NoSuchType { .. })
        ));
    }
}
