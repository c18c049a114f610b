//! Batches of concurrent puts, deletes and lists: each takes one round trip.

use super::ahead::AheadStore;
use super::put_documents::KnownValue;
use super::waiter::Waiting;
use super::{Condition, Listing, Put, RemoteWriter};
use crate::error::{Error, ErrorKind, Result};
use crate::store::check_key;
use std::sync::Arc;

/// Number of keys deleted by one call.
const KEYS_PER_DELETE: usize = 10_000;

/// When a document of a batch is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutIf {
    /// Always.
    Always,
    /// If its key has no value.
    Absent,
    /// If the key has the version that is known here.
    Unchanged,
}

/// A document of a batch.
#[derive(Debug)]
pub struct DocumentPut {
    pub key: String,
    pub bytes: Vec<u8>,
    pub when: PutIf,
}

impl AheadStore {
    /// Puts all documents at once, and notes their versions. Returns a result for each.
    ///
    /// Each error is as of a single put: [`ErrorKind::Conflict`] if the condition did not hold.
    pub fn put_each(&self, puts: Vec<DocumentPut>) -> Vec<Result<()>> {
        self.end_each(self.begin_each(puts))
    }

    /// Begins to put all documents.
    pub fn begin_each(&self, puts: Vec<DocumentPut>) -> Vec<Result<BegunPut>> {
        puts.into_iter().map(|put| self.begin_put(put)).collect()
    }

    /// Waits for puts, as [`put_each`](AheadStore::put_each) does.
    pub fn end_each(&self, begun: Vec<Result<BegunPut>>) -> Vec<Result<()>> {
        begun.into_iter().map(|put| self.end_put(put?)).collect()
    }

    fn begin_put(&self, put: DocumentPut) -> Result<BegunPut> {
        let DocumentPut { key, bytes, when } = put;
        check_key(&key)?;
        let writer = self.remote_writer()?;
        let condition = match when {
            PutIf::Absent if writer.has_conditions() => Condition::IfAbsent,
            PutIf::Unchanged if writer.has_conditions() => match self.version(&key) {
                Some(version) => Condition::IfVersion(version),
                None => return Err(ErrorKind::Conflict.into()),
            },
            _ => Condition::Always,
        };
        let kept: Arc<[u8]> = Arc::from(&*bytes);
        let waiting = Waiting::begin(|done| writer.put(&key, vec![bytes].into(), condition.clone(), done));
        Ok(BegunPut { key, kept, condition, waiting })
    }

    fn end_put(&self, put: BegunPut) -> Result<()> {
        let BegunPut { key, kept, condition, waiting } = put;
        let answered = match waiting.wait(&|| Ok(())) {
            // The server ignores conditions.
            Err(error)
                if matches!(error.kind(), ErrorKind::Unsupported(_)) && condition != Condition::Always =>
            {
                let writer = self.remote_writer()?;
                super::wait(
                    |done| writer.put(&key, vec![kept.to_vec()].into(), Condition::Always, done),
                    &|| Ok(()),
                )
            }
            answered => answered,
        };
        let known = match answered {
            Ok(Put::Done(version)) => {
                Ok(version.map(|version| KnownValue { bytes: kept, version: Some(version) }))
            }
            Ok(Put::Conflict) => Err(ErrorKind::Conflict.into()),
            Err(error) => Err(error),
        };
        self.note(&key, known.as_ref().ok().cloned().flatten());
        known.map(drop)
    }

    /// Begins to delete values, which are missing from now on.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`].
    pub fn begin_delete(&self, mut keys: Vec<String>) -> Result<Vec<Waiting<()>>> {
        self.note_missing(&keys);
        let writer = self.remote_writer()?;
        let mut begun = Vec::new();
        while !keys.is_empty() {
            let rest = keys.split_off(keys.len().min(KEYS_PER_DELETE));
            let some = std::mem::replace(&mut keys, rest);
            begun.push(Waiting::begin(|done| writer.delete(some, done)));
        }
        Ok(begun)
    }

    /// Begins to list all keys below `prefix`, if one answer holds them, else `None`.
    pub fn begin_page(&self, prefix: &str) -> Waiting<Option<Listing>> {
        Waiting::begin(|done| self.remote_store().list_page(prefix, done))
    }

    /// Begins to list all keys below `prefix`, or only the names directly below.
    pub fn begin_list(&self, prefix: &str, recursive: bool) -> Waiting<Listing> {
        Waiting::begin(|done| self.remote_store().list(prefix, recursive, done))
    }

    /// Whether the store can tell that a document was changed by others.
    pub fn has_conditions(&self) -> bool {
        self.remote_writer().is_ok_and(RemoteWriter::has_conditions)
    }
}

/// A put in progress.
pub struct BegunPut {
    key: String,
    kept: Arc<[u8]>,
    condition: Condition,
    waiting: Waiting<Put>,
}

/// Waits for all of `begun`; returns the first error.
///
/// # Errors
/// Errors of the requests.
pub fn wait_each<T: Send + 'static>(begun: Vec<Waiting<T>>) -> Result<Vec<T>> {
    let mut failed: Option<Error> = None;
    let mut done = Vec::new();
    for waiting in begun {
        match waiting.wait(&|| Ok(())) {
            Ok(answer) => done.push(answer),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    failed.map_or(Ok(done), Err)
}
