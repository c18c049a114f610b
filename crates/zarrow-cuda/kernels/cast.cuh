// Casts of elements to another type, see `number.cuh`. Between equal types no bit changes.
#pragma once

#include "number.cuh"
#include "walk.cuh"

KERNEL zarrow_cast(BY_VALUE(Cast) cast) {
    const bool can_read = is_aligned(cast.source, cast.source_stride, cast.rank, type_alignment(cast.source_type));
    const bool can_write =
        is_aligned(cast.destination, cast.destination_stride, cast.rank, type_alignment(cast.destination_type));
    const Side sides[] = {{cast.source_stride}, {cast.destination_stride}};
    each_element(cast.count, cast.shape, cast.rank, sides, [&](const u64(&offsets)[2]) {
        const u64 from = cast.source + offsets[0], to = cast.destination + offsets[1];
        if (cast.source_type != cast.destination_type) {
            write_number(to, cast.destination_type, read_number(from, cast.source_type, can_read), can_write);
            return;
        }
        // Arithmetic would turn a signalling NaN into a quiet one.
        const u32 nbytes = type_nbytes(cast.source_type);
        for (u32 part = 0; part < nbytes; part += 8) {
            switch (nbytes) {
                case 1: write(to, read<u8>(from, can_read), can_write); break;
                case 2: write(to, read<u16>(from, can_read), can_write); break;
                case 4: write(to, read<u32>(from, can_read), can_write); break;
                // A `c64` is only aligned to its halves.
                default: {
                    const bool whole = cast.source_type != TYPE_C64;
                    write(to + part, read<u64>(from + part, can_read && whole), can_write && whole);
                }
            }
        }
    });
}
