//! Frames copied directly into the result, for elements stored in the result's own form.
//!
//! 1. The places of a request are claims that the driver makes when it submits the request. They belong to the
//!    request's receiver until they are [closed](DirectCopy::close).
//! 2. A frame is copied under the lock of the copy, if it is open. So no byte is written after closing, whatever
//!    the store does with an abandoned request.
//! 3. The driver closes the copy when the answer has arrived, when the request is abandoned, and when the read ends,
//!    before the memory is freed.

use crate::error::{ErrorKind, Result};
use crate::store::remote::Frames;
use crate::store::remote::body_memory::BodyBytes;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::fork::Mutex;

/// A run of bytes of a value, and its place in the result's memory.
#[derive(Debug, Clone)]
pub struct Place {
    /// The bytes of the value.
    pub range: Range<u64>,
    memory: *mut MaybeUninit<u8>,
}

// SAFETY: it is an address, which only the holder of a claim writes to.
unsafe impl Send for Place {}

impl Place {
    /// The place of the bytes of a value that begin at `start`.
    pub fn new(start: u64, memory: &mut [MaybeUninit<u8>]) -> Place {
        Place { range: start..start.saturating_add(memory.len() as u64), memory: memory.as_mut_ptr() }
    }

    /// Returns the section of the place for the bytes in `range`; `None` if they do not overlap.
    pub fn part(&self, range: &Range<u64>) -> Option<Place> {
        let (start, end) = (self.range.start.max(range.start), self.range.end.min(range.end));
        // The difference lies inside the memory.
        (start < end).then(|| Place {
            range: start..end,
            memory: self.memory.wrapping_add((start - self.range.start) as usize),
        })
    }
}

/// Whether no byte of a value has two places; `places` must be sorted by start.
pub fn are_apart(places: &[Place]) -> bool {
    places.is_sorted_by(|one, next| one.range.end <= next.range.start)
}

/// The places of one request, held by the driver; closed when dropped.
#[derive(Debug)]
pub struct DirectCopy(Arc<SharedCopy>);

/// Receives the frames of the request.
pub struct DirectFrames(Arc<SharedCopy>);

type SharedCopy = Mutex<Option<Open>>;

#[derive(Debug)]
struct Open {
    /// Sorted by range; no two overlap.
    places: Vec<Place>,
    /// The next frame's offset in the value.
    at: u64,
    /// Bytes that were copied to their places.
    placed: u64,
}

impl DirectCopy {
    /// Creates a copy to these places, sorted by their ranges in the value.
    ///
    /// # Safety
    /// Until the copy is closed or dropped the places are memory, and no other code writes to them or reads them.
    pub unsafe fn new(places: Vec<Place>) -> DirectCopy {
        DirectCopy(Arc::new(Mutex::new(Some(Open { places, at: 0, placed: 0 }))))
    }

    /// Returns the receiver of the frames.
    pub fn frames(&self) -> DirectFrames {
        DirectFrames(Arc::clone(&self.0))
    }

    /// Takes the destinations back. Returns the number of received bytes, and whether they are complete.
    pub fn close(&self) -> (u64, bool) {
        let Some(open) = self.0.lock().take() else { return (0, false) };
        let expected = open.places.iter().map(|place| place.range.end - place.range.start).sum::<u64>();
        (open.placed, open.placed == expected)
    }
}

impl Drop for DirectCopy {
    fn drop(&mut self) {
        self.close();
    }
}

impl Open {
    /// Copies a frame to the places that overlap it; other bytes are dropped.
    fn copy(&mut self, bytes: &[u8]) {
        let frame = self.at..self.at.saturating_add(bytes.len() as u64);
        let first = self.places.partition_point(|place| place.range.end <= frame.start);
        for place in self.places[first..].iter().map_while(|place| place.part(&frame)) {
            let start = (place.range.start - frame.start) as usize;
            let part = &bytes[start..start + (place.range.end - place.range.start) as usize];
            // SAFETY: the copy is open, so by the contract of `new` no other code uses the place's memory; it
            // has as many bytes as `part`, by `Place::part`.
            unsafe { place.memory.copy_from_nonoverlapping(part.as_ptr().cast(), part.len()) };
            self.placed += part.len() as u64;
        }
        self.at = frame.end;
    }
}

impl Frames for DirectFrames {
    type Bytes = BodyBytes;

    fn begin(&mut self, start: u64, _expected: u64) -> Result<()> {
        if let Some(open) = &mut *self.0.lock() {
            (open.at, open.placed) = (start, 0);
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        // Step 2.
        let mut open = self.0.lock();
        let open = open.as_mut().ok_or(ErrorKind::Interrupted)?;
        open.copy(bytes);
        Ok(())
    }

    fn into_bytes(self) -> BodyBytes {
        BodyBytes::Heap(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_placed_until_the_copy_is_closed() {
        let mut memory = [MaybeUninit::new(0u8); 7];
        let (first, second) = memory.split_at_mut(3);
        let places = [Place::new(10, first), Place::new(15, second)];
        // SAFETY: the memory outlives the `DirectCopy`, and is read only after that is closed.
        let copy =
            unsafe { DirectCopy::new(places.iter().filter_map(|place| place.part(&(11..18))).collect()) };
        let mut receiver = copy.frames();
        receiver.begin(11, 8).unwrap();
        receiver.add(b"xxxxx").unwrap();
        // The answer is restarted.
        receiver.begin(11, 8).unwrap();
        for frame in [&b"bc"[..], b"--e", b"fg-"] {
            receiver.add(frame).unwrap();
        }
        assert_eq!(copy.close(), (5, true));
        assert!(receiver.add(b"zzz").is_err());
        // SAFETY: every byte was initialised at first.
        let bytes: Vec<u8> = memory.iter().map(|byte| unsafe { byte.assume_init() }).collect();
        assert_eq!(bytes, b"\0bcefg\0");
    }
}
