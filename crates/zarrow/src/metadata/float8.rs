//! The 8-bit floating-point formats, by which byte each has for a number.
//!
//! 1. A format is its number of mantissa bits, its bias, and which codes are infinite or no number.
//! 2. A number is looked up among the values of all 256 codes: one that is not exactly there has no code.

use zarrow_array::Number;

/// Which codes of a format are no finite numbers.
#[derive(Clone, Copy, PartialEq)]
enum Specials {
    /// As in IEEE 754: all exponent bits set.
    Ieee,
    /// No infinity, and NaN only where all bits but the sign are set (`fn`).
    AllOnes,
    /// No infinity and no negative zero, whose code is NaN (`fnuz`).
    NegativeZero,
}

struct Format {
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
        _ => return None,
    };
    Some(Format { mantissa_bits, bias, specials })
}

/// The byte that `number`, an 8-bit float, has for `value`, `None` where it has none.
pub(super) fn encode(number: Number, value: f64) -> Option<u8> {
    let same = |code: &u8| {
        let decoded = decode(number, *code);
        decoded == Some(value)
            && decoded.is_some_and(|decoded| decoded.is_sign_negative() == value.is_sign_negative())
    };
    if value.is_nan() {
        return nan(number);
    }
    (0..=u8::MAX).find(same)
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
    })
}

/// The value of a code, `None` where it is NaN.
pub(super) fn decode(number: Number, code: u8) -> Option<f64> {
    if number == Number::Float8E8M0Fnu {
        return (code != 0xff).then(|| (f64::from(code) - 127.0).exp2());
    }
    let Format { mantissa_bits, bias, specials } = format(number)?;
    let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((code & 0x7f) >> mantissa_bits);
    let mantissa = code & ((1 << mantissa_bits) - 1);
    match specials {
        Specials::Ieee if exponent == 0x7f >> mantissa_bits => {
            return (mantissa == 0).then_some(sign * f64::INFINITY);
        }
        Specials::AllOnes if code & 0x7f == 0x7f => return None,
        Specials::NegativeZero if code == 0x80 => return None,
        _ => {}
    }
    // Without an implicit one the exponent is that of the smallest normal number.
    let implicit = if exponent == 0 { 0.0 } else { 1.0 };
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    Some(sign * (implicit + fraction) * f64::from(exponent.max(1) - bias).exp2())
}
