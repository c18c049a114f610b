//! How fast frames are decompressed: by a device, and by the threads of the host.
//!
//! 1. Each device begins with estimates for each format, whose sources stand beside them.
//! 2. Reads that decompress on the device measure: events tell how long it took for a batch and for a copy, the clock how long a
//!    thread of the host took for what was left to it.
//! 3. The first measurement replaces the estimate. Each later one counts for a quarter, so that a rate follows the machine and
//!    forgets an outlier.

use crate::decompress::format::Format;
use zarrow_array::fork::Mutex;

/// What the last measurement counts for.
const WEIGHT: f64 = 0.25;
/// The fewest frames of a batch that keeps a device busy. An H100 has 132 multiprocessors, with room for some four blocks each.
pub const FULL_BATCH: u64 = 512;
/// Fewer bytes than these measure what a call costs, and no rate.
const MIN_NBYTES: u64 = 64 << 10;

/// A mean of what was measured, or an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The value.
    pub value: f64,
    /// Whether anything was measured.
    pub is_measured: bool,
}

impl Mean {
    /// What is believed before anything is measured.
    #[must_use]
    pub const fn estimate(value: f64) -> Mean {
        Mean { value, is_measured: false }
    }

    /// Step 3.
    #[must_use]
    pub fn with(self, value: f64) -> Mean {
        if !(value.is_finite() && value > 0.0) {
            return self;
        }
        let value = if self.is_measured { self.value + WEIGHT * (value - self.value) } else { value };
        Mean { value, is_measured: true }
    }
}

/// The rates of one format. Bytes are decoded ones, unless it is said otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Bytes a second that a device decompresses of a batch that keeps it busy.
    pub device: Mean,
    /// Bytes a second that it decompresses of one frame, which one block of threads works on.
    pub device_frame: Mean,
    /// Bytes a second that are copied to it, whatever they are.
    pub link: Mean,
    /// Bytes a second that one thread of the host decodes.
    pub host_thread: Mean,
    /// Bytes for each stored byte.
    pub ratio: Mean,
}

impl Rates {
    /// Step 1: for an H100 and a core of a server. Nothing of it was measured by zarrow.
    #[must_use]
    pub fn estimate(format: Format) -> Rates {
        let (device, host_thread) = match format {
            // damacy's log of its development tells of 42 GB/s. A core decodes 0.8 to 1.5.
            Format::Zstd => (42e9, 1.0e9),
            // The same log, "around 100 GB/s"; NVIDIA's own table has 313 on an A100, for data that shrink 39 times. A core
            // decodes 3 to 4.
            Format::Lz4 => (100e9, 3.0e9),
            // No figures are published. kvikio's pull request 208 has 29 GiB/s for GDeflate, whole pipeline.
            Format::Deflate | Format::Gzip => (29e9, 0.5e9),
            // The same, 10.6 GiB/s; no more than LZ4.
            Format::Snappy => (50e9, 1.5e9),
        };
        Rates {
            device: Mean::estimate(device),
            device_frame: Mean::estimate(device / FULL_BATCH as f64),
            // PCIe 5 with 16 lanes, from pinned memory, as nvbandwidth tells.
            link: Mean::estimate(55e9),
            host_thread: Mean::estimate(host_thread),
            ratio: Mean::estimate(2.0),
        }
    }

    /// Whether any of them was measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        [self.device, self.device_frame, self.link, self.host_thread, self.ratio]
            .iter()
            .any(|mean| mean.is_measured)
    }
}

/// What reads to one device have measured. A forked child has no device, and so no rates of its parent.
#[derive(Debug)]
pub(crate) struct Measured(Mutex<[Rates; Format::ALL.len()]>);

impl Default for Measured {
    fn default() -> Measured {
        Measured(Mutex::new(Format::ALL.map(Rates::estimate)))
    }
}

impl Measured {
    /// The rates of a format.
    pub(crate) fn of(&self, format: Format) -> Rates {
        self.0.lock()[format as usize]
    }

    pub(crate) fn set(&self, format: Format, rates: Rates) {
        self.0.lock()[format as usize] = rates;
    }

    /// A batch of so many frames, of which the largest has so many bytes, took the device so long.
    pub(crate) fn batch(&self, format: Format, frames: u64, largest: u64, total: u64, seconds: f64) {
        if total < MIN_NBYTES {
            return;
        }
        let rates = &mut self.0.lock()[format as usize];
        // A batch that does not fill the device takes as long as its largest frame.
        if frames >= FULL_BATCH {
            rates.device = rates.device.with(total as f64 / seconds);
        } else {
            rates.device_frame = rates.device_frame.with(largest as f64 / seconds);
        }
    }

    /// A copy of so many bytes to the device took so long.
    pub(crate) fn copy(&self, nbytes: u64, seconds: f64) {
        if nbytes >= MIN_NBYTES {
            for rates in self.0.lock().iter_mut() {
                rates.link = rates.link.with(nbytes as f64 / seconds);
            }
        }
    }

    /// Threads of the host decoded so many bytes, in so many seconds of theirs.
    pub(crate) fn host(&self, format: Format, nbytes: u64, seconds: f64) {
        if nbytes >= MIN_NBYTES {
            let rates = &mut self.0.lock()[format as usize];
            rates.host_thread = rates.host_thread.with(nbytes as f64 / seconds);
        }
    }

    /// So many bytes were stored as so many.
    pub(crate) fn stored(&self, format: Format, nbytes: u64, stored_nbytes: u64) {
        if nbytes >= MIN_NBYTES && stored_nbytes > 0 {
            let rates = &mut self.0.lock()[format as usize];
            rates.ratio = rates.ratio.with(nbytes as f64 / stored_nbytes as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_measurement_replaces_the_estimate_and_later_ones_count_for_a_quarter() {
        let mean = Mean::estimate(100.0).with(8.0);
        assert_eq!(mean, Mean { value: 8.0, is_measured: true });
        assert_eq!(mean.with(16.0).value, 10.0);
        for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(mean.with(nonsense), mean);
        }
    }

    #[test]
    fn a_batch_measures_the_device_where_it_fills_it_and_one_frame_elsewhere() {
        let measured = Measured::default();
        measured.batch(Format::Lz4, 1000, 1 << 16, 1000 << 16, 0.5);
        let rates = measured.of(Format::Lz4);
        assert_eq!(rates.device.value, f64::from(2000 << 16));
        assert_eq!(rates.device_frame, Rates::estimate(Format::Lz4).device_frame);
        measured.batch(Format::Lz4, 3, 1 << 20, 3 << 20, 0.25);
        assert_eq!(measured.of(Format::Lz4).device_frame.value, f64::from(4 << 20));
        measured.copy(1 << 20, 0.5);
        for format in Format::ALL {
            assert_eq!(measured.of(format).link.value, f64::from(2 << 20));
            assert_eq!(measured.of(format).device.is_measured, format == Format::Lz4);
        }
        measured.host(Format::Zstd, 100, 1e-9);
        assert!(!measured.of(Format::Zstd).host_thread.is_measured, "too few bytes to tell");
        measured.stored(Format::Zstd, 3 << 20, 1 << 20);
        assert_eq!(measured.of(Format::Zstd).ratio.value, 3.0);
    }
}
