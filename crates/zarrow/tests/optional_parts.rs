//! Parts of arrays of optional elements: of large chunks, and of shards, compared with the elements that zarrs wrote.
//! Masks are equal as bytes and as Arrow's bits, and a read fetches no more than the part needs.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod recoded;

use proptest::prelude::*;
use serde_json::{Value, json};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use zarrow::store::{FilesystemStore as Files, Store, Value as Stored};
use zarrow::{Array, Batch, Index, Node, Result, Selection};
use zarrow_array::{DecodedArray, Mask, MaskedTensor};
use zarrs::array::ArrayMetadata;
use zarrs_filesystem::FilesystemStore;

const SHAPE: [u64; 2] = [420, 401];

/// A folder that counts the bytes read from it.
#[derive(Debug)]
struct Counted {
    files: Files,
    read: AtomicU64,
}

struct CountedValue<'a>(Box<dyn Stored + 'a>, &'a AtomicU64);

impl Store for Counted {
    fn name(&self) -> &str {
        self.files.name()
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Stored + '_>>> {
        let value = self.files.open(key)?;
        Ok(value.map(|value| Box::new(CountedValue(value, &self.read)) as Box<dyn Stored>))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.files.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        self.files.nbytes(prefix)
    }
}

impl Stored for CountedValue<'_> {
    fn nbytes(&self) -> Result<u64> {
        self.0.nbytes()
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let read = self.0.read_at(offset, destination)?;
        self.1.fetch_add(read.len() as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// An array written by zarrs.
struct Case {
    name: &'static str,
    array: Array,
    store: Arc<Counted>,
    elements: Vec<Option<u32>>,
    _folder: tempfile::TempDir,
}

fn bytes(endian: &str) -> Value {
    json!({ "name": "bytes", "configuration": { "endian": endian } })
}

fn case(
    name: &'static str,
    chunks: [u64; 2],
    inner: Option<[u64; 2]>,
    data: &Value,
    mask: &Value,
    missing: fn(u32) -> bool,
) -> Case {
    let optional =
        json!({ "name": "zarrs.optional", "configuration": { "mask_codecs": mask, "data_codecs": data } });
    let codecs = match inner {
        None => json!([optional]),
        Some(inner) => {
            let index = json!([bytes("little"), { "name": "crc32c" }]);
            let configuration = json!({ "chunk_shape": inner, "codecs": [optional], "index_codecs": index });
            json!([{ "name": "sharding_indexed", "configuration": configuration }])
        }
    };
    let metadata = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": SHAPE,
        "data_type": { "name": "zarrs.optional", "configuration": { "name": "uint32", "configuration": {} } },
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunks } },
        "chunk_key_encoding": { "name": "default" },
        "fill_value": null,
        "codecs": codecs,
    });
    let elements: Vec<Option<u32>> = (0..(SHAPE[0] * SHAPE[1]) as u32)
        .map(|at| (!missing(at)).then(|| at.wrapping_mul(2_654_435_761) >> 9))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    recoded::write(folder.path(), &metadata, |metadata| {
        let zarrs_store = Arc::new(FilesystemStore::new(folder.path()).unwrap());
        let metadata: ArrayMetadata = serde_json::from_value(metadata).unwrap();
        let array = zarrs::array::Array::new_with_metadata(zarrs_store, "/", metadata).unwrap();
        array.store_metadata().unwrap();
        array.store_array_subset(&array.subset_all(), elements.clone()).unwrap();
    });
    let store = Arc::new(Counted { files: Files::open(folder.path()).unwrap(), read: AtomicU64::new(0) });
    let Node::Array(array) = zarrow::open(store.clone(), "").unwrap() else { panic!("an array was written") };
    Case { name, array, store, elements, _folder: folder }
}

/// Codecs with and without partial decoding, in one chunk, in several, and in shards.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let blosc = json!({ "name": "blosc", "configuration":
        { "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 4096 } });
    let zstd = json!({ "name": "zstd", "configuration": { "level": 1, "checksum": false } });
    let packed = json!([{ "name": "packbits", "configuration": {} }]);
    let plain = json!([{ "name": "bytes" }]);
    let (little, big) = (bytes("little"), bytes("big"));
    let some = |at: u32| at % 7 == 3 || at / 1000 % 5 == 2;
    vec![
        case("plain", SHAPE, None, &json!([little]), &plain, some),
        case("plain-all", SHAPE, None, &json!([little]), &packed, |_| false),
        case("plain-none", SHAPE, None, &json!([little]), &plain, |_| true),
        case("big-blosc", SHAPE, None, &json!([big, blosc]), &json!([{ "name": "bytes" }, blosc]), some),
        case("zstd", [100, 401], None, &json!([little, zstd]), &packed, some),
        case("aligned", [64, 64], None, &json!([little]), &plain, some),
        case("shards-plain", [210, 408], Some([42, 136]), &json!([little]), &plain, some),
        case("shards-blosc", [300, 400], Some([300, 200]), &json!([little, blosc]), &packed, some),
    ]
});

fn masked(decoded: DecodedArray) -> MaskedTensor {
    match decoded {
        DecodedArray::MaskedTensor(masked) => masked,
        other => panic!("{other:?} has no mask"),
    }
}

fn check(name: &str, found: &MaskedTensor, expected: &[Option<u32>]) {
    let mask: &Mask = found.mask();
    let missing: Vec<u8> = expected.iter().map(|element| u8::from(element.is_none())).collect();
    assert_eq!(mask.missing(), missing, "{name}");
    assert_eq!(mask.missing_count(), missing.iter().filter(|missing| **missing == 1).count(), "{name}");
    let bitmap = mask.validity_bitmap().unwrap();
    assert_eq!(bitmap.len(), missing.len().div_ceil(8), "{name}");
    let bits = (0..bitmap.len() * 8).map(|at| (bitmap[at / 8] >> (at % 8)) & 1);
    let valid = missing.iter().map(|missing| 1 - missing).chain(std::iter::repeat(0));
    assert!(bits.zip(valid).all(|(bit, valid)| bit == valid), "{name}");
    let words: Vec<u8> =
        expected.iter().flat_map(|element| element.unwrap_or_default().to_ne_bytes()).collect();
    assert_eq!(found.data().bytes(), words, "{name}");
}

/// Returns the elements selected by slices of start, count and step.
fn wanted(case: &Case, slices: [(u64, u64, i64); 2]) -> Vec<Option<u32>> {
    let at = |(start, _, step): (u64, u64, i64), k: u64| start.wrapping_add_signed(k as i64 * step);
    let rows = (0..slices[0].1).map(|k| at(slices[0], k));
    rows.flat_map(|row| (0..slices[1].1).map(move |k| row * SHAPE[1] + at(slices[1], k)))
        .map(|at| case.elements[at as usize])
        .collect()
}

fn indices(slices: [(u64, u64, i64); 2]) -> Vec<Index> {
    let index = |(start, count, step): (u64, u64, i64)| {
        let stop = start as i64 + count as i64 * step;
        Index::Slice { start: Some(start as i64), stop: (stop >= 0).then_some(stop), step: Some(step) }
    };
    slices.map(index).to_vec()
}

/// Draws start, count and step of a slice of an axis: any, or rows that begin at a multiple of 8 elements.
fn slices(extent: u64) -> impl Strategy<Value = (u64, u64, i64)> {
    let any = (0..extent, 1i64..40, any::<bool>()).prop_flat_map(move |(start, step, back)| {
        let room = if back { start / step as u64 } else { (extent - 1 - start) / step as u64 };
        (Just(start), 0..=room + 1, Just(if back { -step } else { step }))
    });
    let run = (0..extent).prop_flat_map(move |start| (Just(start), 1..=extent - start, Just(1)));
    prop_oneof![
        Just((0, extent, 1)),
        run,
        any.prop_map(move |(start, count, step)| (start, count.max(1).min(room(extent, start, step)), step))
    ]
}

fn room(extent: u64, start: u64, step: i64) -> u64 {
    if step > 0 { (extent - 1 - start) / step as u64 + 1 } else { start / step.unsigned_abs() + 1 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn parts_are_what_was_written(
        number in 0..8usize, rows in slices(SHAPE[0]), columns in slices(SHAPE[1]),
    ) {
        let case = &CASES[number];
        let selection = Selection::new(&SHAPE, &indices([rows, columns])).unwrap();
        let found = masked(case.array.read(&selection).unwrap());
        check(case.name, &found, &wanted(case, [rows, columns]));
    }
}

#[test]
fn batches_of_parts() {
    for case in CASES.iter() {
        for columns in [(5, 16, 1), (8, 13, 1)] {
            let crops = [3, 77, 250, 400].map(|row| [(row, 20, 1), columns]);
            let selections: Vec<_> =
                crops.iter().map(|crop| Selection::new(&SHAPE, &indices(*crop)).unwrap()).collect();
            let items: Vec<_> =
                selections.iter().map(|selection| case.array.request(selection).unwrap()).collect();
            let Batch::Stacked(found) = zarrow::read_many(&items).unwrap() else {
                panic!("equal shapes are stacked")
            };
            let expected: Vec<_> = crops.iter().flat_map(|crop| wanted(case, *crop)).collect();
            check(case.name, &masked(found), &expected);
        }
    }
}

/// A read of plain chunks fetches the mask up to the part, and the part's present elements, and no more.
#[test]
fn only_the_selected_bytes_are_read() {
    let some = |at: u32| at % 7 == 3;
    let case = case("plain", SHAPE, None, &json!([bytes("little")]), &json!([{ "name": "bytes" }]), some);
    let size = SHAPE[0] * SHAPE[1];
    for (row, most) in [(0, 2_500), (200, 85_000), (419, size + 2_500)] {
        let slices = [(row, 1, 1), (0, SHAPE[1], 1)];
        let selection = Selection::new(&SHAPE, &indices(slices)).unwrap();
        case.store.read.store(0, Ordering::Relaxed);
        let found = masked(case.array.read(&selection).unwrap());
        let read = case.store.read.load(Ordering::Relaxed);
        check(case.name, &found, &wanted(&case, slices));
        assert!(read <= most, "row {row}: {read} bytes");
    }
}
