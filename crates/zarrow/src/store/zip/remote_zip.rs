//! A zip archive that is one value of a remote store, whose members are the values.
//!
//! 1. It is opened by one request for the end of the archive, which brings a small directory along; the rest of a large one
//!    is a second request.
//! 2. A member is a range of the archive, in one request where that is possible (`remote_member.rs`).
//! 3. All requests are for the version that the directory is of. Sizes, lists, and whether there is a member, take none.

use super::corrupt;
use super::directory::Directory;
use super::end_record::{EndRecord, TAIL_NBYTES};
use super::entry::Entry;
use super::member::changed;
use super::remote_member::fetch_member;
use crate::error::{Error, ErrorKind, Result};
use crate::store::remote::{
    Body, FetchPolicy, Fetched, Head, ListedValue, Listing, ObjectVersion, OnDone, Outcome, Receiver,
    RemoteStore, Request, RequestClass, RequestHandle, Span, fetch,
};
use crate::store::{join, normalize_path};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use zarrow_array::allocation;

/// The members of a zip archive, stored or deflated, that is one value of another store. It can only be read, and is taken
/// as it was when it was opened: an archive that is replaced afterwards is an error.
#[derive(Debug)]
pub struct RemoteZip {
    archive: Arc<RemoteArchive>,
    name: String,
    /// The folder in the archive whose values these are.
    prefix: String,
}

/// An open archive.
#[derive(Debug)]
pub struct RemoteArchive {
    /// Where it is.
    pub store: Arc<dyn RemoteStore>,
    /// Its key there.
    pub key: String,
    /// What is in it.
    pub directory: Directory,
    /// The version that the directory is of, where the store tells versions apart.
    pub version: Option<ObjectVersion>,
}

impl RemoteZip {
    /// The store in the archive under `key` of `store`: one request, or two.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is no such value, what the store gives, [`ErrorKind::Corrupt`] for what is no
    /// archive, [`ErrorKind::BadKey`] for members with names that leave the archive, [`ErrorKind::Unsupported`] for an
    /// archive in several files, [`ErrorKind::Limit`] for one with too many members, [`ErrorKind::Stale`] for one that is
    /// replaced meanwhile.
    pub fn open(store: Arc<dyn RemoteStore>, key: &str) -> Result<RemoteZip> {
        let name = join(store.name().trim_end_matches('/'), key);
        let archive = RemoteArchive::open(store, key).map_err(|error| error.in_array(&name, ""))?;
        Ok(RemoteZip { archive: Arc::new(archive), name, prefix: String::new() })
    }

    /// The store of what is below the folder `prefix` of this one; `""` is all of it.
    ///
    /// # Errors
    /// [`ErrorKind::BadKey`].
    pub fn below(&self, prefix: &str) -> Result<RemoteZip> {
        let prefix = normalize_path(prefix).map_err(|error| error.in_array(&self.name, prefix))?;
        let prefix = self.path(&prefix);
        let archive_name = join(self.archive.store.name().trim_end_matches('/'), &self.archive.key);
        let name = if prefix.is_empty() { archive_name } else { format!("zip://{prefix}::{archive_name}") };
        Ok(RemoteZip { archive: Arc::clone(&self.archive), name, prefix })
    }

    /// The store that the archive is a value of, and its key there.
    #[must_use]
    pub fn archive(&self) -> (&dyn RemoteStore, &str) {
        (&*self.archive.store, &self.archive.key)
    }

    /// The key from the root of the archive on.
    fn path(&self, key: &str) -> String {
        if key.is_empty() { self.prefix.clone() } else { join(&self.prefix, key) }
    }

    /// The key of a member from this store's root on.
    fn key_of<'e>(&self, entry: &'e Entry) -> &'e str {
        let skipped = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        entry.key.get(skipped..).unwrap_or_default()
    }

    fn listing(&self, prefix: &str, recursive: bool) -> Result<Listing> {
        let directory = &self.archive.directory;
        if recursive {
            let below = directory.below(&self.path(prefix)).iter();
            let values =
                below.map(|entry| ListedValue { key: self.key_of(entry).to_owned(), nbytes: entry.nbytes });
            return Ok(Listing { values: allocation::collected(values)?, prefixes: Vec::new() });
        }
        let mut listing = Listing::default();
        for (name, nbytes) in directory.names(&self.path(prefix))? {
            let key = join(prefix, name);
            match nbytes {
                Some(nbytes) => listing.values.push(ListedValue { key, nbytes }),
                None => listing.prefixes.push(key),
            }
        }
        Ok(listing)
    }
}

impl RemoteArchive {
    /// Step 1.
    fn open(store: Arc<dyn RemoteStore>, key: &str) -> Result<RemoteArchive> {
        let get = |span: Span, version: Option<ObjectVersion>, limit: u64| -> Result<Body> {
            let request = Request::new(key, span).if_version(version).of_class(RequestClass::Metadata);
            match fetch(&*store, request, limit, &|| Ok(()))? {
                Fetched::Body(body) => Ok(body),
                Fetched::Missing => Err(ErrorKind::NotFound.into()),
                Fetched::Changed => Err(changed()),
                Fetched::TooLarge(_) => Err(sent_too_much()),
            }
        };
        let tail = if store.policy().has_suffix {
            get(Span::Suffix(TAIL_NBYTES), None, TAIL_NBYTES)?
        } else {
            let told = get(Span::Range(0..0), None, 0)?;
            let nbytes = told.nbytes.ok_or_else(|| {
                Error::from(ErrorKind::Unsupported("a zip archive whose size the store does not tell".into()))
            })?;
            get(Span::Range(nbytes.saturating_sub(TAIL_NBYTES)..nbytes), told.version, TAIL_NBYTES)?
        };
        let tail_end = tail.start.saturating_add(tail.bytes.len() as u64);
        if tail.nbytes.is_some_and(|nbytes| nbytes != tail_end) {
            return Err(corrupt("its end is missing in the store's answer"));
        }
        let end = EndRecord::find(&tail.bytes, tail.start)?;
        let range = end.directory.clone();
        let until = usize::try_from(range.end - tail.start).unwrap_or(usize::MAX);
        let at_hand = tail.bytes.get(..until).unwrap_or_default();
        let directory = match range.start.checked_sub(tail.start) {
            Some(from) => {
                let bytes = at_hand.get(usize::try_from(from).unwrap_or(usize::MAX)..);
                Directory::parse(bytes.unwrap_or_default(), &end)?
            }
            None => {
                let missing = tail.start - range.start;
                let first = get(Span::Range(range.start..tail.start), tail.version.clone(), missing)?;
                if first.start != range.start
                    || first.bytes.len() as u64 != missing
                    || first.version != tail.version
                {
                    return Err(changed());
                }
                let mut bytes = first.bytes;
                allocation::Grow::try_append(&mut bytes, at_hand)?;
                Directory::parse(&bytes, &end)?
            }
        };
        Ok(RemoteArchive { store, key: key.to_owned(), directory, version: tail.version })
    }
}

fn sent_too_much() -> Error {
    ErrorKind::Internal("a store sent more bytes than it was asked for".into()).into()
}

impl RemoteStore for RemoteZip {
    fn name(&self) -> &str {
        &self.name
    }

    /// That of the store of the archive; sizes are known, and so are suffixes.
    fn policy(&self) -> FetchPolicy {
        FetchPolicy { has_suffix: true, ..self.archive.store.policy() }
    }

    fn submit(&self, request: Request, mut receiver: Box<dyn Receiver>) -> RequestHandle {
        let Some(position) = self.archive.directory.position(&self.path(&request.key)) else {
            receiver.done(Ok(Outcome::Missing));
            return RequestHandle::ended();
        };
        if request.if_version.is_some() && request.if_version != self.archive.version {
            receiver.done(Ok(Outcome::Changed));
            return RequestHandle::ended();
        }
        let nbytes = match self.archive.directory.entry(position) {
            Ok(entry) => entry.nbytes,
            Err(error) => {
                receiver.done(Err(error));
                return RequestHandle::ended();
            }
        };
        let wanted = range_of(&request.span, nbytes);
        if wanted.is_empty() {
            let head =
                Head { start: wanted.start, nbytes: Some(nbytes), version: self.archive.version.clone() };
            let stopped = receiver.head(&head) == ControlFlow::Break(());
            receiver.done(Ok(if stopped { Outcome::Stopped } else { Outcome::Complete }));
            return RequestHandle::ended();
        }
        fetch_member(Arc::clone(&self.archive), position, wanted, request.class, receiver)
    }

    fn list(&self, prefix: &str, recursive: bool, done: OnDone<Listing>) -> RequestHandle {
        done(self.listing(prefix, recursive));
        RequestHandle::ended()
    }
}

/// The bytes of a value of this size that a span means.
fn range_of(span: &Span, nbytes: u64) -> Range<u64> {
    match span {
        Span::Whole => 0..nbytes,
        Span::Range(range) => range.start.min(nbytes)..range.end.min(nbytes),
        Span::Suffix(count) => nbytes.saturating_sub(*count)..nbytes,
    }
}
