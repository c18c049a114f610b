//! Floating-point formats of at most 8 bits, and their code for each number.
//!
//! 1. A format is defined by its number of bits, the bits of its mantissa, its bias, and its codes for infinities and
//!    NaN.
//! 2. Encoding searches the values of all codes: a number without an exact match has no code.

use zarrow_array::Number;

/// Codes of a format that are not finite numbers.
#[derive(Clone, Copy, PartialEq)]
enum Specials {
    /// As in IEEE 754: all exponent bits set.
    Ieee,
    /// No infinity; NaN has all bits but the sign set (`fn`).
    AllOnes,
    /// No infinity; the code of negative zero is NaN (`fnuz`).
    NegativeZero,
    /// None: every code is a finite number.
    Finite,
}

struct Format {
    /// The bit above the exponent.
    sign: u8,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

fn format(number: Number) -> Option<Format> {
    let (mantissa_bits, bias, specials) = match number {
        Number::Float8E3M4 => (4, 3, Specials::Ieee),
        Number::Float8E4M3 => (3, 7, Specials::Ieee),
        Number::Float8E4M3B11 => (3, 11, Specials::NegativeZero),
        Number::Float8E4M3Fn => (3, 7, Specials::AllOnes),
        Number::Float8E4M3Fnuz => (3, 8, Specials::NegativeZero),
        Number::Float8E5M2 => (2, 15, Specials::Ieee),
        Number::Float8E5M2Fnuz => (2, 16, Specials::NegativeZero),
        Number::Float6E2M3Fn => (3, 1, Specials::Finite),
        Number::Float6E3M2Fn => (2, 3, Specials::Finite),
        Number::Float4E2M1Fn => (1, 1, Specials::Finite),
        _ => return None,
    };
    Some(Format { sign: 1 << (number.names().bits - 1), mantissa_bits, bias, specials })
}

/// Returns the code of `value` in `number`, a float of at most 8 bits; `None` if there is no exact code.
pub(super) fn encode(number: Number, value: f64) -> Option<u8> {
    let same = |code: &u8| {
        let decoded = decode(number, *code);
        decoded == Some(value)
            && decoded.is_some_and(|decoded| decoded.is_sign_negative() == value.is_sign_negative())
    };
    if value.is_nan() {
        return nan(number);
    }
    let codes = 1usize.checked_shl(number.names().bits).unwrap_or(usize::MAX);
    (0..=u8::MAX).take(codes).find(same)
}

fn nan(number: Number) -> Option<u8> {
    if number == Number::Float8E8M0Fnu {
        return Some(0xff);
    }
    let format = format(number)?;
    Some(match format.specials {
        // All exponent bits and the first bit of the mantissa: the quiet NaN.
        Specials::Ieee => 0x7f & !((1 << (format.mantissa_bits - 1)) - 1),
        Specials::AllOnes => 0x7f,
        Specials::NegativeZero => 0x80,
        Specials::Finite => return None,
    })
}

/// Returns the value of a code, ignoring its unused upper bits; `None` for NaN.
pub(super) fn decode(number: Number, code: u8) -> Option<f64> {
    if number == Number::Float8E8M0Fnu {
        return (code != 0xff).then(|| (f64::from(code) - 127.0).exp2());
    }
    let Format { sign, mantissa_bits, bias, specials } = format(number)?;
    let exponent = i32::from((code & (sign - 1)) >> mantissa_bits);
    let mantissa = code & ((1 << mantissa_bits) - 1);
    let sign = if code & sign == 0 { 1.0 } else { -1.0 };
    match specials {
        Specials::Ieee if exponent == 0x7f >> mantissa_bits => {
            return (mantissa == 0).then_some(sign * f64::INFINITY);
        }
        Specials::AllOnes if code & 0x7f == 0x7f => return None,
        Specials::NegativeZero if code == 0x80 => return None,
        _ => {}
    }
    // A number without an implicit one has the exponent of the smallest normal number.
    let implicit = if exponent == 0 { 0.0 } else { 1.0 };
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    Some(sign * (implicit + fraction) * f64::from(exponent.max(1) - bias).exp2())
}
