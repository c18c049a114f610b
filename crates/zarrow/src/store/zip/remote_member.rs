//! Streams the bytes of a member of a remote archive.
//!
//! 1. Only a member's local header contains the offset of its bytes. Until that offset is known, a request starts at
//!    the header, and ends where the bytes would end with the estimated header size: one request for a whole chunk.
//! 2. If the header turns out to be longer, or the wanted bytes are far after it, a second request fetches exactly
//!    those bytes. From then on their offset is known.
//! 3. The receiver gets only the member's bytes: the header is cut off, and offsets are relative to the member's start.
//!    A stored member that is read as a whole is compared with its checksum.
//! 4. A deflated member is collected, inflated as a whole, checked, and passed on in frames.

use super::archive::changed;
use super::corrupt;
use super::entry::{Entry, Method};
use super::inflate::{compare, crc32, inflated};
use super::remote_archive::RemoteArchive;
use crate::error::{Error, Result};
use crate::store::remote::{ByteRange, Head, Outcome, Receiver, Request, RequestClass, RequestHandle};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use zarrow_array::allocation::Grow;
use zarrow_array::fork::Mutex;

/// Wanted bytes that start within this distance of the member's start are requested together with its header.
const NEAR_NBYTES: u64 = 64 << 10;

/// Size of one frame of inflated bytes.
const FRAME_NBYTES: usize = 1 << 20;

/// Fetches the bytes `wanted`, at least one, of the member with this number.
pub fn fetch_member(
    archive: Arc<RemoteArchive>,
    position: usize,
    wanted: Range<u64>,
    class: RequestClass,
    receiver: Box<dyn Receiver>,
) -> RequestHandle {
    let found =
        archive.directory.entry(position).and_then(|entry| Ok((entry.stored_nbytes, entry.method()?)));
    let (stored_nbytes, method) = match found {
        Ok(found) => found,
        Err(error) => {
            receiver.done(Err(error));
            return RequestHandle::ended();
        }
    };
    let (range, receiver) = match method {
        Method::Stored => (wanted, receiver),
        Method::Deflated => {
            let archive = Arc::clone(&archive);
            let inflating =
                Inflating { archive, position, wanted, collected: Vec::new(), fault: None, receiver };
            (0..stored_nbytes, Box::new(inflating) as Box<dyn Receiver>)
        }
    };
    let current = Arc::new(Current::default());
    let fetch = MemberFetch { archive, position, range, class, current: Arc::clone(&current) };
    fetch.begin(receiver);
    RequestHandle::new(move || current.cancel())
}

/// The current request for a member.
#[derive(Default)]
struct Current(Mutex<InFlight>);

#[derive(Default)]
struct InFlight {
    is_cancelled: bool,
    /// Number of requests started so far.
    begun: u32,
    handle: Option<RequestHandle>,
}

impl Current {
    /// Returns the number of the next request; `None` if it must not start.
    fn begin(&self) -> Option<u32> {
        let mut state = self.0.lock();
        state.begun += 1;
        (!state.is_cancelled).then_some(state.begun)
    }

    /// Keeps the handle of a request, unless the next one has already started.
    fn keep(&self, number: u32, handle: RequestHandle) {
        let mut state = self.0.lock();
        if state.is_cancelled {
            drop(state);
            handle.cancel();
        } else if state.begun == number {
            state.handle = Some(handle);
        }
    }

    fn cancel(&self) {
        let mut state = self.0.lock();
        state.is_cancelled = true;
        let handle = state.handle.take();
        drop(state);
        if let Some(handle) = handle {
            handle.cancel();
        }
    }
}

/// Wanted stored bytes of a member.
struct MemberFetch {
    archive: Arc<RemoteArchive>,
    position: usize,
    range: Range<u64>,
    class: RequestClass,
    current: Arc<Current>,
}

impl MemberFetch {
    fn entry(&self) -> Result<&Entry> {
        self.archive.directory.entry(self.position)
    }

    /// Returns the bytes of the archive to request.
    fn span(&self) -> Result<Range<u64>> {
        let entry = self.entry()?;
        let limit = self.archive.directory.start;
        let (from, to) = match entry.known_start() {
            Some(start) => (start.saturating_add(self.range.start), start.saturating_add(self.range.end)),
            None => {
                let near = if self.range.start <= NEAR_NBYTES { self.range.end } else { 0 };
                let header = entry.header.saturating_add(entry.guessed_header_nbytes());
                (entry.header, header.saturating_add(near))
            }
        };
        Ok(from..to.min(limit))
    }

    fn begin(self, receiver: Box<dyn Receiver>) {
        let (Ok(span), Some(number)) = (self.span(), self.current.begin()) else {
            return receiver.done(Ok(Outcome::Stopped));
        };
        let (archive, current) = (Arc::clone(&self.archive), Arc::clone(&self.current));
        let request = Request::new(&*archive.key, ByteRange::Range(span.clone()))
            .if_version(archive.version.clone())
            .with_class(self.class);
        let is_whole = |entry: &Entry| {
            self.range == (0..entry.stored_nbytes) && matches!(entry.method(), Ok(Method::Stored))
        };
        let is_whole = self.entry().is_ok_and(is_whole);
        let answer = Answer {
            start: self.entry().ok().and_then(Entry::known_start),
            fetch: self,
            receiver,
            span,
            at: 0,
            header: Vec::new(),
            is_short: false,
            crc: is_whole.then_some(0),
            fault: None,
        };
        let handle = archive.store.submit(request, Box::new(answer));
        current.keep(number, handle);
    }
}

/// Receives bytes of the archive, and passes on the member's bytes.
struct Answer {
    fetch: MemberFetch,
    receiver: Box<dyn Receiver>,
    /// Requested bytes of the archive.
    span: Range<u64>,
    /// Offset in the archive of the next byte.
    at: u64,
    /// The member's local header, as far as received.
    header: Vec<u8>,
    /// Offset in the archive of the member's bytes, once known.
    start: Option<u64>,
    /// Whether the request ends before the wanted bytes do (step 2).
    is_short: bool,
    /// The checksum so far, if the whole member is read.
    crc: Option<u32>,
    fault: Option<Error>,
}

impl Answer {
    fn failed(&mut self, error: Error) -> ControlFlow<()> {
        self.fault = Some(error);
        ControlFlow::Break(())
    }

    /// Announces the member's bytes to the receiver.
    fn begin(&mut self) -> ControlFlow<()> {
        self.crc = self.crc.map(|_| 0);
        let (start, nbytes) =
            (self.fetch.range.start, self.fetch.entry().ok().map(|entry| entry.stored_nbytes));
        self.receiver.head(&Head { start, nbytes, version: self.fetch.archive.version.clone() })
    }

    /// Looks for the member's start in its local header (step 1).
    fn read_header(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>> {
        let entry = self.fetch.entry()?;
        let missing =
            usize::try_from(entry.header_nbytes()).unwrap_or(usize::MAX).saturating_sub(self.header.len());
        self.header.try_append(bytes.get(..missing).unwrap_or(bytes))?;
        let Some(start) = entry.find_start(&self.header, self.fetch.archive.directory.start)? else {
            return Ok(ControlFlow::Continue(()));
        };
        self.start = Some(start);
        if start.saturating_add(self.fetch.range.end) > self.span.end {
            self.is_short = true;
            return Ok(ControlFlow::Break(()));
        }
        Ok(self.begin())
    }

    /// Returns the wanted part of the next `length` bytes, relative to the first of these.
    fn part(&self, start: u64, length: usize) -> Range<usize> {
        let at = |place: u64| {
            let place = start.saturating_add(place).saturating_sub(self.at);
            usize::try_from(place).unwrap_or(usize::MAX).min(length)
        };
        at(self.fetch.range.start)..at(self.fetch.range.end)
    }

    /// Checks that everything has arrived (step 3).
    fn check(&self) -> Result<()> {
        let end = self.start.and_then(|start| start.checked_add(self.fetch.range.end));
        if end.is_none_or(|end| self.at < end) {
            return Err(corrupt("the store's answer ends within an entry"));
        }
        match self.crc {
            Some(crc) => compare(self.fetch.entry()?.crc, crc),
            None => Ok(()),
        }
    }
}

impl Receiver for Answer {
    fn head(&mut self, head: &Head) -> ControlFlow<()> {
        let version = &self.fetch.archive.version;
        if head.start != self.span.start
            || head.version.is_some() && version.is_some() && head.version != *version
        {
            return self.failed(changed());
        }
        (self.at, self.is_short) = (head.start, false);
        let begins_at_header = self.fetch.entry().is_ok_and(|entry| self.span.start == entry.header);
        if begins_at_header {
            self.start = None;
            self.header.clear();
            return ControlFlow::Continue(());
        }
        self.begin()
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        if self.start.is_none() {
            match self.read_header(bytes) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(stop) => return stop,
                Err(error) => return self.failed(error),
            }
        }
        let part = self.start.map_or(0..0, |start| self.part(start, bytes.len()));
        self.at = self.at.saturating_add(bytes.len() as u64);
        let Some(bytes) = bytes.get(part).filter(|bytes| !bytes.is_empty()) else {
            return ControlFlow::Continue(());
        };
        self.crc = self.crc.map(|crc| crc32(crc, bytes));
        self.receiver.frame(bytes)
    }

    fn done(self: Box<Self>, result: Result<Outcome>) {
        let checked = match (&self.fault, &result) {
            (None, Ok(Outcome::Complete)) if !self.is_short => Some(self.check()),
            _ => None,
        };
        let Answer { fetch, receiver, is_short, fault, .. } = *self;
        match (fault, result, checked) {
            (Some(fault), ..) => receiver.done(Err(fault)),
            (None, Ok(Outcome::Missing | Outcome::Changed), _) => receiver.done(Err(changed())),
            // Step 2.
            (None, Ok(_), _) if is_short => fetch.begin(receiver),
            (None, Ok(_), Some(Err(error))) => receiver.done(Err(error)),
            (None, result, _) => receiver.done(result),
        }
    }
}

/// Collects a deflated member, and passes on the wanted bytes (step 4).
struct Inflating {
    archive: Arc<RemoteArchive>,
    position: usize,
    wanted: Range<u64>,
    collected: Vec<u8>,
    fault: Option<Error>,
    receiver: Box<dyn Receiver>,
}

impl Inflating {
    /// Passes on the wanted bytes.
    fn hand_on(&mut self) -> Result<Outcome> {
        let entry = self.archive.directory.entry(self.position)?;
        let bytes = inflated(&self.collected, entry.nbytes, entry.crc)?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let wanted = bytes.get(place(self.wanted.start)..place(self.wanted.end)).unwrap_or_default();
        let (start, nbytes) = (self.wanted.start, Some(entry.nbytes));
        let mut flow = self.receiver.head(&Head { start, nbytes, version: self.archive.version.clone() });
        for frame in wanted.chunks(FRAME_NBYTES) {
            if flow == ControlFlow::Break(()) {
                return Ok(Outcome::Stopped);
            }
            flow = self.receiver.frame(frame);
        }
        Ok(if flow == ControlFlow::Break(()) { Outcome::Stopped } else { Outcome::Complete })
    }
}

impl Receiver for Inflating {
    fn head(&mut self, _head: &Head) -> ControlFlow<()> {
        self.collected.clear();
        ControlFlow::Continue(())
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        match self.collected.try_append(bytes) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.fault = Some(error.into());
                ControlFlow::Break(())
            }
        }
    }

    fn done(mut self: Box<Self>, result: Result<Outcome>) {
        let result = match (self.fault.take(), result) {
            (Some(fault), _) => Err(fault),
            (None, Ok(Outcome::Complete)) => self.hand_on(),
            (None, result) => result,
        };
        self.receiver.done(result);
    }
}
