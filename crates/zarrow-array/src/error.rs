//! Errors of building, checking and exchanging arrays.

use crate::dtype::DataType;
use zarrow_dlpack::DLDevice;

/// An error of building, checking or exchanging an array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The array has more bytes than memory can address.
    #[error("shape {shape:?} with {item_size} bytes per element exceeds the address space")]
    ShapeOverflow {
        /// Extents, outermost axis first.
        shape: Vec<u64>,
        /// Bytes of one element.
        item_size: usize,
    },
    /// The allocation failed.
    #[error("cannot allocate {nbytes} bytes")]
    OutOfMemory {
        /// Bytes requested.
        nbytes: usize,
    },
    /// The length of a buffer does not match its shape and type.
    #[error("{what} has {actual} bytes, but shape and type need {expected}")]
    LengthMismatch {
        /// The buffer.
        what: &'static str,
        /// Bytes required by shape and type.
        expected: usize,
        /// Bytes found.
        actual: usize,
    },
    /// Offsets do not start at 0, decrease, or exceed the data.
    #[error("offset {index} is {value}: offsets must start at 0, not decrease, and not exceed {nbytes}")]
    BadOffset {
        /// Index of the offset.
        index: usize,
        /// Its value.
        value: i64,
        /// Bytes of data.
        nbytes: usize,
    },
    /// A code is not the index of a category.
    #[error("element {index} has code {code}, but there are only {count} categories")]
    BadCode {
        /// Index of the element.
        index: usize,
        /// The code.
        code: i64,
        /// Number of categories.
        count: i64,
    },
    /// An element of a string array is not UTF-8.
    #[error("element {index} is not valid UTF-8")]
    NotUtf8 {
        /// Index of the element in C order.
        index: usize,
    },
    /// A view would exceed its memory or change the number of elements.
    #[error("{0}")]
    BadView(String),
    /// The fields of a structured type are invalid.
    #[error("invalid structured type: {0}")]
    BadStruct(String),
    /// The array has another layout.
    #[error("expected a {expected}, found a {found} of {dtype}")]
    OtherLayout {
        /// Expected layout.
        expected: &'static str,
        /// Layout found.
        found: &'static str,
        /// Element type.
        dtype: DataType,
    },
    /// The protocol has no equivalent of the data type.
    #[error("{protocol} has no type for {dtype}")]
    NoSuchType {
        /// The protocol.
        protocol: &'static str,
        /// The type without an equivalent.
        dtype: DataType,
    },
    /// The protocol cannot mark memory as read-only, and its consumers may write to it.
    #[error("{protocol} cannot mark memory as read-only; copy this read-only array first")]
    ReadOnly {
        /// The protocol.
        protocol: &'static str,
    },
    /// Zarr has no equivalent of the protocol's type.
    #[error("{protocol} type {name} has no Zarr data type")]
    UnknownType {
        /// The protocol.
        protocol: &'static str,
        /// The type's name in the protocol.
        name: String,
    },
    /// An array of the protocol has a meaning that an import would lose.
    #[error("{protocol} array of {what} would lose its meaning: {instead}")]
    LosesMeaning {
        /// The protocol.
        protocol: &'static str,
        /// Description of the array.
        what: String,
        /// What to pass instead.
        instead: &'static str,
    },
    /// The memory is not on the CPU.
    #[error("the memory is on {device}: only CPU memory is accepted")]
    Device {
        /// The device.
        device: DLDevice,
    },
    /// An array from another library violates Arrow's C data interface.
    #[error("invalid Arrow array: {0}")]
    BadArrow(String),
    /// A stride of foreign memory is not a multiple of the element size.
    #[error("a stride of {stride} bytes is not a multiple of the element size, {item_size} bytes")]
    UnevenStride {
        /// The stride.
        stride: i64,
        /// Bytes of one element.
        item_size: usize,
    },
    /// Elements are not aligned, although the protocol requires it.
    #[error("the elements of type {dtype} are not aligned, which {protocol} requires")]
    Misaligned {
        /// The protocol.
        protocol: &'static str,
        /// Element type.
        dtype: DataType,
    },
    /// A tensor from another library violates DLPack.
    #[error(transparent)]
    DLPack(#[from] zarrow_dlpack::Error),
    /// The protocol can only express the memory layout after a copy.
    #[error("{protocol} cannot take {what} without a copy")]
    NeedsCopy {
        /// The protocol.
        protocol: &'static str,
        /// What prevents the exchange.
        what: &'static str,
    },
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
