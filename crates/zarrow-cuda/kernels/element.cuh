// Opaque elements of 1 to 16 bytes: reading, writing, reversing their bytes.
#pragma once

#include "language.cuh"

// A 16-byte element.
struct alignas(16) Sixteen {
    u64 low;
    u64 high;
};

// Returns whether the address and all strides are multiples of `nbytes`, a power of two.
INLINE bool is_aligned(u64 address, const i64* stride, u32 rank, u32 nbytes) {
    u64 bits = address;
    ROLLED for (u32 axis = 0; axis < rank; axis++) bits |= u64(stride[axis]);
    return (bits & (nbytes - 1)) == 0;
}

// Assembles an element from the bytes returned by a function.
template <class T, class Byte>
INLINE T assemble(Byte byte) {
    if constexpr (sizeof(T) == 16) {
        return T{assemble<u64>(byte), assemble<u64>([&](u32 number) { return byte(number + 8); })};
    } else {
        T element = 0;
        for (u32 number = 0; number < sizeof(T); number++) element |= T(T(byte(number)) << (8 * number));
        return element;
    }
}

// Same, one byte after another.
template <class T, class Byte>
INLINE T assemble_slowly(Byte byte) {
    u64 parts[2] = {};
    ROLLED for (u32 number = 0; number < sizeof(T); number++) {
        const u64 bits = u64(byte(number)) << (8 * (number % 8));
        parts[0] |= number < 8 ? bits : 0;
        parts[1] |= number < 8 ? 0 : bits;
    }
    if constexpr (sizeof(T) == 16) {
        return T{parts[0], parts[1]};
    } else {
        return T(parts[0]);
    }
}

template <class T>
INLINE T read(u64 address, bool aligned) {
    if (aligned) return *at<const T>(address);
    return assemble_slowly<T>([=](u32 number) { return *at<const u8>(address + number); });
}

template <class T>
INLINE void write(u64 address, T element, bool aligned) {
    if (aligned) {
        *at<T>(address) = element;
    } else if constexpr (sizeof(T) == 16) {
        write(address, element.low, false);
        write(address + 8, element.high, false);
    } else {
        ROLLED for (u32 number = 0; number < sizeof(T); number++) {
            *at<u8>(address + number) = u8(element >> (8 * number));
        }
    }
}

// Returns the element with the bytes of its words reversed: swaps neighbouring bytes, then pairs, then fours.
template <class T>
INLINE T reverse(T element, u32 word_nbytes) {
    if constexpr (sizeof(T) == 16) {
        return T{reverse(element.low, word_nbytes), reverse(element.high, word_nbytes)};
    } else {
        u64 bits = element;
        if (sizeof(T) >= 2 && word_nbytes >= 2) {
            bits = (bits & 0x00ff00ff00ff00ff) << 8 | (bits >> 8 & 0x00ff00ff00ff00ff);
        }
        if (sizeof(T) >= 4 && word_nbytes >= 4) {
            bits = (bits & 0x0000ffff0000ffff) << 16 | (bits >> 16 & 0x0000ffff0000ffff);
        }
        if (sizeof(T) >= 8 && word_nbytes >= 8) bits = bits << 32 | bits >> 32;
        return T(bits);
    }
}
