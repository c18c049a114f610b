//! HTTP/1.1, as far as clients of an object store need it.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::ops::Range;

/// The head of a request.
#[derive(Debug)]
pub struct Head {
    pub method: String,
    /// Path and query, undecoded.
    target: String,
    headers: Vec<(String, String)>,
}

impl Head {
    /// Reads the next request of a connection; `None` at its end.
    pub fn read(stream: &mut impl BufRead) -> Result<Option<Head>> {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        let mut headers = Vec::new();
        loop {
            line.clear();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Some(Head { method, target, headers }))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Returns the decoded path without the leading slash.
    pub fn path(&self) -> String {
        decoded(self.target.split('?').next().unwrap_or_default().trim_start_matches('/'))
    }

    /// Returns a decoded parameter of the query; empty without a value.
    pub fn query(&self, name: &str) -> Option<String> {
        let query = self.target.split_once('?')?.1;
        query.split('&').find_map(|pair| {
            let (own, value) = pair.split_once('=').unwrap_or((pair, ""));
            (own == name).then(|| decoded(value))
        })
    }

    /// Reads the following body into `memory`.
    pub fn read_body(&self, stream: &mut BufReader<TcpStream>, memory: &mut Vec<u8>) -> Result<()> {
        if self.header("expect").is_some() {
            stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        if self.header("transfer-encoding").is_some() {
            return Err(Error::new(ErrorKind::Unsupported, "a body of unknown length"));
        }
        let length = self.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        memory.clear();
        stream.take(length).read_to_end(memory)?;
        if memory.len() as u64 == length { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// Returns the requested range of a value of `nbytes` bytes: all of the value without a range, `None` if it is empty.
    pub fn range(&self, nbytes: u64) -> Option<Range<u64>> {
        let Some(range) = self.header("range") else { return Some(0..nbytes) };
        let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        let range = match (first.parse::<u64>(), last.parse::<u64>()) {
            (Ok(first), Ok(last)) => first..last.saturating_add(1).min(nbytes),
            (Ok(first), Err(_)) => first..nbytes,
            (Err(_), Ok(count)) => nbytes.saturating_sub(count)..nbytes,
            (Err(_), Err(_)) => return None,
        };
        (range.start < range.end).then_some(range)
    }
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
