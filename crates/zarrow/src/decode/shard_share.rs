//! Shares of a shard: its inner chunks divided among threads.

use crate::codec::ShardIndex;
use std::ops::Range;

/// A share of a shard's inner chunks: share `number` of `count`, with an index common to all shares.
#[derive(Clone, Copy)]
pub struct Share<'a> {
    /// The share's number.
    pub number: u64,
    /// The number of shares.
    pub count: u64,
    /// The shard's index.
    pub index: &'a ShardIndex,
}

impl Share<'_> {
    /// Returns the numbers of this share's inner chunks among `total`.
    pub fn range(self, total: u64) -> Range<u64> {
        let bound = |number: u64| {
            let product = u128::from(total) * u128::from(number) / u128::from(self.count);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        bound(self.number)..bound(self.number + 1)
    }
}
