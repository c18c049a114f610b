// Arguments of the kernels. The Rust mirror of each struct is `#[repr(C)]`; assertions check that both match.
//
// - Addresses are those of the device. Strides and offsets are in bytes; strides may be negative or zero.
// - Axes are in the order of the walk, the last one fastest: neighbouring threads take neighbours along it. The
//   host sorts the axes so that the last one is the destination's innermost, and merges axes where possible.
// - `count` is the product of the shape. With `rank` 0 it is 1.
// - The host has checked that all elements reachable by the strides are inside the allocations.
#pragma once

#include "language.cuh"

enum { MAX_RANK = 8 };

// Shuffle of a decoded buffer's bytes before compression.
enum Shuffle : u32 {
    SHUFFLE_NONE = 0,
    SHUFFLE_BYTES = 1,
    SHUFFLE_BITS = 2,
    // No source: every element is `fill`.
    SHUFFLE_FILL = 3,
};

// A box of elements to move from a decoded buffer to its destination.
struct Piece {
    // Start of the decoded buffer.
    u64 source;
    // Offset of the box's first element in the unshuffled buffer.
    u64 source_offset;
    // Destination of the box's first element.
    u64 destination;
    u64 count;
    u64 shape[MAX_RANK];
    i64 source_stride[MAX_RANK];
    i64 destination_stride[MAX_RANK];
    // Bytes of the whole decoded buffer, which the shuffle divides into blocks. Only used with a shuffle, like the
    // next field and `element_nbytes`.
    u64 decoded_nbytes;
    // Bytes shuffled together; the last block may be shorter.
    u64 block_nbytes;
    u32 rank;
    // Bytes of the shuffle's element, which may differ from the kernel's.
    u32 element_nbytes;
    u32 shuffle;
    // Reverses the bytes of words of 2, 4 or 8 bytes, at most the kernel's element; 0 for no reversal. The fill
    // value is not reversed.
    u32 word_nbytes;
    // The first bytes, one element of the kernel.
    u8 fill[16];
};
static_assert(sizeof(Piece) == 272, "the Rust mirror has this size");
FIELD_AT(Piece, shape, 32);
FIELD_AT(Piece, source_stride, 96);
FIELD_AT(Piece, destination_stride, 160);
FIELD_AT(Piece, decoded_nbytes, 224);
FIELD_AT(Piece, rank, 240);
FIELD_AT(Piece, fill, 256);

// Types that kernels can compute with.
enum Type : u32 {
    TYPE_BOOL = 0,
    TYPE_I8 = 1,
    TYPE_I16 = 2,
    TYPE_I32 = 3,
    TYPE_I64 = 4,
    TYPE_U8 = 5,
    TYPE_U16 = 6,
    TYPE_U32 = 7,
    TYPE_U64 = 8,
    TYPE_F16 = 9,
    TYPE_BF16 = 10,
    TYPE_F32 = 11,
    TYPE_F64 = 12,
    TYPE_C64 = 13,
    TYPE_C128 = 14,
};

// Elements to convert to another type.
struct Cast {
    u64 source;
    u64 destination;
    u64 count;
    u64 shape[MAX_RANK];
    i64 source_stride[MAX_RANK];
    i64 destination_stride[MAX_RANK];
    u32 rank;
    u32 source_type;
    u32 destination_type;
    u32 reserved;
};
static_assert(sizeof(Cast) == 232, "the Rust mirror has this size");
FIELD_AT(Cast, shape, 24);
FIELD_AT(Cast, source_stride, 88);
FIELD_AT(Cast, destination_stride, 152);
FIELD_AT(Cast, rank, 216);

// Elements to compare, pair by pair. `nonzero` only uses the left ones.
struct Compare {
    u64 left;
    u64 right;
    // Result bytes, 1 for equal pairs: only for `equal`.
    u64 destination;
    u64 count;
    u64 shape[MAX_RANK];
    i64 left_stride[MAX_RANK];
    i64 right_stride[MAX_RANK];
    i64 destination_stride[MAX_RANK];
    u32 rank;
    u32 type;
    // Only for `differs`: 1 if two NaNs count as equal.
    u32 equal_nan;
    u32 reserved;
};
static_assert(sizeof(Compare) == 304, "the Rust mirror has this size");
FIELD_AT(Compare, shape, 32);
FIELD_AT(Compare, left_stride, 96);
FIELD_AT(Compare, right_stride, 160);
FIELD_AT(Compare, destination_stride, 224);
FIELD_AT(Compare, rank, 288);

// Rows to gather from, or scatter to, the positions of a list.
struct Gather {
    u64 source;
    u64 destination;
    // `i64` positions of rows, contiguous, `index_count` of them.
    u64 index;
    u64 index_count;
    // Number of rows on the indexed side: the source, or the destination if `scatter` is 1. Positions out of range
    // are ignored.
    u64 row_count;
    i64 source_row_stride;
    i64 destination_row_stride;
    // Elements per row.
    u64 row_elements;
    u64 shape[MAX_RANK];
    i64 source_stride[MAX_RANK];
    i64 destination_stride[MAX_RANK];
    // Axes of a row.
    u32 rank;
    // 0: destination[i] = source[index[i]]. 1: destination[index[i]] = source[i]; of equal positions any may win.
    u32 scatter;
};
static_assert(sizeof(Gather) == 264, "the Rust mirror has this size");
FIELD_AT(Gather, shape, 64);
FIELD_AT(Gather, source_stride, 128);
FIELD_AT(Gather, destination_stride, 192);
FIELD_AT(Gather, rank, 256);

// Kind of a frame's checksum.
enum ChecksumKind : u32 {
    // Low 32 bits only.
    CHECKSUM_XXH64 = 0,
    CHECKSUM_CRC32 = 1,
    CHECKSUM_ADLER32 = 2,
};

// Status of a frame with a wrong checksum.
enum { CHECKSUM_MISMATCH = 4 };

// A decompressed frame and its expected checksum.
struct Guarded {
    u64 source;
    u64 nbytes;
    // Address of its status, a `u32`.
    u64 status;
    // Intermediate results of the threads; initially zero.
    u64 state[4];
    u32 kind;
    u32 expected;
};
enum { GUARDED_STATE = 24 };
static_assert(sizeof(Guarded) == 64, "the Rust mirror has this size");
FIELD_AT(Guarded, state, GUARDED_STATE);
FIELD_AT(Guarded, kind, 56);
