//! Timers of a read: events in the streams of a device, and the time of the host's threads.
//!
//! Nothing waits for them, and their failures are ignored.

use crate::decompress::format::Format;
use crate::device::Device;
use crate::event::Event;
use crate::stream::Stream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Kind of a timed operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Timing {
    /// A batch of frames.
    Batch { format: Format, frames: u64, largest: u64, total: u64 },
    /// A copy to the device.
    Copy { nbytes: u64 },
}

/// Start of an operation in a stream.
pub(crate) struct Timer {
    device: &'static Device,
    stream: Stream,
    start: Option<Event>,
}

impl Timer {
    pub(crate) fn start(device: &'static Device, stream: Stream) -> Timer {
        Timer { device, stream, start: Event::record_time(device.context(), stream).ok() }
    }

    /// Stops timing after the work submitted since the start.
    pub(crate) fn stop(self, timing: Timing) -> Option<Timed> {
        let end = Event::record_time(self.device.context(), self.stream).ok()?;
        Some(Timed { timing, start: self.start?, end })
    }
}

/// An operation in a stream, between two events.
pub(crate) struct Timed {
    timing: Timing,
    start: Event,
    end: Event,
}

impl Timed {
    /// Returns its start and end, in seconds after `first`.
    fn span(&self, first: &Event) -> Option<(f64, f64)> {
        Some((self.start.seconds_since(first).ok()?, self.end.seconds_since(first).ok()?))
    }
}

/// Updates the rates of `device` with the batches and copies of a finished read.
///
/// Streams run concurrently: the rate is the total work divided by the time with at least one stream at such work.
pub(crate) fn measure(timed: &[Timed], device: &Device) {
    let Some(first) = timed.first().map(|timed| &timed.start) else { return };
    let seconds = |wanted: &dyn Fn(&Timing) -> bool| {
        let spans = timed.iter().filter(|timed| wanted(&timed.timing)).map(|timed| timed.span(first));
        spans.collect::<Option<Vec<_>>>().map(covered)
    };
    for format in Format::ALL {
        let is_of =
            |timing: &Timing| matches!(timing, Timing::Batch { format: other, .. } if *other == format);
        let (mut frames, mut largest, mut total) = (0, 0, 0);
        for timed in timed {
            if let Timing::Batch { format: other, frames: count, largest: most, total: nbytes } = timed.timing
                && other == format
            {
                (frames, largest, total) = (frames + count, most.max(largest), total + nbytes);
            }
        }
        if let Some(seconds) = seconds(&is_of).filter(|_| frames > 0) {
            device.measured.batch(format, frames, largest, total, seconds);
        }
    }
    let copied = timed.iter().map(|timed| match timed.timing {
        Timing::Copy { nbytes } => nbytes,
        Timing::Batch { .. } => 0,
    });
    if let Some(seconds) = seconds(&|timing| matches!(timing, Timing::Copy { .. })) {
        device.measured.copy(copied.sum(), seconds);
    }
}

/// Returns the total time covered by at least one span.
fn covered(mut spans: Vec<(f64, f64)>) -> f64 {
    spans.sort_by(|one, next| one.0.total_cmp(&next.0));
    let (mut sum, mut until) = (0.0, f64::NEG_INFINITY);
    for (start, end) in spans {
        sum += (end - start.max(until)).max(0.0);
        until = until.max(end);
    }
    sum
}

/// Work of the host's threads in a read.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    decoded_nbytes: AtomicU64,
    nanoseconds: AtomicU64,
    nbytes: AtomicU64,
    stored_nbytes: AtomicU64,
}

impl Meter {
    /// Times the decoding of `nbytes` bytes by a thread.
    pub(crate) fn timed<T>(&self, nbytes: usize, decode: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let outcome = decode();
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.decoded_nbytes.fetch_add(nbytes as u64, Ordering::Relaxed);
        outcome
    }

    /// Counts a chunk with its decoded and stored sizes.
    pub(crate) fn stored(&self, nbytes: usize, stored_nbytes: usize) {
        self.nbytes.fetch_add(nbytes as u64, Ordering::Relaxed);
        self.stored_nbytes.fetch_add(stored_nbytes as u64, Ordering::Relaxed);
    }

    /// Updates the device's rates.
    pub(crate) fn measure(&self, format: Format, device: &Device) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        device.measured.host(format, of(&self.decoded_nbytes), of(&self.nanoseconds) as f64 / 1e9);
        device.measured.stored(format, of(&self.nbytes), of(&self.stored_nbytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_times_of_streams_count_once() {
        assert_eq!(covered(Vec::new()), 0.0);
        assert_eq!(covered(vec![(1.0, 3.0), (-1.0, 0.0), (2.0, 2.5), (2.5, 4.0), (6.0, 7.0)]), 5.0);
    }
}
