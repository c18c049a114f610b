//! A write: each chunk compressed from memory, and each file written once.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Outcome;
use crate::codec::{Codec, Worker};
use crate::stored::Stored;

/// The files of an array, each with the elements of its chunks in their order.
pub struct Rewrite {
    files: Vec<(PathBuf, Vec<Vec<u8>>)>,
    folder: PathBuf,
}

impl Rewrite {
    /// Decodes all chunks, to write them again below `folder`.
    pub fn plan(array: &Stored, folder: &Path) -> Outcome<Rewrite> {
        let mut chunks: Vec<_> = array.chunks.iter().collect();
        chunks.sort();
        let mut worker = Worker::default();
        let mut files: Vec<(PathBuf, Vec<Vec<u8>>)> = Vec::new();
        for (_, (file, bytes)) in chunks {
            let elements = worker.decompress(array.codec, bytes)?.unwrap_or(bytes).to_vec();
            match files.iter_mut().find(|(known, _)| known == file) {
                Some((_, own)) => own.push(elements),
                None => files.push((file.clone(), vec![elements])),
            }
        }
        Ok(Rewrite { files, folder: folder.to_path_buf() })
    }

    /// Recreates the folder; the previous files are removed first, before they reach the disk.
    pub fn clear(&self) -> Outcome<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(fs::create_dir_all(&self.folder)?)
    }

    pub fn run(&self, codec: Codec, workers: &mut [Worker]) -> Outcome<()> {
        let next = AtomicUsize::new(0);
        let work = |worker: &mut Worker| -> Outcome<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((_, chunks)) = self.files.get(number) else { return Ok(()) };
                let mut file = File::create_new(self.folder.join(number.to_string()))?;
                for elements in chunks {
                    file.write_all(worker.compress(codec, elements)?)?;
                }
            }
        };
        let (first, others) = workers.split_at_mut(1);
        std::thread::scope(|scope| {
            let others: Vec<_> = others.iter_mut().map(|worker| scope.spawn(|| work(worker))).collect();
            work(&mut first[0])?;
            others.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })
    }
}

impl Drop for Rewrite {
    fn drop(&mut self) {
        // Leftovers of a benchmark are not an error.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
