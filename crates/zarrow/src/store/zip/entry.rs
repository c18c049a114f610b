//! Directory entry of one member.

use super::{Fields, corrupt};
use crate::error::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::allocation;

/// Size of an entry before its name.
pub const ENTRY_NBYTES: usize = 46;

/// Size of a member's local header before its name.
pub const HEADER_NBYTES: usize = 30;

/// Maximum number of bytes inflated from one deflated byte.
const MOST_RATIO: u64 = 1032;

/// Maximum inflated size of a deflated member: it is inflated as a whole.
pub const MOST_INFLATED_NBYTES: u64 = 4 << 30;

const ENTRY: &[u8] = b"PK\x01\x02";
const HEADER: &[u8] = b"PK\x03\x04";

/// The extra field with numbers of ZIP64.
const EXTRA_ZIP64: u16 = 1;

/// Flags for the three ways of encryption.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;

/// The name is UTF-8.
const UTF8: u16 = 1 << 11;

/// A member of an archive.
#[derive(Debug)]
pub struct Entry {
    /// Name of the member, as a key.
    pub key: String,
    /// Size of the inflated bytes.
    pub nbytes: u64,
    /// Size of the stored bytes.
    pub stored_nbytes: u64,
    /// CRC-32 of the inflated bytes.
    pub crc: u32,
    /// Offset of the local header in the file.
    pub header: u64,
    method: u16,
    is_encrypted: bool,
    /// Size of the stored name, and of the extra fields in the directory.
    name_nbytes: u16,
    extra_nbytes: u16,
    /// Offset of its bytes in the file once its local header has been read; 0 until then.
    start: AtomicU64,
}

/// Storage method of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Uncompressed.
    Stored,
    /// Deflated.
    Deflated,
}

impl Entry {
    /// Parses the entry at the start of `bytes`, and returns it with its size; its offset is shifted by `shift`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`].
    pub fn parse(bytes: &[u8], shift: u64) -> Result<(Entry, usize)> {
        Entry::parsed(bytes, shift)?.ok_or_else(|| corrupt("a directory entry is cut short"))
    }

    fn parsed(bytes: &[u8], shift: u64) -> Result<Option<(Entry, usize)>> {
        if !bytes.starts_with(ENTRY) {
            return Err(corrupt("a directory entry has the wrong signature"));
        }
        let fields = || {
            let flags = bytes.number16(8)?;
            let (name, extra, comment) = (bytes.number16(28)?, bytes.number16(30)?, bytes.number16(32)?);
            let sizes = [bytes.number32(24)?, bytes.number32(20)?, bytes.number32(42)?];
            Some((
                flags,
                bytes.number16(10)?,
                bytes.number32(16)?,
                sizes,
                bytes.number16(34)?,
                [name, extra, comment],
            ))
        };
        let Some((flags, method, crc, sizes, disk, lengths)) = fields() else { return Ok(None) };
        let [name_end, extra_end, end] = {
            let mut end = ENTRY_NBYTES;
            lengths.map(|length| {
                end += usize::from(length);
                end
            })
        };
        let (Some(name), Some(extra)) = (bytes.get(ENTRY_NBYTES..name_end), bytes.get(name_end..extra_end))
        else {
            return Ok(None);
        };
        if bytes.len() < end {
            return Ok(None);
        }
        if !matches!(disk, 0 | u16::MAX) {
            return Err(ErrorKind::Unsupported("a zip archive split into several files".into()).into());
        }
        let [nbytes, stored_nbytes, header] = full_sizes(sizes, extra)?;
        let header = header.checked_add(shift).ok_or_else(|| corrupt("an entry's offset is too large"))?;
        let entry = Entry {
            key: key_of(name, flags & UTF8 != 0)?,
            nbytes,
            stored_nbytes,
            crc,
            header,
            method,
            is_encrypted: flags & ENCRYPTED != 0,
            name_nbytes: lengths[0],
            extra_nbytes: lengths[1],
            start: AtomicU64::new(0),
        };
        Ok(Some((entry, end)))
    }

    /// Returns the minimum offset of the end of the member in the file.
    pub fn least_end(&self) -> Option<u64> {
        self.header.checked_add(self.header_nbytes())?.checked_add(self.stored_nbytes)
    }

    /// Returns the size of the local header without the extra fields; only the header itself contains their size.
    pub fn header_nbytes(&self) -> u64 {
        HEADER_NBYTES as u64 + u64::from(self.name_nbytes)
    }

    /// Returns an estimate of the local header's size: its extra fields are seldom more than a little longer than those
    /// in the directory.
    pub fn guessed_header_nbytes(&self) -> u64 {
        self.header_nbytes() + u64::from(self.extra_nbytes) + 32
    }

    /// Returns the storage method.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for an encrypted member and for other compression methods; [`ErrorKind::Corrupt`] and
    /// [`ErrorKind::Limit`] for impossible sizes.
    pub fn method(&self) -> Result<Method> {
        if self.is_encrypted {
            return Err(self.unsupported("is encrypted"));
        }
        match self.method {
            0 if self.nbytes == self.stored_nbytes => Ok(Method::Stored),
            0 => Err(corrupt("an uncompressed entry has two different sizes")),
            8 => {
                let limit = self.stored_nbytes.saturating_mul(MOST_RATIO).min(MOST_INFLATED_NBYTES);
                match self.nbytes {
                    nbytes if nbytes <= limit => Ok(Method::Deflated),
                    actual => {
                        Err(ErrorKind::Limit { what: "the size of a deflated entry", actual, limit }.into())
                    }
                }
            }
            other => Err(self.unsupported(&format!("is compressed with {}", method_name(other)))),
        }
    }

    fn unsupported(&self, what: &str) -> Error {
        let text = format!(
            "the entry {:?} of the zip archive {what}: only uncompressed and deflated entries are supported",
            self.key
        );
        ErrorKind::Unsupported(text).into()
    }

    /// Returns the offset of its bytes in the file, once known.
    pub fn known_start(&self) -> Option<u64> {
        Some(self.start.load(Ordering::Relaxed)).filter(|start| *start > 0)
    }

    /// Parses the start of the local header, enough to find the offset of the member's bytes, and remembers that
    /// offset. `None` if `header` is too short. The bytes must end at `limit` in the file at the latest.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the header belongs to another member.
    pub fn find_start(&self, header: &[u8], limit: u64) -> Result<Option<u64>> {
        if !HEADER.starts_with(&header[..header.len().min(HEADER.len())]) {
            return Err(self.misplaced());
        }
        let lengths = header.number16(26).zip(header.number16(28));
        let Some((name, extra)) = lengths.filter(|_| header.len() >= HEADER_NBYTES) else { return Ok(None) };
        if name != self.name_nbytes || header.number16(8) != Some(self.method) {
            return Err(self.misplaced());
        }
        let Some(name) = header[HEADER_NBYTES..].get(..usize::from(name)) else { return Ok(None) };
        let flags = header.number16(6).unwrap_or(0);
        if key_of(name, flags & UTF8 != 0).ok().as_ref() != Some(&self.key) {
            return Err(self.misplaced());
        }
        let start = self.header.checked_add(self.header_nbytes() + u64::from(extra));
        let ends = |start: u64| start.checked_add(self.stored_nbytes).is_some_and(|end| end <= limit);
        let Some(start) = start.filter(|start| ends(*start)) else {
            return Err(corrupt("an entry overlaps the data after it"));
        };
        self.start.store(start, Ordering::Relaxed);
        Ok(Some(start))
    }

    fn misplaced(&self) -> Error {
        corrupt(&format!("the entry {:?} is not at the offset in the directory", self.key))
    }
}

/// Returns size, stored size and offset, each taken from the ZIP64 extra field if it does not fit in four bytes.
fn full_sizes(sizes: [u32; 3], mut extra: &[u8]) -> Result<[u64; 3]> {
    let mut long: &[u8] = &[];
    while let Some((kind, length)) = extra.number16(0).zip(extra.number16(2)) {
        let end = 4 + usize::from(length);
        let Some(field) = extra.get(4..end) else { break };
        if kind == EXTRA_ZIP64 {
            long = field;
        }
        extra = &extra[end..];
    }
    let mut full = [0; 3];
    for (full, size) in full.iter_mut().zip(sizes) {
        *full = match size {
            u32::MAX => {
                let number = long.number64(0).ok_or_else(|| corrupt("a size of ZIP64 is missing"))?;
                long = &long[8..];
                number
            }
            size => u64::from(size),
        };
    }
    Ok(full)
}

/// Decodes a name: UTF-8 if the flags say so, else code page 437.
fn key_of(name: &[u8], is_utf8: bool) -> Result<String> {
    let text = std::str::from_utf8(name).ok().filter(|_| is_utf8 || name.is_ascii());
    match text {
        Some(text) => Ok(allocation::text(text)?),
        None if is_utf8 => Err(corrupt("a name is flagged as UTF-8, but is not valid UTF-8")),
        None => Ok(name.iter().map(|byte| ibm_pc(*byte)).collect()),
    }
}

/// Returns the character of a byte in code page 437.
fn ibm_pc(byte: u8) -> char {
    const UPPER: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
    match byte.checked_sub(128) {
        None => char::from(byte),
        Some(at) => UPPER.chars().nth(usize::from(at)).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// Returns the format's name for a compression method.
fn method_name(method: u16) -> String {
    let name = match method {
        1 => "shrink",
        2..=5 => "reduce",
        6 => "implode",
        9 => "deflate64",
        12 => "bzip2",
        14 => "LZMA",
        20 | 93 => "zstd",
        94 => "MP3",
        95 => "xz",
        96 => "JPEG",
        97 => "WavPack",
        98 => "PPMd",
        99 => "AES encryption",
        other => return format!("method {other}"),
    };
    name.to_owned()
}
