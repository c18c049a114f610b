// Conversion of an element's number to its offsets.
#pragma once

#include "structs.cuh"

// Fewer elements than this are counted in 32 bits: 64-bit division is about five times slower on a GPU. Tests lower
// it, to use 64 bits with few elements.
#ifndef WIDE_FROM
#define WIDE_FROM (u64(1) << 31)
#endif

// Strides of one side.
struct Side {
    const i64* stride;
};

// Adds the offset of element `number` of the shape to each side's offset.
template <class Index, int SIDES>
INLINE void walk(u64 number, const u64* shape, u32 rank, const Side (&sides)[SIDES], u64 (&offsets)[SIDES]) {
    Index rest = Index(number);
    ROLLED for (u32 axis = rank; axis > 0; axis--) {
        Index coordinate = rest;
        // The first axis takes the rest.
        if (axis > 1) {
            const Index length = Index(shape[axis - 1]);
            rest /= length;
            coordinate -= rest * length;
        }
        for (int side = 0; side < SIDES; side++) offsets[side] += u64(sides[side].stride[axis - 1]) * coordinate;
    }
}

// Calls `body(offsets)` for each element of this thread.
template <int SIDES, class Body>
INLINE void each_element(u64 count, const u64* shape, u32 rank, const Side (&sides)[SIDES], Body body) {
    for (u64 number = first_item(); number < count; number += item_step()) {
        u64 offsets[SIDES] = {};
        if (count < WIDE_FROM) {
            walk<u32>(number, shape, rank, sides, offsets);
        } else {
            walk<u64>(number, shape, rank, sides, offsets);
        }
        body(offsets);
    }
}
