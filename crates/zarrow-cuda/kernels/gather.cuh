// Gather and scatter of rows by a list of positions.
#pragma once

#include "element.cuh"
#include "walk.cuh"

template <class T, class Index>
INLINE void gather(const Gather& rows) {
    const u64 count = rows.index_count * rows.row_elements;
    const u64 from_bits = rows.source | u64(rows.source_row_stride);
    const u64 to_bits = rows.destination | u64(rows.destination_row_stride);
    const bool can_read = is_aligned(from_bits, rows.source_stride, rows.rank, sizeof(T));
    const bool can_write = is_aligned(to_bits, rows.destination_stride, rows.rank, sizeof(T));
    const Side sides[] = {{rows.source_stride}, {rows.destination_stride}};
    for (u64 number = first_item(); number < count; number += item_step()) {
        const Index row = Index(number) / Index(rows.row_elements);
        const i64 position = *at<const i64>(rows.index + u64(row) * sizeof(i64));
        if (position < 0 || u64(position) >= rows.row_count) continue;
        const u64 from = rows.scatter ? u64(row) : u64(position);
        const u64 to = rows.scatter ? u64(position) : u64(row);
        u64 offsets[] = {
            rows.source + from * u64(rows.source_row_stride),
            rows.destination + to * u64(rows.destination_row_stride),
        };
        walk<Index>(Index(number) - row * Index(rows.row_elements), rows.shape, rows.rank, sides, offsets);
        write(offsets[1], read<T>(offsets[0], can_read), can_write);
    }
}

template <class T>
INLINE void gather(const Gather& rows) {
    if (rows.index_count * rows.row_elements < WIDE_FROM) {
        gather<T, u32>(rows);
    } else {
        gather<T, u64>(rows);
    }
}

KERNEL zarrow_gather_1(BY_VALUE(Gather) rows) { gather<u8>(rows); }
KERNEL zarrow_gather_2(BY_VALUE(Gather) rows) { gather<u16>(rows); }
KERNEL zarrow_gather_4(BY_VALUE(Gather) rows) { gather<u32>(rows); }
KERNEL zarrow_gather_8(BY_VALUE(Gather) rows) { gather<u64>(rows); }
KERNEL zarrow_gather_16(BY_VALUE(Gather) rows) { gather<Sixteen>(rows); }
