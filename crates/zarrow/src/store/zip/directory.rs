//! The central directory of an archive: its members by key.
//!
//! 1. Entries are read until the directory's bytes end; there have to be as many as its end record says.
//! 2. Of several with one name the last one counts, as for Python's `zipfile`: who writes to an archive anew appends.
//! 3. No member may reach into another one, or into the directory: many that share bytes would be few in the file and much
//!    in memory.
//! 4. Folders, whose names end with a slash, are left out, and so are files that writers of a folder left, which no key can
//!    name. Any other name that is no key is an error.

use super::corrupt;
use super::end_record::EndRecord;
use super::entry::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::store::check_key;
use crate::store::leftover::is_reserved;
use zarrow_array::allocation::{self, Grow};

/// The members of an archive.
#[derive(Debug)]
pub struct Directory {
    /// By key.
    entries: Vec<Entry>,
    /// Where it begins in the file: all members end before.
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
            let reach = reach.ok_or_else(|| corrupt("a member reaches into its directory"))?;
            places.try_push((entry.header, reach))?;
            if is_value(&entry.key)? {
                entries.try_push(entry)?;
            }
            count += 1;
            bytes = bytes.get(nbytes..).unwrap_or_default();
        }
        // Step 1. Where the number has 16 bits, some programs let it begin anew behind the largest.
        if count != end.count && (end.count > 0xffff || count & 0xffff != end.count) {
            return Err(corrupt("its directory has another number of members than its end record says"));
        }
        // Step 3.
        places.sort_unstable();
        if places.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(corrupt("members of it overlap"));
        }
        // Step 2: a stable sort keeps the order of those with one name.
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

    /// The member under `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.position(key).and_then(|at| self.entries.get(at))
    }

    /// The number of the member under `key`.
    pub fn position(&self, key: &str) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.key.as_str().cmp(key)).ok()
    }

    /// The member with this number.
    pub fn entry(&self, position: usize) -> Result<&Entry> {
        self.entries.get(position).ok_or_else(|| Error::from(ErrorKind::Internal("no such member".into())))
    }

    /// The members below `prefix`, or all.
    pub fn below(&self, prefix: &str) -> &[Entry] {
        if prefix.is_empty() {
            return &self.entries;
        }
        let first = self.entries.partition_point(|entry| is_before(&entry.key, prefix, b'/'));
        let end = self.entries.partition_point(|entry| is_before(&entry.key, prefix, b'/' + 1));
        self.entries.get(first..end).unwrap_or_default()
    }

    /// The names directly below `prefix`, sorted, each with the number of bytes where it is a value.
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
                    // What else is in this folder is passed over at once.
                    let folder = &entry.key[..skipped + name.len()];
                    let count = left.partition_point(|entry| is_before(&entry.key, folder, b'/' + 1));
                    left = left.get(count..).unwrap_or_default();
                }
            }
        }
        // Keys are sorted, and so are names but for those that others begin with: "a.b" is between "a" and "a/b".
        names.sort_unstable();
        names.dedup_by(|later, kept| later.0 == kept.0);
        Ok(names)
    }

    /// The names directly below `prefix`, sorted.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn list(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(allocation::collected(self.names(prefix)?.into_iter().map(|(name, _)| name.to_owned()))?)
    }
}

/// Whether `key` is sorted before everything that begins with `prefix` and `byte`.
fn is_before(key: &str, prefix: &str, byte: u8) -> bool {
    key.bytes().lt(prefix.bytes().chain([byte]))
}

/// Step 4: whether a member of this name is a value.
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
