//! HTTP messages, as far as the tests' clients need them.

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::TcpStream;

/// A request with its body.
#[derive(Debug, Clone)]
pub struct Message {
    pub method: String,
    /// Path and query, undecoded.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    /// Reads the next request of a connection; `None` at its end.
    pub fn read(stream: &mut BufReader<TcpStream>) -> Result<Option<Message>> {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut message = Message { method, target, headers, body: Vec::new() };
        if message.header("transfer-encoding") == Some("chunked") {
            loop {
                let mut size = String::new();
                stream.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
                let mut piece = vec![0; size + 2];
                stream.read_exact(&mut piece)?;
                message.body.extend_from_slice(&piece[..size]);
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = message.header("content-length") {
            message.body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut message.body)?;
        }
        Ok(Some(message))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Returns the decoded path.
    pub fn path(&self) -> String {
        decoded(self.target.split('?').next().unwrap())
    }

    /// Returns a decoded parameter of the query.
    pub fn query(&self, name: &str) -> Option<String> {
        let query = self.target.split_once('?')?.1;
        query.split('&').find_map(|pair| {
            let (own, value) = pair.split_once('=').unwrap_or((pair, ""));
            (own == name).then(|| decoded(value))
        })
    }
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn new(status: u16) -> Answer {
        Answer { status, headers: Vec::new(), body: Vec::new() }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> Answer {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    pub fn of(mut self, body: impl Into<Vec<u8>>) -> Answer {
        self.body = body.into();
        self
    }

    /// Returns an error in S3's format.
    pub fn error(status: u16, code: &str, message: &str) -> Answer {
        Answer::new(status).of(format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        ))
    }

    /// Returns the head, with the promised length.
    pub fn write_head(&self, stream: &mut TcpStream, promised: Option<usize>) -> Result<()> {
        let mut text = format!("HTTP/1.1 {} Injected\r\n", self.status);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(promised) = promised
            && !self.headers.iter().any(|(name, _)| name == "content-length")
        {
            text.push_str(&format!("content-length: {promised}\r\n"));
        }
        text.push_str("\r\n");
        stream.write_all(text.as_bytes())
    }
}
