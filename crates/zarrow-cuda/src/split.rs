//! Splitting a read between a device and the host: a pure function of sizes and rates.
//!
//! 1. Chunks are sorted by the size of their largest frame. The device gets those with small frames, the host the
//!    others: one block of threads decompresses a frame on the device, slower than a CPU core, and a batch takes as
//!    long as its largest frame.
//! 2. The more chunks the device gets, the longer it takes, and the less time the host and the link take. The best
//!    cut is where both take equally long; bisection finds it.
//! 3. A split must save at least a tenth compared to the better single route. Otherwise all chunks take that route.

use crate::decompress::frames::BATCH_NBYTES;
use crate::device::MAX_READ_STREAMS;
use crate::rates::Rates;

/// Maximum time of a split, relative to the better single route.
const WORTHWHILE: f64 = 0.9;

/// Chunks of equal size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alike {
    /// Number of chunks.
    pub chunks: u64,
    /// Decoded bytes of each chunk.
    pub nbytes: u64,
    /// Decoded bytes of the largest frame in each chunk.
    pub largest_frame: u64,
}

/// Numbers of chunks by place, and estimated times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Chunks that the device decompresses: those with the smallest frames.
    pub on_device: u64,
    /// Chunks that the host decodes.
    pub on_host: u64,
    /// Seconds until all chunks are on the device.
    pub seconds: f64,
    /// Seconds if the device decompressed all chunks.
    pub device_seconds: f64,
    /// Seconds if the host decoded all chunks.
    pub host_seconds: f64,
}

/// Returns the fastest split of `alike`, with this number of host threads.
///
/// ```
/// use zarrow_cuda::decompress::Format;
/// use zarrow_cuda::{Alike, Rates, split};
/// let rates = Rates::estimate(Format::Zstd);
/// let few = [Alike { chunks: 4, nbytes: 1 << 20, largest_frame: 1 << 20 }];
/// assert_eq!(split(&few, &rates, 8).on_device, 0);
/// let many = [Alike { chunks: 4000, nbytes: 64 << 10, largest_frame: 64 << 10 }];
/// assert_eq!(split(&many, &rates, 2).on_host, 0);
/// ```
#[must_use]
pub fn split(alike: &[Alike], rates: &Rates, threads: usize) -> Split {
    let mut sorted = alike.to_vec();
    sorted.sort_by_key(|alike| alike.largest_frame);
    let model = Model { sorted, rates: *rates, threads: threads.max(1) as f64 };
    let count = model.sorted.iter().fold(0u64, |count, alike| count.saturating_add(alike.chunks));
    // Step 2: the smallest cut at which the device takes longer.
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        let (device, rest) = model.seconds(middle);
        if device >= rest { high = middle } else { low = middle + 1 }
    }
    let total = |cut: u64| {
        let (device, rest) = model.seconds(cut);
        device.max(rest)
    };
    let (host_seconds, device_seconds) = (total(0), total(count));
    let cut = if total(low.saturating_sub(1)) < total(low) { low.saturating_sub(1) } else { low };
    // Step 3.
    let single = if device_seconds < host_seconds { count } else { 0 };
    let is_worthwhile = total(cut) <= WORTHWHILE * total(single);
    let on_device = if is_worthwhile { cut } else { single };
    Split { on_device, on_host: count - on_device, seconds: total(on_device), device_seconds, host_seconds }
}

struct Model {
    sorted: Vec<Alike>,
    rates: Rates,
    threads: f64,
}

impl Model {
    /// Returns the device's time for the first `cut` chunks, and the time of the host and the link for the rest.
    fn seconds(&self, cut: u64) -> (f64, f64) {
        let Rates { device, device_frame, link, host_thread, ratio } = self.rates;
        let (mut there, mut here, mut largest_frame, mut largest_chunk) = (0.0, 0.0, 0u64, 0u64);
        let mut left = cut;
        for alike in &self.sorted {
            let given = left.min(alike.chunks);
            left -= given;
            there += given as f64 * alike.nbytes as f64;
            here += (alike.chunks - given) as f64 * alike.nbytes as f64;
            if given > 0 {
                largest_frame = alike.largest_frame;
            }
            if given < alike.chunks {
                largest_chunk = largest_chunk.max(alike.nbytes);
            }
        }
        // One batch per stream runs at a time.
        let rounds = (there / (BATCH_NBYTES * MAX_READ_STREAMS) as f64).ceil();
        let on_device = (there / device.value).max(rounds * largest_frame as f64 / device_frame.value);
        let on_host = (here / self.threads).max(largest_chunk as f64) / host_thread.value;
        let crossing = (there / ratio.value.max(1.0) + here) / link.value;
        (on_device, on_host.max(crossing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decompress::Format;
    use crate::rates::Mean;
    use proptest::prelude::*;

    fn alike(chunks: u64, nbytes: u64, largest_frame: u64) -> Alike {
        Alike { chunks, nbytes, largest_frame }
    }

    /// 1 GB/s for a full device, a thousandth of that for a frame; 100 MB/s per thread; a link that is never the
    /// limit.
    fn rates() -> Rates {
        Rates {
            device: Mean::estimate(1e9),
            device_frame: Mean::estimate(1e6),
            link: Mean::estimate(1e12),
            host_thread: Mean::estimate(1e8),
            ratio: Mean::estimate(2.0),
        }
    }

    #[test]
    fn few_frames_go_to_the_host_and_many_to_the_device() {
        let of = |chunks| split(&[alike(chunks, 10_000, 10_000)], &rates(), 2);
        assert_eq!((of(1).on_device, of(50).on_device), (0, 0));
        assert_eq!(of(100_000).on_host, 16_666, "a sixth: the device is five times as fast as both threads");
        assert_eq!((of(0).on_device, of(0).on_host, of(0).seconds), (0, 0, 0.0));
    }

    #[test]
    fn large_frames_go_to_the_host() {
        let mixed = [alike(10, 20_000_000, 20_000_000), alike(100_000, 10_000, 10_000)];
        let split = split(&mixed, &rates(), 2);
        assert!(split.on_device > 90_000 && split.on_host >= 10, "{split:?}");
        // Blosc blocks are small, even in large chunks.
        let blocks = [alike(1000, 1 << 20, 1 << 12)];
        assert!(super::split(&blocks, &rates(), 1).on_device > 800);
    }

    #[test]
    fn equal_rates_are_shared() {
        let rates = Rates { device_frame: Mean::estimate(1e9), ..rates() };
        let split = split(&[alike(1000, 1 << 20, 1 << 10)], &rates, 10);
        assert_eq!((split.on_device, split.on_host), (500, 500));
        assert!(split.seconds * 1.9 < split.device_seconds.min(split.host_seconds));
    }

    #[test]
    fn splits_that_save_little_are_avoided() {
        let split = split(
            &[alike(100_000, 10_000, 10_000)],
            &Rates { host_thread: Mean::estimate(1e7), ..rates() },
            2,
        );
        assert_eq!(split.on_host, 0);
    }

    #[test]
    fn estimates_leave_single_large_chunks_to_the_host() {
        for format in Format::ALL {
            let rates = Rates::estimate(format);
            assert_eq!(split(&[alike(16, 16 << 20, 16 << 20)], &rates, 16).on_device, 0, "{format:?}");
            let small = split(&[alike(100_000, 64 << 10, 64 << 10)], &rates, 4);
            assert!(small.on_device > 50_000, "{format:?}: {small:?}");
        }
    }

    proptest! {
        #[test]
        fn a_split_is_never_worse_than_either_route(
            classes in prop::collection::vec((0u64..3000, 1u64..1 << 26, 0u32..12), 0..6),
            rates in prop::array::uniform5(1.0f64..1e12),
            threads in 0usize..128,
        ) {
            let classes: Vec<_> = classes.into_iter().map(|(chunks, nbytes, shift)| alike(chunks, nbytes, (nbytes >> shift).max(1))).collect();
            let [device, device_frame, link, host_thread, ratio] = rates.map(Mean::estimate);
            let rates = Rates { device, device_frame, link, host_thread, ratio: Mean::estimate(ratio.value / 1e11) };
            let count: u64 = classes.iter().map(|alike| alike.chunks).sum();
            let split = split(&classes, &rates, threads);
            prop_assert_eq!(split.on_device + split.on_host, count);
            prop_assert!(split.seconds <= split.device_seconds && split.seconds <= split.host_seconds);
            // No other cut is much better.
            let mut sorted = classes;
            sorted.sort_by_key(|alike| alike.largest_frame);
            let model = Model { sorted, rates, threads: threads.max(1) as f64 };
            for tenth in 0..=20 {
                let (device, rest) = model.seconds(count * tenth / 20);
                prop_assert!(device.max(rest) >= split.seconds * WORTHWHILE * (1.0 - 1e-9));
            }
        }
    }
}
