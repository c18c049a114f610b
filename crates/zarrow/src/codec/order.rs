//! On which side of the border between array and bytes each codec stands; a list of codecs crosses it once.
//!
//! Source: Zarr core 3.1, `codecs`: array to array, any number; array to bytes, one; bytes to bytes, any number.

use crate::codec::bytes_to_bytes::BytesToBytes;
use crate::codec::filter::is_filter;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::CodecMetadata;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    ArrayToArray,
    ArrayToBytes,
    BytesToBytes,
}

impl Side {
    /// The side of every codec that this engine or its fallback has.
    fn of(codec: &CodecMetadata) -> Option<Side> {
        match codec.name.as_str() {
            "transpose" => Some(Side::ArrayToArray),
            name if is_filter(name) => Some(Side::ArrayToArray),
            "bytes" | "packbits" | "numcodecs.pcodec" | "vlen-utf8" | "vlen-bytes" | "zarrs.vlen_v2"
            | "zarrs.vlen" | "zarrs.optional" | "optional" | "sharding_indexed" => Some(Side::ArrayToBytes),
            // What is wrong with its settings is said where they are read.
            _ => (!matches!(BytesToBytes::parse(codec), Ok(None))).then_some(Side::BytesToBytes),
        }
    }
}

/// Checks that all codecs are known, and that each can follow the one before it.
///
/// # Errors
/// [`ErrorKind::UnknownCodec`], [`ErrorKind::BadCodec`], with the codec named.
pub fn check(codecs: &[CodecMetadata]) -> Result<()> {
    let refused = |text: &str, codec: &CodecMetadata| {
        Err(Error::from(ErrorKind::BadCodec(text.into())).in_codec(&codec.name))
    };
    let mut before = Side::ArrayToArray;
    for codec in codecs {
        let unknown = || Error::from(ErrorKind::UnknownCodec(codec.name.clone())).in_codec(&codec.name);
        let side = Side::of(codec).ok_or_else(unknown)?;
        match (before, side) {
            (Side::ArrayToArray, Side::BytesToBytes) => {
                return refused("it takes bytes, and no codec made them", codec);
            }
            (Side::ArrayToArray, _) | (_, Side::BytesToBytes) => before = side,
            _ => return refused("it takes an array, and the codec before it made bytes", codec),
        }
    }
    match (before, codecs.last()) {
        (Side::ArrayToArray, Some(last)) => refused("no codec behind it makes bytes", last),
        (Side::ArrayToArray, None) => Err(ErrorKind::BadCodec("there are no codecs".into()).into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(names: &[&str]) -> Result<()> {
        let codec = |name: &&str| CodecMetadata::new(*name, serde_json::Map::new());
        check(&names.iter().map(codec).collect::<Vec<_>>())
    }

    #[test]
    fn the_border_is_crossed_once() {
        for names in [
            &["bytes"][..],
            &["transpose", "transpose", "bytes", "zstd", "crc32c"],
            &["sharding_indexed", "gzip"],
        ] {
            assert!(checked(names).is_ok(), "{names:?}");
        }
        for (names, culprit) in [
            (&["transpose"][..], "transpose"),
            (&["gzip", "bytes"], "gzip"),
            (&["bytes", "bytes"], "bytes"),
            (&["bytes", "transpose"], "transpose"),
            (&["bytes", "zstd", "packbits"], "packbits"),
        ] {
            let error = checked(names).unwrap_err();
            assert_eq!((error.kind().code(), error.context().codec.as_deref()), ("bad_codec", Some(culprit)));
        }
        assert_eq!(checked(&["nonesuch", "bytes"]).unwrap_err().kind().code(), "unknown_codec");
        assert_eq!(checked(&[]).unwrap_err().kind().code(), "bad_codec");
    }
}
