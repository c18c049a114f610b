//! A server on the loopback interface, with programmed behaviour for each request.
//!
//! Each connection has a thread. The fault of a request follows from its text, a seed and the number of equal requests
//! before, so that it is the same in every run, whatever the order of threads.

use crate::message::{Answer, Message};
use crate::objects::Objects;
use crate::rounds::Rounds;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A fault of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The response is late.
    Late,
    /// Its body breaks off.
    Cut,
    /// It promises more bytes than it sends, and closes.
    TooLong,
    /// It has another range than requested, and says so.
    OtherRange,
    /// All bytes in response to a range.
    Whole,
    Status(u16),
    /// This status, once the server holds an object with a key that ends like this.
    StatusAfter(u16, &'static str),
    /// This status with an error of this code; the request is not applied.
    Refused(u16, &'static str),
    /// The same, after the request was applied, as of a gateway.
    RefusedAfter(u16, &'static str),
    /// 200 with an error of this code as its body; the request is not applied.
    Code(&'static str),
    /// 503 or 429, with a requested pause.
    Pause(u16),
    /// The connection closes without a response, and the request is not applied.
    Reset,
    /// The connection closes without a response, after the request was applied.
    Lost,
    /// Silence, for longer than any client waits.
    Silent,
    /// The head, part of the body, and then silence.
    Stalled,
    /// A slow body, in small pieces.
    Trickle,
    /// All bytes, whatever the range, with chunked transfer encoding and no length.
    Chunked,
    /// The response begins after more time than a store waits at first.
    Slow,
    /// Single bytes; with a status, an endless stream of them.
    Drip(Option<u16>),
    /// This status, with an endless body.
    Endless(u16),
}

pub const FAULTS: [Fault; 15] = [
    Fault::Late,
    Fault::Cut,
    Fault::TooLong,
    Fault::OtherRange,
    Fault::Whole,
    Fault::Status(500),
    Fault::Status(502),
    Fault::Status(503),
    Fault::Status(429),
    Fault::Pause(503),
    Fault::Pause(429),
    Fault::Reset,
    Fault::Silent,
    Fault::Stalled,
    Fault::Trickle,
];

/// Returns the fault of a request, the `n`th with its text.
pub type Manner = Box<dyn Fn(&Message, u64) -> Option<Fault> + Send + Sync>;

type Meanwhile = Box<dyn FnOnce() + Send>;

/// Returns a replacement for the objects' response.
pub type Responder = Box<dyn Fn(&Message) -> Answer + Send + Sync>;

/// This many faults in a thousand requests.
pub fn seeded(seed: u64, per_mille: u64) -> Manner {
    Box::new(move |message, count| {
        let mut hasher = DefaultHasher::new();
        (seed, count, &message.method, &message.target, message.header("range")).hash(&mut hasher);
        let number = hasher.finish();
        (number % 1000 < per_mille).then(|| FAULTS[(number / 1000 % FAULTS.len() as u64) as usize])
    })
}

/// This fault for the first request, and none after.
pub fn once(fault: Fault) -> Manner {
    let met = AtomicBool::new(false);
    Box::new(move |_, _| (!met.swap(true, Ordering::SeqCst)).then_some(fault))
}

/// No faults.
pub fn well() -> Manner {
    Box::new(|_, _| None)
}

pub struct Server {
    pub address: String,
    shared: Arc<Shared>,
}

struct Shared {
    objects: Mutex<Objects>,
    manner: Mutex<Manner>,
    asked: Mutex<HashMap<u64, u64>>,
    log: Mutex<Vec<Message>>,
    requests: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
    stop: AtomicBool,
    /// A replacement for the response.
    instead: Mutex<Option<Answer>>,
    /// An action before the next connection closes without a response.
    meanwhile: Mutex<Option<Meanwhile>>,
    responder: Mutex<Option<Responder>>,
    rounds: Mutex<Option<Arc<Rounds>>>,
}

impl Server {
    pub fn start(manner: Manner) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            objects: Mutex::new(Objects::default()),
            manner: Mutex::new(manner),
            asked: Mutex::default(),
            log: Mutex::default(),
            requests: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            instead: Mutex::new(None),
            meanwhile: Mutex::new(None),
            responder: Mutex::new(None),
            rounds: Mutex::new(None),
        });
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if own.stop.load(Ordering::Relaxed) {
                    return;
                }
                let own = Arc::clone(&own);
                // A disconnecting client is not an error of the server.
                std::thread::spawn(move || stream.and_then(|stream| own.serve(stream)));
            }
        });
        Server { address, shared }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub fn objects<T>(&self, use_them: impl FnOnce(&mut Objects) -> T) -> T {
        use_them(&mut self.shared.objects.lock().unwrap())
    }

    pub fn behave(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap() = manner;
        self.shared.asked.lock().unwrap().clear();
    }

    pub fn answer_with(&self, answer: Option<Answer>) {
        *self.shared.instead.lock().unwrap() = answer;
    }

    /// Runs the action when the next request is dropped.
    pub fn meanwhile(&self, other: impl FnOnce() + Send + 'static) {
        *self.shared.meanwhile.lock().unwrap() = Some(Box::new(other));
    }

    pub fn answer_by(&self, responder: impl Fn(&Message) -> Answer + Send + Sync + 'static) {
        *self.shared.responder.lock().unwrap() = Some(Box::new(responder));
    }

    /// Returns the number of round trips of `work`.
    pub fn rounds<T>(&self, work: impl FnOnce() -> T) -> (usize, T) {
        let rounds = Arc::new(Rounds::default());
        *self.shared.rounds.lock().unwrap() = Some(Arc::clone(&rounds));
        let done = work();
        *self.shared.rounds.lock().unwrap() = None;
        (rounds.count(), done)
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Returns the maximum number of concurrent requests.
    pub fn most_at_once(&self) -> usize {
        self.shared.most_open.load(Ordering::SeqCst)
    }

    /// Returns the requests since the last call.
    pub fn take_log(&self) -> Vec<Message> {
        std::mem::take(&mut self.shared.log.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        drop(TcpStream::connect(&self.address));
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        while let Some(message) = Message::read(&mut reader)? {
            self.requests.fetch_add(1, Ordering::SeqCst);
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_open.fetch_max(open, Ordering::SeqCst);
            let goes_on = self.reply(&mut stream, &message);
            self.open.fetch_sub(1, Ordering::SeqCst);
            if !goes_on? {
                break;
            }
        }
        Ok(())
    }

    fn fault(&self, message: &Message) -> Option<Fault> {
        let mut hasher = DefaultHasher::new();
        (&message.method, &message.target, message.header("range")).hash(&mut hasher);
        let mut asked = self.asked.lock().unwrap();
        let count = asked.entry(hasher.finish()).or_default();
        *count += 1;
        (self.manner.lock().unwrap())(message, *count)
    }

    /// Sends a response; returns whether the connection stays open.
    fn reply(&self, stream: &mut TcpStream, message: &Message) -> std::io::Result<bool> {
        {
            let mut log = self.log.lock().unwrap();
            log.push(Message { body: Vec::new(), ..message.clone() });
        }
        let rounds = self.rounds.lock().unwrap().clone();
        if let Some(rounds) = rounds {
            rounds.wait();
        }
        let fault = self.fault(message);
        match fault {
            Some(Fault::Reset | Fault::Lost) => {
                if fault == Some(Fault::Lost) {
                    drop(self.objects.lock().unwrap().answer(message));
                }
                let meanwhile = self.meanwhile.lock().unwrap().take();
                meanwhile.into_iter().for_each(|meanwhile| meanwhile());
                return Ok(false);
            }
            Some(Fault::RefusedAfter(..)) => drop(self.objects.lock().unwrap().answer(message)),
            Some(Fault::Silent) => {
                std::thread::sleep(Duration::from_millis(600));
                return Ok(false);
            }
            Some(Fault::Late) => std::thread::sleep(Duration::from_millis(20)),
            Some(Fault::Slow) => std::thread::sleep(Duration::from_millis(400)),
            Some(Fault::StatusAfter(_, suffix)) => {
                let is_stored = || self.objects.lock().unwrap().all.keys().any(|key| key.ends_with(suffix));
                while !is_stored() && !self.stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            _ => {}
        }
        if let Some(Fault::Drip(Some(status)) | Fault::Endless(status)) = fault {
            Answer::new(status).write_head(stream, None)?;
            loop {
                match fault {
                    Some(Fault::Endless(_)) => stream.write_all(&[b'x'; 1 << 16])?,
                    _ => drip(stream, b"x")?,
                }
            }
        }
        let instead = self.instead.lock().unwrap().clone();
        let instead =
            instead.or_else(|| self.responder.lock().unwrap().as_ref().map(|respond| respond(message)));
        let whole = Message {
            headers: message.headers.iter().filter(|(name, _)| name != "range").cloned().collect(),
            ..message.clone()
        };
        let mut answer = match (instead, fault) {
            (Some(answer), _) => answer,
            (None, Some(Fault::Status(status) | Fault::StatusAfter(status, _))) => {
                Answer::error(status, "Injected", "Injected by the test.")
            }
            (None, Some(Fault::Refused(status, code) | Fault::RefusedAfter(status, code))) => {
                Answer::error(status, code, "Later.")
            }
            (None, Some(Fault::Code(code))) => Answer::error(200, code, "Injected by the test."),
            (None, Some(Fault::Pause(status))) => {
                Answer::error(status, "SlowDown", "Later.").with("retry-after", 0)
            }
            (None, Some(Fault::Whole | Fault::Chunked)) => self.objects.lock().unwrap().answer(&whole),
            (None, _) => self.objects.lock().unwrap().answer(message),
        };
        let mut body = std::mem::take(&mut answer.body);
        if message.method == "HEAD" {
            answer.write_head(stream, Some(body.len()))?;
            return Ok(true);
        }
        let is_content = answer.status < 300 && !body.is_empty();
        // A response with all bytes is trusted, so it must match its own description.
        let fault = match fault {
            Some(Fault::OtherRange) if answer.status != 206 => Some(Fault::Cut),
            fault => fault,
        };
        match fault.filter(|_| is_content) {
            Some(Fault::TooLong) => {
                answer.write_head(stream, Some(body.len() + 10))?;
                stream.write_all(&body)?;
                Ok(false)
            }
            Some(Fault::Cut) => {
                answer.write_head(stream, Some(body.len()))?;
                stream.write_all(&body[..body.len() / 2])?;
                Ok(false)
            }
            Some(Fault::OtherRange) => {
                for (name, value) in &mut answer.headers {
                    if name == "content-range" {
                        *value = format!("bytes 0-0/{}", body.len());
                    }
                }
                body.truncate(1);
                answer.write_head(stream, Some(body.len()))?;
                stream.write_all(&body)?;
                Ok(true)
            }
            Some(Fault::Stalled) => {
                answer.write_head(stream, Some(body.len()))?;
                stream.write_all(&body[..body.len() / 2])?;
                std::thread::sleep(Duration::from_millis(600));
                Ok(false)
            }
            Some(Fault::Drip(_)) => {
                answer.write_head(stream, Some(body.len()))?;
                drip(stream, &body)?;
                Ok(true)
            }
            Some(Fault::Chunked) => {
                answer.with("transfer-encoding", "chunked").write_head(stream, None)?;
                for piece in body.chunks(1000) {
                    write!(stream, "{:x}\r\n", piece.len())?;
                    stream.write_all(piece)?;
                    stream.write_all(b"\r\n")?;
                }
                // The client closes the connection after its range.
                Ok(stream.write_all(b"0\r\n\r\n").is_ok())
            }
            Some(Fault::Trickle) => {
                answer.write_head(stream, Some(body.len()))?;
                for piece in body.chunks(body.len().div_ceil(8)) {
                    stream.write_all(piece)?;
                    std::thread::sleep(Duration::from_millis(3));
                }
                Ok(true)
            }
            _ => {
                let has_body = answer.status != 204;
                answer.write_head(stream, has_body.then_some(body.len()))?;
                stream.write_all(&body)?;
                Ok(true)
            }
        }
    }
}

/// Sends a body byte by byte, until the client disconnects.
fn drip(stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    body.chunks(1).try_for_each(|byte| {
        std::thread::sleep(Duration::from_millis(10));
        stream.write_all(byte)
    })
}
