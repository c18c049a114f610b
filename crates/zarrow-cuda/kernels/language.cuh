// Differences between CUDA and C++, so that all other files here are valid in both.
//
// NVRTC compiles these files for the GPU. The software device compiles them as C++ with its own version of this
// file (`software_device/kernel_language.h`), and runs them on the host.
//
// Addresses are 64-bit integers, converted to pointers only in `at`, on access. So the software device sees each
// access, and checks it.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

#ifdef __CUDACC_RTC__

#define KERNEL extern "C" __global__ void
#define INLINE __device__ __forceinline__
// NVRTC has no offsetof: the C++ build checks the fields.
#define FIELD_AT(type, field, offset) static_assert(true, "")
// A loop that is not unrolled: unrolling the rarer ones would make most of the PTX, which each driver compiles.
#define ROLLED _Pragma("unroll 1")
// A struct argument of a kernel stays in parameter memory, where all threads read it.
#define BY_VALUE(type) const __grid_constant__ type

// Returns a pointer to an address in device memory, or in pinned host memory.
template <class T>
INLINE T* at(u64 address) {
    return reinterpret_cast<T*>(address);
}

// Returns this thread's first item, and the distance to the next one.
INLINE u64 first_item() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
INLINE u64 item_step() { return u64(gridDim.x) * blockDim.x; }

// Same for the row of blocks, which takes pieces.
INLINE u32 first_piece() { return blockIdx.y; }
INLINE u32 piece_step() { return gridDim.y; }

// Sets bits, concurrently with other threads.
INLINE void set_bits(u64 address, u32 bits) { atomicOr(at<u32>(address), bits); }
// Flips bits, or adds to a number, concurrently with other threads.
INLINE void flip_bits(u64 address, u32 bits) { atomicXor(at<u32>(address), bits); }
INLINE void add_to(u64 address, u64 number) { atomicAdd(at<u64>(address), number); }

// Returns the bits of a number as an integer.
INLINE u32 bits_of(float value) { return __float_as_uint(value); }
INLINE u64 bits_of(double value) { return __double_as_longlong(value); }
INLINE float float_of(u32 bits) { return __uint_as_float(bits); }
INLINE double double_of(u64 bits) { return __longlong_as_double(bits); }

#else
#include "kernel_language.h"
#endif
