//! A checksum of 32 bits, little-endian, before or after the bytes. The file `checksum_codecs` has the codecs.

use super::libdeflate::{adler32, crc32};
use super::{fletcher32, lookup3};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of a checksum.
pub const NBYTES: usize = 4;

/// A checksum and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// The function.
    pub function: Function,
    /// Whether the checksum is before its bytes rather than after them.
    pub at_start: bool,
}

/// Function of a checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Function {
    /// CRC-32C.
    Crc32c,
    /// CRC-32 of zlib.
    Crc32,
    /// Adler-32 of zlib.
    Adler32,
    /// Fletcher-32 of HDF5.
    Fletcher32,
    /// lookup3 of `prefix` and the bytes, from `initval`.
    Lookup3 { initval: u32, prefix: Vec<u8> },
}

impl Checksum {
    /// Returns the codec's name in metadata.
    pub fn name(&self) -> &'static str {
        match self.function {
            Function::Crc32c => "crc32c",
            Function::Crc32 => "numcodecs.crc32",
            Function::Adler32 => "numcodecs.adler32",
            Function::Fletcher32 => "numcodecs.fletcher32",
            Function::Lookup3 { .. } => "numcodecs.jenkins_lookup3",
        }
    }

    /// Returns the checksum of `body` followed by `tail`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`] if the two must be concatenated.
    pub fn of(&self, body: &[u8], tail: &[u8]) -> Result<u32> {
        Ok(match &self.function {
            Function::Crc32c => crc32c::crc32c_append(crc32c::crc32c(body), tail),
            Function::Crc32 => crc32(crc32(0, body), tail),
            Function::Adler32 => adler32(adler32(1, body), tail),
            Function::Fletcher32 if tail.is_empty() => fletcher32::fletcher32(body),
            Function::Fletcher32 => fletcher32::fletcher32(&together([&[], body, tail])?),
            Function::Lookup3 { initval, prefix } if prefix.is_empty() && tail.is_empty() => {
                lookup3::lookup3(body, *initval)
            }
            Function::Lookup3 { initval, prefix } => {
                lookup3::lookup3(&together([prefix, body, tail])?, *initval)
            }
        })
    }

    /// Returns the bytes without their checksum, after verifying it.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`], or [`ErrorKind::Corrupt`] if the input is shorter than a checksum; with the codec
    /// named.
    pub fn check<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let parts = if self.at_start {
            bytes.split_first_chunk::<NBYTES>()
        } else {
            bytes.split_last_chunk::<NBYTES>().map(|(data, checksum)| (checksum, data))
        };
        let check = || {
            let (checksum, data) =
                parts.ok_or_else(|| ErrorKind::Corrupt("shorter than its checksum".into()))?;
            let (stored, computed) = (u32::from_le_bytes(*checksum), self.of(data, &[])?);
            if stored == computed { Ok(data) } else { Err(ErrorKind::Checksum { stored, computed }.into()) }
        };
        check().map_err(|error: Error| error.in_codec(self.name()))
    }
}

fn together(parts: [&[u8]; 3]) -> Result<Vec<u8>> {
    let nbytes = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    Ok(bytes)
}
