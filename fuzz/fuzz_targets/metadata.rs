//! Documents of all versions: parsed, opened, and read if the array is small.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrow::Node;
use zarrow::codec::{parse_v2_array, parse_v3};
use zarrow::metadata::{MetadataLimits, parse_v2_group};
use zarrow_fuzz::{open, read};

/// The document's kind in the first byte; a zero byte separates two documents.
fn run(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    let mut documents = text.splitn(2, |byte| *byte == 0);
    let first = documents.next().unwrap_or_default();
    let second = documents.next();
    let limits = MetadataLimits::default();
    let names = match kind % 3 {
        0 => ["zarr.json", "c/0"],
        1 => [".zarray", ".zattrs"],
        _ => [".zgroup", ".zmetadata"],
    };
    let _ = match kind % 3 {
        0 => parse_v3(first, &limits).err(),
        1 => parse_v2_array(first, second, &limits).err(),
        _ => parse_v2_group(first, None, second, &limits).err(),
    };
    let values = [(names[0], first.to_vec())].into_iter().chain(second.map(|text| (names[1], text.to_vec())));
    match open(values, 0) {
        Ok(node) => visit(&node, 0),
        Err(error) => drop(error.to_string()),
    }
}

fn visit(node: &Node, depth: usize) {
    match node {
        Node::Array(array) => {
            let elements = array.shape().iter().try_fold(1u64, |count, extent| count.checked_mul(*extent));
            let small = elements.is_some_and(|count| count <= 4096);
            if small && array.nbytes().is_none_or(|nbytes| nbytes <= 1 << 20) {
                read(array);
            }
        }
        Node::Group(group) if depth < 4 => {
            for (_, child) in group.children().unwrap_or_default() {
                if let Ok(child) = child {
                    visit(&child, depth + 1);
                }
            }
        }
        Node::Group(_) => {}
    }
}

fuzz_target!(|data: &[u8]| run(data));
