//! Filters: codecs that turn an array into another array, with other elements or another shape.
//!
//! 1. [`Filtered`] is one filter and the chain after it, so a list of filters is nested. A chain without a filter has
//!    no code for filters. Transposes at the start of a list are part of its chain instead.
//! 2. A chunk is decoded whole: the chain after the filter gives the stored elements, native-endian in C order, and the
//!    filter computes the chunk's elements from them. Encoding does the reverse.
//! 3. The number and type of the stored elements follow from the metadata alone. A stored element decodes to one
//!    element, or to 8 if it holds bits. So the stored elements bound the decoded size.
//! 4. The `dtype` of a numcodecs filter may differ from the elements' type if both have the same size: the bytes are
//!    reinterpreted, as in numcodecs.
//!
//! Each filter is a file, and a line below.

pub(crate) mod element;
pub mod filter;
pub mod filtered;
pub mod parameters;

pub use filter::{Filter, Shape, Values, Words};
pub use filtered::Filtered;
pub use parameters::{Parameters, number_named};

crate::codec::definition::codecs! {
    astype: DEFINITION;
    bitround: DEFINITION;
    cast_value: DEFINITION;
    categorize: DEFINITION;
    delta: DEFINITION;
    fixed_scale_offset: DEFINITION;
    packbits: DEFINITION;
    quantize: DEFINITION;
    reshape: DEFINITION;
    scale_offset: DEFINITION;
    squeeze: DEFINITION;
    transpose: DEFINITION;
}
