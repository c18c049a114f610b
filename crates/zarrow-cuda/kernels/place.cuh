// Placement: decoded bytes become elements at their destination, in one pass. Depending on the piece, it undoes the
// shuffle and the byte order, transposes, crops, takes steps and fills.
#pragma once

#include "element.cuh"
#include "unshuffle.cuh"
#include "walk.cuh"

// Places all elements of one piece. `Index` can count its elements and the bytes of its buffer. `UNSHUFFLES` is
// whether a shuffle is possible.
template <class T, class Index, bool UNSHUFFLES>
INLINE void place(const Piece& piece) {
    const bool is_fill = piece.shuffle == SHUFFLE_FILL;
    const bool is_plain = !UNSHUFFLES || piece.shuffle == SHUFFLE_NONE;
    const bool can_read =
        is_plain && is_aligned(piece.source + piece.source_offset, piece.source_stride, piece.rank, sizeof(T));
    const bool can_write = is_aligned(piece.destination, piece.destination_stride, piece.rank, sizeof(T));
    const T fill = assemble<T>([&](u32 number) { return piece.fill[number]; });
    const Side sides[] = {{piece.source_stride}, {piece.destination_stride}};
    for (u64 number = first_item(); number < piece.count; number += item_step()) {
        u64 offsets[] = {piece.source_offset, piece.destination};
        walk<Index>(number, piece.shape, piece.rank, sides, offsets);
        T element = fill;
        if (!is_fill) {
            element = is_plain ? read<T>(piece.source + offsets[0], can_read) : unshuffled<T, Index>(piece, offsets[0]);
            element = reverse(element, piece.word_nbytes);
        }
        write(offsets[1], element, can_write);
    }
}

template <class T, bool UNSHUFFLES>
INLINE void place(const Piece& piece) {
    const bool is_shuffled = UNSHUFFLES && (piece.shuffle == SHUFFLE_BYTES || piece.shuffle == SHUFFLE_BITS);
    if (piece.count < WIDE_FROM && (!is_shuffled || piece.decoded_nbytes < WIDE_FROM)) {
        place<T, u32, UNSHUFFLES>(piece);
    } else {
        place<T, u64, UNSHUFFLES>(piece);
    }
}

// Each row of blocks takes one piece of the list.
template <class T>
INLINE void place_all(u64 pieces, u32 count) {
    for (u32 number = first_piece(); number < count; number += piece_step()) {
        place<T, true>(*at<const Piece>(pieces + u64(number) * sizeof(Piece)));
    }
}

KERNEL zarrow_place_1(u64 pieces, u32 count) { place_all<u8>(pieces, count); }
KERNEL zarrow_place_2(u64 pieces, u32 count) { place_all<u16>(pieces, count); }
KERNEL zarrow_place_4(u64 pieces, u32 count) { place_all<u32>(pieces, count); }
KERNEL zarrow_place_8(u64 pieces, u32 count) { place_all<u64>(pieces, count); }
KERNEL zarrow_place_16(u64 pieces, u32 count) { place_all<Sixteen>(pieces, count); }

// A single piece passed by value: a strided copy or a fill, never a shuffle.
KERNEL zarrow_copy_1(BY_VALUE(Piece) piece) { place<u8, false>(piece); }
KERNEL zarrow_copy_2(BY_VALUE(Piece) piece) { place<u16, false>(piece); }
KERNEL zarrow_copy_4(BY_VALUE(Piece) piece) { place<u32, false>(piece); }
KERNEL zarrow_copy_8(BY_VALUE(Piece) piece) { place<u64, false>(piece); }
KERNEL zarrow_copy_16(BY_VALUE(Piece) piece) { place<Sixteen, false>(piece); }
