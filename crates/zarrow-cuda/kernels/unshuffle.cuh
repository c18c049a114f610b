// Reads of shuffled bytes in place, without a separate unshuffle pass.
//
// 1. Each block is shuffled separately. A trailing partial element of a block is not shuffled.
// 2. Byte shuffle: the first bytes of all elements, then the second bytes, and so on, each a plane.
// 3. Bit shuffle: the lowest bits of all first bytes, then the next bits, and so on, eight elements per byte. A
//    block is not shuffled if its number of elements is not a multiple of eight.
//
// These are the rules of c-blosc 1. The shuffle filter of numcodecs is one block.
#pragma once

#include "element.cuh"
#include "structs.cuh"

// The block of an offset in the buffer.
template <class Index>
struct Block {
    // Start of the block.
    Index start;
    // Offset within the block.
    Index within;
    Index nbytes;

    INLINE Block(const Piece& piece, u64 offset) {
        // At most the size of the buffer, so that it fits the index.
        const bool is_one = piece.block_nbytes >= piece.decoded_nbytes;
        const Index whole = Index(is_one ? piece.decoded_nbytes : piece.block_nbytes);
        start = Index(offset) / whole * whole;
        within = Index(offset) - start;
        const Index rest = Index(piece.decoded_nbytes) - start;
        nbytes = rest < whole ? rest : whole;
    }
};

// Returns byte `number` of element `index` among `count`, from the planes at `planes` (step 2).
template <class Index>
INLINE u8 byte_of_planes(u64 planes, Index count, Index index, u32 number) {
    return *at<const u8>(planes + u64(number) * count + index);
}

// Same, from planes of bits (step 3).
template <class Index>
INLINE u8 byte_of_bit_planes(u64 planes, Index count, Index index, u32 number) {
    const u64 stride = count / 8;
    const u64 first = planes + u64(number) * 8 * stride + index / 8;
    u32 byte = 0;
    for (u32 bit = 0; bit < 8; bit++) byte |= (u32(*at<const u8>(first + bit * stride)) >> (index % 8) & 1) << bit;
    return u8(byte);
}

// Returns one byte of the unshuffled buffer.
template <class Index>
INLINE u8 unshuffled_byte(const Piece& piece, u64 offset) {
    const Block<Index> block(piece, offset);
    const Index size = Index(piece.element_nbytes);
    const Index count = block.nbytes / size;
    const Index index = block.within / size;
    const bool bits = piece.shuffle == SHUFFLE_BITS;
    if (index >= count || (bits && count % 8 != 0)) return *at<const u8>(piece.source + offset);
    const u64 planes = piece.source + block.start;
    const u32 number = u32(block.within - index * size);
    return bits ? byte_of_bit_planes(planes, count, index, number) : byte_of_planes(planes, count, index, number);
}

// Returns an element of the unshuffled buffer. If the shuffle has the same element, all of its bytes have one
// index; otherwise it is assembled byte by byte.
template <class T, class Index>
INLINE T unshuffled(const Piece& piece, u64 offset) {
    if (piece.element_nbytes == sizeof(T)) {
        const Block<Index> block(piece, offset);
        const Index count = block.nbytes / Index(sizeof(T));
        const Index index = block.within / Index(sizeof(T));
        const bool bits = piece.shuffle == SHUFFLE_BITS;
        if (block.within % sizeof(T) == 0 && index < count && !(bits && count % 8 != 0)) {
            const u64 planes = piece.source + block.start;
            if (bits) {
                return assemble_slowly<T>(
                    [=](u32 number) { return byte_of_bit_planes(planes, count, index, number); });
            }
            return assemble<T>([=](u32 number) { return byte_of_planes(planes, count, index, number); });
        }
    }
    return assemble_slowly<T>([&](u32 number) { return unshuffled_byte<Index>(piece, offset + number); });
}
