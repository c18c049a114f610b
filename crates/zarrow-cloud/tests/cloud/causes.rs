//! Messages about requests without an answer name what to change.

use crate::arrays::policy;
use std::io::{Read, Write};
use std::net::TcpListener;
use zarrow::store::remote::{ByteRange, Request, fetch};
use zarrow_cloud::{CloudStore, StorageOptions};

/// Returns the text and the hint of the error from a server with this answer to every request.
fn error_of(scheme: &str, answer: &'static [u8]) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4096];
            if stream.read(&mut asked).is_ok_and(|nbytes| nbytes > 0) {
                // The client may have closed the connection.
                let _ = stream.write_all(answer);
            }
        }
    });
    error_at(&format!("{scheme}://{address}/data"))
}

fn error_at(url: &str) -> (String, String) {
    let mut policy = policy();
    (policy.retries, policy.silence) = (1, std::time::Duration::from_secs(60));
    let store = CloudStore::new(url, StorageOptions::default()).unwrap().with_policy(policy);
    let error = fetch(&store, Request::new("a", ByteRange::Whole), 10, &|| Ok(())).unwrap_err();
    assert_eq!(error.kind().code(), "io", "{error}");
    (error.to_string(), error.hint().unwrap_or_default().to_owned())
}

#[test]
fn tls_and_plain_text_on_the_wrong_port_are_distinguished() {
    let plain = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    for answer in [&plain[..], b""] {
        let (text, hint) = error_of("https", answer);
        assert!(hint.contains("http:// for https://"), "{text}: {hint}");
    }
    // A TLS alert, and the answers of web servers in its place.
    let alert = b"\x15\x03\x01\x00\x02\x02\x46";
    let nginx = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 52\r\n\r\nThe plain HTTP request was sent to HTTPS port. Nginx";
    let go = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    for answer in [&alert[..], nginx, go] {
        let (text, hint) = error_of("http", answer);
        assert!(hint.contains("https:// for http://"), "{text}: {hint}");
    }
}

#[test]
fn a_dead_port_and_an_unknown_host_are_named() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (text, hint) = error_at(&format!("http://{closed}/data"));
    assert!(text.contains(&closed.to_string()) && text.contains("refused"), "{text}");
    assert!(hint.contains("no server listens"), "{hint}");
    let (text, hint) = error_at("http://no-such-host.invalid/data");
    assert!(text.contains("no-such-host.invalid:80"), "{text}");
    assert!(hint.contains("host's name is unknown"), "{hint}");
}
