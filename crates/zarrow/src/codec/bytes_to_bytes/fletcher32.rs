//! HDF5's Fletcher-32 over big-endian words of 16 bits.
//!
//! Source: HDF5 1.14, `H5_checksum_fletcher32`.

/// Returns the checksum of `bytes`.
pub fn fletcher32(bytes: &[u8]) -> u32 {
    /// Number of words that two sums below 2¹⁷ can add without an overflow.
    const BLOCK: usize = 360;
    let (words, rest) = bytes.as_chunks::<2>();
    let (mut sum1, mut sum2) = (0u32, 0u32);
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    for block in words.chunks(BLOCK) {
        for word in block {
            sum1 = sum1.wrapping_add(u32::from(u16::from_be_bytes(*word)));
            sum2 = sum2.wrapping_add(sum1);
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    if let [last] = rest {
        sum1 += u32::from(*last) << 8;
        sum2 += sum1;
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    (sum1, sum2) = (fold(sum1), fold(sum2));
    sum2 << 16 | sum1
}

#[cfg(test)]
mod tests {
    use super::fletcher32;

    /// Result of numcodecs 0.16.6.
    #[test]
    fn it_is_that_of_numcodecs() {
        let long: Vec<u8> = (0..=255).cycle().take(2001).collect();
        for (bytes, expected) in [
            (&b""[..], 0),
            (b"a", 0x6100_6100),
            (b"ab", 0x6162_6162),
            (b"abc", 0x25c5_c462),
            (b"abcdefgh", 0xe1eb_9195),
            (&[255; 4000], 0xffff_ffff),
            (&long, 0x18a6_1429),
        ] {
            assert_eq!(fletcher32(bytes), expected, "{} bytes", bytes.len());
        }
    }
}
