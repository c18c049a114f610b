// Verification of the checksums of decompressed frames, on the device.
//
// 1. XXH64 (zstd): four lanes take the words of a frame in turn, and each lane processes its words in order. A
//    thread is a lane, so four threads read 32 adjacent bytes.
// 2. CRC-32 (gzip) and Adler-32 (zlib): a thread takes a part of a frame. Its result is shifted as if the bytes
//    after the part were zeros, and combined with the results of other threads in any order: by XOR, or by addition
//    modulo 65521.
// 3. In a later launch, a thread per frame finishes its checksum and compares it.
//
// Sources: xxHash, `doc/xxhash_spec.md`; RFC 1950, section 8.2; RFC 1952, section 8; zlib's `crc32_combine`.
#pragma once

#include "element.cuh"
#include "structs.cuh"

// Step 1.

constexpr u64 XXH_PRIME_1 = 0x9e3779b185ebca87;
constexpr u64 XXH_PRIME_2 = 0xc2b2ae3d27d4eb4f;
constexpr u64 XXH_PRIME_3 = 0x165667b19e3779f9;
constexpr u64 XXH_PRIME_4 = 0x85ebca77c2b2ae63;
constexpr u64 XXH_PRIME_5 = 0x27d4eb2f165667c5;
// Initial values of the lanes, for seed 0.
constexpr u64 XXH_LANE_1 = XXH_PRIME_1 + XXH_PRIME_2;
constexpr u64 XXH_LANE_2 = XXH_PRIME_2;
constexpr u64 XXH_LANE_3 = 0;
constexpr u64 XXH_LANE_4 = 0 - XXH_PRIME_1;

constexpr u32 XXH_LANES = 4;
constexpr u64 XXH_STRIPE_NBYTES = XXH_LANES * sizeof(u64);
// Words that a thread loads ahead, to hide the memory latency.
constexpr u32 WORDS_AHEAD = 16;

INLINE u64 rotate(u64 bits, u32 count) { return bits << count | bits >> (64 - count); }

INLINE u64 xxh_round(u64 lane, u64 word) { return rotate(lane + word * XXH_PRIME_2, 31) * XXH_PRIME_1; }

// Returns lane `number` of a frame, after all whole stripes.
INLINE u64 xxh_lane(const Guarded& frame, u32 number) {
    u64 lane = number == 0 ? XXH_LANE_1 : number == 1 ? XXH_LANE_2 : number == 2 ? XXH_LANE_3 : XXH_LANE_4;
    const bool aligned = frame.source % sizeof(u64) == 0;
    const u64 end = frame.source + frame.nbytes / XXH_STRIPE_NBYTES * XXH_STRIPE_NBYTES;
    u64 stripe = frame.source;
    if (aligned) {
        for (; end - stripe >= WORDS_AHEAD * XXH_STRIPE_NBYTES; stripe += WORDS_AHEAD * XXH_STRIPE_NBYTES) {
            u64 words[WORDS_AHEAD];
            for (u32 word = 0; word < WORDS_AHEAD; word++) {
                words[word] = *at<const u64>(stripe + word * XXH_STRIPE_NBYTES + number * sizeof(u64));
            }
            for (u32 word = 0; word < WORDS_AHEAD; word++) lane = xxh_round(lane, words[word]);
        }
    }
    ROLLED for (; stripe < end; stripe += XXH_STRIPE_NBYTES) {
        lane = xxh_round(lane, read<u64>(stripe + number * sizeof(u64), aligned));
    }
    return lane;
}

// Combines the four lanes and the bytes after the last stripe.
INLINE u64 xxh64(const Guarded& frame) {
    u64 hash = XXH_PRIME_5;
    if (frame.nbytes >= XXH_STRIPE_NBYTES) {
        const u64(&lane)[XXH_LANES] = frame.state;
        hash = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
        for (u32 number = 0; number < XXH_LANES; number++) {
            hash = (hash ^ xxh_round(0, lane[number])) * XXH_PRIME_1 + XXH_PRIME_4;
        }
    }
    hash += frame.nbytes;
    const u64 end = frame.source + frame.nbytes;
    u64 place = end - frame.nbytes % XXH_STRIPE_NBYTES;
    ROLLED for (; end - place >= 8; place += 8) {
        hash ^= xxh_round(0, read<u64>(place, false));
        hash = rotate(hash, 27) * XXH_PRIME_1 + XXH_PRIME_4;
    }
    if (end - place >= 4) {
        hash ^= read<u32>(place, false) * XXH_PRIME_1;
        hash = rotate(hash, 23) * XXH_PRIME_2 + XXH_PRIME_3;
        place += 4;
    }
    ROLLED for (; place < end; place++) {
        hash ^= *at<const u8>(place) * XXH_PRIME_5;
        hash = rotate(hash, 11) * XXH_PRIME_1;
    }
    hash = (hash ^ hash >> 33) * XXH_PRIME_2;
    hash = (hash ^ hash >> 29) * XXH_PRIME_3;
    return hash ^ hash >> 32;
}

// Step 2. Parts end at the end of the frame, so that only the first part may be shorter.

constexpr u64 PART_NBYTES = 1024;

INLINE u64 count_of_parts(const Guarded& frame) {
    const u64 count = (frame.nbytes + PART_NBYTES - 1) / PART_NBYTES;
    return count == 0 ? 1 : count;
}

// Passes the bytes from `place` to `end` on in order, as the low bytes of a word, together with their number, four
// or one.
template <class Take>
INLINE void each_word(u64 place, u64 end, Take take) {
    ROLLED for (; place < end && place % sizeof(Sixteen) != 0; place++) take(*at<const u8>(place), 1);
    ROLLED for (; end - place >= sizeof(Sixteen); place += sizeof(Sixteen)) {
        const Sixteen words = *at<const Sixteen>(place);
        take(u32(words.low), 4);
        take(u32(words.low >> 32), 4);
        take(u32(words.high), 4);
        take(u32(words.high >> 32), 4);
    }
    ROLLED for (; place < end; place++) take(*at<const u8>(place), 1);
}

// CRC-32's polynomial without its highest power. In all numbers here, the highest bit is the lowest power.
constexpr u32 CRC_POLYNOMIAL = 0xedb88320;

// Multiplies by the power 1.
INLINE constexpr u32 crc_next(u32 polynomial) {
    return polynomial >> 1 ^ (CRC_POLYNOMIAL & (0 - (polynomial & 1)));
}

// Returns the product of two polynomials, modulo that of CRC-32.
INLINE constexpr u32 crc_product(u32 left, u32 right) {
    u32 product = 0;
    for (u32 power = 0; power < 32; power++) {
        product ^= right & (0 - (left >> 31));
        left <<= 1;
        right = crc_next(right);
    }
    return product;
}

// Returns the factor for appending `nbytes` zeros to a polynomial; the number is a power of two.
INLINE constexpr u32 crc_of_zeros(u64 nbytes) {
    u32 power = crc_next(0x80000000);
    for (u64 bits = 1; bits < nbytes * 8; bits *= 2) power = crc_product(power, power);
    return power;
}
constexpr u32 CRC_OF_PART = crc_of_zeros(PART_NBYTES);

INLINE void add_crc32(const Guarded& frame, u64 state, u64 begin, u64 end) {
    u32 crc = begin == frame.source ? 0xffffffff : 0;
    each_word(begin, end, [&](u32 bytes, u32 count) {
        crc ^= bytes;
        for (u32 bit = 0; bit < 8 * count; bit++) crc = crc_next(crc);
    });
    u32 power = CRC_OF_PART;
    ROLLED for (u64 parts = (frame.source + frame.nbytes - end) / PART_NBYTES; parts != 0; parts >>= 1) {
        if (parts & 1) crc = crc_product(crc, power);
        power = crc_product(power, power);
    }
    flip_bits(state, crc);
}

constexpr u32 ADLER_MODULUS = 65521;

INLINE void add_adler32(const Guarded& frame, u64 state, u64 begin, u64 end) {
    // Sum of the bytes, and sum of all partial sums. A part is too short for them to overflow.
    u32 sum = 0, sums = 0;
    each_word(begin, end, [&](u32 bytes, u32 count) {
        for (u32 byte = 0; byte < count; byte++) {
            sum += bytes >> (8 * byte) & 0xff;
            sums += sum;
        }
    });
    const u64 behind = (frame.source + frame.nbytes - end) % ADLER_MODULUS;
    add_to(state, sum);
    add_to(state + sizeof(u64), (sums + behind * sum) % ADLER_MODULUS);
}

// Step 3.

INLINE u32 checksum(const Guarded& frame) {
    if (frame.kind == CHECKSUM_XXH64) return u32(xxh64(frame));
    if (frame.kind == CHECKSUM_CRC32) return ~u32(frame.state[0]);
    const u64 sum = (1 + frame.state[0]) % ADLER_MODULUS;
    const u64 sums = (frame.nbytes + frame.state[1]) % ADLER_MODULUS;
    return u32(sums << 16 | sum);
}

// Returns the state of frame `number` of the list.
INLINE u64 state_of(u64 frames, u64 number) { return frames + number * sizeof(Guarded) + GUARDED_STATE; }

// Step 1, for frames with XXH64.
KERNEL zarrow_checksum_lanes(u64 frames, u32 count) {
    for (u64 item = first_item(); item < u64(count) * XXH_LANES; item += item_step()) {
        const u64 number = item / XXH_LANES;
        const u32 lane = u32(item % XXH_LANES);
        const Guarded& frame = *at<const Guarded>(frames + number * sizeof(Guarded));
        if (frame.kind != CHECKSUM_XXH64) continue;
        *at<u64>(state_of(frames, number) + lane * sizeof(u64)) = xxh_lane(frame, lane);
    }
}

// Step 2, for frames with the other checksums: one row of blocks per frame.
KERNEL zarrow_checksum_parts(u64 frames, u32 count) {
    for (u32 number = first_piece(); number < count; number += piece_step()) {
        const Guarded& frame = *at<const Guarded>(frames + number * sizeof(Guarded));
        if (frame.kind == CHECKSUM_XXH64) continue;
        const u64 state = state_of(frames, number), parts = count_of_parts(frame);
        for (u64 part = first_item(); part < parts; part += item_step()) {
            const u64 end = frame.source + frame.nbytes - (parts - 1 - part) * PART_NBYTES;
            const u64 begin = part == 0 ? frame.source : end - PART_NBYTES;
            if (frame.kind == CHECKSUM_CRC32) {
                add_crc32(frame, state, begin, end);
            } else {
                add_adler32(frame, state, begin, end);
            }
        }
    }
}

// Step 3. If the checksum matches, the frame's status is not changed.
KERNEL zarrow_checksum_verify(u64 frames, u32 count) {
    for (u64 number = first_item(); number < count; number += item_step()) {
        const Guarded& frame = *at<const Guarded>(frames + number * sizeof(Guarded));
        if (checksum(frame) != frame.expected) *at<u32>(frame.status) = CHECKSUM_MISMATCH;
    }
}
