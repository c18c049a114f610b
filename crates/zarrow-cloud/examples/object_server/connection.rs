//! One connection: requests are answered one after the other, each after its delay.
//!
//! Implements the part of S3 that the writers of the benchmarks need: GET, HEAD, PUT with conditions, DELETE, lists,
//! multipart uploads.

use crate::Server;
use crate::message::Head;
use crate::objects::{Object, Refused};
use std::fmt::Write as _;
use std::io::{BufReader, Result, Write};
use std::net::TcpStream;

/// Names in one page of a list.
const PAGE: usize = 1000;

/// A response without an object, such as an error or a listing.
struct Answer {
    status: &'static str,
    headers: String,
    body: String,
}

impl Answer {
    fn new(status: &'static str) -> Answer {
        Answer { status, headers: String::new(), body: String::new() }
    }

    fn with(mut self, name: &str, value: &str) -> Answer {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    fn of(self, body: String) -> Answer {
        Answer { body, ..self }
    }

    /// Returns an error in S3's format.
    fn error(status: &'static str, code: &str) -> Answer {
        Answer::new(status).of(format!("<Error><Code>{code}</Code><Message>{status}</Message></Error>"))
    }
}

/// Answers the requests of a connection until the other side closes it.
pub fn serve(server: &Server, stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    server.seen.connection();
    let mut stream = BufReader::with_capacity(16 << 10, stream);
    while let Some(head) = Head::read(&mut stream)? {
        server.seen.begin();
        let sent = answer(server, &head, &mut stream);
        server.seen.end(*sent.as_ref().unwrap_or(&0));
        sent?;
    }
    Ok(())
}

/// Answers a request; returns the number of body bytes sent.
fn answer(server: &Server, head: &Head, stream: &mut BufReader<TcpStream>) -> Result<u64> {
    let path = head.path();
    // Every bucket has the same objects.
    let key = path.split_once('/').map_or("", |(_, key)| key);
    let mut body = Vec::new();
    if matches!(head.method.as_str(), "PUT" | "POST") {
        body = server.objects.memory();
        head.read_body(stream, &mut body)?;
    }
    server.manner.wait(is_metadata(key));
    let is_head = head.method == "HEAD";
    let answer = match head.method.as_str() {
        "GET" if key.is_empty() => list(server, head),
        "GET" | "HEAD" => match server.objects.get(key) {
            Some(object) => return get(head, &object, stream.get_mut(), is_head),
            None => Answer::error("404 Not Found", "NoSuchKey"),
        },
        "PUT" => put(server, head, key, body),
        "POST" if head.query("delete").is_some() => delete(server, &body),
        "POST" => upload(server, head, key),
        "DELETE" => {
            match head.query("uploadId") {
                Some(id) => drop(server.objects.end_upload(&id)),
                None => server.objects.delete(key),
            }
            Answer::new("204 No Content")
        }
        _ => Answer::error("405 Method Not Allowed", "MethodNotAllowed"),
    };
    let Answer { status, headers, body } = answer;
    let length = body.len();
    let body = if is_head { "" } else { body.as_str() };
    let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
    stream.get_mut().write_all(text.as_bytes())?;
    Ok(body.len() as u64)
}

fn is_metadata(key: &str) -> bool {
    matches!(key.rsplit('/').next(), Some("zarr.json" | ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata"))
}

fn get(head: &Head, object: &Object, stream: &mut TcpStream, is_head: bool) -> Result<u64> {
    let (nbytes, e_tag) = (object.nbytes, &object.e_tag);
    let about =
        format!("etag: {e_tag}\r\naccept-ranges: bytes\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n");
    let refused = head.header("if-match").is_some_and(|wanted| wanted != e_tag);
    let (status, range) = match head.range(nbytes) {
        _ if refused => ("412 Precondition Failed\r\ncontent-length: 0\r\n".to_owned(), 0..0),
        None => {
            let place = format!("content-range: bytes */{nbytes}\r\ncontent-length: 0\r\n");
            (format!("416 Range Not Satisfiable\r\n{place}"), 0..0)
        }
        Some(range) => {
            let length = range.end - range.start;
            let status = match head.header("range") {
                None => format!("200 OK\r\ncontent-length: {length}\r\n{about}"),
                Some(_) => {
                    let place = format!("content-range: bytes {}-{}/{nbytes}", range.start, range.end - 1);
                    format!("206 Partial Content\r\n{place}\r\ncontent-length: {length}\r\n{about}")
                }
            };
            (status, if is_head { 0..0 } else { range })
        }
    };
    let sent = range.end - range.start;
    object.send(stream, format!("HTTP/1.1 {status}\r\n").into_bytes(), range)?;
    Ok(sent)
}

fn put(server: &Server, head: &Head, key: &str, body: Vec<u8>) -> Answer {
    let number = head.query("partNumber").and_then(|number| number.parse().ok());
    if let (Some(id), Some(number)) = (head.query("uploadId"), number) {
        return match server.objects.put_part(&id, number, body) {
            true => Answer::new("200 OK").with("etag", &format!("\"part{number}\"")),
            false => Answer::error("404 Not Found", "NoSuchUpload"),
        };
    }
    let allows = |there: Option<&str>| {
        (head.header("if-none-match").is_none() || there.is_none())
            && head.header("if-match").is_none_or(|wanted| there == Some(wanted))
    };
    match server.objects.put(key, vec![body], allows) {
        Ok(e_tag) => Answer::new("200 OK").with("etag", &e_tag),
        Err(Refused) => Answer::error("412 Precondition Failed", "PreconditionFailed"),
    }
}

/// Deletes the keys listed in a request.
fn delete(server: &Server, body: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(body);
    let mut deleted = String::new();
    for key in text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
        server.objects.delete(key);
        deleted.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
    }
    Answer::new("200 OK").of(format!("<DeleteResult>{deleted}</DeleteResult>"))
}

/// Begins or completes a multipart upload.
fn upload(server: &Server, head: &Head, key: &str) -> Answer {
    let Some(id) = head.query("uploadId") else {
        let id = server.objects.begin_upload();
        let text = format!(
            "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        );
        return Answer::new("200 OK").of(text);
    };
    let Some(parts) = server.objects.end_upload(&id) else {
        return Answer::error("404 Not Found", "NoSuchUpload");
    };
    match server.objects.put(key, parts, |_| true) {
        Ok(e_tag) => Answer::new("200 OK").of(format!(
            "<CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>",
            e_tag.replace('"', "&quot;")
        )),
        Err(Refused) => Answer::error("412 Precondition Failed", "PreconditionFailed"),
    }
}

fn list(server: &Server, head: &Head) -> Answer {
    let query = |name: &str| head.query(name).unwrap_or_default();
    let (prefix, delimiter, after) = (query("prefix"), query("delimiter"), query("continuation-token"));
    let mut names = server.objects.list(&prefix, &delimiter).into_iter().filter(|(name, _)| *name > after);
    let page: Vec<_> = names.by_ref().take(PAGE).collect();
    let mut text = format!("<ListBucketResult><Name>bench</Name><KeyCount>{}</KeyCount>", page.len());
    for (name, about) in &page {
        // Writing to a string never fails.
        let _ = match about {
            Some((nbytes, e_tag)) => write!(
                text,
                "<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                 <ETag>{}</ETag><Size>{nbytes}</Size></Contents>",
                e_tag.replace('"', "&quot;")
            ),
            None => write!(text, "<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"),
        };
    }
    text.push_str(&match (names.next(), page.last()) {
        (Some(_), Some((last, _))) => {
            format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>")
        }
        _ => "<IsTruncated>false</IsTruncated>".to_owned(),
    });
    Answer::new("200 OK").of(format!("{text}</ListBucketResult>"))
}
