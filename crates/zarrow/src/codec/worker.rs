//! State that one thread reuses from chunk to chunk.

use crate::codec::{Codecs, Scratch};

/// State that one thread reuses from chunk to chunk.
#[derive(Default)]
pub struct Worker {
    /// The compressors and decompressors.
    pub codecs: Codecs,
    /// A stored chunk.
    pub encoded: Scratch,
    /// A decoded chunk.
    pub decoded: Scratch,
    /// The elements of a chunk before encoding.
    pub elements: Scratch,
    /// Key of the last opened chunk.
    pub key: String,
}

impl Worker {
    /// Frees memory above the limits between jobs.
    pub fn trim(&mut self) {
        self.each(Scratch::trim);
    }

    /// Frees everything except the codecs' tables.
    pub fn free_memory(&mut self) {
        self.each(Scratch::free);
    }

    fn each(&mut self, act: impl Fn(&mut Scratch)) {
        let blosc = self.codecs.blosc_memory();
        [&mut self.encoded, &mut self.decoded, &mut self.elements, blosc].into_iter().for_each(act);
    }

    /// Returns the bytes kept, including zstd's tables; deflate's tables are some hundred kilobytes.
    pub fn nbytes(&self) -> usize {
        self.encoded.nbytes() + self.decoded.nbytes() + self.elements.nbytes() + self.codecs.nbytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_memory_is_freed() {
        let mut worker = Worker::default();
        worker.encoded.take(8 << 20).unwrap();
        worker.trim();
        for job in 0..Scratch::PATIENCE_JOBS {
            assert_eq!(worker.nbytes(), 8 << 20, "{job}");
            worker.encoded.take(1 << 20).unwrap();
            worker.trim();
        }
        assert_eq!(worker.nbytes(), 0);
        worker.decoded.take(Scratch::KEPT_NBYTES + 1).unwrap();
        worker.trim();
        assert_eq!(worker.nbytes(), 0);
        for _ in 0..100 {
            worker.elements.take(Scratch::SMALL_NBYTES).unwrap();
            worker.trim();
            worker.elements.take(1).unwrap();
            worker.trim();
        }
        assert_eq!(worker.nbytes(), Scratch::SMALL_NBYTES);
    }
}
