//! HTTP/1.1, as far as a store of files needs it: heads of messages, and ranges of bytes.

use std::io::{self, BufRead, Read};

/// A message's first line and its headers, with lower-case names.
pub struct Head {
    pub line: String,
    headers: Vec<(String, String)>,
}

impl Head {
    /// Reads up to the empty line; `None` if the connection was closed before.
    pub fn read(from: &mut impl BufRead) -> io::Result<Option<Head>> {
        let mut line = String::new();
        let mut lines = Vec::new();
        // Enough for any valid head: longer ones are refused.
        let mut from = from.take(64 << 10);
        while from.read_line(&mut line)? > 0 {
            match line.trim_end() {
                "" => break,
                text => lines.push(text.to_owned()),
            }
            line.clear();
        }
        let mut lines = lines.into_iter();
        let Some(line) = lines.next() else { return Ok(None) };
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        });
        Ok(Some(Head { line, headers: headers.collect() }))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Returns an error for an invalid message.
pub fn unexpected(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}
