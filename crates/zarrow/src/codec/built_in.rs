//! The codecs of this crate, a line each.

use crate::codec::array_to_array::{self as filter, transpose};
use crate::codec::array_to_bytes::{bytes, indexed_vlen, optional, packbits, pcodec, sharding, vlen};
use crate::codec::blosc;
use crate::codec::bytes_to_bytes::{base64, bz2, checksum_codecs, deflate, lz4, lzma, shuffle, zstd};
use crate::codec::definition::Definition;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::Configuration;

/// The codecs that most arrays use come first.
static CODECS: &[&Definition] = &[
    &bytes::DEFINITION,
    &zstd::DEFINITION,
    &blosc::DEFINITION,
    &deflate::GZIP,
    &sharding::DEFINITION,
    &checksum_codecs::CRC32C,
    &transpose::DEFINITION,
    &vlen::UTF8,
    &vlen::BYTES,
    &vlen::EITHER,
    &indexed_vlen::DEFINITION,
    &optional::DEFINITION,
    &packbits::DEFINITION,
    &pcodec::DEFINITION,
    &deflate::ZLIB,
    &lz4::DEFINITION,
    &bz2::DEFINITION,
    &lzma::DEFINITION,
    &shuffle::DEFINITION,
    &base64::DEFINITION,
    &checksum_codecs::CRC32,
    &checksum_codecs::ADLER32,
    &checksum_codecs::FLETCHER32,
    &checksum_codecs::LOOKUP3,
    &filter::bitround::DEFINITION,
    &filter::cast_value::DEFINITION,
    &filter::astype::DEFINITION,
    &filter::categorize::DEFINITION,
    &filter::delta::DEFINITION,
    &filter::fixed_scale_offset::DEFINITION,
    &filter::packbits::DEFINITION,
    &filter::quantize::DEFINITION,
    &filter::reshape::DEFINITION,
    &filter::scale_offset::DEFINITION,
    &filter::squeeze::DEFINITION,
];

/// Returns the codec with this name.
pub fn find(name: &str) -> Option<&'static Definition> {
    CODECS.iter().find(|codec| codec.names.contains(&name)).copied()
}

/// Checks a user's choice before it is stored: that the codec has these parameters, with these types. Ranges and
/// combinations of parameters are checked when the codec is compiled. User-defined codecs check their own parameters.
///
/// # Errors
/// [`ErrorKind::BadCodec`], with the codec named.
pub fn check_parameters(name: &str, configuration: &Configuration) -> Result<()> {
    let Some(Definition { parameters, .. }) = find(name) else { return Ok(()) };
    let refused = |text: String| Err(Error::from(ErrorKind::BadCodec(text)).in_codec(name));
    for (key, value) in configuration {
        let Some((_, expected)) = parameters.iter().find(|(known, _)| known == key) else {
            let known: Vec<&str> = parameters.iter().map(|(known, _)| *known).collect();
            return refused(match known.as_slice() {
                [] => format!("unknown parameter {key:?}: the codec has no parameters"),
                known => format!("unknown parameter {key:?}: expected one of {}", known.join(", ")),
            });
        };
        if !value.is_null() && !expected.has(value) {
            return refused(format!("{key} is {value}, expected {}", expected.name()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use zarrow_array::Number;

    #[test]
    fn every_name_is_one_codecs_alone() {
        let mut names: Vec<&str> = CODECS.iter().flat_map(|codec| codec.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(CODECS.iter().all(|codec| !codec.names.is_empty()));
    }

    #[test]
    fn what_is_usual_may_be_chosen() {
        let types = [Number::Bool.into(), Number::Float64.into(), zarrow_array::DataType::String];
        for (codec, data_type) in CODECS.iter().flat_map(|codec| types.iter().map(move |each| (codec, each)))
        {
            let defaults = (codec.defaults)(data_type).as_object().cloned().unwrap_or_default();
            check_parameters(codec.name(), &defaults).unwrap();
        }
    }
}
