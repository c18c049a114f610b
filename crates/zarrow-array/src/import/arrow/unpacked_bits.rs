//! Conversion of bits to bytes: validity (1 for values in Arrow) and bools.

use crate::Buffer;
use crate::error::Result;

/// Returns bit `at` of `bits`, least significant first.
///
/// # Safety
/// The byte with the bit must be readable.
unsafe fn bit(bits: *const u8, at: usize) -> bool {
    // SAFETY: by this function's contract.
    (unsafe { *bits.add(at / 8) } >> (at % 8)) & 1 == 1
}

/// Returns one byte per bit of the `length` bits from `start`, 1 for a zero bit; `None` if all bits are set.
///
/// # Safety
/// The `length` bits from `start` must be readable.
pub unsafe fn missing(bits: *const u8, start: usize, length: usize) -> Result<Option<Buffer>> {
    let mut missing: Option<Buffer> = None;
    let mut at = 0;
    while at < length {
        // SAFETY: the bit is one of the caller's.
        let here = unsafe { bit(bits, start + at) };
        // Skips eight valid elements at once.
        let whole_byte = (start + at).is_multiple_of(8) && length - at >= 8;
        // SAFETY: the byte has eight of the caller's bits.
        if whole_byte && unsafe { *bits.add((start + at) / 8) } == u8::MAX {
            at += 8;
            continue;
        }
        if !here {
            let bytes = match &mut missing {
                Some(bytes) => bytes,
                None => missing.insert(Buffer::zeroed(length)?),
            };
            bytes[at] = 1;
        }
        at += 1;
    }
    Ok(missing)
}

/// Unpacks the `length` bits from `start` to one byte per bit.
///
/// # Safety
/// See [`missing()`].
pub unsafe fn unpacked(bits: *const u8, start: usize, length: usize) -> Result<Buffer> {
    let mut bytes = Buffer::zeroed(length)?;
    for (at, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the bit is one of the caller's.
        *byte = u8::from(unsafe { bit(bits, start + at) });
    }
    Ok(bytes)
}
