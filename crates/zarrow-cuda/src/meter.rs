//! The clocks of a read: events in the streams of a device, and the time of the host's threads.
//!
//! Nothing waits for them, and nothing fails by them: what cannot be measured is not.

use crate::decompress::Format;
use crate::device::Device;
use crate::stream::{Event, Stream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What was timed on a device.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Timing {
    /// A batch of frames.
    Batch { format: Format, frames: u64, largest: u64, total: u64 },
    /// A copy to the device.
    Copy { nbytes: u64 },
}

/// The start of something in a stream.
pub(crate) struct Timer {
    device: &'static Device,
    stream: Stream,
    start: Option<Event>,
}

impl Timer {
    pub(crate) fn start(device: &'static Device, stream: Stream) -> Timer {
        Timer { device, stream, start: Event::record_time(device, stream).ok() }
    }

    /// What was given to the stream since.
    pub(crate) fn stop(self, timing: Timing) -> Option<Timed> {
        let end = Event::record_time(self.device, self.stream).ok()?;
        Some(Timed { timing, start: self.start?, end })
    }
}

/// Something that was given to a stream, between two events.
pub(crate) struct Timed {
    timing: Timing,
    start: Event,
    end: Event,
}

impl Timed {
    /// Has the device's rates know how long it took, when it is done.
    pub(crate) fn measure(&self, device: &Device) {
        let Ok(seconds) = self.end.seconds_since(&self.start) else { return };
        match self.timing {
            Timing::Batch { format, frames, largest, total } => {
                device.measured.batch(format, frames, largest, total, seconds);
            }
            Timing::Copy { nbytes } => device.measured.copy(nbytes, seconds),
        }
    }
}

/// What the threads of the host did of a read.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    decoded_nbytes: AtomicU64,
    nanoseconds: AtomicU64,
    nbytes: AtomicU64,
    stored_nbytes: AtomicU64,
}

impl Meter {
    /// Times how long a thread decodes so many bytes.
    pub(crate) fn timed<T>(&self, nbytes: usize, decode: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let outcome = decode();
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.decoded_nbytes.fetch_add(nbytes as u64, Ordering::Relaxed);
        outcome
    }

    /// Counts a chunk of so many bytes, and as how many it is stored.
    pub(crate) fn stored(&self, nbytes: usize, stored_nbytes: usize) {
        self.nbytes.fetch_add(nbytes as u64, Ordering::Relaxed);
        self.stored_nbytes.fetch_add(stored_nbytes as u64, Ordering::Relaxed);
    }

    /// Has the device's rates know it.
    pub(crate) fn measure(&self, format: Format, device: &Device) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        device.measured.host(format, of(&self.decoded_nbytes), of(&self.nanoseconds) as f64 / 1e9);
        device.measured.stored(format, of(&self.nbytes), of(&self.stored_nbytes));
    }
}
