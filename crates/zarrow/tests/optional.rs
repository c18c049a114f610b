//! Optional elements, written by zarrs and read by zarrow: every layout, with several codecs, at any depth, in stored
//! and missing chunks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use zarrow::store::FilesystemStore as Store;
use zarrow::{Index, Node, Selection};
use zarrow_array::{DecodedArray, Mask};
use zarrs::array::{Array, ArrayMetadata, Element};
use zarrs_filesystem::FilesystemStore;

const SHAPE: [u64; 2] = [7, 5];
const CHUNKS: [u64; 2] = [3, 2];
/// Rows from here on are in missing chunks.
const FIRST_MISSING: usize = 6;

/// Returns the metadata of an array of `data_type`, with `depth` levels of optional.
fn metadata(
    data_type: &str,
    depth: usize,
    fill_value: &Value,
    data_codecs: &Value,
    mask_codecs: &Value,
) -> Value {
    let mut codecs = data_codecs.clone();
    let mut element = json!({ "name": data_type, "configuration": {} });
    for _ in 0..depth {
        let configuration = json!({ "mask_codecs": mask_codecs, "data_codecs": codecs });
        codecs = json!([{ "name": "zarrs.optional", "configuration": configuration }]);
        element = json!({ "name": "zarrs.optional", "configuration": element });
    }
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": SHAPE,
        "data_type": element,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": CHUNKS } },
        "chunk_key_encoding": { "name": "default" },
        "fill_value": fill_value,
        "codecs": codecs,
    })
}

/// Writes `elements` by zarrs, except for the missing rows.
fn write<T: Element>(folder: &Path, metadata: Value, elements: &[T]) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let metadata: ArrayMetadata = serde_json::from_value(metadata).unwrap();
    let array = Array::new_with_metadata(store, "/", metadata).unwrap();
    array.store_metadata().unwrap();
    let subset = zarrs::array::ArraySubset::new_with_ranges(&[0..FIRST_MISSING as u64, 0..SHAPE[1]]);
    let stored = elements[..FIRST_MISSING * SHAPE[1] as usize].to_vec();
    array.store_array_subset(&subset, stored).unwrap();
}

fn read(folder: &Path, indices: &[Index]) -> DecodedArray {
    let store = Arc::new(Store::open(folder).unwrap());
    let Node::Array(array) = zarrow::open(store, "").unwrap() else { panic!("an array was written") };
    array.read(Selection::new(&SHAPE, indices).unwrap()).unwrap()
}

/// Selections, each with its rows and columns.
fn selections() -> Vec<(Vec<Index>, Vec<usize>, Vec<usize>)> {
    let slice = |start, stop, step| Index::Slice { start, stop, step };
    vec![
        (vec![], (0..7).collect(), (0..5).collect()),
        (
            vec![slice(None, None, Some(-1)), slice(Some(1), None, Some(2))],
            (0..7).rev().collect(),
            vec![1, 3],
        ),
        (vec![slice(Some(2), Some(5), None), slice(None, None, Some(-2))], vec![2, 3, 4], vec![4, 2, 0]),
        (vec![Index::At(-1)], vec![6], (0..5).collect()),
        (vec![Index::At(1), Index::At(2)], vec![1], vec![2]),
        (vec![slice(Some(4), Some(4), None)], vec![], (0..5).collect()),
    ]
}

/// Checks each selection of the stored array: `flatten` returns, for an element, whether each level is missing, and the
/// bytes of a present one.
fn check<T>(folder: &Path, elements: &[T], flatten: impl Fn(&T) -> (Vec<bool>, Option<Vec<u8>>)) {
    for (indices, rows, columns) in selections() {
        let wanted =
            rows.iter().flat_map(|row| columns.iter().map(move |column| row * SHAPE[1] as usize + column));
        let decoded = read(folder, &indices);
        for (place, element) in wanted.map(|at| flatten(&elements[at])).enumerate() {
            let (levels, bytes) = element;
            let (mask, found) = element_of(&decoded, place);
            let found_levels: Vec<bool> =
                (0..mask.depth()).map(|level| mask.level(level).unwrap()[place] == 1).collect();
            assert_eq!(found_levels, levels, "{indices:?} at {place}");
            assert_eq!(mask.missing()[place] == 1, bytes.is_none(), "{indices:?} at {place}");
            // Masked elements are zero, or empty.
            match bytes {
                Some(bytes) => assert_eq!(found, bytes, "{indices:?} at {place}"),
                None => assert!(found.iter().all(|byte| *byte == 0), "{indices:?} at {place}"),
            }
        }
        let size = rows.len() * columns.len();
        assert_eq!(decoded.shape().iter().product::<u64>(), size as u64, "{indices:?}");
    }
}

fn element_of(decoded: &DecodedArray, place: usize) -> (&Mask, &[u8]) {
    match decoded {
        DecodedArray::MaskedTensor(masked) => {
            let size = masked.data().dtype().item_size().unwrap();
            (masked.mask(), &masked.data().bytes()[place * size..(place + 1) * size])
        }
        DecodedArray::MaskedVariable(masked) => (masked.mask(), masked.data().element(place).unwrap()),
        other => panic!("{other:?} has no mask"),
    }
}

fn bytes_codec() -> Value {
    json!({ "name": "bytes", "configuration": { "endian": "little" } })
}

fn zstd() -> Value {
    json!({ "name": "zstd", "configuration": { "level": 3, "checksum": true } })
}

/// Codecs for masks: none, compressed, packed to bits, packed and compressed.
fn mask_chains() -> Vec<Value> {
    let packbits = json!({ "name": "packbits", "configuration": { "padding_encoding": "first_byte" } });
    vec![
        json!([{ "name": "bytes" }]),
        json!([{ "name": "bytes" }, zstd()]),
        json!([{ "name": "packbits", "configuration": {} }]),
        json!([packbits, { "name": "gzip", "configuration": { "level": 1 } }, { "name": "crc32c" }]),
    ]
}

/// Compressors after the elements.
fn compressors() -> Vec<Vec<Value>> {
    let zlib = json!({ "name": "numcodecs.zlib", "configuration": { "level": 5 } });
    vec![
        vec![],
        vec![zstd()],
        vec![json!({ "name": "gzip", "configuration": { "level": 5 } }), json!({ "name": "crc32c" })],
        vec![zlib],
    ]
}

fn chain(first: Value, rest: &[Value]) -> Value {
    [vec![first], rest.to_vec()].concat().into()
}

const COUNT: usize = (SHAPE[0] * SHAPE[1]) as usize;

#[test]
fn numbers_that_may_be_missing() {
    let mut elements: Vec<Option<i32>> =
        (0..COUNT).map(|at| (at % 3 > 0).then_some(at as i32 * 1000 - 7)).collect();
    for fill in [None, Some(-42)] {
        elements[FIRST_MISSING * SHAPE[1] as usize..].fill(fill);
        let fill = fill.map_or(Value::Null, |fill| json!([fill]));
        for (masks, compressors) in mask_chains().iter().zip(compressors()) {
            let folder = tempfile::tempdir().unwrap();
            let codecs = chain(bytes_codec(), &compressors);
            write(folder.path(), metadata("int32", 1, &fill, &codecs, masks), &elements);
            check(folder.path(), &elements, |element| {
                (vec![element.is_none()], element.map(|value| value.to_ne_bytes().to_vec()))
            });
        }
    }
}

#[test]
fn numbers_in_the_other_byte_order() {
    let elements: Vec<Option<f64>> = (0..COUNT).map(|at| (at % 2 > 0).then_some(at as f64 / 7.0)).collect();
    let mut elements = elements;
    elements[FIRST_MISSING * SHAPE[1] as usize..].fill(None);
    let folder = tempfile::tempdir().unwrap();
    let big = json!({ "name": "bytes", "configuration": { "endian": "big" } });
    let metadata = metadata("float64", 1, &Value::Null, &chain(big, &[zstd()]), &mask_chains()[0]);
    write(folder.path(), metadata, &elements);
    check(folder.path(), &elements, |element| {
        (vec![element.is_none()], element.map(|value| value.to_ne_bytes().to_vec()))
    });
}

#[test]
fn strings_that_may_be_missing() {
    let words = ["", "a", "né", "日本語", "a longer string than the others"];
    let mut elements: Vec<Option<String>> =
        (0..COUNT).map(|at| (at % 4 > 0).then(|| words[at % words.len()].to_owned())).collect();
    for fill in [None, Some("fill é".to_owned())] {
        elements[FIRST_MISSING * SHAPE[1] as usize..].fill(fill.clone());
        let fill = fill.map_or(Value::Null, |fill| json!([fill]));
        for (masks, compressors) in mask_chains().iter().zip(compressors()) {
            let folder = tempfile::tempdir().unwrap();
            let codecs = chain(json!({ "name": "vlen-utf8" }), &compressors);
            write(folder.path(), metadata("string", 1, &fill, &codecs, masks), &elements);
            check(folder.path(), &elements, |element| {
                (vec![element.is_none()], element.clone().map(String::into_bytes))
            });
        }
    }
}

#[test]
fn all_missing_and_none_missing() {
    for elements in [vec![None; COUNT], (0..COUNT).map(|at| Some(at as u8)).collect::<Vec<Option<u8>>>()] {
        let mut elements = elements;
        elements[FIRST_MISSING * SHAPE[1] as usize..].fill(Some(9));
        let folder = tempfile::tempdir().unwrap();
        let metadata = metadata("uint8", 1, &json!([9]), &json!([{ "name": "bytes" }]), &mask_chains()[1]);
        write(folder.path(), metadata, &elements);
        check(folder.path(), &elements, |element| {
            (vec![element.is_none()], element.map(|value| vec![value]))
        });
    }
}

/// The levels of a twice optional element, outermost first: if the outer one is missing, so is the inner.
fn levels<T>(element: &Option<Option<T>>) -> Vec<bool> {
    vec![element.is_none(), !matches!(element, Some(Some(_)))]
}

#[test]
fn numbers_that_may_be_missing_in_two_ways() {
    let mut elements: Vec<Option<Option<i16>>> = (0..COUNT)
        .map(|at| match at % 3 {
            0 => None,
            1 => Some(None),
            _ => Some(Some(at as i16 * 100)),
        })
        .collect();
    for (fill, fill_json) in [(None, Value::Null), (Some(None), json!([null])), (Some(Some(5)), json!([[5]]))]
    {
        elements[FIRST_MISSING * SHAPE[1] as usize..].fill(fill);
        for (masks, compressors) in mask_chains().iter().zip(compressors()) {
            let folder = tempfile::tempdir().unwrap();
            let codecs = chain(bytes_codec(), &compressors);
            write(folder.path(), metadata("int16", 2, &fill_json, &codecs, masks), &elements);
            check(folder.path(), &elements, |element| {
                (levels(element), element.flatten().map(|value| value.to_ne_bytes().to_vec()))
            });
        }
    }
}

#[test]
fn strings_that_may_be_missing_in_two_ways() {
    let mut elements: Vec<Option<Option<String>>> = (0..COUNT)
        .map(|at| match at % 3 {
            0 => None,
            1 => Some(None),
            _ => Some(Some("é".repeat(at % 5))),
        })
        .collect();
    elements[FIRST_MISSING * SHAPE[1] as usize..].fill(Some(None));
    let folder = tempfile::tempdir().unwrap();
    let codecs = chain(json!({ "name": "vlen-utf8" }), &[zstd()]);
    write(folder.path(), metadata("string", 2, &json!([null]), &codecs, &mask_chains()[3]), &elements);
    check(folder.path(), &elements, |element| {
        (levels(element), element.clone().flatten().map(String::into_bytes))
    });
}
