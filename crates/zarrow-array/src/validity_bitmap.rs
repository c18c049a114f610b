//! Packs a mask into Arrow's validity bitmap: one bit per element, least significant first, 1 for values.

use std::mem::MaybeUninit;

/// Writes a bit per byte of `missing` to all of `bits`, least significant bit first, 1 for zero bytes; trailing
/// bits are 0. Returns the number of non-zero bytes.
///
/// # Panics
/// If `bits` does not have exactly one bit per byte of `missing`, rounded up to bytes.
pub fn pack_validity(missing: &[u8], bits: &mut [MaybeUninit<u8>]) -> usize {
    assert_eq!(bits.len(), missing.len().div_ceil(8), "one bit per byte of the mask");
    let (words, rest) = missing.as_chunks::<8>();
    let mut valid_count = 0usize;
    for (word, bits) in words.iter().zip(&mut *bits) {
        const LOW: u64 = 0x0101_0101_0101_0101;
        let word = u64::from_le_bytes(*word);
        // The highest bit of each byte becomes 1 if any bit of that byte is set; then a multiplication moves the
        // lowest bits of all bytes side by side, without carries.
        let any = (word | ((word & (LOW * 0x7f)) + LOW * 0x7f)) >> 7;
        let byte = ((!any & LOW).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        valid_count += byte.count_ones() as usize;
        bits.write(byte);
    }
    if let (Some(last), false) = (bits.last_mut(), rest.is_empty()) {
        let bit = |(at, byte): (usize, &u8)| u8::from(*byte == 0) << at;
        let byte: u8 = rest.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit);
        valid_count += byte.count_ones() as usize;
        last.write(byte);
    }
    missing.len() - valid_count
}
