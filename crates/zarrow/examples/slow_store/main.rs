//! Both sides of a store with slow answers, for the benchmark of overlapping fetching and decoding.
//!
//! - `slow_store serve FOLDER MILLISECONDS` serves the folder by HTTP/1.1 with this delay of each answer, and prints
//!   `{"port": …}` first.
//! - `slow_store read` takes `{"port": …, "path": …, "requests": …}` as its first line on stdin, opens the array and
//!   answers `{"ready": true}`. Each further line reads the whole array, and is answered with
//!   `{"value": seconds, "check": checksum}`, with the checksum of `benches/worker.py`.

mod message;
mod server;
mod store;

use serde_json::{Value, json};
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zarrow::{Node, Selection};
use zarrow_array::DecodedArray;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", folder, milliseconds] => serve(folder, milliseconds.parse()?),
        ["read"] => read(),
        _ => Err("either serve FOLDER MILLISECONDS, or read".into()),
    }
}

fn serve(folder: &str, milliseconds: u64) -> Outcome<()> {
    let delay = Duration::from_millis(milliseconds);
    let server = server::Server::start(folder.into(), server::Manner { delay, ..Default::default() })?;
    writeln!(io::stdout(), "{}", json!({ "port": server.address.port() }))?;
    // Until stdin ends, each line is answered with the counts since the previous one.
    for line in io::stdin().lock().lines() {
        line?;
        let seen = server.seen();
        writeln!(io::stdout(), "{}", json!({ "requests": seen.requests.len(), "most": seen.most }))?;
    }
    Ok(())
}

fn read() -> Outcome<()> {
    let mut lines = io::stdin().lock().lines();
    let request: Value = serde_json::from_str(&lines.next().ok_or("the request is missing")??)?;
    let number = |key: &str| request[key].as_u64().ok_or(format!("no {key}"));
    let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(number("port")?)?));
    let path = request["path"].as_str().ok_or("no path")?;
    let store = store::HttpStore::open(address, path, number("requests")? as usize);
    let Node::Array(array) = zarrow::open(Arc::new(store), "")? else { return Err("no array".into()) };
    let selection = Selection::all(array.shape());
    writeln!(io::stdout(), "{}", json!({ "ready": true }))?;
    for line in lines {
        line?;
        let started = Instant::now();
        let DecodedArray::Tensor(tensor) = array.read(&selection)? else {
            return Err("no tensor".into());
        };
        let seconds = started.elapsed().as_secs_f64();
        // SAFETY: the slice has the given length.
        let crc = unsafe {
            libdeflate_sys::libdeflate_crc32(0, tensor.bytes().as_ptr().cast(), tensor.bytes().len())
        };
        let extents: Vec<String> = array.shape().iter().map(u64::to_string).collect();
        let check = format!("({}) {crc:08x}", extents.join(", "));
        writeln!(io::stdout(), "{}", json!({ "value": seconds, "check": check }))?;
    }
    Ok(())
}
