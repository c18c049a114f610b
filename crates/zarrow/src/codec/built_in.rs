//! The codecs of this crate: the tables `CODECS` of the folders for each kind. A new codec is one line in `mod.rs` of its
//! folder.

use crate::codec::definition::Definition;
use crate::codec::{array_to_array, array_to_bytes, blosc, bytes_to_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::Configuration;

/// Returns all codecs.
fn all() -> impl Iterator<Item = &'static Definition> {
    let tables =
        [array_to_bytes::CODECS, bytes_to_bytes::CODECS, &[&blosc::DEFINITION], array_to_array::CODECS];
    tables.into_iter().flatten().copied()
}

/// Returns the codec with this name.
pub fn find(name: &str) -> Option<&'static Definition> {
    all().find(|codec| codec.names.contains(&name))
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
        let mut names: Vec<&str> = all().flat_map(|codec| codec.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(all().all(|codec| !codec.names.is_empty()));
    }

    #[test]
    fn what_is_usual_may_be_chosen() {
        let types = [Number::Bool.into(), Number::Float64.into(), zarrow_array::DataType::String];
        for (codec, data_type) in all().flat_map(|codec| types.iter().map(move |each| (codec, each))) {
            let defaults = (codec.defaults)(data_type).as_object().cloned().unwrap_or_default();
            check_parameters(codec.name(), &defaults).unwrap();
        }
    }
}
