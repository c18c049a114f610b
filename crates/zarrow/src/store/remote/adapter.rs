//! A [`Store`] with calls that wait for the answers of a remote store: for documents, for changes of a hierarchy, and
//! for other sequential callers.
//!
//! 1. Opening a value is one request. It returns the size and the version, and the whole value unless it is large.
//! 2. Bytes from that request are read from memory. Each other range of a large value is a separate request for the
//!    same version: if the value has changed since, the read is an error, and never a mixture.

use crate::error::{Error, ErrorKind, Result};
use crate::store::remote::body::{Body, Fetched, fetch};
use crate::store::remote::documents::{body, changed, document_request, fetch_each, whole};
use crate::store::remote::put_documents::PutDocuments;
use crate::store::remote::waiter::Waiting;
use crate::store::remote::{
    ByteRange, Listing, ObjectVersion, RemoteStore, Request, RequestClass, version_number, wait,
};
use crate::store::{Got, Listed, Store, StoreWriter, Value, Version, check_key};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// A remote store as a [`Store`].
#[derive(Debug, Clone)]
pub struct RemoteAdapter(Arc<dyn RemoteStore>, Arc<PutDocuments>);

impl RemoteAdapter {
    /// Wraps the store `remote`.
    pub fn new(remote: Arc<dyn RemoteStore>) -> RemoteAdapter {
        RemoteAdapter(remote, Arc::default())
    }

    pub(super) fn put_documents(&self) -> &PutDocuments {
        &self.1
    }

    pub(super) fn remote_store(&self) -> &dyn RemoteStore {
        &*self.0
    }

    fn fetch(&self, request: Request, limit: u64) -> Result<Fetched> {
        fetch(&*self.0, request, limit, &|| Ok(()))
    }

    /// Step 1.
    pub(super) fn opened(&self, key: &str) -> Result<Option<RemoteValue<'_>>> {
        /// A larger value is read range by range.
        const LARGE_NBYTES: u64 = 64 << 20;
        check_key(key)?;
        let body = match self.fetch(Request::new(key, ByteRange::Whole), LARGE_NBYTES)? {
            Fetched::TooLarge(_) => self.measure(key)?,
            other => body(other)?,
        };
        Ok(body.map(|body| RemoteValue { store: self, key: key.to_owned(), body, is_locked: false }))
    }

    /// Returns the size and the version of a value, without its bytes.
    fn measure(&self, key: &str) -> Result<Option<Body>> {
        let request = Request::new(key, ByteRange::Range(0..0)).with_class(RequestClass::Metadata);
        body(self.fetch(request, 0)?)
    }
}

impl Store for RemoteAdapter {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        Ok(self.opened(key)?.map(|value| Box::new(value) as Box<dyn Value>))
    }

    fn remote(&self) -> Option<&dyn RemoteStore> {
        Some(&*self.0)
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        self.0.writer().is_some().then_some(self)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.list_ahead(prefix)()
    }

    fn list_ahead<'a>(&'a self, prefix: &str) -> Listed<'a> {
        let (waiting, prefix) = (Waiting::begin(|done| self.0.list(prefix, false, done)), prefix.to_owned());
        Box::new(move || waiting.wait(&|| Ok(())).map(|listing| names_below(&prefix, &listing)))
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        let listing = wait(|done| self.0.list(prefix, true, done), &|| Ok(()))?;
        Ok(listing.values.iter().fold(0, |sum: u64, value| sum.saturating_add(value.nbytes)))
    }

    fn version_of(&self, key: &str) -> Result<Version> {
        check_key(key)?;
        Ok(match self.measure(key)? {
            None => Version::Missing,
            Some(body) => version(&body).map_or(Version::Unknown, Version::Of),
        })
    }

    fn get(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        check_key(key)?;
        whole(self.fetch(document_request(key), limit)?, limit)
    }

    fn get_each(&self, keys: &[(String, u64)]) -> Vec<Got> {
        let answers = fetch_each(&*self.0, keys).into_iter().zip(keys);
        answers.map(|(fetched, (_, limit))| whole(fetched?, *limit)).collect()
    }
}

/// Returns the names directly below `prefix`.
fn names_below(prefix: &str, listing: &Listing) -> Vec<String> {
    let below = |path: &str| {
        let rest = if prefix.is_empty() { path } else { path.strip_prefix(prefix)?.strip_prefix('/')? };
        (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
    };
    let paths = listing.values.iter().map(|value| &value.key).chain(&listing.prefixes);
    let mut names: Vec<String> = paths.filter_map(|path| below(path)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the version of a value as the numbers that caches use.
fn version(body: &Body) -> Option<[u64; 4]> {
    body.version.as_ref().map(version_number)
}

/// An open value.
pub(super) struct RemoteValue<'a> {
    store: &'a RemoteAdapter,
    key: String,
    /// Response to the request that opened the value.
    body: Body,
    /// Whether it was opened to be changed.
    is_locked: bool,
}

impl RemoteValue<'_> {
    pub(super) fn object_version(&self) -> Option<ObjectVersion> {
        self.body.version.clone()
    }

    /// Marks the value as one to be changed: if another writer is faster, a read ends in a conflict, and the change is
    /// repeated.
    pub(super) fn locked(self) -> Self {
        RemoteValue { is_locked: true, ..self }
    }

    /// Returns the error for a value that was replaced since it was opened.
    fn replaced(&self) -> Error {
        if self.is_locked { ErrorKind::Conflict.into() } else { changed() }
    }

    fn is_whole(&self) -> bool {
        self.body.start == 0 && self.body.nbytes.is_none_or(|nbytes| nbytes == self.body.bytes.len() as u64)
    }
}

impl Value for RemoteValue<'_> {
    fn nbytes(&self) -> Result<u64> {
        match self.body.nbytes {
            Some(nbytes) => Ok(nbytes),
            None if self.body.start == 0 => Ok(self.body.bytes.len() as u64),
            None => {
                let text = "the store sends a value in parts without its size";
                Err(ErrorKind::Unsupported(text.into()).into())
            }
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.is_whole().then_some(&self.body.bytes)
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let end = offset.saturating_add(destination.len() as u64).min(self.nbytes()?);
        let length = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX).min(destination.len());
        let of = |body: &Body| {
            let start = usize::try_from(offset.checked_sub(body.start)?).ok()?;
            Some(start..start.checked_add(length)?).filter(|range| range.end <= body.bytes.len())
        };
        if length == 0 {
            return Ok(&mut []);
        }
        if let Some(range) = of(&self.body) {
            return Ok(destination[..length].write_copy_of_slice(&self.body.bytes[range]));
        }
        // Step 2.
        let request =
            Request::new(&self.key, ByteRange::Range(offset..end)).if_version(self.body.version.clone());
        let own = match self.store.fetch(request, length as u64)? {
            Fetched::Changed => None,
            other => body(other)?,
        };
        let read = own.as_ref().and_then(|own| Some(&own.bytes[of(own)?]));
        Ok(destination[..length].write_copy_of_slice(read.ok_or_else(|| self.replaced())?))
    }

    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(version(&self.body))
    }
}
