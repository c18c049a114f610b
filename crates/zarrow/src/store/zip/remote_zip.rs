//! A store of the members of a zip archive in one value of a remote store.
//!
//! 1. Opening it is one request for the end of the archive, which includes a small directory; the rest of a large
//!    directory is a second request.
//! 2. A member is a range of the archive, fetched in one request if possible (`remote_member.rs`).
//! 3. All requests are for the version of the directory. Sizes, listings and checks for existence need no request.

use super::entry::Entry;
use super::remote_archive::RemoteArchive;
use super::remote_member::fetch_member;
use crate::error::Result;
use crate::store::remote::{
    FetchPolicy, Head, ListedValue, Listing, OnDone, Outcome, Receiver, RemoteStore, Request, RequestHandle,
};
use crate::store::{join, normalize_path};
use std::ops::ControlFlow;
use std::sync::Arc;
use zarrow_array::allocation;

/// The stored or deflated members of a zip archive in one value of another store. It is read-only, and shows the
/// archive as it was when it was opened: if the archive is replaced afterwards, reads fail.
#[derive(Debug)]
pub struct RemoteZip {
    archive: Arc<RemoteArchive>,
    name: String,
    /// Folder in the archive with the values of this store.
    prefix: String,
}

impl RemoteZip {
    /// Opens the archive under `key` of `store`, with one or two requests.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such value, errors of the store,
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if it is not an archive,
    /// [`ErrorKind::BadKey`](crate::ErrorKind::BadKey) for members with names that leave the archive,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an archive in several files,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for too many members,
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale) if the archive is replaced at the same time.
    pub fn open(store: Arc<dyn RemoteStore>, key: &str) -> Result<RemoteZip> {
        let name = join(store.name().trim_end_matches('/'), key);
        let archive = RemoteArchive::open(store, key).map_err(|error| error.in_array(&name, ""))?;
        Ok(RemoteZip { archive: Arc::new(archive), name, prefix: String::new() })
    }

    /// Returns the store of the folder `prefix` in this one; `""` is the whole store.
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

    /// Returns the store that contains the archive, and the archive's key there.
    #[must_use]
    pub fn archive(&self) -> (&dyn RemoteStore, &str) {
        (&*self.archive.store, &self.archive.key)
    }

    /// Returns the key relative to the root of the archive.
    fn path(&self, key: &str) -> String {
        if key.is_empty() { self.prefix.clone() } else { join(&self.prefix, key) }
    }

    /// Returns the key of a member relative to this store's root.
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

    /// The policy of the archive's store; all sizes are known, so suffixes are supported as well.
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
        let wanted = request.range.within(nbytes);
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
