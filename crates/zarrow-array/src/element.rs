//! Rust types of elements.

use crate::dtype::Number;

/// A Rust type with the same memory representation as elements of a tensor.
///
/// # Safety
/// Every bit pattern must be a valid value of the type. The type must have no padding, and the same size as each of
/// [`NUMBERS`](Self::NUMBERS).
pub unsafe trait Element: Copy + std::fmt::Debug + Send + Sync + 'static {
    /// Data types with this element type; vectors become tensors of the first.
    const NUMBERS: &'static [Number];
}

macro_rules! elements {
    ($($rust:ty: $($number:ident)+;)+) => {
        $(
            // SAFETY: primitive numbers have a value for every bit pattern, and no padding; a test compares the
            // sizes.
            unsafe impl Element for $rust {
                const NUMBERS: &'static [Number] = &[$(Number::$number),+];
            }
        )+
    };
}

elements! {
    i8: Int8;
    i16: Int16;
    i32: Int32;
    i64: Int64;
    u8: UInt8 Bool;
    u16: UInt16;
    u32: UInt32;
    u64: UInt64;
    f32: Float32;
    f64: Float64;
    [f32; 2]: Complex64;
    [f64; 2]: Complex128;
}
