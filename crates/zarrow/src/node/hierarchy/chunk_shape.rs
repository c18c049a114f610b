//! Chunk shapes for arrays created without one.
//!
//! - Compressed: the longest axis is halved until a chunk has no more than [`CHUNK_NBYTES`]. Chunks come out nearly
//!   cubic, so that a crop along any axes needs few chunks, and large enough to keep a thread busy for about a
//!   millisecond.
//! - Raw: as many whole rows as fit in [`RAW_CHUNK_NBYTES`]. The files of such chunks have the memory layout of the
//!   array, and are mapped contiguously; a read of less than a chunk reads only its range, so that larger chunks cost
//!   nothing, and mean fewer files. Their size is a multiple of the page size if the rows allow it, as contiguous
//!   mapping requires.
//!
//! - Shards: the axis with the most chunks outside of the shard is doubled until a shard has [`SHARD_NBYTES`] or covers
//!   the array.
//!
//! An empty axis is expected to grow, and counts as a long one.

/// Maximum size of a compressed chunk.
const CHUNK_NBYTES: u64 = 1 << 20;
/// Approximate size of a raw chunk.
const RAW_CHUNK_NBYTES: u64 = 4 << 20;
/// Maximum size of the elements of a shard.
const SHARD_NBYTES: u64 = 64 << 20;
/// Assumed extent of an empty axis.
const GROWING_EXTENT: u64 = 1 << 20;
/// Page sizes of machines, the largest first.
const PAGES: [u64; 3] = [1 << 16, 1 << 14, 1 << 12];

/// Returns the chunk shape of a compressed array.
pub(super) fn compressed(shape: &[u64], item_nbytes: u64) -> Vec<u64> {
    split(grown(shape), item_nbytes, |extent| extent.div_ceil(2))
}

/// Returns the shape of the chunks inside shards of `shard_shape`, a divisor of that shape.
pub(super) fn inside_shards(shard_shape: &[u64], item_nbytes: u64) -> Vec<u64> {
    split(shard_shape.to_vec(), item_nbytes, |extent| extent / smallest_factor(extent))
}

/// Returns the chunk shape of an uncompressed array.
pub(super) fn raw(shape: &[u64], item_nbytes: u64) -> Vec<u64> {
    let mut chunk = grown(shape);
    let Some((rows, row)) = chunk.split_first_mut() else { return chunk };
    let row_nbytes = row.iter().fold(item_nbytes.max(1), |nbytes, extent| nbytes.saturating_mul(*extent));
    let fitting = (RAW_CHUNK_NBYTES / row_nbytes).max(1);
    if fitting < *rows {
        let aligned = PAGES.map(|page| page / greatest_common_divisor(row_nbytes, page));
        let unit = aligned.into_iter().find(|rows| *rows <= fitting).unwrap_or(1);
        *rows = fitting / unit * unit;
    }
    chunk
}

/// Returns the shape of shards for an array of `shape` in chunks of `chunk_shape`: a multiple of the chunk shape along
/// each axis.
pub(super) fn shards(shape: &[u64], chunk_shape: &[u64], item_nbytes: u64) -> Vec<u64> {
    let mut counts: Vec<u64> = chunk_shape.iter().map(|_| 1).collect();
    let chunk_nbytes = nbytes(chunk_shape, item_nbytes);
    let needed: Vec<u64> = grown(shape)
        .iter()
        .zip(chunk_shape)
        .map(|(extent, chunk)| extent.div_ceil((*chunk).max(1)))
        .collect();
    while nbytes(&counts, chunk_nbytes) <= SHARD_NBYTES / 2
        && let Some((count, needed)) =
            counts.iter_mut().zip(&needed).rev().max_by_key(|(count, needed)| needed.div_ceil(**count))
        && *count < *needed
    {
        *count = count.saturating_mul(2).min(*needed);
    }
    counts.iter().zip(chunk_shape).map(|(count, chunk)| count.saturating_mul(*chunk)).collect()
}

/// Returns the size in bytes of `shape` with elements of `item_nbytes`.
fn nbytes(shape: &[u64], item_nbytes: u64) -> u64 {
    shape.iter().fold(item_nbytes.max(1), |nbytes, extent| nbytes.saturating_mul(*extent))
}

fn grown(shape: &[u64]) -> Vec<u64> {
    shape.iter().map(|extent| if *extent == 0 { GROWING_EXTENT } else { *extent }).collect()
}

/// Shortens the longest axis until a chunk is small enough.
fn split(mut chunk: Vec<u64>, item_nbytes: u64, shorter: impl Fn(u64) -> u64) -> Vec<u64> {
    while nbytes(&chunk, item_nbytes) > CHUNK_NBYTES
        && let Some(longest) = chunk.iter_mut().rev().max_by_key(|extent| **extent)
        && *longest > 1
    {
        *longest = shorter(*longest);
    }
    chunk
}

fn smallest_factor(number: u64) -> u64 {
    /// Limit of the search for factors: a number without a smaller one counts as prime, so that no shard shape takes
    /// long.
    const MOST: u64 = 1 << 16;
    (2..MOST)
        .take_while(|factor| factor * factor <= number)
        .find(|factor| number.is_multiple_of(*factor))
        .unwrap_or(number)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shapes_of_common_arrays() {
        assert_eq!(compressed(&[512, 512, 512], 4), [64, 64, 64]);
        assert_eq!(compressed(&[10_000_000], 8), [78_125]);
        assert_eq!(compressed(&[0, 100], 8), [1024, 100]);
        assert_eq!(compressed(&[10, 3], 8), [10, 3]);
        assert_eq!(compressed(&[], 8), [0; 0]);
        assert_eq!(raw(&[512, 512, 512], 4), [4, 512, 512]);
        assert_eq!(raw(&[100_000, 3], 8), [100_000, 3]);
        assert_eq!(raw(&[10_000, 1000], 8), [512, 1000]);
        assert_eq!(raw(&[1 << 30, 3], 8), [172_032, 3]);
        assert_eq!(raw(&[5, 1 << 40], 1), [1, 1 << 40]);
        assert_eq!(inside_shards(&[1024, 1024], 8), [256, 512]);
        assert_eq!(inside_shards(&[999_983 * 2], 8), [1]);
        assert_eq!(shards(&[512, 512, 512], &[64, 64, 64], 4), [256, 256, 256]);
        assert_eq!(shards(&[10, 3], &[10, 3], 8), [10, 3]);
        assert_eq!(shards(&[1000], &[300], 8), [1200]);
        assert_eq!(shards(&[0, 100], &[1024, 100], 8), [65_536, 100]);
        assert_eq!(shards(&[], &[], 8), [0; 0]);
    }

    proptest! {
        #[test]
        fn they_fit_and_are_small(
            shape in prop::collection::vec(prop_oneof![0..5u64, 0..3000u64, any::<u64>()], 0..5),
            item_nbytes in 1..70_000u64,
        ) {
            let chunk = compressed(&shape, item_nbytes);
            prop_assert!(nbytes(&chunk, item_nbytes) <= CHUNK_NBYTES || chunk.iter().all(|extent| *extent == 1));
            for chunk in [chunk.clone(), raw(&shape, item_nbytes)] {
                let fits = |(chunk, extent): (&u64, &u64)| *chunk > 0 && (chunk <= extent || *extent == 0);
                prop_assert!(chunk.iter().zip(&shape).all(fits));
                prop_assert_eq!(chunk.len(), shape.len());
            }
            let whole = shards(&shape, &chunk, item_nbytes);
            prop_assert!(nbytes(&whole, item_nbytes) <= SHARD_NBYTES.max(nbytes(&chunk, item_nbytes)));
            let fits = |((shard, chunk), extent): ((&u64, &u64), &u64)| {
                shard.is_multiple_of(*chunk) && (*extent == 0 || shard - chunk < *extent)
            };
            prop_assert!(whole.iter().zip(&chunk).zip(&shape).all(fits));
            let shards: Vec<u64> = shape.iter().map(|extent| extent % 5000 + 1).collect();
            let inner = inside_shards(&shards, item_nbytes);
            prop_assert!(inner.iter().zip(&shards).all(|(inner, outer)| outer.is_multiple_of(*inner)));
        }
    }
}
