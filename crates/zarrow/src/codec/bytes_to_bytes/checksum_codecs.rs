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

use super::checksum::{Checksum, Function};
use super::setting;
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::{ErrorKind, Result};
use crate::metadata::{CodecMetadata, NumcodecsForm};
use serde_json::Value;

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
    stage: Stage::Checksum(|metadata| at(Function::Crc32c, metadata, false)),
    ..Definition::PLAIN
};

/// CRC-32.
pub const CRC32: Definition = Definition {
    names: &["numcodecs.crc32"],
    parameters: LOCATION,
    stage: Stage::Checksum(|metadata| at(Function::Crc32, metadata, true)),
    ..Definition::PLAIN
};

/// Adler-32.
pub const ADLER32: Definition = Definition {
    names: &["numcodecs.adler32"],
    parameters: LOCATION,
    stage: Stage::Checksum(|metadata| at(Function::Adler32, metadata, true)),
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
            return Err(
                ErrorKind::BadCodec(format!("location is {value}, expected \"start\" or \"end\"")).into()
            );
        }
    };
    Ok(Checksum { function, at_start })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::compile::bytes_to_bytes;
    use crate::codec::decompress::BytesToBytes;
    use serde_json::json;

    fn checksum(name: &str, configuration: Value) -> Result<Checksum> {
        let metadata = CodecMetadata::new(name, configuration.as_object().cloned().unwrap_or_default());
        match bytes_to_bytes(&metadata)? {
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
