//! Marks that identify the writer of a value, so that a conditional put is recognised after its answer was lost.
//!
//! 1. Equal bytes do not identify the writer: two appends of one length store the same document. So each conditional
//!    put stores a random id in the metadata of the object.
//! 2. The ids of the versions that it replaced follow, newest first. So a writer finds its id after others have built
//!    on its value, and knows that its put was not applied if they built on the version that it wanted to replace.
//! 3. If the ids show neither, the put may or may not have been applied. That is an error, never a success and never a
//!    second try: see [`uncertain`].

use crate::error::{Error, ErrorKind};
use crate::store::remote::{Condition, ObjectVersion};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Maximum number of ids in a mark: about 550 bytes of the 2 KiB that S3 accepts.
const MOST_IDS: usize = 32;

/// Id of a missing value, which has no writer.
const ABSENT: &str = "absent";

/// The mark of one conditional put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteMark {
    condition: Condition,
    /// The id of the version that the put replaces.
    replaced: String,
    /// Ids, newest first, separated by dots.
    ids: String,
}

/// Whether the put of a mark was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The put was applied.
    Yes,
    /// The put was not applied and can no longer be: another writer was faster.
    No,
    /// The value is still the replaced one: the put can be sent again.
    NotYet,
    /// The ids do not show it.
    Unknown,
}

impl WriteMark {
    /// Name of the metadata entry with the mark: only lower-case letters, as every service and proxy accepts.
    pub const NAME: &str = "zarrowwriters";

    /// Returns the mark of a new put under this condition.
    #[must_use]
    pub fn new(condition: &Condition) -> WriteMark {
        let (replaced, older) = match condition {
            Condition::Always => (String::new(), String::new()),
            Condition::IfAbsent => (ABSENT.to_owned(), ABSENT.to_owned()),
            Condition::IfVersion(version) => match version.writers() {
                Some(ids) => (ids.split('.').next().unwrap_or_default().to_owned(), ids.to_owned()),
                None => (id_of(version), id_of(version)),
            },
        };
        let older = older.split('.').filter(|id| !id.is_empty()).take(MOST_IDS - 1);
        let ids = older.fold(format!("{:016x}", random_number()), |ids, id| ids + "." + id);
        WriteMark { condition: condition.clone(), replaced, ids }
    }

    /// Returns the text to be stored under [`NAME`](WriteMark::NAME).
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.ids
    }

    /// Whether `found` is the version that the put stored, and not that of a later writer.
    #[must_use]
    pub fn is_newest_of(&self, found: &ObjectVersion) -> bool {
        let newest = |ids: &str| ids.split('.').next().map(str::to_owned);
        found.writers().and_then(newest) == newest(&self.ids)
    }

    /// Returns whether the put was applied, judging by the version stored now; `None` if there is no value.
    #[must_use]
    pub fn is_applied(&self, found: Option<&ObjectVersion>) -> Applied {
        let Some(found) = found else {
            // A deleted value has no effect that a second put could double.
            return if self.condition == Condition::IfAbsent { Applied::NotYet } else { Applied::No };
        };
        let own = self.ids.split('.').next().unwrap_or_default();
        let has = |wanted: &str| {
            let mut ids = found.writers().unwrap_or_default().split('.');
            ids.any(|id| id == wanted)
        };
        match &self.condition {
            _ if has(own) => Applied::Yes,
            Condition::IfVersion(wanted) if wanted == found => Applied::NotYet,
            Condition::IfVersion(_) | Condition::IfAbsent if has(&self.replaced) => Applied::No,
            _ => Applied::Unknown,
        }
    }
}

/// Returns an id for a version without a mark, written by another program.
fn id_of(version: &ObjectVersion) -> String {
    let mut hasher = DefaultHasher::new();
    version.as_str().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Returns a random number that is unique among calls and processes.
#[must_use]
pub fn random_number() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // The hasher's keys are random, but a forked child shares them with its parent.
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    RandomState::new().hash_one((std::process::id(), call, SystemTime::now()))
}

/// Returns the error for a put that may or may not have been applied.
#[must_use]
pub fn uncertain(text: String) -> Error {
    Error::from(ErrorKind::Uncertain(text))
        .with_hint("read the array before you try again: a repeated append stores its rows twice")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str, mark: Option<&WriteMark>) -> ObjectVersion {
        ObjectVersion::new(text).written_by(mark.map(WriteMark::as_str))
    }

    fn replacing(version: &ObjectVersion) -> WriteMark {
        WriteMark::new(&Condition::IfVersion(version.clone()))
    }

    #[test]
    fn a_put_is_recognised_by_its_mark_even_after_later_puts() {
        let foreign = version("1", None);
        for base in [foreign, version("1", Some(&WriteMark::new(&Condition::IfAbsent)))] {
            let own = replacing(&base);
            assert_eq!(own.is_applied(Some(&base)), Applied::NotYet);
            let written = version("2", Some(&own));
            assert_eq!(own.is_applied(Some(&written)), Applied::Yes);
            assert!(own.is_newest_of(&written));
            let mut later = written;
            for _ in 1..MOST_IDS {
                later = version("later", Some(&replacing(&later)));
                assert_eq!(own.is_applied(Some(&later)), Applied::Yes);
                assert!(!own.is_newest_of(&later), "its bytes are another writer's");
            }
            let last = version("last", Some(&replacing(&later)));
            assert_eq!(own.is_applied(Some(&last)), Applied::Unknown, "a mark has no room for more");
        }
    }

    #[test]
    fn a_put_on_the_version_that_another_replaced_is_ruled_out() {
        for base in [version("1", None), version("1", Some(&WriteMark::new(&Condition::IfAbsent)))] {
            let (own, other) = (replacing(&base), replacing(&base));
            // In some stores, equal bytes have equal versions.
            let there = version("2", Some(&other));
            assert_eq!(own.is_applied(Some(&there)), Applied::No);
            let after = version("3", Some(&replacing(&there)));
            assert_eq!(own.is_applied(Some(&after)), Applied::No);
        }
        let (own, other) = (WriteMark::new(&Condition::IfAbsent), WriteMark::new(&Condition::IfAbsent));
        assert_eq!(own.is_applied(Some(&version("1", Some(&other)))), Applied::No);
        assert_eq!(own.is_applied(None), Applied::NotYet);
    }

    #[test]
    fn without_marks_the_outcome_is_unknown() {
        let own = replacing(&version("1", None));
        assert_eq!(own.is_applied(Some(&version("2", None))), Applied::Unknown);
        assert_eq!(
            WriteMark::new(&Condition::IfAbsent).is_applied(Some(&version("2", None))),
            Applied::Unknown
        );
        let unconditional = WriteMark::new(&Condition::Always);
        assert_eq!(unconditional.is_applied(Some(&version("2", Some(&unconditional)))), Applied::Yes);
        assert_eq!(unconditional.is_applied(Some(&version("2", Some(&own)))), Applied::Unknown);
    }
}
