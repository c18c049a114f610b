//! The kind of each codec. A list of codecs crosses the border from array to bytes once.
//!
//! Source: Zarr core 3.1, `codecs`: array to array, any number; array to bytes, one; bytes to bytes, any number.

use crate::codec::built_in;
use crate::codec::user_codecs;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecKind, CodecMetadata};

/// Returns the kind of a built-in or registered codec.
pub fn kind(name: &str) -> Option<CodecKind> {
    match built_in::find(name) {
        Some(definition) => Some(definition.stage.kind()),
        None => user_codecs::kind_of(name),
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
    let mut before = CodecKind::ArrayToArray;
    for codec in codecs {
        let unknown = || Error::from(ErrorKind::UnknownCodec(codec.name.clone())).in_codec(&codec.name);
        let kind = kind(&codec.name).ok_or_else(unknown)?;
        match (before, kind) {
            (CodecKind::ArrayToArray, CodecKind::BytesToBytes) => {
                return refused(
                    "it encodes bytes: put a codec before it that encodes the array to bytes (such as \"bytes\")",
                    codec,
                );
            }
            (CodecKind::ArrayToArray, _) | (_, CodecKind::BytesToBytes) => before = kind,
            _ => {
                return refused(
                    "it encodes an array, but the codec before it has encoded the array to bytes",
                    codec,
                );
            }
        }
    }
    match (before, codecs.last()) {
        (CodecKind::ArrayToArray, Some(last)) => {
            refused("it is the last codec: add one that encodes the array to bytes (such as \"bytes\")", last)
        }
        (CodecKind::ArrayToArray, None) => Err(ErrorKind::BadCodec(
            "the list of codecs is empty, expected one from array to bytes (such as \"bytes\")".into(),
        )
        .into()),
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
