//! Checksums of 32 bits, little-endian, before or after the bytes.
//!
//! | Codec | Function | Place, unless `location` says another |
//! |---|---|---|
//! | `crc32c` | CRC-32C (RFC 3720) | end |
//! | `numcodecs.crc32` | CRC-32 of zlib | start |
//! | `numcodecs.adler32` | Adler-32 of zlib | start |
//! | `numcodecs.fletcher32` | HDF5's Fletcher-32 | end, always |
//! | `numcodecs.jenkins_lookup3` | Bob Jenkins' lookup3, of `prefix` and the bytes, from `initval` | end, always |
//!
//! Sources: Zarr `crc32c` codec 1.0; numcodecs 0.16, `checksum32.py` and `fletcher32.pyx`.

use super::deflate::{adler32, crc32};
use super::{fletcher32, lookup3, setting};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, NumcodecsForm};
use serde_json::Value;

/// Bytes of a checksum.
pub const NBYTES: usize = 4;

const LOCATION: &[(&str, ParameterType)] = &[("location", ParameterType::Text)];

/// CRC-32C. It is at the end in version 3; in numcodecs a parameter chooses the place.
pub const CRC32C: Definition = Definition {
    names: &["crc32c", "numcodecs.crc32c"],
    parameters: LOCATION,
    numcodecs: Some(NumcodecsForm {
        read: |configuration, _, _| {
            let location = configuration.get("location").and_then(Value::as_str);
            let is_usual = location.is_none_or(|location| location == "end");
            if is_usual {
                configuration.remove("location");
            }
            Ok(is_usual)
        },
        ..NumcodecsForm::SAME
    }),
    stage: Stage::Checksum(|metadata| Checksum::at(Function::Crc32c, metadata, false)),
    ..Definition::PLAIN
};

/// CRC-32.
pub const CRC32: Definition = Definition {
    names: &["numcodecs.crc32"],
    parameters: LOCATION,
    stage: Stage::Checksum(|metadata| Checksum::at(Function::Crc32, metadata, true)),
    ..Definition::PLAIN
};

/// Adler-32.
pub const ADLER32: Definition = Definition {
    names: &["numcodecs.adler32"],
    parameters: LOCATION,
    stage: Stage::Checksum(|metadata| Checksum::at(Function::Adler32, metadata, true)),
    ..Definition::PLAIN
};

/// Fletcher-32.
pub const FLETCHER32: Definition = Definition {
    names: &["numcodecs.fletcher32"],
    stage: Stage::Checksum(|_| Ok(Checksum { function: Function::Fletcher32, at_start: false })),
    ..Definition::PLAIN
};

/// lookup3.
pub const LOOKUP3: Definition = Definition {
    names: &["numcodecs.jenkins_lookup3"],
    parameters: &[("initval", ParameterType::Integer), ("prefix", ParameterType::Any)],
    stage: Stage::Checksum(|metadata| {
        let initval = setting::integer(metadata, "initval", 0, 0, i64::from(u32::MAX))? as u32;
        let function = Function::Lookup3 { initval, prefix: prefix(metadata)? };
        Ok(Checksum { function, at_start: false })
    }),
    ..Definition::PLAIN
};

/// A checksum and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    function: Function,
    /// Whether the checksum is before its bytes rather than after them.
    pub at_start: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Function {
    Crc32c,
    Crc32,
    Adler32,
    Fletcher32,
    Lookup3 { initval: u32, prefix: Vec<u8> },
}

impl Checksum {
    /// Creates a checksum at the place that `metadata` name.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] for a location other than the start and the end.
    fn at(function: Function, metadata: &CodecMetadata, usually_at_start: bool) -> Result<Checksum> {
        let at_start = match metadata.configuration.get("location").unwrap_or(&Value::Null) {
            Value::Null => usually_at_start,
            value if value == "start" => true,
            value if value == "end" => false,
            value => {
                return Err(ErrorKind::BadCodec(format!(
                    "location is {value}, expected \"start\" or \"end\""
                ))
                .into());
            }
        };
        Ok(Checksum { function, at_start })
    }

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

/// Bytes that numcodecs hashes before a chunk's bytes; JSON can only hold them as a list of numbers.
fn prefix(metadata: &CodecMetadata) -> Result<Vec<u8>> {
    let byte = |value: &Value| u8::try_from(value.as_u64()?).ok();
    match metadata.configuration.get("prefix").unwrap_or(&Value::Null) {
        Value::Null => Ok(Vec::new()),
        value => value.as_array().and_then(|bytes| bytes.iter().map(byte).collect()).ok_or_else(|| {
            ErrorKind::BadCodec(format!("prefix is {value}, expected a list of bytes")).into()
        }),
    }
}

fn together(parts: [&[u8]; 3]) -> Result<Vec<u8>> {
    let nbytes = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::bytes_to_bytes::BytesToBytes;
    use serde_json::json;

    fn checksum(name: &str, configuration: Value) -> Result<Checksum> {
        let metadata = CodecMetadata::new(name, configuration.as_object().cloned().unwrap_or_default());
        match BytesToBytes::parse(&metadata)? {
            BytesToBytes::Checksum(checksum) => Ok(checksum),
            _ => unreachable!("{name} is a checksum"),
        }
    }

    /// Results of Python's `zlib`, `google_crc32c` and numcodecs 0.16.6 for these bytes.
    #[test]
    fn checksums_equal_numcodecs() {
        for (name, configuration, expected) in [
            ("crc32c", json!({}), 0xe306_9283),
            ("numcodecs.crc32", json!({}), 0xcbf4_3926),
            ("numcodecs.adler32", json!({}), 0x091e_01de),
        ] {
            let checksum = checksum(name, configuration).unwrap();
            assert_eq!(checksum.of(b"123456789", b"").unwrap(), expected, "{name}");
            assert_eq!(checksum.of(b"12345", b"6789").unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn checksums_do_not_depend_on_the_split_of_the_bytes() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3001).collect();
        for name in ["crc32", "adler32", "fletcher32", "crc32c", "jenkins_lookup3"] {
            let checksum = checksum(&format!("numcodecs.{name}"), json!({"prefix": [1, 2, 3]}));
            let checksum = checksum.unwrap();
            for at in [0, 1, 12, 1500, 3001] {
                assert_eq!(
                    checksum.of(&bytes[..at], &bytes[at..]).unwrap(),
                    checksum.of(&bytes, b"").unwrap()
                );
            }
        }
    }

    #[test]
    fn what_is_no_place_and_no_prefix_is_refused() {
        assert!(checksum("numcodecs.crc32", json!({"location": "middle"})).is_err());
        assert!(checksum("numcodecs.jenkins_lookup3", json!({"initval": -1})).is_err());
        assert!(checksum("numcodecs.jenkins_lookup3", json!({"prefix": "abc"})).is_err());
    }

    #[test]
    fn a_changed_byte_is_found_and_named() {
        for at_start in [true, false] {
            let checksum = Checksum { function: Function::Fletcher32, at_start };
            let sum = checksum.of(b"some bytes", b"").unwrap().to_le_bytes();
            let mut stored = if at_start {
                [&sum[..], b"some bytes"].concat()
            } else {
                [b"some bytes", &sum[..]].concat()
            };
            assert_eq!(checksum.check(&stored).unwrap(), b"some bytes");
            stored[5] ^= 1;
            let error = checksum.check(&stored).unwrap_err();
            assert_eq!(
                (error.kind().code(), error.context().codec.as_deref()),
                ("checksum", Some("numcodecs.fletcher32"))
            );
            assert_eq!(checksum.check(b"abc").unwrap_err().kind().code(), "corrupt");
        }
    }
}
