//! End of an archive, with the location of its directory.
//!
//! 1. The end record is at the end of the file, followed only by a comment of the length in the record: the last
//!    matching position counts. Bytes after the comment do not belong to the archive.
//! 2. In a ZIP64 archive, a locator immediately precedes it, and the numbers are those of the ZIP64 record that the
//!    locator points to, which immediately precedes the locator.
//! 3. The directory ends at the start of these records. If that is later than its offset says, bytes were prepended to
//!    the archive, and every offset is shifted by their number.

use super::{Fields, corrupt};
use crate::error::{ErrorKind, Result};
use std::ops::Range;

/// The last bytes of a file that can contain all records of steps 1 and 2.
pub const TAIL_NBYTES: u64 = 65_535 + END_NBYTES as u64 + LOCATOR_NBYTES as u64 + 256;

/// Maximum size of a directory: some five million members.
const MOST_DIRECTORY_NBYTES: u64 = 512 << 20;

const END_NBYTES: usize = 22;
const LOCATOR_NBYTES: usize = 20;
const RECORD64_NBYTES: usize = 56;

const END: &[u8] = b"PK\x05\x06";
const LOCATOR: &[u8] = b"PK\x06\x07";
const RECORD64: &[u8] = b"PK\x06\x06";

/// Location of an archive's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndRecord {
    /// Byte range of the directory in the file.
    pub directory: Range<u64>,
    /// Number to add to the offsets in the directory.
    pub shift: u64,
    /// Number of members.
    pub count: u64,
}

impl EndRecord {
    /// Finds the records in `tail`, the last [`TAIL_NBYTES`] of a file or all of it, from its offset `start` on.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if there are no consistent records; [`ErrorKind::Unsupported`] for an archive in several
    /// files; [`ErrorKind::Limit`] for a directory that is too large.
    pub fn find(tail: &[u8], start: u64) -> Result<EndRecord> {
        // Step 1.
        let fits = |at: &usize| {
            let record = &tail[*at..];
            record.starts_with(END)
                && record
                    .number16(20)
                    .is_some_and(|comment| record.len() == END_NBYTES + usize::from(comment))
        };
        let last = tail.len().checked_sub(END_NBYTES);
        let Some(at) = last.and_then(|last| (0..=last).rev().find(fits)) else {
            return Err(corrupt(
                "it has no end of central directory: the file is cut short, or not a zip archive",
            ));
        };
        let record = &tail[at..];
        let numbers = (|| {
            Some(Numbers {
                disks: [u32::from(record.number16(4)?), u32::from(record.number16(6)?)],
                counts: [u64::from(record.number16(8)?), u64::from(record.number16(10)?)],
                nbytes: u64::from(record.number32(12)?),
                offset: u64::from(record.number32(16)?),
            })
        })();
        // Step 2.
        let locator = at.checked_sub(LOCATOR_NBYTES).filter(|at| tail[*at..].starts_with(LOCATOR));
        let (end, numbers) = match locator {
            None => (at, numbers),
            Some(locator) => {
                let (end, record) = record64(tail, start, locator)?;
                let numbers = (|| {
                    Some(Numbers {
                        disks: [record.number32(16)?, record.number32(20)?],
                        counts: [record.number64(24)?, record.number64(32)?],
                        nbytes: record.number64(40)?,
                        offset: record.number64(48)?,
                    })
                })();
                (end, numbers)
            }
        };
        let Some(Numbers { disks, counts, nbytes, offset }) = numbers else {
            return Err(corrupt("the end record is cut short"));
        };
        if disks != [0, 0] || counts[0] != counts[1] {
            return Err(ErrorKind::Unsupported("a zip archive split into several files".into()).into());
        }
        if nbytes > MOST_DIRECTORY_NBYTES {
            let what = "the size of a zip archive's directory";
            return Err(ErrorKind::Limit { what, actual: nbytes, limit: MOST_DIRECTORY_NBYTES }.into());
        }
        // Step 3.
        let end = start.saturating_add(end as u64);
        let from = end.checked_sub(nbytes);
        match from.and_then(|from| Some((from, from.checked_sub(offset)?))) {
            Some((from, shift)) => Ok(EndRecord { directory: from..end, shift, count: counts[1] }),
            None => Err(corrupt("the directory would begin before the file")),
        }
    }
}

/// Fields of both kinds of record.
struct Numbers {
    /// Number of this file, and of the file with the directory.
    disks: [u32; 2],
    /// Number of members in this file, and in total.
    counts: [u64; 2],
    nbytes: u64,
    offset: u64,
}

/// Returns the ZIP64 record that the locator points to, and its offset in `tail`.
fn record64(tail: &[u8], start: u64, locator: usize) -> Result<(usize, &[u8])> {
    let offset =
        tail[locator..].number64(8).and_then(|offset| usize::try_from(offset.checked_sub(start)?).ok());
    // Bytes before the archive shift the record; it still immediately precedes the locator.
    let places = [offset, locator.checked_sub(RECORD64_NBYTES)];
    for at in places.into_iter().flatten() {
        let Some(record) = tail.get(at..locator).filter(|record| record.starts_with(RECORD64)) else {
            continue;
        };
        let nbytes = record.number64(4).and_then(|rest| rest.checked_add(12));
        if record.len() >= RECORD64_NBYTES && nbytes == Some(record.len() as u64) {
            return Ok((at, record));
        }
    }
    Err(corrupt("the ZIP64 record is not at its offset"))
}
