// C++ counterpart of `kernels/language.cuh`, for the software device.
//
// A kernel is a function called for each thread of the grid in turn. That suffices, since no kernel waits for
// another thread. Each access is checked for its allocation and alignment.
#pragma once

#include <atomic>
#include <bit>

#include "kernel.h"

#define KERNEL static void
#define INLINE inline
#define FIELD_AT(type, field, offset) static_assert(__builtin_offsetof(type, field) == offset)
#define ROLLED
#define BY_VALUE(type) const type

template <class T>
INLINE T* at(u64 address) {
    return reinterpret_cast<T*>(software_device::reach(address, sizeof(T), alignof(T)));
}

INLINE u64 first_item() {
    const auto& thread = software_device::kernel_thread;
    return u64(thread.block[0]) * thread.block_shape[0] + thread.thread[0];
}
INLINE u64 item_step() {
    const auto& thread = software_device::kernel_thread;
    return u64(thread.grid_shape[0]) * thread.block_shape[0];
}
INLINE u32 first_piece() { return software_device::kernel_thread.block[1]; }
INLINE u32 piece_step() { return software_device::kernel_thread.grid_shape[1]; }

INLINE void set_bits(u64 address, u32 bits) { std::atomic_ref<u32>(*at<u32>(address)).fetch_or(bits); }
INLINE void flip_bits(u64 address, u32 bits) { std::atomic_ref<u32>(*at<u32>(address)).fetch_xor(bits); }
INLINE void add_to(u64 address, u64 number) { std::atomic_ref<u64>(*at<u64>(address)).fetch_add(number); }

INLINE u32 bits_of(float value) { return std::bit_cast<u32>(value); }
INLINE u64 bits_of(double value) { return std::bit_cast<u64>(value); }
INLINE float float_of(u32 bits) { return std::bit_cast<float>(bits); }
INLINE double double_of(u64 bits) { return std::bit_cast<double>(bits); }
