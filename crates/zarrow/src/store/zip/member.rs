//! A member of a local archive, open for reading.
//!
//! 1. Only a member's local header contains the offset of its bytes; it is read when the member is first opened.
//! 2. A stored member is read like a file, from its position in the archive. A whole read is compared with the
//!    checksum; a partial read requires that the file has not changed since the archive was opened.
//! 3. A deflated member that is read as a whole is inflated directly into the destination, after the caller has checked
//!    the size. For partial reads it is inflated once, and kept as long as the member is open.

use super::archive::{Archive, changed, memory};
use super::entry::{Entry, Method};
use super::inflate::{check, inflate, inflated};
use crate::error::Result;
use crate::store::{FileRange, Value};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::Arc;
use zarrow_array::fork::ProcessMutex;

/// An open member.
pub struct Member<'a> {
    archive: &'a Archive,
    entry: &'a Entry,
    method: Method,
    /// Offset of its bytes in the file.
    start: u64,
    inflated: ProcessMutex<Option<Arc<Vec<u8>>>>,
}

impl<'a> Member<'a> {
    /// Opens a member (step 1).
    ///
    /// # Errors
    /// As [`Entry::method`] and [`Entry::find_start`], [`ErrorKind::Stale`], [`ErrorKind::Io`].
    pub fn open(archive: &'a Archive, entry: &'a Entry) -> Result<Member<'a>> {
        let method = entry.method()?;
        archive.check_unchanged()?;
        let start = match entry.known_start() {
            Some(start) => start,
            None => {
                let limit = archive.directory.start;
                let nbytes = entry.header_nbytes().min(limit.saturating_sub(entry.header));
                let mut memory = memory(nbytes)?;
                let header = archive.file.read_at(entry.header, &mut memory)?;
                let start = entry.find_start(header, limit)?;
                start.ok_or_else(|| super::corrupt("the header of an entry is cut short"))?
            }
        };
        Ok(Member { archive, entry, method, start, inflated: ProcessMutex::new(None) })
    }

    /// Calls `use_of` with the stored bytes.
    fn with_stored<T>(&self, use_of: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let mut memory = memory(self.entry.stored_nbytes)?;
        let expected = memory.len();
        let stored = self.archive.file.read_at(self.start, &mut memory)?;
        if stored.len() == expected { self.explained(use_of(stored)) } else { Err(changed()) }
    }

    /// Replaces an error in the member's bytes by the error for a changed file, if the file has changed.
    fn explained<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Err(error) => self.archive.check_unchanged().and(Err(error)),
            result => result,
        }
    }
}

impl Value for Member<'_> {
    fn nbytes(&self) -> Result<u64> {
        Ok(self.entry.nbytes)
    }

    fn read_at<'m>(&self, offset: u64, destination: &'m mut [MaybeUninit<u8>]) -> Result<&'m mut [u8]> {
        let left = self.entry.nbytes.saturating_sub(offset);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(destination.len());
        let destination = &mut destination[..length];
        let is_whole = length as u64 == self.entry.nbytes;
        match self.method {
            // Step 2.
            Method::Stored => {
                let filled = self.archive.file.read_at(self.start.saturating_add(offset), destination)?;
                if filled.len() != length {
                    return Err(changed());
                }
                match is_whole {
                    true => self.explained(check(filled, self.entry.crc))?,
                    false => self.archive.check_unchanged()?,
                }
                Ok(filled)
            }
            // Step 3.
            Method::Deflated if is_whole => {
                self.with_stored(|stored| inflate(stored, destination, self.entry.crc))
            }
            Method::Deflated => {
                let mut kept = self.inflated.lock()?;
                let bytes = match &*kept {
                    Some(bytes) => Arc::clone(bytes),
                    None => {
                        let (nbytes, crc) = (self.entry.nbytes, self.entry.crc);
                        let bytes = self.with_stored(|stored| inflated(stored, nbytes, crc))?;
                        Arc::clone(kept.insert(Arc::new(bytes)))
                    }
                };
                drop(kept);
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(destination.write_copy_of_slice(&bytes[start..start + length]))
            }
        }
    }

    /// The version of the file: members never change without it.
    fn version(&self) -> Result<Option<[u64; 4]>> {
        let is_same = self.archive.check_unchanged().is_ok();
        Ok(self.archive.file.version()?.filter(|_| is_same))
    }

    fn file(&self) -> Option<FileRange<'_>> {
        match self.method {
            Method::Stored => {
                let (file, nbytes) = (self.archive.file.0.as_fd(), Some(self.entry.nbytes));
                Some(FileRange { file, offset: self.start, nbytes })
            }
            Method::Deflated => None,
        }
    }
}
