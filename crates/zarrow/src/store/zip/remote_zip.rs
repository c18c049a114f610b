//! A zip archive that is one value of a remote store, whose members are the values.
//!
//! 1. It is opened by one request for the end of the archive, which brings a small directory along; the rest of a large one
//!    is a second request.
//! 2. A member is a range of the archive, in one request where that is possible (`remote_member.rs`).
//! 3. All requests are for the version that the directory is of. Sizes, lists, and whether there is a member, take none.

use super::entry::Entry;
use super::remote_archive::RemoteArchive;
use super::remote_member::fetch_member;
use crate::error::Result;
use crate::store::remote::{
    FetchPolicy, Head, ListedValue, Listing, OnDone, Outcome, Receiver, RemoteStore, Request, RequestHandle,
    Span,
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

impl RemoteZip {
    /// The store in the archive under `key` of `store`: one request, or two.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) where there is no such value, what the store gives, [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for what is no
    /// archive, [`ErrorKind::BadKey`](crate::ErrorKind::BadKey) for members with names that leave the archive, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an
    /// archive in several files, [`ErrorKind::Limit`](crate::ErrorKind::Limit) for one with too many members, [`ErrorKind::Stale`](crate::ErrorKind::Stale) for one that is
    /// replaced meanwhile.
    pub fn open(store: Arc<dyn RemoteStore>, key: &str) -> Result<RemoteZip> {
        let name = join(store.name().trim_end_matches('/'), key);
        let archive = RemoteArchive::open(store, key).map_err(|error| error.in_array(&name, ""))?;
        Ok(RemoteZip { archive: Arc::new(archive), name, prefix: String::new() })
    }

    /// The store of what is below the folder `prefix` of this one; `""` is all of it.
    ///
    /// # Errors
    /// [`ErrorKind::BadKey`](crate::ErrorKind::BadKey).
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
