//! The received bytes of a value, in one or several pieces.

use crate::store::remote::Body;
use crate::store::remote::body_memory::{BodyBytes, BodyMemory};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that count as in flight until this is dropped.
#[derive(Debug)]
pub struct InFlight {
    nbytes: u64,
    sum: Arc<AtomicU64>,
}

impl InFlight {
    /// Counts `nbytes` in `sum`.
    pub fn new(nbytes: u64, sum: &Arc<AtomicU64>) -> InFlight {
        sum.fetch_add(nbytes, Ordering::Relaxed);
        InFlight { nbytes, sum: Arc::clone(sum) }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.sum.fetch_sub(self.nbytes, Ordering::Relaxed);
    }
}

/// A body that counts as in flight until it is dropped.
#[derive(Debug)]
pub struct InFlightBody {
    body: Body<BodyBytes>,
    _in_flight: InFlight,
}

impl InFlightBody {
    /// Wraps a body, and counts its bytes in `sum`.
    pub fn new(body: Body<BodyBytes>, sum: &Arc<AtomicU64>) -> InFlightBody {
        let _in_flight = InFlight::new(body.bytes.len() as u64, sum);
        InFlightBody { body, _in_flight }
    }

    /// The bytes, and their offset in the value.
    pub fn body(&self) -> &Body<BodyBytes> {
        &self.body
    }

    /// Returns the bytes in `range` of the value; `None` unless it has all of them.
    pub fn get(&self, range: &Range<u64>) -> Option<&[u8]> {
        let own = self.range();
        let is_inside = own.start <= range.start && range.start <= range.end && range.end <= own.end;
        // Both differences fit, because the bytes are in memory.
        let at = |offset: u64| (offset - own.start) as usize;
        is_inside.then(|| &self.body.bytes[at(range.start)..at(range.end)])
    }

    fn range(&self) -> Range<u64> {
        self.body.start..self.body.start.saturating_add(self.body.bytes.len() as u64)
    }
}

/// The received bytes of a value for one leaf, and the value's size.
#[derive(Debug, Default)]
pub struct Bodies {
    pieces: SmallVec<[Arc<InFlightBody>; 1]>,
}

impl Bodies {
    /// Whether nothing was received.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the end of the last received byte.
    pub fn end(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.range().end).max().unwrap_or(0)
    }

    /// Adds a body.
    pub fn add(&mut self, landed: Arc<InFlightBody>) {
        let at = self.pieces.partition_point(|piece| piece.body.start < landed.body.start);
        self.pieces.insert(at, landed);
    }

    /// Returns the bytes in `range` if they are in one piece, and the allocator's memory that holds
    /// them, if any.
    pub fn run(&self, range: Range<u64>) -> Option<(&[u8], Option<&BodyMemory>)> {
        self.pieces.iter().find_map(|piece| Some((piece.get(&range)?, piece.body.bytes.borrowed())))
    }

    /// Copies the bytes from `offset` on to `memory`, up to the first gap.
    pub fn copy<'m>(&self, offset: u64, memory: &'m mut [MaybeUninit<u8>]) -> &'m mut [u8] {
        let mut filled = 0usize;
        for piece in &self.pieces {
            let own = piece.range();
            let next = offset.saturating_add(filled as u64);
            if !own.contains(&next) || filled == memory.len() {
                continue;
            }
            let rest = &piece.body.bytes[(next - own.start) as usize..];
            let length = rest.len().min(memory.len() - filled);
            memory[filled..filled + length].write_copy_of_slice(&rest[..length]);
            filled += length;
        }
        // SAFETY: this number of bytes, from the start, was written above.
        unsafe { memory[..filled].assume_init_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn landed(start: u64, bytes: &[u8], in_flight: &Arc<AtomicU64>) -> Arc<InFlightBody> {
        let body = Body { start, bytes: BodyBytes::Heap(bytes.to_vec()), nbytes: None, version: None };
        Arc::new(InFlightBody::new(body, in_flight))
    }

    #[test]
    fn pieces_are_one_run_of_bytes() {
        let in_flight = Arc::new(AtomicU64::new(0));
        let mut bodies = Bodies::default();
        bodies.add(landed(14, b"efgh", &in_flight));
        bodies.add(landed(10, b"abcd", &in_flight));
        bodies.add(landed(30, b"z", &in_flight));
        assert_eq!(bodies.run(11..14).map(|run| run.0), Some(&b"bcd"[..]));
        assert!(bodies.run(11..15).is_none(), "it lies in two pieces");
        let mut memory = [MaybeUninit::uninit(); 6];
        assert_eq!(bodies.copy(11, &mut memory), b"bcdefg");
        assert_eq!(bodies.copy(15, &mut memory), b"fgh", "the rest is not there");
        assert_eq!(bodies.copy(9, &mut memory), b"");
        assert_eq!(in_flight.load(Ordering::Relaxed), 9);
        drop(bodies);
        assert_eq!(in_flight.load(Ordering::Relaxed), 0);
    }
}
