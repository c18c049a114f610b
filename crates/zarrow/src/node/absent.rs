//! Explains a missing node: what exists instead, and which names are similar.
//!
//! Nothing here is called unless a lookup has failed.

use crate::error::{Error, ErrorKind};
use crate::metadata::{MetadataLimits, NodeMetadata};
use crate::node::node_documents::read_metadata;
use crate::store::{Store, join};

/// Maximum number of names searched for similar ones.
const MAX_NAMES: usize = 10_000;

/// Adds a hint to the error of a missing node at `path`; returns any other error unchanged. `listed` has the names of
/// the nodes that its group knows by consolidated metadata.
pub fn explained(
    error: Error,
    store: &dyn Store,
    path: &str,
    limits: &MetadataLimits,
    listed: Option<(&str, &[String])>,
) -> Error {
    if !matches!(error.kind(), ErrorKind::NotFound) || path.is_empty() {
        return error;
    }
    if let Some(link) = store.dangling_link(path) {
        return error.with_hint(link);
    }
    if let Some((group, _)) = listed
        && read_metadata(store, path, limits).is_ok()
    {
        return error.with_hint(format!(
            "it is in the store, but not in the consolidated metadata of {:?}, which are out of \
             date: call consolidate_metadata()",
            format!("/{group}")
        ));
    }
    // The nearest existing node above, and the first missing part of the path.
    let mut above = path;
    let (above, name) = loop {
        let (parent, name) = above.rsplit_once('/').unwrap_or(("", above));
        match read_metadata(store, parent, limits) {
            Ok(NodeMetadata::Array(_)) => {
                return error
                    .with_hint(format!("{:?} is an array, which has no members", format!("/{parent}")));
            }
            Ok(NodeMetadata::Group(_)) => break (parent, name),
            Err(_) if parent.is_empty() => break (parent, name),
            Err(_) => above = parent,
        }
    };
    let names = match listed {
        Some((group, names)) if group == above => names.to_vec(),
        _ => store.list(above).unwrap_or_default(),
    };
    let is_node = |name: &str| read_metadata(store, &join(above, name), limits).is_ok();
    let close = close_names(name, names.iter().map(String::as_str).take(MAX_NAMES));
    let close: Vec<String> =
        close.into_iter().filter(|name| is_node(name)).map(|name| format!("{name:?}")).take(3).collect();
    match close.as_slice() {
        [] => error,
        close if path.ends_with(name) => error.with_hint(format!("did you mean {}?", close.join(" or "))),
        close => error.with_hint(format!("did you mean {} instead of {name:?}?", close.join(" or "))),
    }
}

/// Returns the names similar to `name`, the closest first.
fn close_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut close: Vec<(usize, &str)> = names
        .filter(|other| *other != name)
        .filter_map(|other| Some((distance(name, other)?, other)))
        .collect();
    close.sort_unstable();
    close.into_iter().map(|(_, name)| name).collect()
}

/// Returns the edit distance ignoring case, if it is small for the length.
fn distance(name: &str, other: &str) -> Option<usize> {
    /// Longer names are not typed by people.
    const LONGEST: usize = 100;
    let [name, other] = [name, other].map(|text| text.to_lowercase().chars().collect::<Vec<char>>());
    let (longest, difference) = (name.len().max(other.len()), name.len().abs_diff(other.len()));
    let most = longest.div_ceil(3);
    if longest > LONGEST || difference > most {
        return None;
    }
    // Row by row of the usual table: the number of changes from each prefix of one name to each prefix of the other.
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, character) in name.iter().enumerate() {
        let mut diagonal = above[0];
        above[0] = row + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(character != wanted);
            diagonal = above[column + 1];
            above[column + 1] = changed.min(above[column].min(diagonal) + 1);
        }
    }
    above.last().copied().filter(|distance| *distance <= most && *distance < longest)
}

#[cfg(test)]
mod tests {
    use super::close_names;

    #[test]
    fn close_names_are_those_that_were_meant() {
        let names = ["temperature", "pressure", "temp", "lat", "lon", "Rain"];
        let close = |name: &str| close_names(name, names.into_iter());
        assert_eq!(close("temprature"), ["temperature"]);
        assert_eq!(close("presure"), ["pressure"]);
        assert_eq!(close("rain"), ["Rain"]);
        assert_eq!(close("lay"), ["lat"]);
        assert!(close("x").is_empty() && close("humidity").is_empty() && close("").is_empty());
        assert!(close(&"a".repeat(1000)).is_empty());
    }
}
