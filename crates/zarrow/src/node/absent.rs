//! Explains a missing node: what exists instead, and which names are similar.
//!
//! Nothing here is called unless a lookup has failed.

use crate::error::{Error, ErrorKind};
use crate::metadata::{MetadataLimits, NodeMetadata, ZarrFormat};
use crate::node::node_documents::{read_each, read_metadata};
use crate::store::{Store, join};

/// Maximum number of names searched for similar ones.
const MAX_NAMES: usize = 10_000;

/// Maximum number of similar names to look up, in one round of requests.
const MAX_CANDIDATES: usize = 8;

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
    // The nearest existing node above, and the first missing part of the path. The list below it goes with the request
    // for its documents.
    let mut above = path;
    let (above, name, zarr_format, names) = loop {
        let (parent, name) = above.rsplit_once('/').unwrap_or(("", above));
        let known = listed.filter(|(group, _)| *group == parent);
        let names = known.is_none().then(|| store.list_ahead(parent));
        let zarr_format = match read_metadata(store, parent, limits) {
            Ok(NodeMetadata::Array(_)) => {
                return error
                    .with_hint(format!("{:?} is an array, which has no members", format!("/{parent}")));
            }
            Ok(NodeMetadata::Group(group)) => group.zarr_format,
            Err(_) if parent.is_empty() => ZarrFormat::V3,
            Err(_) => {
                above = parent;
                continue;
            }
        };
        let names = match (known, names) {
            (Some((_, names)), _) => names.to_vec(),
            (None, names) => names.and_then(|names| names().ok()).unwrap_or_default(),
        };
        break (parent, name, zarr_format, names);
    };
    let close = close_names(name, names.iter().map(String::as_str).take(MAX_NAMES));
    let candidates: Vec<&str> = close.into_iter().take(MAX_CANDIDATES).collect();
    let paths: Vec<String> = candidates.iter().map(|name| join(above, name)).collect();
    let is_node = read_each(store, &paths, zarr_format, limits).into_iter().map(|metadata| metadata.is_ok());
    let close = candidates.into_iter().zip(is_node).filter(|(_, is_node)| *is_node);
    let close: Vec<String> = close.map(|(name, _)| format!("{name:?}")).take(3).collect();
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
