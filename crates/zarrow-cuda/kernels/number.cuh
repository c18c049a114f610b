// Numbers of any type, between load and store. Integers stay integers, and floats are held as `double`, which
// represents all narrower floats: so each conversion rounds once.
//
// Results are those of NumPy's astype. Where C leaves them undefined, they are those of x86-64:
// - A float out of range of the integer type: for types of up to 32 bits (except `u32`) it is converted to `i32`
//   and truncated, for others to `i64`; if it is out of range there too, the result is the lowest `i32` or `i64`.
//   For `u64`, values of 2^63 and more are converted after subtracting 2^63, which is added afterwards. For `u32`
//   below -2^31 or above 2^32, NumPy's own result depends on the position of the element in the array; this is the
//   result for a single element.
// - `bf16` is made from `f32`, as in ml_dtypes: `f64` and large integers are rounded twice.
#pragma once

#include "element.cuh"
#include "structs.cuh"

INLINE u32 type_nbytes(u32 type) {
    switch (type) {
        case TYPE_BOOL:
        case TYPE_I8:
        case TYPE_U8: return 1;
        case TYPE_I16:
        case TYPE_U16:
        case TYPE_F16:
        case TYPE_BF16: return 2;
        case TYPE_I32:
        case TYPE_U32:
        case TYPE_F32: return 4;
        case TYPE_C128: return 16;
        default: return 8;
    }
}

// Returns the alignment of a type; for complex numbers, that of one part.
INLINE u32 type_alignment(u32 type) { return type == TYPE_C64 ? 4 : type == TYPE_C128 ? 8 : type_nbytes(type); }

INLINE float float_of_half(u16 half) {
    const u32 sign = u32(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent > 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    // Subnormal: a multiple of 2^-24.
    return float_of(sign | bits_of(float(mantissa) * 0x1p-24f));
}

INLINE u16 half_of(double value) {
    const u64 bits = bits_of(value), magnitude = bits & 0x7fffffffffffffff;
    const u16 sign = u16(bits >> 48 & 0x8000);
    if (magnitude > 0x7ff0000000000000) return u16(sign | 0x7e00 | (magnitude >> 42 & 1023));
    // From 65520 on, halfway beyond the largest value, it is infinite.
    if (magnitude >= bits_of(65520.0)) return u16(sign | 0x7c00);
    if (magnitude < bits_of(0x1p-14)) {
        // Subnormal: adding 2^52 leaves no fractional bits, and the sum is rounded to even.
        return u16(sign | u16(double_of(magnitude) * 0x1p24 + 0x1p52 - 0x1p52));
    }
    // Drops 42 bits. A carry out of the mantissa correctly increments the exponent.
    const u64 rounded = magnitude + 0x1ffffffffff + (magnitude >> 42 & 1);
    return u16(sign | u16((rounded >> 42) - (u64(1008) << 10)));
}

INLINE u16 bfloat_of(float value) {
    const u32 bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return u16((bits >> 16 & 0x8000) | 0x7fc0);
    return u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

INLINE i32 i32_of(double value) { return value > -2147483649.0 && value < 2147483648.0 ? i32(value) : i32(0x80000000); }

INLINE i64 i64_of(double value) { return value >= -0x1p63 && value < 0x1p63 ? i64(value) : i64(u64(1) << 63); }

INLINE u64 u64_of(double value) {
    return value >= 0x1p63 ? u64(i64_of(value - 0x1p63)) ^ u64(1) << 63 : u64(i64_of(value));
}

struct Number {
    enum Kind { SIGNED, UNSIGNED, FLOAT } kind;
    u64 integer;
    double real;
    double imaginary;

    INLINE static Number of_signed(i64 value) { return {SIGNED, u64(value), 0, 0}; }
    INLINE static Number of_unsigned(u64 value) { return {UNSIGNED, value, 0, 0}; }
    INLINE static Number of_float(double real, double imaginary = 0) { return {FLOAT, 0, real, imaginary}; }

    INLINE bool is_nonzero() const { return kind == FLOAT ? real != 0 || imaginary != 0 : integer != 0; }
    INLINE float as_float() const {
        return kind == FLOAT ? float(real) : kind == SIGNED ? float(i64(integer)) : float(integer);
    }
    INLINE double as_double() const {
        return kind == FLOAT ? real : kind == SIGNED ? double(i64(integer)) : double(integer);
    }
    // Truncates to an integer of at most 16 bits, or `i32`.
    INLINE u32 as_word() const { return kind == FLOAT ? u32(i32_of(real)) : u32(integer); }
    INLINE u64 as_long() const { return kind == FLOAT ? u64(i64_of(real)) : integer; }
};

INLINE Number read_number(u64 address, u32 type, bool aligned) {
    switch (type) {
        case TYPE_BOOL: return Number::of_unsigned(read<u8>(address, true) != 0);
        case TYPE_I8: return Number::of_signed(i8(read<u8>(address, true)));
        case TYPE_I16: return Number::of_signed(i16(read<u16>(address, aligned)));
        case TYPE_I32: return Number::of_signed(i32(read<u32>(address, aligned)));
        case TYPE_I64: return Number::of_signed(i64(read<u64>(address, aligned)));
        case TYPE_U8: return Number::of_unsigned(read<u8>(address, true));
        case TYPE_U16: return Number::of_unsigned(read<u16>(address, aligned));
        case TYPE_U32: return Number::of_unsigned(read<u32>(address, aligned));
        case TYPE_U64: return Number::of_unsigned(read<u64>(address, aligned));
        case TYPE_F16: return Number::of_float(float_of_half(read<u16>(address, aligned)));
        case TYPE_BF16: return Number::of_float(float_of(u32(read<u16>(address, aligned)) << 16));
        case TYPE_F32: return Number::of_float(float_of(read<u32>(address, aligned)));
        case TYPE_F64: return Number::of_float(double_of(read<u64>(address, aligned)));
        case TYPE_C64:
            return Number::of_float(
                float_of(read<u32>(address, aligned)), float_of(read<u32>(address + 4, aligned)));
        default:
            return Number::of_float(
                double_of(read<u64>(address, aligned)), double_of(read<u64>(address + 8, aligned)));
    }
}

INLINE void write_number(u64 address, u32 type, const Number& number, bool aligned) {
    switch (type) {
        case TYPE_BOOL: return write<u8>(address, number.is_nonzero(), true);
        case TYPE_I8:
        case TYPE_U8: return write(address, u8(number.as_word()), true);
        case TYPE_I16:
        case TYPE_U16: return write(address, u16(number.as_word()), aligned);
        case TYPE_I32: return write(address, number.as_word(), aligned);
        case TYPE_U32: return write(address, u32(number.as_long()), aligned);
        case TYPE_I64: return write(address, number.as_long(), aligned);
        case TYPE_U64:
            return write(address, number.kind == Number::FLOAT ? u64_of(number.real) : number.integer, aligned);
        case TYPE_F16: return write(address, half_of(number.as_double()), aligned);
        case TYPE_BF16: return write(address, bfloat_of(number.as_float()), aligned);
        case TYPE_F32: return write(address, bits_of(number.as_float()), aligned);
        case TYPE_F64: return write(address, bits_of(number.as_double()), aligned);
        case TYPE_C64:
            write(address, bits_of(number.as_float()), aligned);
            return write(address + 4, bits_of(float(number.imaginary)), aligned);
        default:
            write(address, bits_of(number.as_double()), aligned);
            return write(address + 8, bits_of(number.imaginary), aligned);
    }
}
