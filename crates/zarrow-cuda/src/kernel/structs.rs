//! Arguments of the kernels, as declared in `kernels/structs.cuh`.

use crate::driver::functions::Address;
use std::mem::{offset_of, size_of};
use zarrow_array::{DataType, Number};

/// Maximum number of axes per launch.
pub const MAX_RANK: usize = 8;

/// Shuffle of a decoded buffer's bytes before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Shuffle {
    /// No shuffle.
    #[default]
    None = 0,
    /// Byte shuffle: bytes at the same position in their elements are adjacent.
    Bytes = 1,
    /// Bit shuffle.
    Bits = 2,
    /// No buffer: each element is the fill value.
    Fill = 3,
}

/// A box of elements to move from a decoded buffer to its destination.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Piece {
    pub source: Address,
    pub source_offset: u64,
    pub destination: Address,
    pub count: u64,
    pub shape: [u64; MAX_RANK],
    pub source_stride: [i64; MAX_RANK],
    pub destination_stride: [i64; MAX_RANK],
    pub decoded_nbytes: u64,
    pub block_nbytes: u64,
    pub rank: u32,
    pub element_nbytes: u32,
    pub shuffle: Shuffle,
    pub word_nbytes: u32,
    pub fill: [u8; 16],
}

const _: () = assert!(
    size_of::<Piece>() == 272
        && offset_of!(Piece, shape) == 32
        && offset_of!(Piece, source_stride) == 96
        && offset_of!(Piece, destination_stride) == 160
        && offset_of!(Piece, decoded_nbytes) == 224
        && offset_of!(Piece, rank) == 240
        && offset_of!(Piece, fill) == 256
);

/// Types that kernels can compute with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub enum Type {
    #[default]
    Bool = 0,
    Int8 = 1,
    Int16 = 2,
    Int32 = 3,
    Int64 = 4,
    UInt8 = 5,
    UInt16 = 6,
    UInt32 = 7,
    UInt64 = 8,
    Float16 = 9,
    BFloat16 = 10,
    Float32 = 11,
    Float64 = 12,
    Complex64 = 13,
    Complex128 = 14,
}

impl Type {
    /// Returns the kernels' type for elements of `dtype`; `None` if kernels cannot compute with it.
    #[must_use]
    pub fn from_dtype(dtype: &DataType) -> Option<Type> {
        Some(match dtype {
            DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => Type::Int64,
            DataType::Number(number) => match number {
                Number::Bool => Type::Bool,
                Number::Int8 => Type::Int8,
                Number::Int16 => Type::Int16,
                Number::Int32 => Type::Int32,
                Number::Int64 => Type::Int64,
                Number::UInt8 => Type::UInt8,
                Number::UInt16 => Type::UInt16,
                Number::UInt32 => Type::UInt32,
                Number::UInt64 => Type::UInt64,
                Number::Float16 => Type::Float16,
                Number::BFloat16 => Type::BFloat16,
                Number::Float32 => Type::Float32,
                Number::Float64 => Type::Float64,
                Number::Complex64 => Type::Complex64,
                Number::Complex128 => Type::Complex128,
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// Elements to convert to another type.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Cast {
    pub source: Address,
    pub destination: Address,
    pub count: u64,
    pub shape: [u64; MAX_RANK],
    pub source_stride: [i64; MAX_RANK],
    pub destination_stride: [i64; MAX_RANK],
    pub rank: u32,
    pub source_type: Type,
    pub destination_type: Type,
    pub reserved: u32,
}

const _: () = assert!(
    size_of::<Cast>() == 232
        && offset_of!(Cast, shape) == 24
        && offset_of!(Cast, source_stride) == 88
        && offset_of!(Cast, destination_stride) == 152
        && offset_of!(Cast, rank) == 216
);

/// Elements to compare, pair by pair.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Compare {
    pub left: Address,
    pub right: Address,
    pub destination: Address,
    pub count: u64,
    pub shape: [u64; MAX_RANK],
    pub left_stride: [i64; MAX_RANK],
    pub right_stride: [i64; MAX_RANK],
    pub destination_stride: [i64; MAX_RANK],
    pub rank: u32,
    pub kind: Type,
    pub equal_nan: u32,
    pub reserved: u32,
}

const _: () = assert!(
    size_of::<Compare>() == 304
        && offset_of!(Compare, shape) == 32
        && offset_of!(Compare, left_stride) == 96
        && offset_of!(Compare, right_stride) == 160
        && offset_of!(Compare, destination_stride) == 224
        && offset_of!(Compare, rank) == 288
);

/// Rows to gather from, or scatter to, the positions of a list.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Gather {
    pub source: Address,
    pub destination: Address,
    pub index: Address,
    pub index_count: u64,
    pub row_count: u64,
    pub source_row_stride: i64,
    pub destination_row_stride: i64,
    pub row_elements: u64,
    pub shape: [u64; MAX_RANK],
    pub source_stride: [i64; MAX_RANK],
    pub destination_stride: [i64; MAX_RANK],
    pub rank: u32,
    pub scatter: u32,
}

const _: () = assert!(
    size_of::<Gather>() == 264
        && offset_of!(Gather, shape) == 64
        && offset_of!(Gather, source_stride) == 128
        && offset_of!(Gather, destination_stride) == 192
        && offset_of!(Gather, rank) == 256
);

/// Kind of a frame's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ChecksumKind {
    /// Low 32 bits of XXH64 (zstd).
    Xxh64 = 0,
    /// CRC-32 (gzip).
    Crc32 = 1,
    /// Adler-32 (zlib).
    Adler32 = 2,
}

/// A decompressed frame and its expected checksum.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Guarded {
    pub source: Address,
    pub nbytes: u64,
    /// Address of the frame's status; the kernel changes it if the checksum is wrong.
    pub status: Address,
    /// Intermediate results of the kernels; initially zero.
    pub state: [u64; 4],
    pub kind: ChecksumKind,
    pub expected: u32,
}

const _: () = assert!(
    size_of::<Guarded>() == 64 && offset_of!(Guarded, state) == 24 && offset_of!(Guarded, kind) == 56
);

impl Guarded {
    /// Returns the bytes that the kernels read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the struct has no padding: its fields fill it (see the assertion above).
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Guarded>()) }
    }
}

impl Piece {
    /// Returns the bytes that the kernels read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the struct has no padding: its fields fill it (see the assertion above).
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Piece>()) }
    }
}
