//! Decompression rates of a device and of the host's threads.
//!
//! 1. Each device begins with estimates for each format; comments give their sources.
//! 2. Reads with decompression on the device measure: events time each batch and copy, and a clock times the host
//!    threads.
//! 3. The first measurement replaces the estimate. Each later one counts for a quarter, so that a rate follows the
//!    machine and forgets outliers.

use crate::decompress::format::Format;
use zarrow_array::fork::Mutex;

/// Weight of the last measurement.
const WEIGHT: f64 = 0.25;
/// Minimum number of frames that fill a device. An H100 has 132 multiprocessors, with about four blocks each.
pub const FULL_BATCH: u64 = 512;
/// Minimum number of times that frames fill a device before they measure its rate. On an H100, 512 frames of 1 MiB took
/// as long as the slowest of them: 70 ms for zstd, where 4096 frames of 128 KiB took 12 ms.
const FULL_BATCHES: u64 = 4;
/// Smaller amounts measure the overhead of a call, not a rate.
const MIN_NBYTES: u64 = 64 << 10;

/// A mean of measurements, or an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The value.
    pub value: f64,
    /// Whether it was measured.
    pub is_measured: bool,
}

impl Mean {
    /// Creates an estimate.
    #[must_use]
    pub const fn estimate(value: f64) -> Mean {
        Mean { value, is_measured: false }
    }

    /// Adds a measurement (step 3).
    #[must_use]
    pub fn with(self, value: f64) -> Mean {
        if !(value.is_finite() && value > 0.0) {
            return self;
        }
        let value = if self.is_measured { self.value + WEIGHT * (value - self.value) } else { value };
        Mean { value, is_measured: true }
    }
}

/// Rates of one format. Bytes are decoded bytes, unless noted otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Bytes per second that a device decompresses in a batch that fills it.
    pub device: Mean,
    /// Bytes per second that it decompresses of a single frame, with one block of threads.
    pub device_frame: Mean,
    /// Bytes per second copied to it, of any data.
    pub link: Mean,
    /// Bytes per second that one host thread decodes.
    pub host_thread: Mean,
    /// Decoded bytes per stored byte.
    pub ratio: Mean,
}

impl Rates {
    /// Returns the estimates for an H100 and a server's CPU core (step 1). None of them was measured with zarrow.
    #[must_use]
    pub fn estimate(format: Format) -> Rates {
        let (device, host_thread) = match format {
            // damacy's development log reports 42 GB/s. A core decodes 0.8 to 1.5.
            Format::Zstd => (42e9, 1.0e9),
            // The same log: "around 100 GB/s". NVIDIA's own table has 313 on an A100, for data with ratio 39. A
            // core decodes 3 to 4.
            Format::Lz4 => (100e9, 3.0e9),
            // No published figures. kvikio's pull request 208 has 29 GiB/s for GDeflate, for the whole pipeline.
            Format::Deflate | Format::Gzip => (29e9, 0.5e9),
            // Same source: 10.6 GiB/s; at most LZ4's rate.
            Format::Snappy => (50e9, 1.5e9),
        };
        Rates {
            device: Mean::estimate(device),
            device_frame: Mean::estimate(device / FULL_BATCH as f64),
            // PCIe 5 with 16 lanes, from pinned memory, as reported by nvbandwidth.
            link: Mean::estimate(55e9),
            host_thread: Mean::estimate(host_thread),
            ratio: Mean::estimate(2.0),
        }
    }

    /// Returns whether any rate was measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        [self.device, self.device_frame, self.link, self.host_thread, self.ratio]
            .iter()
            .any(|mean| mean.is_measured)
    }
}

/// Measurements of reads to one device. A forked child has no device, and so does not inherit them.
#[derive(Debug)]
pub(crate) struct Measured(Mutex<[Rates; Format::ALL.len()]>);

impl Default for Measured {
    fn default() -> Measured {
        Measured(Mutex::new(Format::ALL.map(Rates::estimate)))
    }
}

impl Measured {
    /// Returns the rates of a format.
    pub(crate) fn of(&self, format: Format) -> Rates {
        self.0.lock()[format as usize]
    }

    pub(crate) fn set(&self, format: Format, rates: Rates) {
        self.0.lock()[format as usize] = rates;
    }

    /// Records the duration of a batch: its number of frames, the largest frame and the total size.
    pub(crate) fn batch(&self, format: Format, frames: u64, largest: u64, total: u64, seconds: f64) {
        if total < MIN_NBYTES {
            return;
        }
        let rates = &mut self.0.lock()[format as usize];
        // A batch that fills the device a few times takes as long as its largest frame each time.
        if frames >= FULL_BATCHES * FULL_BATCH {
            rates.device = rates.device.with(total as f64 / seconds);
        } else {
            let batches = frames.div_ceil(FULL_BATCH) as f64;
            rates.device_frame = rates.device_frame.with(largest as f64 * batches / seconds);
        }
    }

    /// Records the duration of a copy to the device.
    pub(crate) fn copy(&self, nbytes: u64, seconds: f64) {
        if nbytes >= MIN_NBYTES {
            for rates in self.0.lock().iter_mut() {
                rates.link = rates.link.with(nbytes as f64 / seconds);
            }
        }
    }

    /// Records bytes decoded by host threads, and their total time.
    pub(crate) fn host(&self, format: Format, nbytes: u64, seconds: f64) {
        if nbytes >= MIN_NBYTES {
            let rates = &mut self.0.lock()[format as usize];
            rates.host_thread = rates.host_thread.with(nbytes as f64 / seconds);
        }
    }

    /// Records the decoded and stored sizes of data.
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
    fn full_batches_measure_the_device_and_others_a_single_frame() {
        let measured = Measured::default();
        measured.batch(Format::Lz4, 4000, 1 << 14, 4000 << 14, 0.5);
        let rates = measured.of(Format::Lz4);
        assert_eq!(rates.device.value, f64::from(8000 << 14));
        assert_eq!(rates.device_frame, Rates::estimate(Format::Lz4).device_frame);
        measured.batch(Format::Lz4, 3, 1 << 20, 3 << 20, 0.25);
        assert_eq!(measured.of(Format::Lz4).device_frame.value, f64::from(4 << 20));
        measured.batch(Format::Zstd, 1000, 1 << 20, 1000 << 20, 0.5);
        assert_eq!(measured.of(Format::Zstd).device_frame.value, f64::from(4 << 20), "two batches");
        measured.copy(1 << 20, 0.5);
        for format in Format::ALL {
            assert_eq!(measured.of(format).link.value, f64::from(2 << 20));
            assert_eq!(measured.of(format).device.is_measured, format == Format::Lz4);
        }
        measured.host(Format::Zstd, 100, 1e-9);
        assert!(!measured.of(Format::Zstd).host_thread.is_measured, "too few bytes");
        measured.stored(Format::Zstd, 3 << 20, 1 << 20);
        assert_eq!(measured.of(Format::Zstd).ratio.value, 3.0);
    }
}
