//! A server of the files in a folder, by HTTP/1.1 with ranges, that lets every answer wait.
//!
//! 1. Each connection has a thread, and may send one request after the other.
//! 2. A request is answered when the delay has passed; where a gate is set, not before so many requests have waited at
//!    once, or patience ends: with it a test learns without a clock how many requests a reader makes at once.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]

use super::message::Head;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a gate stays closed at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a server answers.
#[derive(Default)]
pub struct Manner {
    /// How long each answer waits.
    pub delay: Duration,
    /// How many requests for chunks have to wait at once before the first of them is answered.
    pub gate: usize,
    /// A part of the path of values that cannot be read.
    pub broken: Option<String>,
}

/// What a server has seen.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// All requests, but for metadata: method, path and range.
    pub requests: Vec<String>,
    /// Requests for chunks that are waiting.
    waiting: usize,
    /// How many waited at once at most.
    pub most: usize,
}

/// A server, until the process ends.
pub struct Server {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    folder: PathBuf,
    manner: Manner,
    seen: Mutex<Seen>,
    /// The gate has opened.
    opened: Condvar,
}

impl Server {
    pub fn start(folder: PathBuf, manner: Manner) -> io::Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State { folder, manner, seen: Mutex::default(), opened: Condvar::new() });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A client that goes away in the midst of an answer is none of the server's concern.
                std::thread::spawn(move || state.serve(connection).is_ok());
            }
        });
        Ok(Server { address, state })
    }

    /// What it has seen since it was asked last.
    pub fn seen(&self) -> Seen {
        std::mem::take(&mut *self.state.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn serve(&self, connection: TcpStream) -> io::Result<()> {
        connection.set_nodelay(true)?;
        let mut writer = connection.try_clone()?;
        let mut reader = BufReader::new(connection);
        while let Some(head) = Head::read(&mut reader)? {
            self.wait(&head);
            writer.write_all(&self.answer(&head))?;
        }
        Ok(())
    }

    /// Step 2.
    fn wait(&self, head: &Head) {
        std::thread::sleep(self.manner.delay);
        if head.line.contains("zarr.json") || head.line.contains("/.z") {
            return;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.requests.push(format!("{} {}", head.line, head.header("range").unwrap_or("")));
        seen.waiting += 1;
        seen.most = seen.most.max(seen.waiting);
        self.opened.notify_all();
        let closed = |seen: &mut Seen| seen.most < self.manner.gate;
        let waited = self.opened.wait_timeout_while(seen, PATIENCE, closed);
        let (mut seen, _) = waited.unwrap_or_else(PoisonError::into_inner);
        seen.waiting = seen.waiting.saturating_sub(1);
    }

    fn answer(&self, head: &Head) -> Vec<u8> {
        let mut words = head.line.split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let key = path.trim_start_matches('/');
        let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes();
        if self.manner.broken.as_ref().is_some_and(|broken| key.contains(broken)) {
            return empty("500 Internal Server Error");
        }
        if !matches!(method, "GET" | "HEAD") || zarrow::store::check_key(key).is_err() {
            return empty("400 Bad Request");
        }
        let found = File::open(self.folder.join(key)).and_then(|file| Ok((file.metadata()?.len(), file)));
        let Ok((size, file)) = found else { return empty("404 Not Found") };
        let (status, range) = match head.header("range").map(|range| parse(range, size)) {
            None => ("200 OK".to_owned(), 0..size),
            Some(Some(range)) => {
                let last = range.end - 1;
                let place = format!("Content-Range: bytes {}-{last}/{size}", range.start);
                (format!("206 Partial Content\r\n{place}"), range)
            }
            Some(None) => return empty("416 Range Not Satisfiable"),
        };
        let length = range.end - range.start;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nAccept-Ranges: bytes\r\nETag: \"{size}\"\r\n\r\n"
        );
        let mut answer = head.into_bytes();
        if method == "GET" {
            let start = answer.len();
            answer.resize(start + length as usize, 0);
            if file.read_exact_at(&mut answer[start..], range.start).is_err() {
                return empty("500 Internal Server Error");
            }
        }
        answer
    }
}

/// The range that a header asks of a value of `size` bytes, `None` where there is nothing in it.
fn parse(header: &str, size: u64) -> Option<Range<u64>> {
    let (start, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (start.parse::<u64>(), last.parse::<u64>()) {
        (Ok(start), Ok(last)) => start..last.checked_add(1)?.min(size),
        (Ok(start), Err(_)) => start..size,
        (Err(_), Ok(count)) => size.saturating_sub(count)..size,
        (Err(_), Err(_)) => return None,
    };
    (!range.is_empty()).then_some(range)
}
