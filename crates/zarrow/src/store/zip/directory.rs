//! The central directory of an archive: its members by key.
//!
//! 1. Entries are read until the end of the directory; their number must match the end record.
//! 2. If several entries have the same name, the last one counts, as for Python's `zipfile`: updating an archive
//!    appends entries.
//! 3. No member may overlap another one or the directory: with shared bytes, many members could be small in the file
//!    and huge in memory.
//! 4. Folders, with a trailing slash in the name, are left out, and so are leftovers of writers to a folder, since
//!    their names cannot be keys. Any other name that is not a valid key is an error.

use super::corrupt;
use super::end_record::EndRecord;
use super::entry::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::store::check_key;
use crate::store::temporary_name::is_reserved;
use zarrow_array::allocation::{self, Grow};

/// The members of an archive.
#[derive(Debug)]
pub struct Directory {
    /// Sorted by key.
    entries: Vec<Entry>,
    /// Offset of the directory in the file: all members end before it.
    pub start: u64,
}

impl Directory {
    /// Reads the directory `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], [`ErrorKind::BadKey`], [`ErrorKind::Unsupported`] for an archive in several files,
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn parse(mut bytes: &[u8], end: &EndRecord) -> Result<Directory> {
        let start = end.directory.start;
        let (mut entries, mut places, mut count) = (Vec::new(), Vec::new(), 0u64);
        while !bytes.is_empty() {
            let (entry, nbytes) = Entry::parse(bytes, end.shift)?;
            let reach = entry.least_end().filter(|reach| *reach <= start);
            let reach = reach.ok_or_else(|| corrupt("an entry overlaps the directory"))?;
            places.try_push((entry.header, reach))?;
            if is_value(&entry.key)? {
                entries.try_push(entry)?;
            }
            count += 1;
            bytes = bytes.get(nbytes..).unwrap_or_default();
        }
        // Step 1. With a 16-bit number, some programs wrap around after the largest one.
        if count != end.count && (end.count > 0xffff || count & 0xffff != end.count) {
            return Err(corrupt("the directory and the end record disagree on the number of entries"));
        }
        // Step 3.
        places.sort_unstable();
        if places.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(corrupt("zip entries overlap"));
        }
        // Step 2: a stable sort keeps the order of entries with equal names.
        entries.sort_by(|one: &Entry, other: &Entry| one.key.cmp(&other.key));
        entries.dedup_by(|later, kept| {
            let is_same = later.key == kept.key;
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
        Ok(Directory { entries, start })
    }

    /// Returns the member under `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.position(key).and_then(|at| self.entries.get(at))
    }

    /// Returns the number of the member under `key`.
    pub fn position(&self, key: &str) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.key.as_str().cmp(key)).ok()
    }

    /// Returns the member with this number.
    pub fn entry(&self, position: usize) -> Result<&Entry> {
        self.entries.get(position).ok_or_else(|| Error::from(ErrorKind::Internal("no such member".into())))
    }

    /// Returns the members below `prefix`, or all members.
    pub fn below(&self, prefix: &str) -> &[Entry] {
        if prefix.is_empty() {
            return &self.entries;
        }
        let first = self.entries.partition_point(|entry| is_before(&entry.key, prefix, b'/'));
        let end = self.entries.partition_point(|entry| is_before(&entry.key, prefix, b'/' + 1));
        self.entries.get(first..end).unwrap_or_default()
    }

    /// Returns the sorted names directly below `prefix`, each with its size if it is a value.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn names(&self, prefix: &str) -> Result<Vec<(&str, Option<u64>)>> {
        let skipped = if prefix.is_empty() { 0 } else { prefix.len() + 1 };
        let mut left = self.below(prefix);
        let mut names = Vec::new();
        while let Some((entry, rest)) = left.split_first() {
            let name = entry.key.get(skipped..).unwrap_or_default();
            match name.split_once('/') {
                None => {
                    names.try_push((name, Some(entry.nbytes)))?;
                    left = rest;
                }
                Some((name, _)) => {
                    names.try_push((name, None))?;
                    // Skip the rest of this folder at once.
                    let folder = &entry.key[..skipped + name.len()];
                    let count = left.partition_point(|entry| is_before(&entry.key, folder, b'/' + 1));
                    left = left.get(count..).unwrap_or_default();
                }
            }
        }
        // The names are in the order of the sorted keys, except names that are prefixes of other names: "a.b" is
        // between "a" and "a/b".
        names.sort_unstable();
        names.dedup_by(|later, kept| later.0 == kept.0);
        Ok(names)
    }

    /// Returns the sorted names directly below `prefix`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn list(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(allocation::try_collected(
            self.names(prefix)?.into_iter().map(|(name, _)| allocation::text(name)),
        )?)
    }
}

/// Whether `key` sorts before every key with the prefix `prefix` followed by `byte`.
fn is_before(key: &str, prefix: &str, byte: u8) -> bool {
    key.bytes().lt(prefix.bytes().chain([byte]))
}

/// Step 4: whether a member with this name is a value.
fn is_value(name: &str) -> Result<bool> {
    let (path, is_folder) = match name.strip_suffix('/') {
        Some(folder) => (folder, true),
        None => (name, false),
    };
    if path.split('/').any(is_reserved)
        && path.split('/').all(|part| is_reserved(part) || check_key(part).is_ok())
    {
        return Ok(false);
    }
    check_key(path)?;
    Ok(!is_folder)
}
