//! The server of the remote benchmarks: the files of a folder by HTTP, and as an S3 bucket that takes unsigned requests.
//!
//! `object_server FOLDER` prints `{"port": …}`. Every bucket holds the files of the folder, and keeps puts in memory. Each
//! line on stdin configures the following answers, and is answered with the counts since the previous line:
//!
//! - in: `{"delay_ms": 30, "stalls": 0.02, "stall_ms": 2000, "seed": 1, "dead": 5}`; missing settings are off.
//! - out: `{"requests": …, "most": …, "connections": …, "sent": …}`.

mod behaviour;
mod connection;
mod message;
mod objects;

use behaviour::{Manner, Seen};
use objects::Objects;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Backlog of connections: a reader opens hundreds at once.
const BACKLOG: i32 = 1024;

/// State shared by all connections.
struct Server {
    objects: Objects,
    manner: Manner,
    seen: Seen,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("the folder is missing: object_server FOLDER")?;
    let objects = Objects::of_folder(folder.as_ref())?;
    let server = Arc::new(Server { objects, manner: Manner::default(), seen: Seen::default() });
    let listener = TcpListener::bind("127.0.0.1:0")?;
    // SAFETY: the listener is open; a second call only changes the backlog.
    if unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) } != 0 {
        return Err(io::Error::last_os_error().into());
    }
    let port = listener.local_addr()?.port();
    let shared = Arc::clone(&server);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let server = Arc::clone(&shared);
            // A disconnecting client is not an error of the server.
            std::thread::spawn(move || connection::serve(&server, stream).is_ok());
        }
    });
    tell(&json!({ "port": port }))?;
    for line in io::stdin().lock().lines() {
        let order: Value = serde_json::from_str(&line?)?;
        let seen = server.seen.take();
        server.manner.set(&order);
        tell(&seen)?;
    }
    Ok(())
}

fn tell(answer: &Value) -> io::Result<()> {
    writeln!(io::stdout(), "{answer}")
}
