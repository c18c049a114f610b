//! Chunks of nothing but the fill value, which need not be stored.

/// Whether `bytes` are `item` over and over, bit by bit: -0.0 is not 0.0, and NaN is NaN of the same bits.
///
/// Each item is compared with the one before it: one pass over the bytes, which mostly ends at once.
pub fn is_filled(bytes: &[u8], item: &[u8]) -> bool {
    match bytes.split_at_checked(item.len()) {
        Some((first, rest)) => first == item && rest == &bytes[..rest.len()],
        None => bytes.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_filled;
    use proptest::prelude::*;

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
        }
    }

    #[test]
    fn signs_and_quiet_bits_count() {
        assert!(!is_filled(&(-0.0f64).to_ne_bytes(), &0f64.to_ne_bytes()));
        assert!(is_filled(&f64::NAN.to_ne_bytes(), &f64::NAN.to_ne_bytes()));
    }
}
