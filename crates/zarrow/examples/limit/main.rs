//! The limit of the machine: the time of a read that only decompresses and copies once, and of a write that only
//! compresses and writes once.
//!
//! 1. The first line on stdin is a JSON object: `store`, a folder with an array of Zarr v3; `task`, `decode`,
//!    `files` or `write`; `boxes`, a list of reads, each with `start` and `shape` in elements and `bytes` of the result;
//!    `folder`, the target of a write; `kept`, the number of repetitions of all reads with all results kept.
//! 2. All chunks are loaded into memory, the inner chunks of shards separately. `{"ready": true}` is the answer.
//! 3. Each further line runs all reads one after the other, and is answered with `{"value": seconds}`. A read
//!    of `decode` decompresses the chunks that its box touches, each thread into one warm scratch and with one
//!    warm context, then copies the result's number of bytes into fresh memory. Uncompressed chunks stay
//!    untouched. A read of `files` opens, reads and closes the file of each chunk, and does nothing else.
//!    A write compresses each chunk from memory, each thread with one warm context, and writes it to a new file.

mod codec;
mod fresh;
mod read;
mod rewrite;
mod stored;

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::codec::Worker;
use crate::fresh::Fresh;
use crate::read::Read;
use crate::rewrite::Rewrite;
use crate::stored::Stored;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut lines = io::stdin().lock().lines();
    let request: Value = serde_json::from_str(&lines.next().ok_or("the request is missing")??)?;
    let array = Stored::load(Path::new(request["store"].as_str().ok_or("no store")?))?;
    let reads = request["boxes"].as_array().ok_or("no boxes")?;
    let reads = reads.iter().map(|read| Read::plan(read, &array)).collect::<Outcome<Vec<_>>>()?;
    let longest = reads.iter().map(|read| read.bytes).max().unwrap_or(0);
    let source = vec![1_u8; longest];
    let mut workers: Vec<Worker> = Vec::new();
    workers.resize_with(std::thread::available_parallelism()?.get(), Worker::default);
    let kept = request["kept"].as_u64().map_or(1, |kept| kept as usize);
    let writes = request["task"] == "write";
    let folder = Path::new(request["folder"].as_str().ok_or("no folder")?);
    let rewrite = writes.then(|| Rewrite::plan(&array, folder)).transpose()?;
    writeln!(io::stdout(), "{{\"ready\": true}}")?;
    for line in lines {
        line?;
        // The last result is freed after the clock has stopped, as in the other benchmarks.
        let mut results = Vec::new();
        rewrite.iter().try_for_each(Rewrite::clear)?;
        let started = Instant::now();
        if let Some(rewrite) = &rewrite {
            rewrite.run(array.codec, &mut workers)?;
        } else {
            for read in reads.iter().cycle().take(reads.len() * kept) {
                if kept == 1 {
                    results.clear();
                }
                if request["task"] == "files" {
                    read.files(&mut workers[0].scratch)?;
                } else {
                    read.decode(array.codec, &mut workers)?;
                    results.push(Fresh::copy(&source[..read.bytes], workers.len())?);
                }
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        drop(results);
        writeln!(io::stdout(), "{{\"value\": {seconds}}}")?;
    }
    Ok(())
}
