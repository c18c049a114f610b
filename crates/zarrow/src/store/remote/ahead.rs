//! A remote store during one change of a node, with all values that the change reads fetched ahead.
//!
//! 1. A change reads the documents of its node and of the groups above, one after the other. Here they are requested
//!    together, with a listing, and later reads are answered from memory: one round trip.
//! 2. A lock is the fetched version. Setting a document under it is one conditional put, and the version in the answer
//!    becomes the next lock. A refused put discards all fetched values, so that the next attempt asks the store.
//! 3. The document that the store object put last need not be requested: it is *recalled*, and its version is the lock.
//!    The groups above are requested at the same time.
//! 4. Values that this change sets or erases replace the fetched ones. Conditions detect changes by other writers.

use super::adapter::RemoteAdapter;
use super::body::{Body, Collector, Fetched};
use super::put_documents::KnownValue;
use super::waiter::Waiting;
use super::writer::RemoteLock;
use super::{
    ByteRange, Condition, Listing, ObjectVersion, RemoteStore, RemoteWriter, Request, RequestClass,
    version_number,
};
use crate::error::{ErrorKind, Result};
use crate::metadata::{ZARR_JSON, ZARRAY, ZATTRS, ZGROUP};
use crate::store::{
    Detached, Draft, Durability, Got, Lock, Locked, Store, StoreWriter, Value, Version, join, read_bytes,
    whole,
};
use std::any::Any;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::Arc;
use zarrow_array::allocation;
use zarrow_array::fork::Mutex;

/// A remote store with values fetched ahead.
#[derive(Debug)]
pub struct AheadStore {
    adapter: RemoteAdapter,
    known: Mutex<Known>,
    /// Requests of step 3, until one of their values is needed.
    meanwhile: Mutex<Option<Meanwhile>>,
    /// The place of a new node.
    place: Mutex<Option<Place>>,
}

/// Values in flight, and the groups that they belong to.
#[derive(Debug)]
struct Meanwhile {
    values: Vec<(String, Waiting<Fetched>)>,
    groups: Vec<String>,
}

/// Listing of a new group's path, until it is known whether the path was empty.
#[derive(Debug)]
enum Place {
    Listed { is_empty: bool },
    PendingRequests(Waiting<Listing>),
}

#[derive(Debug, Default)]
struct Known {
    /// Values, `None` for missing ones.
    values: HashMap<String, Option<KnownValue>>,
    /// The names directly below prefixes.
    names: HashMap<String, Vec<String>>,
    /// All keys below a prefix, to be erased.
    below: Option<(String, Listing)>,
    /// Whether a document was recalled (step 3).
    has_recalled: bool,
}

/// Requests under way.
pub struct PendingRequests<'a> {
    values: Vec<(String, Waiting<Fetched>)>,
    names: Option<(String, crate::store::Listed<'a>)>,
    below: Option<(String, Waiting<Listing>)>,
}

impl<'a> PendingRequests<'a> {
    /// Also asks for the names directly below `prefix`.
    pub fn and_names(self, ahead: &'a AheadStore, prefix: &str) -> PendingRequests<'a> {
        PendingRequests { names: Some((prefix.to_owned(), ahead.adapter.list_ahead(prefix))), ..self }
    }

    /// Also asks for all keys below `prefix`.
    pub fn and_all_below(self, ahead: &'a AheadStore, prefix: &str) -> PendingRequests<'a> {
        let remote = ahead.adapter.remote_store();
        let listing = Waiting::begin(|done| remote.list(prefix, true, done));
        PendingRequests { below: Some((prefix.to_owned(), listing)), ..self }
    }
}

impl AheadStore {
    /// Wraps the store if it is remote; prefetching gains nothing for other stores.
    pub fn new(store: &dyn Store) -> Option<AheadStore> {
        let adapter = (store as &dyn Any).downcast_ref::<RemoteAdapter>()?;
        adapter.remote_store().writer()?;
        Some(AheadStore {
            adapter: adapter.clone(),
            known: Mutex::default(),
            meanwhile: Mutex::default(),
            place: Mutex::default(),
        })
    }

    /// Whether `store` is an [`AheadStore`].
    pub fn is(store: &dyn Store) -> bool {
        (store as &dyn Any).is::<AheadStore>()
    }

    /// Uses the document that this store object put last under `key`, if there was one (step 3); returns whether there
    /// was.
    pub fn recall(&self, key: &str) -> bool {
        let Some(value) = self.adapter.put_documents().get(key) else { return false };
        let mut known = self.known.lock();
        known.has_recalled = true;
        known.values.insert(key.to_owned(), Some(value));
        true
    }

    /// Treats the node at `path`, and everything below it, as absent.
    pub fn assume_absent(&self, path: &str, names: &[&str]) {
        self.known.lock().names.insert(path.to_owned(), Vec::new());
        self.assume_missing(path, names);
    }

    /// Starts listing the path of a new group, for [`created_group`](AheadStore::created_group).
    pub fn list_meanwhile(&self, path: &str) {
        let remote = self.adapter.remote_store();
        *self.place.lock() =
            Some(Place::PendingRequests(Waiting::begin(|done| remote.list(path, false, done))));
    }

    /// Notes that a group was created at `path`: it is fresh if the place was empty.
    pub fn created_group(&self, path: &str) {
        let is_empty = match self.place.lock().take() {
            Some(Place::Listed { is_empty }) => is_empty,
            Some(Place::PendingRequests(listing)) => listing.wait(&|| Ok(())).is_ok_and(|listing| {
                // The list may be newer than the group.
                let own = join(path, ZARR_JSON);
                listing.prefixes.is_empty() && listing.values.iter().all(|value| value.key == own)
            }),
            None => false,
        };
        if is_empty {
            self.adapter.put_documents().set_fresh(path);
        }
    }

    /// Waits for the requests of [`ask_meanwhile`](AheadStore::ask_meanwhile).
    pub fn arrive(&self) {
        if let Some(Meanwhile { values, groups }) = self.meanwhile.lock().take() {
            self.take_values(values);
            self.settle(groups.iter().map(String::as_str));
        }
    }

    /// Whether this store object has just created the group at `path` in an empty place, and has not put `document` in
    /// it since. Without conditions, a put does not show that another writer was faster.
    pub fn is_fresh(&self, path: &str, document: &str) -> bool {
        let documents = self.adapter.put_documents();
        self.remote_writer().is_ok_and(RemoteWriter::has_conditions)
            && documents.is_fresh(path)
            && documents.get(document).is_none()
    }

    /// Requests values of these groups, and waits for them when the first is needed.
    pub fn ask_meanwhile(&self, keys: Vec<(String, u64)>, groups: Vec<String>) {
        let values = self.ask(keys).values;
        *self.meanwhile.lock() = Some(Meanwhile { values, groups });
    }

    /// Forgets a recalled document. Returns whether there was one: then the change starts again with the stored values.
    pub fn doubt(store: &dyn Store) -> bool {
        let Some(ahead) = (store as &dyn Any).downcast_ref::<AheadStore>() else { return false };
        let has_recalled = std::mem::take(&mut ahead.known.lock().has_recalled);
        if has_recalled {
            ahead.forget();
        }
        has_recalled
    }

    /// Treats documents of version 2 as missing in groups with a document of version 3, which has precedence.
    pub fn settle<'g>(&self, groups: impl IntoIterator<Item = &'g str>) {
        for group in groups.into_iter().filter(|group| self.has(&join(group, ZARR_JSON))) {
            self.assume_missing(group, &[ZARRAY, ZGROUP, ZATTRS]);
        }
    }

    /// Requests values, each with its limit.
    pub fn ask(&self, keys: Vec<(String, u64)>) -> PendingRequests<'_> {
        let remote = self.adapter.remote_store();
        let begin = |(key, limit): (String, u64)| {
            let request = Request::new(key.as_str(), ByteRange::Whole).with_class(RequestClass::Metadata);
            let submit = |done| remote.submit(request, Box::new(Collector::new(limit, done)));
            (key, Waiting::begin(submit))
        };
        PendingRequests { values: keys.into_iter().map(begin).collect(), names: None, below: None }
    }

    /// Waits for the answers. Values that could not be fetched are requested again when they are needed.
    pub fn take(&self, requests: PendingRequests<'_>) {
        self.take_values(requests.values);
        if let Some((prefix, names)) = requests.names
            && let Ok(names) = names()
        {
            *self.place.lock() = Some(Place::Listed { is_empty: names.is_empty() });
            self.known.lock().names.insert(prefix, names);
        }
        if let Some((prefix, listing)) = requests.below
            && let Ok(listing) = listing.wait(&|| Ok(()))
        {
            self.known.lock().below = Some((prefix, listing));
        }
    }

    fn take_values(&self, values: Vec<(String, Waiting<Fetched>)>) {
        for (key, waiting) in values {
            let value = match waiting.wait(&|| Ok(())) {
                Ok(Fetched::Missing) => None,
                Ok(Fetched::Body(Body { start: 0, bytes, version, .. })) => {
                    Some(KnownValue { bytes: bytes.into(), version })
                }
                _ => continue,
            };
            self.known.lock().values.insert(key, value);
        }
    }

    /// Treats these names below `prefix` as missing, unless they are known or in the listing.
    pub fn assume_missing(&self, prefix: &str, names: &[&str]) {
        let mut known = self.known.lock();
        for name in names {
            let is_listed =
                known.names.get(prefix).is_some_and(|listed| listed.iter().any(|own| own == name));
            if !is_listed {
                known.values.entry(join(prefix, name)).or_insert(None);
            }
        }
    }

    /// Returns the list of all keys below `prefix`, if it was requested. It is returned once.
    pub fn take_below(&self, prefix: &str) -> Option<Listing> {
        let mut known = self.known.lock();
        known.below.take_if(|(listed, _)| listed == prefix).map(|(_, listing)| listing)
    }

    /// Returns the names below `prefix`, if they were requested.
    pub fn names(&self, prefix: &str) -> Option<Vec<String>> {
        self.known.lock().names.get(prefix).cloned()
    }

    /// Whether a value is known to exist.
    pub fn has(&self, key: &str) -> bool {
        matches!(self.known.lock().values.get(key), Some(Some(_)))
    }

    /// Forgets all fetched values.
    pub fn forget(&self) {
        let old = std::mem::take(&mut *self.known.lock());
        drop(old);
    }

    fn known(&self, key: &str) -> Option<Option<KnownValue>> {
        let look = || self.known.lock().values.get(key).cloned();
        let known = look();
        if known.is_some() {
            return known;
        }
        self.arrive();
        look()
    }

    /// Returns the version of a value that is known to exist.
    pub(super) fn version(&self, key: &str) -> Option<ObjectVersion> {
        match self.known.lock().values.get(key) {
            Some(Some(value)) => value.version.clone(),
            _ => None,
        }
    }

    /// Whether the version of a value is known.
    pub fn has_version(&self, key: &str) -> bool {
        self.version(key).is_some()
    }

    /// Sets the names directly below `prefix`.
    pub fn set_names(&self, prefix: &str, names: Vec<String>) {
        self.known.lock().names.insert(prefix.to_owned(), names);
    }

    /// Notes that these values were deleted.
    pub(super) fn note_missing(&self, keys: &[String]) {
        self.adapter.put_documents().forget(keys);
        let mut known = self.known.lock();
        known.names.clear();
        for key in keys {
            // The condition of the next put detects another writer's document.
            if let Some(value) = known.values.get_mut(key) {
                *value = None;
            }
        }
    }

    pub(super) fn remote_store(&self) -> &dyn RemoteStore {
        self.adapter.remote_store()
    }

    /// Records the state of `key` after a change: a value with its version, or nothing if it is unknown.
    pub(super) fn note(&self, key: &str, value: Option<KnownValue>) {
        self.adapter.put_documents().set(key, value.clone().filter(|_| key.ends_with(ZARR_JSON)));
        let mut known = self.known.lock();
        known.names.clear();
        let old = match value {
            Some(value) => known.values.insert(key.to_owned(), Some(value)),
            None => known.values.remove(key),
        };
        drop(known);
        drop(old);
    }

    /// Forgets documents of the node at `path`, which were changed through another store object.
    pub fn forget_documents(&self, path: &str, names: &[&str]) {
        let keys = names.iter().map(|name| join(path, name));
        let old: Vec<_> = {
            let mut known = self.known.lock();
            keys.map(|key| known.values.remove(&key)).collect()
        };
        drop(old);
    }

    /// Returns the result of a change, and forgets all fetched values if it failed (step 2).
    fn unless_failed<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.forget();
        }
        result
    }

    fn put(&self, key: &str, parts: &[&[u8]], condition: &Condition) -> Result<()> {
        let bytes = allocation::concatenated(parts)?;
        let kept = KnownValue { bytes: Arc::from(&*bytes), version: None };
        let put = self.adapter.put(key, vec![bytes], condition);
        if put.is_err() {
            self.adapter.put_documents().set(key, None);
        }
        let version = self.unless_failed(put)?;
        // The condition held: the recalled document was the stored one.
        self.known.lock().has_recalled = false;
        // Without a version the next change has to request it.
        self.note(key, version.is_some().then_some(KnownValue { version, ..kept }));
        Ok(())
    }

    pub(super) fn remote_writer(&self) -> Result<&dyn RemoteWriter> {
        self.adapter.remote_store().writer().ok_or_else(|| ErrorKind::ReadOnly.into())
    }
}

impl Value for KnownValue {
    fn nbytes(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        Ok(read_bytes(&self.bytes, offset, destination))
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(self.version.as_ref().map(version_number))
    }
}

impl Store for AheadStore {
    fn name(&self) -> &str {
        self.adapter.name()
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        match self.known(key) {
            Some(known) => Ok(known.map(|value| Box::new(value) as Box<dyn Value>)),
            None => self.adapter.open(key),
        }
    }

    fn remote(&self) -> Option<&dyn RemoteStore> {
        self.adapter.remote()
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        match self.names(prefix) {
            Some(names) => Ok(names),
            None => self.adapter.list(prefix),
        }
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        self.adapter.nbytes(prefix)
    }

    fn version_of(&self, key: &str) -> Result<Version> {
        match self.known(key) {
            Some(None) => Ok(Version::Missing),
            Some(Some(KnownValue { version: Some(version), .. })) => {
                Ok(Version::Of(version_number(&version)))
            }
            _ => self.adapter.version_of(key),
        }
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        Some(self)
    }

    fn get(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        match self.known(key) {
            Some(known) => known.map(|value| whole(&value, limit)).transpose(),
            None => self.adapter.get(key, limit),
        }
    }

    fn get_each(&self, keys: &[(String, u64)]) -> Vec<Got> {
        let unknown: Vec<(String, u64)> =
            keys.iter().filter(|(key, _)| self.known(key).is_none()).cloned().collect();
        let mut fetched = self.adapter.get_each(&unknown).into_iter();
        let got = |(key, limit): &(String, u64)| match self.known(key) {
            Some(known) => known.map(|value| whole(&value, *limit)).transpose(),
            None => fetched.next().unwrap_or(Ok(None)),
        };
        keys.iter().map(got).collect()
    }
}

impl StoreWriter for AheadStore {
    fn is_optimistic(&self) -> bool {
        true
    }

    fn needs_documents_first(&self) -> bool {
        self.adapter.needs_documents_first()
    }

    fn set(&self, key: &str, parts: &[&[u8]], _: Durability) -> Result<()> {
        self.put(key, parts, &Condition::Always)
    }

    fn set_new(&self, key: &str, parts: &[&[u8]], durability: Durability) -> Result<()> {
        if self.remote_writer()?.has_conditions() {
            match self.put(key, parts, &Condition::IfAbsent) {
                // The server ignores conditions.
                Err(error) if matches!(error.kind(), ErrorKind::Unsupported(_)) => {}
                put => return put,
            }
        }
        self.set(key, parts, durability)
    }

    fn draft(&self, key: &str, durability: Durability) -> Result<Box<dyn Draft + '_>> {
        self.note(key, None);
        self.adapter.draft(key, durability)
    }

    fn draft_under(&self, lock: &dyn Lock, durability: Durability) -> Result<Box<dyn Draft + '_>> {
        self.note(lock.key(), None);
        self.adapter.draft_under(lock, durability)
    }

    fn set_under(&self, lock: &dyn Lock, parts: &[&[u8]], _: Durability) -> Result<()> {
        self.put(lock.key(), parts, lock.condition().unwrap_or(&Condition::Always))
    }

    fn erase_under(&self, lock: &dyn Lock, durability: Durability) -> Result<bool> {
        self.note(lock.key(), None);
        self.unless_failed(self.adapter.erase_under(lock, durability))
    }

    fn overwrite(
        &self,
        key: &str,
        parts: Option<&[&[u8]]>,
        durability: Durability,
        pass: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        self.note(key, None);
        self.unless_failed(self.adapter.overwrite(key, parts, durability, pass))
    }

    fn erase_each(&self, keys: Vec<String>, durability: Durability) -> Result<()> {
        keys.iter().for_each(|key| self.note(key, None));
        self.unless_failed(self.adapter.erase_each(keys, durability))
    }

    fn erase(&self, key: &str, durability: Durability) -> Result<bool> {
        self.note(key, None);
        self.unless_failed(self.adapter.erase(key, durability))
    }

    fn detach<'a>(
        &'a self,
        prefix: &str,
        durability: Durability,
        marks: &[&str],
    ) -> Result<Option<Box<dyn Detached + 'a>>> {
        let listed = {
            let mut known = self.known.lock();
            known.names.clear();
            let is_below = |key: &str| {
                prefix.is_empty() || key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
            };
            // Documents go first. The condition of the next put detects another writer's document.
            for (_, value) in known.values.iter_mut().filter(|(key, _)| is_below(key)) {
                *value = None;
            }
            known.below.take()
        };
        let detached = match listed {
            Some((listed, listing)) if listed == prefix => self.adapter.detach_listed(prefix, listing, marks),
            _ => self.adapter.detach(prefix, durability, marks),
        };
        self.unless_failed(detached)
    }

    fn try_lock(&self, key: &str) -> Result<Option<Box<dyn Lock + '_>>> {
        self.adapter.try_lock(key)
    }

    /// Step 2.
    fn lock_and_open<'a>(
        &'a self,
        store: &'a dyn Store,
        key: &str,
        pass: &dyn Fn() -> Result<()>,
    ) -> Result<Locked<'a>> {
        let writer = self.remote_writer()?;
        let known = self.known(key).filter(|_| writer.has_conditions() && writer.tells_versions());
        let condition = match &known {
            Some(None) => Some(Condition::IfAbsent),
            Some(Some(value)) => value.version.clone().map(Condition::IfVersion),
            None => None,
        };
        match (known, condition) {
            (Some(value), Some(condition)) => Ok((
                Box::new(RemoteLock::new(key, condition)),
                value.map(|value| Box::new(value) as Box<dyn Value>),
            )),
            _ => self.adapter.lock_and_open(store, key, pass),
        }
    }

    fn lock_to_replace(&self, key: &str, pass: &dyn Fn() -> Result<()>) -> Result<Box<dyn Lock + '_>> {
        self.adapter.lock_to_replace(key, pass)
    }

    fn sweep(&self, prefix: &str) -> Result<usize> {
        self.adapter.sweep(prefix)
    }
}
