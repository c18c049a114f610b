//! A store over HTTP/1.1, as slow as the server that it asks: what overlapping is measured and tested with.
//!
//! 1. A value is opened by a request that brings along what is read first of it, its size and its version.
//! 2. What that request brought is read from memory; any other range is a request of its own.
//! 3. A connection is kept for the next request, from whichever thread.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]

use super::message::{Head, unexpected};
use std::io::{BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use zarrow::store::{First, Store, Value, check_key};
use zarrow::{ErrorKind, Result};

/// The values that a server has below a path.
#[derive(Debug)]
pub struct HttpStore {
    name: String,
    address: SocketAddr,
    path: String,
    requests: Option<NonZeroUsize>,
    idle: Mutex<Vec<BufReader<TcpStream>>>,
}

/// An answer with a value or a part of it.
struct Answer {
    /// Where the body begins in the value.
    offset: u64,
    body: Vec<u8>,
    /// The value's size.
    nbytes: u64,
}

impl HttpStore {
    /// The values at `address` below `path`, asked by so many requests at once.
    pub fn new(address: SocketAddr, path: &str, requests: usize) -> HttpStore {
        let (name, path) = (format!("http://{address}/{path}"), path.to_owned());
        HttpStore { name, address, path, requests: NonZeroUsize::new(requests), idle: Mutex::default() }
    }

    /// Asks for `range` of a value, all of it where that is empty; `None` where there is no value.
    fn get(&self, key: &str, range: &str, limit: u64) -> Result<Option<Answer>> {
        let mut connection = match self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(connection) => connection,
            None => {
                let connection = TcpStream::connect(self.address)?;
                connection.set_nodelay(true)?;
                BufReader::new(connection)
            }
        };
        let range = if range.is_empty() { String::new() } else { format!("Range: bytes={range}\r\n") };
        let request = format!("GET /{}/{key} HTTP/1.1\r\nHost: {}\r\n{range}\r\n", self.path, self.address);
        connection.get_mut().write_all(request.as_bytes())?;
        let head = Head::read(&mut connection)?.ok_or_else(|| unexpected("no answer"))?;
        let length = head.header("content-length").and_then(|length| length.parse().ok());
        let length: u64 = length.ok_or_else(|| unexpected("an answer of no length"))?;
        if length > limit {
            return Err(ErrorKind::Limit { what: "the size of an answer", actual: length, limit }.into());
        }
        let mut body = Vec::with_capacity(length as usize);
        connection.by_ref().take(length).read_to_end(&mut body)?;
        if body.len() as u64 != length {
            return Err(unexpected("an answer that was cut off").into());
        }
        let (offset, nbytes) = match head.line.split(' ').nth(1) {
            Some("200") => (0, length),
            Some("206") => {
                let place = head.header("content-range").and_then(|place| {
                    let (range, size) = place.strip_prefix("bytes ")?.split_once('/')?;
                    Some((range.split_once('-')?.0.parse().ok()?, size.parse().ok()?))
                });
                place.ok_or_else(|| unexpected("a range that is not told"))?
            }
            Some("404") => {
                self.keep(connection);
                return Ok(None);
            }
            _ => return Err(unexpected(format!("the server says {}", head.line)).into()),
        };
        self.keep(connection);
        Ok(Some(Answer { offset, body, nbytes }))
    }

    /// Step 3.
    fn keep(&self, connection: BufReader<TcpStream>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

impl Store for HttpStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        self.open_for(key, First::Whole(u64::MAX))
    }

    fn open_for(&self, key: &str, first: First) -> Result<Option<Box<dyn Value + '_>>> {
        check_key(key)?;
        let (range, limit) = match first {
            First::Whole(limit) => (String::new(), limit),
            First::Range(offset, length) => {
                (format!("{offset}-{}", offset + length.max(1) - 1), length.max(1))
            }
            First::End(length) => (format!("-{length}"), length),
        };
        let answer = self.get(key, &range, limit)?;
        Ok(answer.map(|first| Box::new(Remote { store: self, key: key.to_owned(), first }) as Box<dyn Value>))
    }

    fn concurrency(&self) -> Option<NonZeroUsize> {
        self.requests
    }

    fn list(&self, _prefix: &str) -> Result<Vec<String>> {
        Err(ErrorKind::Unsupported("listing by HTTP".into()).into())
    }

    fn nbytes(&self, _prefix: &str) -> Result<u64> {
        Err(ErrorKind::Unsupported("listing by HTTP".into()).into())
    }
}

/// A value of the server.
struct Remote<'a> {
    store: &'a HttpStore,
    key: String,
    /// What came when it was opened.
    first: Answer,
}

impl Value for Remote<'_> {
    fn nbytes(&self) -> Result<u64> {
        Ok(self.first.nbytes)
    }

    fn bytes(&self) -> Option<&[u8]> {
        (self.first.body.len() as u64 == self.first.nbytes).then_some(&self.first.body)
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let end = offset.saturating_add(destination.len() as u64).min(self.first.nbytes);
        let length = end.saturating_sub(offset) as usize;
        if length == 0 {
            return Ok(&mut []);
        }
        let of_first = || {
            let start = usize::try_from(offset.checked_sub(self.first.offset)?).ok()?;
            self.first.body.get(start..start.checked_add(length)?)
        };
        let own;
        let bytes = match of_first() {
            Some(bytes) => bytes,
            None => {
                let answer = self.store.get(&self.key, &format!("{offset}-{}", end - 1), length as u64)?;
                own = answer.ok_or_else(|| unexpected("the value has vanished"))?.body;
                &own
            }
        };
        let length = bytes.len().min(length);
        Ok(destination[..length].write_copy_of_slice(&bytes[..length]))
    }

    /// The values that are served here never change.
    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(Some([self.first.nbytes, 0, 0, 0]))
    }
}
