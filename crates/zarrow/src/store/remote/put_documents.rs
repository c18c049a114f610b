//! Documents that a store object put last, so that the next changes save requests.
//!
//! 1. The bytes and the version of a document are kept, so that the next change of a node starts with its put. Another
//!    writer may have replaced the document, so the put is conditional on the kept version. If a change needs no
//!    put, or cannot be applied to the kept document, the stored one is read first: see
//!    [`AheadStore::doubt`](super::AheadStore::doubt).
//! 2. A group that was created in an empty place is *fresh* for [`FRESH_FOR`]: nodes in it are created without a
//!    listing. If their conditional puts show that another writer was faster, the creation starts again with the
//!    listing.

use super::ObjectVersion;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zarrow_array::fork::Mutex;

/// Maximum number of entries of each kind.
const MOST: usize = 128;

/// Maximum size of a document.
const MOST_NBYTES: usize = 64 << 10;

/// How long a new group is assumed to be empty.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// A value that was read or put.
#[derive(Debug, Clone)]
pub(super) struct KnownValue {
    pub(super) bytes: Arc<[u8]>,
    pub(super) version: Option<ObjectVersion>,
}

/// Documents by key, and groups by path.
#[derive(Debug, Default)]
pub(super) struct PutDocuments(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    documents: HashMap<String, KnownValue>,
    fresh: HashMap<String, Instant>,
}

impl PutDocuments {
    pub(super) fn get(&self, key: &str) -> Option<KnownValue> {
        self.0.lock().documents.get(key).cloned()
    }

    /// Sets or removes the entry of a key. If there are too many entries, all others are removed.
    pub(super) fn set(&self, key: &str, value: Option<KnownValue>) {
        let mut state = self.0.lock();
        let old = match value.filter(|value| value.bytes.len() <= MOST_NBYTES && value.version.is_some()) {
            Some(value) => {
                let is_full = state.documents.len() >= MOST;
                let others = if is_full { std::mem::take(&mut state.documents) } else { HashMap::new() };
                (state.documents.insert(key.to_owned(), value), others)
            }
            None => (state.documents.remove(key), HashMap::new()),
        };
        drop(state);
        drop(old);
    }

    /// Marks the group at `path` as fresh (step 2).
    pub(super) fn set_fresh(&self, path: &str) {
        let mut state = self.0.lock();
        if state.fresh.len() >= MOST {
            state.fresh.clear();
        }
        state.fresh.insert(path.to_owned(), Instant::now());
    }

    pub(super) fn is_fresh(&self, path: &str) -> bool {
        self.0.lock().fresh.get(path).is_some_and(|since| since.elapsed() < FRESH_FOR)
    }

    /// Forgets deleted values and fresh groups.
    pub(super) fn forget(&self, keys: &[String]) {
        let mut state = self.0.lock();
        state.fresh.clear();
        let old: Vec<_> = keys.iter().filter_map(|key| state.documents.remove(key)).collect();
        drop(state);
        drop(old);
    }
}
