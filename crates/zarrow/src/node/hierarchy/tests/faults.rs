//! Replacements and erasures in a folder, where changes of the file system fail.

use super::erasures::on_disk;
use super::*;
use crate::store::faults::{fix_folders, free_folders, with_faults};
use crate::{Values, WriteOptions, create_array_with};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Array,
    Group,
}

const KINDS: [Kind; 2] = [Kind::Array, Kind::Group];

const OLD: &str = "old";
const NEW: &str = "new";

/// Creates an array or an empty group, with this text as its attribute.
fn make(store: &Arc<dyn Store>, path: &str, kind: Kind, format: ZarrFormat, text: &str) -> crate::Result<()> {
    let attributes = map(json!({"of": text}));
    let options = OpenOptions::default();
    match kind {
        Kind::Array => {
            let metadata = builder(format).chunk_shape([2, 4]).attributes(attributes).build().unwrap();
            let elements = [i16::from(text.as_bytes()[0]); 24];
            let values = Values::slice(&elements, &[6, 4]).unwrap();
            let write = WriteOptions::default();
            create_array_with(Arc::clone(store), path, metadata, &values, Existing::Erase, &options, &write)?;
        }
        Kind::Group => {
            create_group(Arc::clone(store), path, format, attributes, Existing::Erase, &options)?;
        }
    }
    Ok(())
}

fn make_old(store: &Arc<dyn Store>, path: &str, kind: Kind, format: ZarrFormat) {
    make(store, path, kind, format, OLD).unwrap();
    if kind == Kind::Group {
        for member in ["x", "y/z"] {
            make(store, &crate::store::join(path, member), Kind::Array, format, OLD).unwrap();
        }
    }
}

/// Returns the text of a whole node, or `None` without a node.
fn look(store: &Arc<dyn Store>, path: &str) -> Option<String> {
    let text = |attributes: &Map<String, Value>| attributes["of"].as_str().unwrap().to_owned();
    match open(Arc::clone(store), path) {
        Ok(Node::Array(array)) => {
            let text = text(array.attributes());
            let element = i16::from(text.as_bytes()[0]).to_ne_bytes();
            assert_eq!(array.read(..).unwrap().into_tensor().unwrap().bytes(), element.repeat(24));
            Some(text)
        }
        Ok(Node::Group(group)) => {
            let text = text(group.attributes());
            let of_member = |member: &str| look(store, &crate::store::join(path, member));
            let members = if text == OLD { Some(OLD.to_owned()) } else { None };
            assert_eq!([of_member("x"), of_member("y/z")], [members.clone(), members]);
            Some(text)
        }
        Err(error) => {
            assert_eq!(error.kind().code(), "not_found");
            None
        }
    }
}

/// Every change of the file system fails in turn, during each replacement of an old node by a new one, at the root and
/// below it; then also all changes after that.
fn replace_with_faults(path: &str, is_fixed: bool) {
    for (old, new) in KINDS.iter().flat_map(|old| KINDS.map(|new| (*old, new))) {
        for (format, other) in FORMATS.iter().flat_map(|format| FORMATS.map(|other| (*format, other))) {
            // Below the root, both versions are that of the group above.
            if format != other && (!path.is_empty() || old != new) {
                continue;
            }
            for count in [1, usize::MAX] {
                let mut failures = 0;
                for before in 0.. {
                    let folder = folder();
                    let store = on_disk(&folder);
                    make_old(&store, path, old, format);
                    if is_fixed {
                        fix_folders(folder.path());
                    }
                    let (is_reached, made) =
                        with_faults(before, count, || make(&store, path, new, other, NEW));
                    free_folders();
                    let said = format!("{old:?} {format:?}, {new:?} {other:?}, {before}, {made:?}");
                    let found = look(&store, path);
                    match (&made, found.as_deref()) {
                        (Ok(()), Some(NEW)) => {}
                        // Only removing the old values failed.
                        (Err(error), Some(NEW)) => {
                            assert!(error.to_string().contains("cannot remove the erased data"), "{said}");
                        }
                        (Err(_), Some(OLD)) => failures += 1,
                        (Err(error), None) if count > 1 => check_kept(&folder.path().join("store"), error),
                        _ => panic!("{said}: {found:?}"),
                    }
                    if !is_reached {
                        assert!(made.is_ok(), "{said}");
                        break;
                    }
                }
                assert!(failures > 3, "{failures}");
            }
        }
    }
}

/// Checks that the error says where the old data are.
fn check_kept(store: &Path, error: &crate::Error) {
    let text = error.to_string();
    let (_, rest) = text.split_once("which are now at ").expect(&text);
    let (place, _) = rest.split_once(',').unwrap();
    assert!(store.join(place).is_dir(), "{text}");
}

/// A new folder, in memory if possible.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

#[test]
fn a_failed_replacement_of_the_root_keeps_the_old_node() {
    replace_with_faults("", false);
}

#[test]
fn a_failed_replacement_below_the_root_keeps_the_old_node() {
    replace_with_faults("a", false);
}

#[test]
fn a_failed_replacement_where_folders_cannot_be_renamed_keeps_the_old_node() {
    replace_with_faults("", true);
    replace_with_faults("a", true);
}

#[test]
fn a_node_whose_folder_cannot_be_renamed_is_erased() {
    for (kind, format) in KINDS.iter().flat_map(|kind| FORMATS.map(|format| (*kind, format))) {
        for before in 0.. {
            let folder = folder();
            let store = on_disk(&folder);
            make_old(&store, "a", kind, format);
            fix_folders(folder.path());
            let (is_reached, erased) = with_faults(before, 1, || opened(&store, "").erase("a"));
            free_folders();
            match (&erased, look(&store, "a").as_deref()) {
                (Ok(()), None) => assert!(store.list("a").unwrap().is_empty()),
                (Err(_), Some(OLD)) => {}
                (Err(error), None) => {
                    let text = error.to_string();
                    assert!(
                        text.contains("the node was erased, but some of its data remain at a")
                            || text.contains("cannot remove the erased data"),
                        "{text}"
                    );
                }
                (_, found) => panic!("{before}, {erased:?}: {found:?}"),
            }
            if !is_reached {
                erased.unwrap();
                break;
            }
        }
    }
}
