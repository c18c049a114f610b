//! Chunks of nothing but the fill value, which need not be stored.

use crate::codec::borrowed::Borrowed;
use std::mem::MaybeUninit;

/// Whether `bytes` are repetitions of `item`, bit by bit: -0.0 is not 0.0, and NaN only equals NaN of the same bits.
///
/// Each item is compared with its predecessor: one pass over the bytes, which usually ends at once.
pub fn is_filled(bytes: &[u8], item: &[u8]) -> bool {
    match bytes.split_at_checked(item.len()) {
        Some((first, rest)) => first == item && rest == &bytes[..rest.len()],
        None => bytes.is_empty(),
    }
}

/// Same as [`is_filled`], for memory that may change meanwhile: each byte is read once and compared with `item`. So
/// each item was equal to `item` at some moment.
pub fn is_filled_with(borrowed: Borrowed<'_>, item: &[u8]) -> bool {
    /// Bytes that are copied at once for comparison.
    const BLOCK_NBYTES: usize = 4096;
    let mut block = [MaybeUninit::uninit(); BLOCK_NBYTES];
    let (size, nbytes) = (item.len(), borrowed.nbytes());
    // Whole items at once, or pieces of one.
    let most = BLOCK_NBYTES.checked_div(size).unwrap_or(0) * size;
    let mut start = 0;
    while start < nbytes {
        let inside = if size == 0 { 0 } else { start % size };
        let room = if most > 0 { most } else { BLOCK_NBYTES.min(size - inside) };
        let copy = borrowed.copy_to(start, &mut block[..room]);
        let is_equal = if most > 0 { is_filled(copy, item) } else { item[inside..].starts_with(copy) };
        if !is_equal || copy.is_empty() {
            return false;
        }
        start += copy.len();
    }
    nbytes == 0 || nbytes.is_multiple_of(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn borrowed_items_of_all_sizes_are_compared() {
        for size in [1, 3, 8, 4095, 4096, 4097, 10_000] {
            let item: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let mut bytes = item.repeat(3);
            assert!(is_filled_with(bytes[..].into(), &item), "{size}");
            assert!(size == 1 || !is_filled_with(bytes[1..].into(), &item), "{size}");
            for at in [0, size - 1, size, 2 * size, 3 * size - 1] {
                bytes[at] ^= 0x80;
                assert!(!is_filled_with(bytes[..].into(), &item), "{size}: {at}");
                bytes[at] ^= 0x80;
            }
        }
    }

    proptest! {
        #[test]
        fn all_items_are_compared(
            item in prop::collection::vec(any::<u8>(), 1..9), count in 0usize..40, change in any::<Option<u8>>(), at in any::<prop::sample::Index>(),
        ) {
            let mut bytes = item.repeat(count);
            if let (Some(change), false) = (change, bytes.is_empty()) {
                let at = at.index(bytes.len());
                bytes[at] = change;
            }
            prop_assert_eq!(is_filled(&bytes, &item), bytes == item.repeat(count));
            prop_assert_eq!(is_filled_with(bytes[..].into(), &item), bytes == item.repeat(count));
        }
    }

    #[test]
    fn signs_and_quiet_bits_count() {
        assert!(!is_filled(&(-0.0f64).to_ne_bytes(), &0f64.to_ne_bytes()));
        assert!(is_filled(&f64::NAN.to_ne_bytes(), &f64::NAN.to_ne_bytes()));
    }
}
