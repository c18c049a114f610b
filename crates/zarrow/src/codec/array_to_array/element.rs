//! Numbers with NumPy's semantics: reading, writing, casting, and the arithmetic of filters.
//!
//! 1. Bytes are a list of native-endian numbers. [`convert`] maps one list to another, number by number.
//! 2. A cast is NumPy's, which is C's. Where C leaves it undefined (NaN, or a number that the integer type cannot hold)
//!    the result is what NumPy gives on x86-64: the lowest number for a type of 32 or 64 bits, and the low bits of that
//!    for smaller types.
//! 3. Integers wrap around, and each operation is rounded to its type.

use crate::error::{ErrorKind, Result};
use half::f16;
use zarrow_array::{DataType, Number};

/// A number of any type, in the widest form needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wide {
    /// A whole number.
    Integer(i128),
    /// A number with a fraction, which `f64` holds exactly.
    Real(f64),
}

impl Wide {
    /// Returns the number, rounded to nearest if it has more than 53 bits.
    #[inline]
    pub fn to_f64(self) -> f64 {
        match self {
            Wide::Integer(integer) => integer as f64,
            Wide::Real(real) => real,
        }
    }
}

/// A number in memory.
pub trait Element: Copy + PartialEq + 'static {
    /// Bytes of one number.
    const SIZE: usize;
    /// Whether the type is a floating-point type.
    const IS_REAL: bool;
    /// Reads a number from exactly as many bytes as the type has.
    fn read(bytes: &[u8]) -> Self;
    /// Writes the number to exactly as many bytes as the type has.
    fn write(self, bytes: &mut [u8]);
    /// Returns the number in its widest form.
    fn wide(self) -> Wide;
    /// Casts the number to this type as NumPy does (step 2).
    fn cast(wide: Wide) -> Self;
    /// Returns the sum (step 3).
    fn plus(self, other: Self) -> Self;
    /// Returns the difference (step 3).
    fn minus(self, other: Self) -> Self;
    /// Returns the product (step 3).
    fn times(self, other: Self) -> Self;
    /// Returns the quotient: for integers rounded down, as Python's `//`, and 0 for a division by 0.
    fn over(self, other: Self) -> Self;
    /// Rounds to the nearest whole number, ties to even.
    fn rounded(self) -> Self;
}

macro_rules! in_bytes {
    ($type:ty) => {
        const SIZE: usize = size_of::<$type>();
        #[inline]
        fn read(bytes: &[u8]) -> Self {
            bytes.first_chunk().map_or(Self::default(), |bytes| <$type>::from_ne_bytes(*bytes))
        }
        #[inline]
        fn write(self, bytes: &mut [u8]) {
            if let Some(bytes) = bytes.first_chunk_mut() {
                *bytes = self.to_ne_bytes();
            }
        }
    };
}

/// Implements operations by methods of the type.
macro_rules! binary {
    ($($operation:ident $method:ident),*) => { $(
        #[inline]
        fn $operation(self, other: Self) -> Self {
            self.$method(other)
        }
    )* };
}

macro_rules! integers {
    ($($type:ty, $cast:ty;)*) => { $(
        impl Element for $type {
            in_bytes!($type);
            const IS_REAL: bool = false;
            #[inline]
            fn wide(self) -> Wide {
                Wide::Integer(self as i128)
            }
            #[inline]
            fn cast(wide: Wide) -> Self {
                match wide {
                    Wide::Integer(integer) => integer as $type,
                    Wide::Real(real) => <$cast>::truncated(real) as $type,
                }
            }
            binary!(plus wrapping_add, minus wrapping_sub, times wrapping_mul);
            #[inline]
            fn over(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let (quotient, rest) = (self.wrapping_div(other), self.wrapping_rem(other));
                #[allow(unused_comparisons)]
                let is_below = rest != 0 && (rest < 0) != (other < 0);
                quotient.wrapping_sub(is_below as $type)
            }
            #[inline]
            fn rounded(self) -> Self {
                self
            }
        }
    )* };
}

/// Conversion of a real number to an integer, with the processor's result.
trait Truncated: Sized {
    fn truncated(real: f64) -> Self;
}

impl Truncated for i32 {
    #[inline]
    fn truncated(real: f64) -> i32 {
        let whole = real.trunc();
        if (-2_147_483_648.0..=2_147_483_647.0).contains(&whole) { whole as i32 } else { i32::MIN }
    }
}

impl Truncated for i64 {
    #[inline]
    fn truncated(real: f64) -> i64 {
        let limit = 9_223_372_036_854_775_808.0;
        if real >= -limit && real < limit { real as i64 } else { i64::MIN }
    }
}

impl Truncated for u64 {
    #[inline]
    fn truncated(real: f64) -> u64 {
        let half = 9_223_372_036_854_775_808.0;
        if real < half { i64::truncated(real) as u64 } else { i64::truncated(real - half) as u64 ^ 1 << 63 }
    }
}

integers! {
    i8, i32;
    i16, i32;
    i32, i32;
    i64, i64;
    u8, i32;
    u16, i32;
    u32, i64;
    u64, u64;
}

/// Implements [`Element`] for real types: computed in `$compute`, and rounded from there by `$round`.
macro_rules! reals {
    ($($type:ty, $compute:ty, $round:expr, $from:expr;)*) => { $(
        impl Element for $type {
            in_bytes!($type);
            const IS_REAL: bool = true;
            #[inline]
            fn wide(self) -> Wide {
                Wide::Real(f64::from(self))
            }
            #[inline]
            fn cast(wide: Wide) -> Self {
                $from(wide)
            }
            #[inline]
            fn plus(self, other: Self) -> Self {
                $round(<$compute>::from(self) + <$compute>::from(other))
            }
            #[inline]
            fn minus(self, other: Self) -> Self {
                $round(<$compute>::from(self) - <$compute>::from(other))
            }
            #[inline]
            fn times(self, other: Self) -> Self {
                $round(<$compute>::from(self) * <$compute>::from(other))
            }
            #[inline]
            fn over(self, other: Self) -> Self {
                $round(<$compute>::from(self) / <$compute>::from(other))
            }
            #[inline]
            fn rounded(self) -> Self {
                $round(<$compute>::from(self).round_ties_even())
            }
        }
    )* };
}

reals! {
    f16, f32, f16::from_f32, |wide: Wide| half_of(wide.to_f64());
    f32, f32, f32::from, |wide: Wide| match wide {
        Wide::Integer(integer) => integer as f32,
        Wide::Real(real) => real as f32,
    };
    f64, f64, f64::from, Wide::to_f64;
}

/// Returns the nearest `f16`, rounded once: the intermediate `f32` is rounded to odd, which preserves the information
/// that it is inexact.
fn half_of(real: f64) -> f16 {
    let single = real as f32;
    let bits = single.to_bits();
    if !single.is_finite() || f64::from(single) == real || bits & 1 == 1 {
        return f16::from_f32(single);
    }
    let towards_zero = f64::from(single).abs() > real.abs();
    f16::from_f32(f32::from_bits(if towards_zero { bits - 1 } else { bits + 1 }))
}

/// A bool as in NumPy: a zero or nonzero byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bool(bool);

impl Element for Bool {
    const SIZE: usize = 1;
    const IS_REAL: bool = false;
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        Bool(bytes.first().is_some_and(|byte| *byte != 0))
    }
    #[inline]
    fn write(self, bytes: &mut [u8]) {
        bytes.fill(u8::from(self.0));
    }
    #[inline]
    fn wide(self) -> Wide {
        Wide::Integer(i128::from(self.0))
    }
    #[inline]
    fn cast(wide: Wide) -> Self {
        Bool(wide.to_f64() != 0.0)
    }
    #[inline]
    fn plus(self, other: Self) -> Self {
        Bool(self.0 | other.0)
    }
    #[inline]
    fn minus(self, other: Self) -> Self {
        Bool(self.0 != other.0)
    }
    #[inline]
    fn times(self, other: Self) -> Self {
        Bool(self.0 & other.0)
    }
    #[inline]
    fn over(self, other: Self) -> Self {
        Bool(self.0 & other.0)
    }
    #[inline]
    fn rounded(self) -> Self {
        self
    }
}

/// Runs `$body` with `$type` standing for the Rust type of `$number`, an expression of type [`Number`]; gives `None`
/// for a number that filters do not compute with.
macro_rules! with_element {
    ($number:expr, $type:ident => $body:expr) => {
        $crate::codec::number_type::with_type!($number, $type => $body;
            Bool $crate::codec::array_to_array::element::Bool,
            Int8 i8, Int16 i16, Int32 i32, Int64 i64,
            UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
            Float16 half::f16, Float32 f32, Float64 f64
        )
    };
}
pub(crate) use with_element;

/// Returns the number type that filters compute with.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for every other type.
pub fn computable(data_type: &DataType) -> Result<Number> {
    data_type
        .as_number()
        .filter(|number| with_element!(*number, T => T::SIZE).is_some())
        .ok_or_else(|| ErrorKind::Unsupported(format!("computing with {data_type}")).into())
}

/// Returns the numbers of `source` in order.
pub fn numbers<T: Element>(source: &[u8]) -> impl Iterator<Item = T> {
    source.chunks_exact(T::SIZE).map(T::read)
}

/// Allocates `count` zeroed numbers of `size` bytes.
pub fn room(count: usize, size: usize) -> Result<Vec<u8>> {
    let nbytes = zarrow_array::shape::nbytes(&[count as u64], size)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
    bytes.resize(nbytes, 0);
    Ok(bytes)
}

/// Maps every number of `source` by `each` (step 1).
pub fn convert<T: Element, U: Element>(source: &[u8], mut each: impl FnMut(T) -> U) -> Result<Vec<u8>> {
    let mut made = room(source.len() / T::SIZE, U::SIZE)?;
    for (number, place) in numbers(source).zip(made.chunks_exact_mut(U::SIZE)) {
        each(number).write(place);
    }
    Ok(made)
}

/// Casts the numbers of `source` from one type to another.
///
/// # Errors
/// [`ErrorKind::Internal`] for types that are not [`computable`]; [`zarrow_array::Error::OutOfMemory`].
pub fn cast(source: Vec<u8>, from: Number, to: Number) -> Result<Vec<u8>> {
    if from == to {
        return Ok(source);
    }
    let made = with_element!(from, T => with_element!(to, U => convert(&source, |number: T| U::cast(number.wide()))));
    made.flatten().unwrap_or_else(|| Err(not_computable()))
}

/// Error for a type that [`computable`] accepts but no code handles: the parsers rule this out.
pub fn not_computable() -> crate::Error {
    ErrorKind::Internal("a filter of a type that it does not compute with".into()).into()
}
