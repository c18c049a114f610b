//! A server of the files in a folder, by HTTP/1.1 with ranges, that delays every answer.
//!
//! 1. Each connection has a thread, and may send one request after the other.
//! 2. A request is answered after the delay; with a gate, not before this number of requests wait at once, or a time
//!    limit ends: so a test learns the number of concurrent requests without a clock.
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

/// Maximum time that a gate stays closed.
const PATIENCE: Duration = Duration::from_secs(20);

/// The server's behaviour.
#[derive(Default)]
pub struct Manner {
    /// Delay of each answer.
    pub delay: Duration,
    /// Number of requests for chunks that must wait at once before the first answer.
    pub gate: usize,
    /// Part of the path of unreadable values.
    pub broken: Option<String>,
}

/// Counts of a server.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// All requests except metadata: method, path and range.
    pub requests: Vec<String>,
    /// Requests for chunks that are waiting.
    waiting: usize,
    /// Maximum number of waiting requests.
    pub most: usize,
}

/// A server that runs until the process ends.
pub struct Server {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    folder: PathBuf,
    manner: Manner,
    seen: Mutex<Seen>,
    /// Signals that the gate has opened.
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
                // A disconnecting client is not an error of the server.
                std::thread::spawn(move || state.serve(connection).is_ok());
            }
        });
        Ok(Server { address, state })
    }

    /// Returns the counts since the last call.
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

    /// Handles a request (step 2).
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

/// Returns the range in a header of a value of `size` bytes, `None` if it is empty.
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
