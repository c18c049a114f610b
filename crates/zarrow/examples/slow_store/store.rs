//! A store over HTTP/1.1 with its server's delay, to measure and test overlapping.
//!
//! 1. A request is queued. A thread with its own connection takes it and waits for the answer: there are as many threads as
//!    allowed concurrent requests.
//! 2. The thread passes its frames to the request's receiver.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]

use super::message::{Head, unexpected};
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use zarrow::store::remote::{
    ByteRange, FetchPolicy, Head as ValueHead, Listing, ObjectVersion, OnDone, Outcome, Receiver,
    RemoteAdapter, RemoteStore, Request, RequestHandle,
};
use zarrow::{ErrorKind, Result};

/// The values of a server below a path.
#[derive(Debug)]
pub struct HttpStore {
    name: String,
    requests: usize,
    queue: Mutex<Sender<Queued>>,
}

/// A request waiting for a thread.
struct Queued {
    request: Request,
    receiver: Box<dyn Receiver>,
    is_cancelled: Arc<AtomicBool>,
}

/// A thread's connection to the server.
struct Connection {
    address: SocketAddr,
    path: String,
    stream: Option<BufReader<TcpStream>>,
}

impl HttpStore {
    /// Returns the values at `address` below `path`, with at most `requests` concurrent requests.
    pub fn open(address: SocketAddr, path: &str, requests: usize) -> RemoteAdapter {
        let (sender, queue) = mpsc::channel::<Queued>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..requests {
            let queue = Arc::clone(&queue);
            let mut connection = Connection { address, path: path.to_owned(), stream: None };
            std::thread::spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Queued { request, mut receiver, is_cancelled }) = next else { return };
                    let answer = connection.get(&request, &mut *receiver, &is_cancelled);
                    if !matches!(answer, Ok(Outcome::Complete | Outcome::Missing)) {
                        connection.stream = None;
                    }
                    receiver.done(answer);
                }
            });
        }
        let name = format!("http://{address}/{path}");
        RemoteAdapter::new(Arc::new(HttpStore { name, requests, queue: Mutex::new(sender) }))
    }
}

impl Connection {
    /// Answers a request (step 2).
    fn get(
        &mut self,
        request: &Request,
        receiver: &mut dyn Receiver,
        is_cancelled: &AtomicBool,
    ) -> Result<Outcome> {
        if is_cancelled.load(Ordering::Relaxed) {
            return Ok(Outcome::Stopped);
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                none.insert(BufReader::new(stream))
            }
        };
        let range = match &request.range {
            ByteRange::Whole => String::new(),
            ByteRange::Range(range) => {
                format!("Range: bytes={}-{}\r\n", range.start, range.end.max(range.start + 1) - 1)
            }
            ByteRange::Suffix(length) => format!("Range: bytes=-{length}\r\n"),
        };
        let text =
            format!("GET /{}/{} HTTP/1.1\r\nHost: {}\r\n{range}\r\n", self.path, request.key, self.address);
        stream.get_mut().write_all(text.as_bytes())?;
        let head = Head::read(stream)?.ok_or_else(|| unexpected("no answer"))?;
        let length = head.header("content-length").and_then(|length| length.parse().ok());
        let length: u64 = length.ok_or_else(|| unexpected("an answer of no length"))?;
        let (start, nbytes) = match head.line.split(' ').nth(1) {
            Some("200") => (0, length),
            Some("206") => {
                let place = head.header("content-range").and_then(|place| {
                    let (range, size) = place.strip_prefix("bytes ")?.split_once('/')?;
                    Some((range.split_once('-')?.0.parse().ok()?, size.parse().ok()?))
                });
                place.ok_or_else(|| unexpected("a response without its range"))?
            }
            Some("404") => {
                std::io::copy(&mut stream.by_ref().take(length), &mut std::io::sink())?;
                return Ok(Outcome::Missing);
            }
            _ => return Err(unexpected(format!("the server says {}", head.line)).into()),
        };
        // The served values never change without a change of their size.
        let version = Some(ObjectVersion::new(&nbytes.to_string()));
        if request.if_version.as_ref().is_some_and(|asked| Some(asked) != version.as_ref()) {
            return Ok(Outcome::Changed);
        }
        let mut flow = receiver.head(&ValueHead { start, nbytes: Some(nbytes), version });
        let mut frame = vec![0u8; 64 << 10];
        let mut left = length;
        let is_empty = matches!(&request.range, ByteRange::Range(range) if range.is_empty());
        while left > 0 {
            let most = frame.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let count = stream.read(&mut frame[..most])?;
            if count == 0 {
                return Err(unexpected("an answer that was cut off").into());
            }
            left -= count as u64;
            if !is_empty && flow.is_continue() {
                flow = receiver.frame(&frame[..count]);
            }
            if flow == ControlFlow::Break(()) || is_cancelled.load(Ordering::Relaxed) {
                return Ok(Outcome::Stopped);
            }
        }
        Ok(Outcome::Complete)
    }
}

impl RemoteStore for HttpStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn policy(&self) -> FetchPolicy {
        FetchPolicy { requests: self.requests, ..FetchPolicy::default() }
    }

    fn submit(&self, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let queued = Queued { request, receiver, is_cancelled: Arc::clone(&is_cancelled) };
        let sent = self.queue.lock().unwrap_or_else(PoisonError::into_inner).send(queued);
        if let Err(mpsc::SendError(Queued { receiver, .. })) = sent {
            receiver.done(Err(ErrorKind::Internal("no thread is left".into()).into()));
        }
        RequestHandle::new(move || is_cancelled.store(true, Ordering::Relaxed))
    }

    fn list(&self, _prefix: &str, _recursive: bool, done: OnDone<Listing>) -> RequestHandle {
        done(Err(ErrorKind::Unsupported("listing by HTTP".into()).into()));
        RequestHandle::ended()
    }
}
