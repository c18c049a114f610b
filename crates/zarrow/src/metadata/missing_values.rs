//! Values that mark missing elements: those named by the attributes, the fill value, or values from the caller.
//!
//! - Numbers are compared as numbers: any NaN is equal to NaN, and -0 to 0. Floats of 8 bits and fewer, and complex
//!   numbers of floats of 16 bits and fewer, are compared by their bits, as are all other types.
//! - A value outside the type's range is equal to no element: an attribute with such a value has no effect.
//!
//! Sources: CF conventions 1.11, section 2.5.1; xarray, `FillValueCoder`, for floats that it stores as text.

use crate::error::{ErrorKind, Result};
use crate::metadata::{ARRAY_DIMENSIONS, ArrayMetadata, FillValue, ZarrFormat};
use serde_json::Value;
use zarrow_array::{Buffer, DataType, Number, Variable};

/// Values of one type that mark missing elements.
///
/// ```
/// use zarrow::MissingValues;
/// use zarrow_array::Number;
/// let values = MissingValues::new(&Number::Float32.into(), vec![f32::NAN.to_ne_bytes().to_vec()])?;
/// assert!(values.contain(&(-f32::NAN).to_ne_bytes()));
/// assert!(!values.contain(&0f32.to_ne_bytes()));
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingValues {
    comparison: Comparison,
    values: Vec<Vec<u8>>,
}

/// How elements are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Bits,
    /// 16-bit floats, with these exponent bits.
    Half(u16),
    Float32,
    Float64,
    Complex64,
    Complex128,
}

impl MissingValues {
    /// Takes values, each as the bytes of an element in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if a value's length differs from the type's element size.
    pub fn new(data_type: &DataType, values: Vec<Vec<u8>>) -> Result<MissingValues> {
        let size = data_type.item_size();
        if let Some(value) = values.iter().find(|value| size.is_some_and(|size| size != value.len())) {
            let text = format!("expected a value of type {data_type}, got {} bytes", value.len());
            return Err(ErrorKind::Shape(text).into());
        }
        let comparison = match data_type.without_optional().as_number() {
            Some(Number::Float16) => Comparison::Half(0x7c00),
            Some(Number::BFloat16) => Comparison::Half(0x7f80),
            Some(Number::Float32) => Comparison::Float32,
            Some(Number::Float64) => Comparison::Float64,
            Some(Number::Complex64) => Comparison::Complex64,
            Some(Number::Complex128) => Comparison::Complex128,
            _ => Comparison::Bits,
        };
        Ok(MissingValues { comparison, values })
    }

    /// Returns the values in the attributes `_FillValue` and `missing_value`; each is one value or a list.
    ///
    /// If xarray wrote the array in version 2 (it has `_ARRAY_DIMENSIONS`) and there is no `_FillValue`, the array's
    /// fill value is used, if it has one.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`], which does not occur for values of the type.
    pub fn cf(metadata: &ArrayMetadata) -> Result<MissingValues> {
        let element = metadata.data_type.without_optional();
        let attribute = |name: &str| metadata.attributes.get(name);
        let named = |value: &Value| named(value, element, metadata.zarr_format);
        let mut values = Vec::new();
        match attribute("_FillValue") {
            Some(value) => values.extend(named(value)),
            None if metadata.zarr_format == ZarrFormat::V2
                && metadata.has_fill_value
                && attribute(ARRAY_DIMENSIONS).is_some() =>
            {
                values.extend(bytes(&metadata.fill_value));
            }
            None => {}
        }
        values.extend(attribute("missing_value").into_iter().flat_map(named));
        MissingValues::new(element, values)
    }

    /// Returns the array's fill value; nothing if version 2 leaves it open, or in an optional type if the fill value
    /// is missing already.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`], which does not occur for values of the type.
    pub fn fill(metadata: &ArrayMetadata) -> Result<MissingValues> {
        let value = bytes(&metadata.fill_value).filter(|_| metadata.has_fill_value);
        MissingValues::new(metadata.data_type.without_optional(), value.into_iter().collect())
    }

    /// Returns the values, each as the bytes of an element in memory.
    #[must_use]
    pub fn values(&self) -> &[Vec<u8>] {
        &self.values
    }

    /// Whether an element with these bytes is missing.
    #[must_use]
    pub fn contain(&self, element: &[u8]) -> bool {
        match self.comparison {
            Comparison::Bits => self.values.iter().any(|value| value == element),
            _ => {
                let mut place = [0];
                self.mark(element, &mut place);
                place == [1]
            }
        }
    }

    /// Writes 1 to `missing` for each missing element. `missing` starts as zeros.
    pub(crate) fn mark(&self, elements: &[u8], missing: &mut [u8]) {
        let size = elements.len().checked_div(missing.len()).unwrap_or(0);
        for value in &self.values {
            match self.comparison {
                Comparison::Bits => bits(elements, value, size, missing),
                Comparison::Half(exponent) => half(elements, value, exponent, missing),
                Comparison::Float32 => floats(elements, value, f32::from_ne_bytes, missing),
                Comparison::Float64 => floats(elements, value, f64::from_ne_bytes, missing),
                Comparison::Complex64 => complex::<4, 8, f32>(elements, value, f32::from_ne_bytes, missing),
                Comparison::Complex128 => complex::<8, 16, f64>(elements, value, f64::from_ne_bytes, missing),
            }
        }
    }

    /// Returns the mask of an array of strings or bytes, one byte per element.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] if memory is short.
    pub(crate) fn mask_of(&self, variable: &Variable) -> Result<Buffer> {
        let mut missing = Buffer::zeroed(variable.size())?;
        for (index, missing) in missing.iter_mut().enumerate() {
            *missing = u8::from(variable.element(index).is_some_and(|element| self.contain(element)));
        }
        Ok(missing)
    }
}

/// Returns the bytes of a fill value; `None` if the fill value is missing.
fn bytes(value: &FillValue) -> Option<Vec<u8>> {
    match value {
        FillValue::Fixed(bytes) | FillValue::Variable(bytes) => Some(bytes.clone()),
        FillValue::Present(inner) => bytes(inner),
        FillValue::Missing => None,
    }
}

/// Returns the values in an attribute: one, or a list.
fn named(value: &Value, element: &DataType, format: ZarrFormat) -> Vec<Vec<u8>> {
    if let Some(bytes) = FillValue::from_attribute(value, element, format).as_ref().and_then(bytes) {
        return vec![bytes];
    }
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|value| bytes(&FillValue::from_attribute(value, element, format)?)).collect()
}

/// Marks the elements that satisfy `equal`.
fn more<const SIZE: usize>(elements: &[u8], missing: &mut [u8], equal: impl Fn([u8; SIZE]) -> bool) {
    for (element, place) in elements.as_chunks::<SIZE>().0.iter().zip(missing) {
        *place |= u8::from(equal(*element));
    }
}

fn bits(elements: &[u8], value: &[u8], size: usize, missing: &mut [u8]) {
    fn words<const SIZE: usize>(elements: &[u8], value: &[u8], missing: &mut [u8]) -> bool {
        let Ok(value) = <[u8; SIZE]>::try_from(value) else { return false };
        more(elements, missing, |element: [u8; SIZE]| element == value);
        true
    }
    let marked = match size {
        1 => words::<1>(elements, value, missing),
        2 => words::<2>(elements, value, missing),
        4 => words::<4>(elements, value, missing),
        8 => words::<8>(elements, value, missing),
        16 => words::<16>(elements, value, missing),
        _ => false,
    };
    if marked || size == 0 {
        return;
    }
    for (element, place) in elements.chunks_exact(size).zip(missing) {
        if element == value {
            *place = 1;
        }
    }
}

/// Operations needed to compare floats.
trait Float: PartialEq + Copy {
    fn is_missing(self) -> bool;
}

impl Float for f32 {
    fn is_missing(self) -> bool {
        self.is_nan()
    }
}

impl Float for f64 {
    fn is_missing(self) -> bool {
        self.is_nan()
    }
}

fn floats<const SIZE: usize, T: Float>(
    elements: &[u8],
    value: &[u8],
    float: impl Fn([u8; SIZE]) -> T,
    missing: &mut [u8],
) {
    let Ok(value) = value.try_into().map(&float) else { return };
    match value.is_missing() {
        true => more(elements, missing, |element| float(element).is_missing()),
        false => more(elements, missing, |element| float(element) == value),
    }
}

fn complex<const PART: usize, const SIZE: usize, T: Float>(
    elements: &[u8],
    value: &[u8],
    float: impl Fn([u8; PART]) -> T,
    missing: &mut [u8],
) {
    let parts = |bytes: &[u8]| match bytes.as_chunks::<PART>().0 {
        [real, imaginary] => Some((float(*real), float(*imaginary))),
        _ => None,
    };
    let same = |one: T, other: T| one == other || (one.is_missing() && other.is_missing());
    let Some((real, imaginary)) = parts(value) else { return };
    more(elements, missing, |element: [u8; SIZE]| {
        parts(&element).is_some_and(|(own, other)| same(own, real) && same(other, imaginary))
    });
}

/// Marks 16-bit floats, ignoring the sign of zeros and NaN.
fn half(elements: &[u8], value: &[u8], exponent: u16, missing: &mut [u8]) {
    let Ok(value) = value.try_into().map(u16::from_ne_bytes) else { return };
    let magnitude = |bits: u16| bits & 0x7fff;
    let is_nan = |bits: u16| magnitude(bits) > exponent;
    match value {
        value if is_nan(value) => more(elements, missing, |element| is_nan(u16::from_ne_bytes(element))),
        value if magnitude(value) == 0 => {
            more(elements, missing, |element| magnitude(u16::from_ne_bytes(element)) == 0);
        }
        value => more(elements, missing, |element| u16::from_ne_bytes(element) == value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marks(data_type: DataType, values: &[&[u8]], elements: &[&[u8]]) -> Vec<u8> {
        let values = values.iter().map(|value| value.to_vec()).collect();
        let values = MissingValues::new(&data_type, values).unwrap();
        let mut marks = vec![0u8; elements.len()];
        values.mark(&elements.concat(), &mut marks);
        let one_by_one: Vec<u8> = elements.iter().map(|element| u8::from(values.contain(element))).collect();
        assert_eq!(marks, one_by_one);
        marks
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let nan = |bits: u32| f32::from_bits(bits).to_ne_bytes();
        let elements = [nan(0x7fc0_0000), nan(0xffc0_0001), 1f32.to_ne_bytes(), (-0f32).to_ne_bytes()];
        let elements: Vec<&[u8]> = elements.iter().map(|element| &element[..]).collect();
        let float: DataType = Number::Float32.into();
        assert_eq!(marks(float.clone(), &[&f32::NAN.to_ne_bytes()], &elements), [1, 1, 0, 0]);
        assert_eq!(marks(float.clone(), &[&0f32.to_ne_bytes()], &elements), [0, 0, 0, 1]);
        assert_eq!(
            marks(float.clone(), &[&1f32.to_ne_bytes(), &0f32.to_ne_bytes()], &elements),
            [0, 0, 1, 1]
        );
        assert_eq!(marks(float, &[], &elements), [0, 0, 0, 0]);
        let halves = [0x7e00u16, 0xfe01, 0x7c00, 0x8000, 0x3c00].map(u16::to_ne_bytes);
        let halves: Vec<&[u8]> = halves.iter().map(|element| &element[..]).collect();
        let half: DataType = Number::Float16.into();
        assert_eq!(marks(half.clone(), &[&0x7e00u16.to_ne_bytes()], &halves), [1, 1, 0, 0, 0]);
        assert_eq!(marks(half.clone(), &[&0u16.to_ne_bytes()], &halves), [0, 0, 0, 1, 0]);
        assert_eq!(marks(half, &[&0x7c00u16.to_ne_bytes()], &halves), [0, 0, 1, 0, 0]);
        let complex = [[f64::NAN, 0.0], [1.0, f64::NAN], [f64::NAN, -0.0]];
        let complex = complex.map(|parts| parts.map(f64::to_ne_bytes).concat());
        let complex: Vec<&[u8]> = complex.iter().map(|element| &element[..]).collect();
        assert_eq!(marks(Number::Complex128.into(), &[complex[0]], &complex), [1, 0, 1]);
    }

    proptest! {
        /// Marks elements of any size that have the bytes of a value.
        #[test]
        fn others_are_compared_by_their_bytes(
            size in 0u32..20, picks in prop::collection::vec(0u8..4, 0..40), values in prop::collection::vec(0u8..4, 0..3),
        ) {
            let item = |pick: u8| (0..size).map(|at| pick.wrapping_add((at == size - 1).into())).collect::<Vec<u8>>();
            let (elements, bytes): (Vec<_>, Vec<_>) =
                (picks.iter().map(|pick| item(*pick)).collect(), values.iter().map(|value| item(*value)).collect());
            let elements: Vec<&[u8]> = elements.iter().map(|element| &element[..]).collect();
            let bytes: Vec<&[u8]> = bytes.iter().map(|value| &value[..]).collect();
            if size > 0 {
                let expected: Vec<u8> = picks.iter().map(|pick| u8::from(values.contains(pick))).collect();
                prop_assert_eq!(marks(DataType::RawBytes { length: size }, &bytes, &elements), expected);
            }
        }
    }
}
