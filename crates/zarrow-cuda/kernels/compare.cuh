// Comparison of elements of one type, and search for zeros.
#pragma once

#include "number.cuh"
#include "walk.cuh"

INLINE u64 read_bits(u64 address, u32 nbytes, bool aligned) {
    switch (nbytes) {
        case 1: return read<u8>(address, true);
        case 2: return read<u16>(address, aligned);
        case 4: return read<u32>(address, aligned);
        default: return read<u64>(address, aligned);
    }
}

// Returns whether the element, or one of its two parts, is NaN.
INLINE bool is_nan(const Number& number) {
    return number.kind == Number::FLOAT && (number.real != number.real || number.imaginary != number.imaginary);
}

// IEEE equality: ±0 are equal, and NaN equals nothing.
INLINE bool are_equal(const Number& left, const Number& right) {
    if (left.kind != Number::FLOAT) return left.integer == right.integer;
    return left.real == right.real && left.imaginary == right.imaginary;
}

// Sets the `u32` at `flag` to 1 if a pair differs in any bit. With `equal_nan`, two NaNs are equal.
KERNEL zarrow_differs(BY_VALUE(Compare) pair, u64 flag) {
    const u32 part = type_alignment(pair.type), nbytes = type_nbytes(pair.type);
    const bool left_aligned = is_aligned(pair.left, pair.left_stride, pair.rank, part);
    const bool right_aligned = is_aligned(pair.right, pair.right_stride, pair.rank, part);
    const Side sides[] = {{pair.left_stride}, {pair.right_stride}};
    bool differs = false;
    each_element(pair.count, pair.shape, pair.rank, sides, [&](const u64(&offsets)[2]) {
        const u64 left = pair.left + offsets[0], right = pair.right + offsets[1];
        bool same = true;
        for (u32 at = 0; at < nbytes; at += part) {
            same &= read_bits(left + at, part, left_aligned) == read_bits(right + at, part, right_aligned);
        }
        if (!same && pair.equal_nan != 0) {
            same = is_nan(read_number(left, pair.type, left_aligned)) &&
                   is_nan(read_number(right, pair.type, right_aligned));
        }
        differs |= !same;
    });
    if (differs) set_bits(flag, 1);
}

// Sets each byte of the destination to whether the pair is equal.
KERNEL zarrow_equal(BY_VALUE(Compare) pair) {
    const u32 part = type_alignment(pair.type);
    const bool left_aligned = is_aligned(pair.left, pair.left_stride, pair.rank, part);
    const bool right_aligned = is_aligned(pair.right, pair.right_stride, pair.rank, part);
    const Side sides[] = {{pair.left_stride}, {pair.right_stride}, {pair.destination_stride}};
    each_element(pair.count, pair.shape, pair.rank, sides, [&](const u64(&offsets)[3]) {
        const Number left = read_number(pair.left + offsets[0], pair.type, left_aligned);
        const Number right = read_number(pair.right + offsets[1], pair.type, right_aligned);
        write<u8>(pair.destination + offsets[2], are_equal(left, right), true);
    });
}

// Sets bits of the `u32` at `flag`: 1 if an element on the left is zero, 2 if one is non-zero.
KERNEL zarrow_nonzero(BY_VALUE(Compare) elements, u64 flag) {
    const bool aligned =
        is_aligned(elements.left, elements.left_stride, elements.rank, type_alignment(elements.type));
    const Side sides[] = {{elements.left_stride}};
    u32 found = 0;
    each_element(elements.count, elements.shape, elements.rank, sides, [&](const u64(&offsets)[1]) {
        const Number number = read_number(elements.left + offsets[0], elements.type, aligned);
        found |= number.is_nonzero() ? 2 : 1;
    });
    if (found != 0) set_bits(flag, found);
}
