//! An open zip archive in one value of a remote store: its key, its directory, and its version.

use super::archive::changed;
use super::corrupt;
use super::directory::Directory;
use super::end_record::{EndRecord, TAIL_NBYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::store::remote::{
    Body, ByteRange, Fetched, ObjectVersion, RemoteStore, Request, RequestClass, fetch,
};
use std::sync::Arc;
use zarrow_array::allocation;

/// An open archive.
#[derive(Debug)]
pub struct RemoteArchive {
    /// The store with the archive.
    pub store: Arc<dyn RemoteStore>,
    /// Key of the archive in the store.
    pub key: String,
    /// The central directory.
    pub directory: Directory,
    /// Version of the archive when the directory was read, if the store has versions.
    pub version: Option<ObjectVersion>,
}

impl RemoteArchive {
    /// Opens the archive under `key` of `store` (step 1 of `remote_zip.rs`).
    ///
    /// # Errors
    /// As [`RemoteZip::open`](super::RemoteZip::open).
    pub fn open(store: Arc<dyn RemoteStore>, key: &str) -> Result<RemoteArchive> {
        let get = |range: ByteRange, version: Option<ObjectVersion>, limit: u64| -> Result<Body> {
            let request = Request::new(key, range).if_version(version).with_class(RequestClass::Metadata);
            match fetch(&*store, request, limit, &|| Ok(()))? {
                Fetched::Body(body) => Ok(body),
                Fetched::Missing => Err(ErrorKind::NotFound.into()),
                Fetched::Changed => Err(changed()),
                Fetched::TooLarge(_) => Err(sent_too_much()),
            }
        };
        let tail = if store.policy().has_suffix {
            get(ByteRange::Suffix(TAIL_NBYTES), None, TAIL_NBYTES)?
        } else {
            let head = get(ByteRange::Range(0..0), None, 0)?;
            let nbytes = head.nbytes.ok_or_else(|| {
                Error::from(ErrorKind::Unsupported(
                    "a zip archive of unknown size, because the store sent no size".into(),
                ))
            })?;
            get(ByteRange::Range(nbytes.saturating_sub(TAIL_NBYTES)..nbytes), head.version, TAIL_NBYTES)?
        };
        let tail_end = tail.start.saturating_add(tail.bytes.len() as u64);
        if tail.nbytes.is_some_and(|nbytes| nbytes != tail_end) {
            return Err(corrupt("the store's answer lacks the end of the file"));
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
                let first = get(ByteRange::Range(range.start..tail.start), tail.version.clone(), missing)?;
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
    ErrorKind::Internal("the store sent more bytes than requested".into()).into()
}
