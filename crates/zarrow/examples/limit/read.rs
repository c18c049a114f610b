//! A read: the chunks that it needs, and the minimal work.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::Outcome;
use crate::codec::{Codec, Worker};
use crate::stored::{Stored, numbers};

/// A read of one box.
pub struct Read<'a> {
    chunks: Vec<&'a (PathBuf, Vec<u8>)>,
    pub bytes: usize,
}

impl<'a> Read<'a> {
    pub fn plan(read: &Value, array: &'a Stored) -> Outcome<Read<'a>> {
        let (start, shape) = (numbers(&read["start"])?, numbers(&read["shape"])?);
        let mut places = vec![Vec::new()];
        for ((start, length), chunk) in start.iter().zip(&shape).zip(&array.chunk_shape) {
            let along = start / chunk..(start + length).div_ceil(*chunk);
            places = places
                .iter()
                .flat_map(|place| along.clone().map(move |number| [place.as_slice(), &[number]].concat()))
                .collect();
        }
        let chunks = places.iter().filter_map(|place| array.chunks.get(place)).collect();
        Ok(Read { chunks, bytes: read["bytes"].as_u64().ok_or("no bytes")? as usize })
    }

    pub fn decode(&self, codec: Codec, workers: &mut [Worker]) -> Outcome<()> {
        if codec == Codec::None {
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        let work = |worker: &mut Worker| -> Outcome<()> {
            while let Some((_, bytes)) = self.chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                worker.decompress(codec, bytes)?;
            }
            Ok(())
        };
        let count = workers.len().min(self.chunks.len()).max(1);
        let (first, others) = workers[..count].split_at_mut(1);
        std::thread::scope(|scope| {
            let others: Vec<_> = others.iter_mut().map(|worker| scope.spawn(|| work(worker))).collect();
            work(&mut first[0])?;
            others.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })
    }

    pub fn files(&self, scratch: &mut Vec<u8>) -> Outcome<()> {
        for (file, bytes) in &self.chunks {
            scratch.resize(bytes.len(), 0);
            File::open(file)?.read_exact_at(scratch, 0)?;
        }
        Ok(())
    }
}
