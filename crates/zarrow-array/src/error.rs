//! What can go wrong when arrays are built, checked or handed over.

use crate::dtype::DataType;
use zarrow_dlpack::DLDevice;

/// An error of building, checking or exchanging an array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The shape has more bytes than memory can address.
    #[error("shape {shape:?} with {item_size} bytes an element is larger than memory can address")]
    ShapeOverflow {
        /// Extents, outermost axis first.
        shape: Vec<u64>,
        /// Bytes of one element.
        item_size: usize,
    },
    /// The allocator could not give the memory.
    #[error("cannot allocate {nbytes} bytes")]
    OutOfMemory {
        /// Bytes asked for.
        nbytes: usize,
    },
    /// A buffer does not have the length that its shape and type ask for.
    #[error("{what} has {actual} bytes, expected {expected} by shape and type")]
    LengthMismatch {
        /// Which buffer.
        what: &'static str,
        /// Bytes asked for.
        expected: usize,
        /// Bytes found.
        actual: usize,
    },
    /// Offsets do not start at 0, run backwards, or point outside the bytes.
    #[error("offset {index} is {value}: offsets must rise from 0 to at most {nbytes}")]
    BadOffset {
        /// Which offset.
        index: usize,
        /// Its value.
        value: i64,
        /// Bytes there are.
        nbytes: usize,
    },
    /// A code stands for no category.
    #[error("element {index} has the code {code}, expected less than {count} (the number of categories)")]
    BadCode {
        /// Which element.
        index: usize,
        /// Its code.
        code: i64,
        /// Categories there are.
        count: i64,
    },
    /// An element of a string array is not UTF-8.
    #[error("element {index} is not valid UTF-8")]
    NotUtf8 {
        /// Which element, counted in C order.
        index: usize,
    },
    /// A view would reach outside its memory, or change the number of elements.
    #[error("{0}")]
    BadView(String),
    /// The fields of a structured type do not hold together.
    #[error("invalid structured type: {0}")]
    BadStruct(String),
    /// An array has another of the four layouts.
    #[error("expected a {expected}, found a {found} of {dtype}")]
    OtherLayout {
        /// The layout that was asked for.
        expected: &'static str,
        /// Its layout.
        found: &'static str,
        /// What its elements are.
        dtype: DataType,
    },
    /// The data type has no name in the protocol.
    #[error("{protocol} has no type for {dtype}")]
    NoSuchType {
        /// Which protocol.
        protocol: &'static str,
        /// The type that it cannot say.
        dtype: DataType,
    },
    /// The protocol cannot say that memory is read-only, and its consumer would write to it.
    #[error("this memory is read-only, and {protocol} cannot say so: copy it first")]
    ReadOnly {
        /// Which protocol.
        protocol: &'static str,
    },
    /// The protocol's type is none that Zarr has.
    #[error("{protocol} type {name} has no data type here")]
    UnknownType {
        /// Which protocol.
        protocol: &'static str,
        /// What the protocol calls the type.
        name: String,
    },
    /// An array of the protocol says what no array here can, and would be another without it.
    #[error("{protocol} array of {what} would lose its meaning: {instead}")]
    LosesMeaning {
        /// Which protocol.
        protocol: &'static str,
        /// What it says.
        what: String,
        /// What to hand over instead.
        instead: &'static str,
    },
    /// The memory is not that of the CPU.
    #[error("the memory is on {device}: only memory of the CPU is taken")]
    Device {
        /// Where it is.
        device: DLDevice,
    },
    /// An array of another library breaks the rules of Arrow's C data interface.
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
    /// Elements do not lie at multiples of their size, as the protocol promises.
    #[error("the elements of type {dtype} are not aligned, as {protocol} promises they are")]
    Misaligned {
        /// Which protocol.
        protocol: &'static str,
        /// What the elements are.
        dtype: DataType,
    },
    /// A tensor of another library breaks the rules of DLPack.
    #[error(transparent)]
    DLPack(#[from] zarrow_dlpack::Error),
    /// The memory layout has no form in the protocol without a copy.
    #[error("{protocol} cannot take {what} without a copy")]
    NeedsCopy {
        /// Which protocol.
        protocol: &'static str,
        /// What is in the way.
        what: &'static str,
    },
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
