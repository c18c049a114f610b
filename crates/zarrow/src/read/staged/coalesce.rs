//! Turns selected ranges into requests: neighbours are merged, and large ranges are split.
//!
//! 1. The ranges are sorted by start.
//! 2. Two neighbours become one request if the gap between them is at most [`gap_nbytes`](FetchPolicy::gap_nbytes) and
//!    the request at most [`merged_nbytes`](FetchPolicy::merged_nbytes). If half of the value or more is selected,
//!    all gaps are fetched too. Otherwise gaps are fetched up to the sum of the ranges or
//!    [`gaps_nbytes`](FetchPolicy::gaps_nbytes), small ones first: a scattered selection would transfer the whole value,
//!    and hold it in memory.
//! 3. A range larger than [`split_nbytes`](FetchPolicy::split_nbytes) is split into requests of that size.
//!
//! This is a pure function of the ranges: nothing here calls a store.

use crate::error::Result;
use crate::store::remote::FetchPolicy;
use smallvec::SmallVec;
use std::ops::Range;
use zarrow_array::allocation::{self, Grow};

/// A range of a value, and the number of the leaf that needs it.
pub type LeafRange = (Range<u64>, u32);

/// One request, and the leaves that wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedRequest {
    /// The bytes.
    pub range: Range<u64>,
    /// The leaves, each once.
    pub leaves: SmallVec<[u32; 2]>,
}

/// Returns the requests for `wanted`; `nbytes` is the size of the value in bytes, if known.
///
/// # Errors
/// [`zarrow_array::Error::OutOfMemory`].
pub fn coalesce(
    mut wanted: Vec<LeafRange>,
    nbytes: Option<u64>,
    policy: &FetchPolicy,
) -> Result<Vec<MergedRequest>> {
    // Step 1.
    wanted.sort_unstable_by_key(|(range, leaf)| (range.start, range.end, *leaf));
    let sum = wanted.iter().fold(0u64, |sum, (range, _)| sum.saturating_add(range.end - range.start));
    let most = nbytes.is_some_and(|nbytes| sum >= nbytes / 2);
    let gap = if most { policy.merged_nbytes } else { fetched_gap(&wanted, sum, policy)? };
    let mut merged: Vec<MergedRequest> = Vec::new();
    for (range, leaf) in wanted {
        // Step 2.
        if let Some(last) = merged.last_mut()
            && range.start <= last.range.end.saturating_add(gap)
            && range.end.max(last.range.end) - last.range.start
                <= policy.merged_nbytes.max(last.range.end - last.range.start)
        {
            last.range.end = last.range.end.max(range.end);
            if last.leaves.last() != Some(&leaf) {
                last.leaves.push(leaf);
            }
            continue;
        }
        merged.try_push(MergedRequest { range, leaves: SmallVec::from_slice(&[leaf]) })?;
    }
    // Step 3.
    let split = policy.split_nbytes.max(1);
    if merged.iter().all(|one| one.range.end - one.range.start <= split) {
        return Ok(merged);
    }
    let mut requests: Vec<MergedRequest> = allocation::with_capacity(merged.len())?;
    for MergedRequest { range, mut leaves } in merged {
        leaves.sort_unstable();
        leaves.dedup();
        let count = (range.end - range.start).div_ceil(split).max(1);
        for number in 0..count {
            let start = range.start + number * split;
            let range = start..start.saturating_add(split).min(range.end);
            requests.try_push(MergedRequest { range, leaves: leaves.clone() })?;
        }
    }
    Ok(requests)
}

/// Returns the size of the largest gap to fetch between sorted ranges of `sum` bytes (step 2).
fn fetched_gap(wanted: &[LeafRange], sum: u64, policy: &FetchPolicy) -> Result<u64> {
    let mut gaps: Vec<u64> = allocation::with_capacity(wanted.len())?;
    let mut end = wanted.first().map_or(0, |(range, _)| range.start);
    for (range, _) in wanted {
        let gap = range.start.saturating_sub(end);
        if (1..=policy.gap_nbytes).contains(&gap) {
            gaps.push(gap);
        }
        end = end.max(range.end);
    }
    gaps.sort_unstable();
    let mut left = sum.max(policy.gaps_nbytes);
    for equal in gaps.chunk_by(|one, next| one == next) {
        let Some(rest) = left.checked_sub(equal[0].saturating_mul(equal.len() as u64)) else {
            return Ok(equal[0] - 1);
        };
        left = rest;
    }
    Ok(policy.gap_nbytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy(gap_nbytes: u64, merged_nbytes: u64, split_nbytes: u64) -> FetchPolicy {
        FetchPolicy { gap_nbytes, gaps_nbytes: 50, merged_nbytes, split_nbytes, ..FetchPolicy::default() }
    }

    #[test]
    fn neighbours_are_one_request() {
        let wanted = vec![(100..110, 1), (0..10, 0), (12..20, 2)];
        let requests = coalesce(wanted, Some(1000), &policy(5, 50, 50)).unwrap();
        let ranges: Vec<_> = requests.iter().map(|one| (one.range.clone(), one.leaves.to_vec())).collect();
        assert_eq!(ranges, [(0..20, vec![0, 2]), (100..110, vec![1])]);
    }

    #[test]
    fn large_gaps_of_scattered_ranges_are_not_fetched() {
        // 20 ranges of 10 bytes, with gaps of 10 and of 40 bytes in turn.
        let wanted = |count: u64| -> Vec<LeafRange> {
            (0..count)
                .map(|leaf| (leaf / 2 * 70 + leaf % 2 * 20, leaf))
                .map(|(at, leaf)| (at..at + 10, leaf as u32))
                .collect()
        };
        let scattered = coalesce(wanted(20), Some(10_000), &policy(50, 5000, 5000)).unwrap();
        assert_eq!(scattered.len(), 10);
        assert!(scattered.iter().all(|one| one.range.end - one.range.start == 30));
        // A few small gaps cost less than a request.
        assert_eq!(coalesce(wanted(3), Some(10_000), &policy(50, 5000, 5000)).unwrap().len(), 1);
    }

    proptest! {
        /// Each leaf gets all its bytes from the requests that it waits for, no request exceeds the limit, and two
        /// requests share no more than a leaf's own overlap.
        #[test]
        fn every_leaf_gets_its_bytes(
            wanted in prop::collection::vec((0u64..5000, 1u64..300), 1..40),
            gap in 0u64..200, merged in 1u64..1000, split in 1u64..500, nbytes in prop::option::of(5300u64..9000),
        ) {
            let wanted: Vec<LeafRange> =
                wanted.iter().enumerate().map(|(leaf, (start, length))| (*start..start + length, leaf as u32)).collect();
            let requests = coalesce(wanted.clone(), nbytes, &policy(gap, merged, split)).unwrap();
            for (range, leaf) in &wanted {
                for byte in range.clone() {
                    prop_assert!(requests.iter().any(|one| one.range.contains(&byte) && one.leaves.contains(leaf)));
                }
            }
            for one in &requests {
                prop_assert!(one.range.end - one.range.start <= split);
                let mut leaves = one.leaves.to_vec();
                leaves.dedup();
                prop_assert_eq!(leaves.len(), one.leaves.len());
            }
            let sum: u64 = wanted.iter().map(|(range, _)| range.end - range.start).sum();
            if nbytes.is_none_or(|nbytes| sum < nbytes / 2) {
                let fetched: u64 = requests.iter().map(|one| one.range.end - one.range.start).sum();
                prop_assert!(fetched <= sum + sum.max(50));
            }
        }
    }
}
