//! Every chunk of one read is of one version: a store changes a chunk after each open, so that a second open would see
//! another version, and counts the opens of each chunk.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use zarrow::store::{Durability, FilesystemStore, MemoryStore, Store, Value};
use zarrow::{
    Array, Batch, Index, MissingValues, Node, OpenOptions, Selection, Values, WriteOptions, open_with,
};
use zarrow_array::DecodedArray;

/// The change of a chunk after it was opened.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// The other of two values replaces it.
    Flips,
    /// It is removed, or restored.
    Vanishes,
}

/// A store that changes every chunk after it was opened.
#[derive(Debug)]
struct Restless {
    inner: Arc<dyn Store>,
    change: Change,
    /// The values of each chunk; the first one is stored next.
    versions: BTreeMap<String, [Vec<u8>; 2]>,
    /// Number of opens of each chunk, in all and by this read.
    opened: Mutex<BTreeMap<String, (usize, usize)>>,
}

impl Restless {
    fn put(&self, key: &str, number: usize) {
        let writer = self.inner.writer().unwrap();
        match self.change {
            Change::Vanishes if number % 2 == 1 => drop(writer.erase(key, Durability::None).unwrap()),
            _ => writer.set(key, &[&self.versions[key][number % 2]], Durability::None).unwrap(),
        }
    }
}

impl Store for Restless {
    fn name(&self) -> &str {
        "restless"
    }

    fn open(&self, key: &str) -> zarrow::Result<Option<Box<dyn Value + '_>>> {
        if !self.versions.contains_key(key) {
            return self.inner.open(key);
        }
        let mut opened = self.opened.lock().unwrap();
        let (all, own) = opened.entry(key.to_owned()).or_default();
        let value = self.inner.open(key);
        (*all, *own) = (*all + 1, *own + 1);
        self.put(key, *all);
        value
    }

    fn list(&self, prefix: &str) -> zarrow::Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> zarrow::Result<u64> {
        self.inner.nbytes(prefix)
    }
}

/// An array with equal elements in each of two versions, in a changing store.
struct Case {
    store: Arc<Restless>,
    array: Array,
    _folder: tempfile::TempDir,
}

fn metadata(data_type: &Json, fill: &Json, chunk: [u64; 2], codecs: &Json) -> Json {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [1024, 1024], "data_type": data_type, "fill_value": fill,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
    })
}

fn plain() -> Json {
    json!([{"name": "bytes", "configuration": {"endian": "little"}}])
}

fn blosc() -> Json {
    let blosc = json!({
        "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 65536,
    });
    json!([plain()[0], {"name": "blosc", "configuration": blosc}])
}

fn sharded(inner: [u64; 2], codecs: &Json) -> Json {
    let index = json!([plain()[0], {"name": "crc32c"}]);
    json!([{"name": "sharding_indexed",
        "configuration": {"chunk_shape": inner, "codecs": codecs, "index_codecs": index}}])
}

fn zstd(level: i32) -> Json {
    json!([plain()[0], {"name": "zstd", "configuration": {"level": level, "checksum": false}}])
}

/// Fills an array of this metadata with each of two values, and opens it in a store that swaps the chunks.
fn case(metadata: &Json, values: [Values<'_>; 2], memory: bool, change: Change, cache_nbytes: usize) -> Case {
    static THREADS: Once = Once::new();
    THREADS.call_once(|| zarrow::set_num_threads(4));
    let folder = tempfile::tempdir().unwrap();
    let inner: Arc<dyn Store> = match memory {
        true => Arc::new(MemoryStore::default()),
        false => Arc::new(FilesystemStore::open(folder.path()).unwrap()),
    };
    let writer = inner.writer().unwrap();
    writer.set("zarr.json", &[&serde_json::to_vec(metadata).unwrap()], Durability::None).unwrap();
    let Node::Array(array) = zarrow::open(inner.clone(), "").unwrap() else { panic!("not an array") };
    let all = Selection::all(array.shape());
    let mut keys = Vec::new();
    let stored = values.map(|values| {
        let values = values.broadcast(array.shape()).unwrap();
        let options = WriteOptions::default().write_empty_chunks(true);
        array.write_request(&all).unwrap().options(&options).write(&values).unwrap();
        let rows = inner.list("c").unwrap();
        keys = rows
            .iter()
            .flat_map(|row| {
                let columns = inner.list(&format!("c/{row}")).unwrap();
                columns.into_iter().map(move |column| format!("c/{row}/{column}"))
            })
            .collect();
        keys.iter().map(|key| inner.get(key, u64::MAX).unwrap().unwrap()).collect::<Vec<_>>()
    });
    let [first, second] = stored;
    let versions = keys.into_iter().zip(first.into_iter().zip(second).map(|(one, two)| [one, two])).collect();
    let store = Arc::new(Restless { inner, change, versions, opened: Mutex::default() });
    store.versions.keys().for_each(|key| store.put(key, 0));
    let options = OpenOptions::default().cache_nbytes(cache_nbytes);
    let Node::Array(array) = open_with(store.clone(), "", &options).unwrap() else { panic!("not an array") };
    Case { store, array, _folder: folder }
}

/// Returns two values of one number.
fn numbers<'a>(one: &'a [u8; 4], two: &'a [u8; 4]) -> [Values<'a>; 2] {
    [one, two].map(|bytes| Values::contiguous(bytes, zarrow_array::Number::Int32.into(), &[]).unwrap())
}

fn int32(chunk: [u64; 2], codecs: &Json, memory: bool, change: Change, cache_nbytes: usize) -> Case {
    let metadata = metadata(&json!("int32"), &json!(7), chunk, codecs);
    let (one, two) = (0x0101_0101_i32.to_le_bytes(), 0x0202_0202_i32.to_le_bytes());
    case(&metadata, numbers(&one, &two), memory, change, cache_nbytes)
}

impl Case {
    /// Runs a read, and checks that it opened each chunk once.
    fn read<T>(&self, read: impl FnOnce(&Array) -> T) -> T {
        self.store.opened.lock().unwrap().values_mut().for_each(|(_, own)| *own = 0);
        let result = read(&self.array);
        let opened = self.store.opened.lock().unwrap();
        let most = opened.values().map(|(_, own)| *own).max();
        assert!(most == Some(1), "{opened:?}");
        result
    }
}

fn bytes(decoded: DecodedArray) -> Vec<u8> {
    match decoded {
        DecodedArray::Tensor(tensor) => tensor.bytes().to_vec(),
        DecodedArray::MaskedTensor(masked) => masked.data().bytes().to_vec(),
        _ => panic!("not a tensor"),
    }
}

/// Checks that the bytes of each chunk are equal, in a region of whole rows of 1,024 elements.
fn check_uniform(bytes: &[u8], chunk: [usize; 2], item_size: usize) {
    for rows in bytes.chunks(chunk[0] * 1024 * item_size) {
        for column in 0..1024 / chunk[1] {
            let first = &rows[column * chunk[1] * item_size..][..item_size];
            for row in rows.chunks(1024 * item_size) {
                let own = &row[column * chunk[1] * item_size..][..chunk[1] * item_size];
                assert!(own.chunks(item_size).all(|item| item == first), "a chunk of two versions");
            }
        }
    }
}

/// Layouts with chunks that are read in shares, with the shape of a chunk; and some without.
fn layouts() -> Vec<([u64; 2], Json)> {
    vec![
        ([1024, 1024], plain()),
        ([1024, 512], plain()),
        ([1024, 1024], blosc()),
        ([512, 1024], blosc()),
        ([1024, 1024], sharded([64, 64], &plain())),
        ([1024, 1024], sharded([256, 1024], &plain())),
        ([512, 1024], sharded([32, 1024], &zstd(1))),
        ([1024, 1024], zstd(1)),
        ([128, 1024], zstd(1)),
    ]
}

fn everywhere(test: impl Fn([usize; 2], &Case)) {
    for (chunk, codecs) in layouts() {
        for memory in [false, true] {
            for change in [Change::Flips, Change::Vanishes] {
                test(chunk.map(|extent| extent as usize), &int32(chunk, &codecs, memory, change, 0));
            }
        }
    }
}

#[test]
fn of_a_read() {
    everywhere(|chunk, case| {
        for _ in 0..3 {
            let all = |array: &Array| array.read(Selection::all(array.shape())).unwrap();
            check_uniform(&bytes(case.read(all)), chunk, 4);
        }
    });
}

#[test]
fn reads_into_the_callers_memory() {
    everywhere(|chunk, case| {
        let mut out = vec![0; 4 << 20];
        for _ in 0..3 {
            let all = Selection::all(case.array.shape());
            case.read(|array| array.request(&all).unwrap().read_into(&mut out).unwrap());
            check_uniform(&out, chunk, 4);
        }
    });
}

/// Every second column, and a list of rows: parts that need strided copies.
#[test]
fn of_a_read_of_parts() {
    everywhere(|chunk, case| {
        let step = |start, step| Index::Slice { start: Some(start), stop: None, step: Some(step) };
        let selection = Selection::new(case.array.shape(), &[step(0, 1), step(0, 2)]).unwrap();
        let read = bytes(case.read(|array| array.read(&selection).unwrap()));
        for row in read.chunks(512 * 4).step_by(chunk[0]) {
            let own = &row[..chunk[1] / 2 * 4];
            assert!(own.chunks(4).all(|item| item == &own[..4]));
        }
    });
}

/// Two selections of one chunk, by one handle and by two, and one selection alone.
#[test]
fn of_a_batch() {
    everywhere(|chunk, case| {
        let all = Selection::all(case.array.shape());
        let half = |start| {
            let rows = Index::Slice { start: Some(start), stop: Some(start + 512), step: None };
            Selection::new(case.array.shape(), &[rows]).unwrap()
        };
        let Node::Array(other) = zarrow::open(case.store.clone(), "").unwrap() else { panic!() };
        for halves in [vec![half(0), half(512)], vec![half(0), half(0)], vec![all]] {
            for second in [&case.array, &other] {
                let handles = [&case.array, second];
                let items = handles.into_iter().zip(&halves);
                let items: Vec<_> = items.map(|(array, half)| array.request(half).unwrap()).collect();
                let batch = case.read(|_| zarrow::read_many(&items).unwrap());
                let Batch::Stacked(stacked) = batch else { panic!("items of one shape") };
                let read = bytes(stacked);
                if halves.len() == 2 && chunk[0] == 1024 {
                    let (upper, lower) = read.split_at(read.len() / 2);
                    assert!(upper == lower, "two items of one chunk see two versions of it");
                }
                let rows = chunk[0].min(halves[0].shape()[0] as usize);
                check_uniform(&read, [rows, chunk[1]], 4);
            }
        }
    });
}

#[test]
fn reads_with_caches() {
    for (chunk, codecs) in layouts() {
        for memory in [false, true] {
            let case = int32(chunk, &codecs, memory, Change::Flips, 64 << 20);
            for _ in 0..6 {
                let all = |array: &Array| array.read(Selection::all(array.shape())).unwrap();
                check_uniform(&bytes(case.read(all)), chunk.map(|extent| extent as usize), 4);
            }
        }
    }
}

/// The inner chunks of a shard are mapped one by one.
#[test]
fn of_a_map() {
    for (chunk, codecs) in [
        ([1024, 1024], plain()),
        ([256, 1024], plain()),
        ([1024, 1024], sharded([64, 1024], &plain())),
        ([512, 1024], sharded([128, 1024], &plain())),
    ] {
        for change in [Change::Flips, Change::Vanishes] {
            let case = int32(chunk, &codecs, false, change, 0);
            for _ in 0..3 {
                let map = |array: &Array| array.request(..).unwrap().map().unwrap();
                let mapped = case.read(map).expect("plain chunks of whole rows are mapped");
                // SAFETY: a mapped tensor of whole chunks is one run of bytes, and it is not written to.
                let bytes = unsafe { std::slice::from_raw_parts(mapped.pointer().as_ptr(), mapped.nbytes()) };
                check_uniform(bytes, chunk.map(|extent| extent as usize), 4);
            }
        }
    }
}

#[test]
fn optional_elements_and_sentinel_values() {
    let case = int32([1024, 1024], &plain(), true, Change::Flips, 0);
    let missing = MissingValues::new(case.array.data_type(), vec![vec![1; 4]]).unwrap();
    for _ in 0..3 {
        let all = Selection::all(case.array.shape());
        let read = case.read(|array| array.request(&all).unwrap().missing(&missing).read().unwrap());
        check_uniform(&bytes(read), [1024, 1024], 4);
    }
}

/// A field of a structure, and several.
#[test]
fn of_fields() {
    let data_type = json!({"name": "struct", "configuration": {"fields": [
        {"name": "a", "data_type": "int32"}, {"name": "b", "data_type": "int16"}]}});
    for codecs in [plain(), sharded([128, 128], &plain()), zstd(1)] {
        for memory in [false, true] {
            let metadata = metadata(&data_type, &json!({"a": 0, "b": 0}), [1024, 1024], &codecs);
            let folder = Arc::new(MemoryStore::default());
            let document = serde_json::to_vec(&metadata).unwrap();
            folder.writer().unwrap().set("zarr.json", &[&document], Durability::None).unwrap();
            let Node::Array(array) = zarrow::open(folder, "").unwrap() else { panic!() };
            let dtype = array.data_type().clone();
            let (one, two) = ([1u8; 6], [2u8; 6]);
            let values = [&one, &two].map(|bytes| Values::contiguous(bytes, dtype.clone(), &[]).unwrap());
            let case = case(&metadata, values, memory, Change::Flips, 0);
            let (a, both) = (case.array.field("a").unwrap(), case.array.fields(&["a", "b"]).unwrap());
            let all = Selection::all(case.array.shape());
            for _ in 0..2 {
                check_uniform(
                    &bytes(case.read(|array| array.request(&all).unwrap().field(&a).read().unwrap())),
                    [1024, 1024],
                    4,
                );
                check_uniform(
                    &bytes(case.read(|array| array.request(&all).unwrap().field(&both).read().unwrap())),
                    [1024, 1024],
                    6,
                );
            }
        }
    }
}

/// Mask and elements: all are missing in one version, and none in the other.
#[test]
fn elements_and_their_mask() {
    let data_type =
        json!({"name": "zarrs.optional", "configuration": {"name": "int32", "configuration": {}}});
    for data in [plain(), zstd(1)] {
        let configuration = json!({"mask_codecs": [{"name": "packbits"}], "data_codecs": data});
        let optional = json!([{"name": "zarrs.optional", "configuration": configuration}]);
        for codecs in [optional.clone(), sharded([128, 1024], &optional)] {
            for memory in [false, true] {
                let metadata = metadata(&data_type, &json!([5]), [1024, 1024], &codecs);
                let number = zarrow_array::Number::Int32;
                let there = Values::contiguous(&[2; 4], number.into(), &[]).unwrap();
                let mask = Values::contiguous(&[1], zarrow_array::Number::Bool.into(), &[]).unwrap();
                let missing = there.clone().with_mask(&mask).unwrap();
                let case = case(&metadata, [there, missing], memory, Change::Flips, 0);
                for expected in [0, 1, 0] {
                    let all = Selection::all(case.array.shape());
                    let read = case.read(|array| array.read(&all).unwrap());
                    let DecodedArray::MaskedTensor(masked) = read else { panic!("optional elements") };
                    assert!(masked.mask().missing().iter().all(|missing| *missing == expected));
                    check_uniform(masked.data().bytes(), [1024, 1024], 4);
                }
            }
        }
    }
}

#[test]
fn of_strings() {
    let data_type = json!("string");
    for codecs in [json!([{"name": "vlen-utf8"}]), sharded([512, 1024], &json!([{"name": "vlen-utf8"}]))] {
        let metadata = metadata(&data_type, &json!(""), [1024, 1024], &codecs);
        let words = ["old", "newer"].map(|word| {
            let offsets = [0, word.len() as i64].map(i64::to_ne_bytes);
            let buffer = |bytes: &[u8]| zarrow_array::Buffer::copy_of(bytes).unwrap();
            let (offsets, data) = (buffer(offsets.as_flattened()), buffer(word.as_bytes()));
            zarrow_array::Variable::new(offsets, data, vec![], zarrow_array::DataType::String).unwrap()
        });
        let values = [Values::variable(&words[0]), Values::variable(&words[1])];
        let case = case(&metadata, values, true, Change::Flips, 0);
        for expected in ["old", "newer", "old"] {
            let all = Selection::all(case.array.shape());
            let read = case.read(|array| array.read(&all).unwrap());
            let DecodedArray::Variable(read) = read else { panic!("strings") };
            assert!((0..1 << 20).all(|index| read.element(index) == Some(expected.as_bytes())));
        }
    }
}

/// A folder that counts the opened chunks.
#[derive(Debug)]
struct Counted {
    folder: FilesystemStore,
    opened: AtomicUsize,
}

impl Store for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    fn open(&self, key: &str) -> zarrow::Result<Option<Box<dyn Value + '_>>> {
        self.opened.fetch_add(usize::from(key.starts_with("c/")), Ordering::Relaxed);
        self.folder.open(key)
    }

    fn version_without_opening(&self, key: &str) -> zarrow::Result<Option<[u64; 4]>> {
        self.folder.version_without_opening(key)
    }

    fn list(&self, prefix: &str) -> zarrow::Result<Vec<String>> {
        self.folder.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> zarrow::Result<u64> {
        self.folder.nbytes(prefix)
    }
}

/// A cached chunk is not opened, until its file is replaced or removed.
#[test]
fn of_cached_chunks_without_opening_them() {
    let transposed =
        json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, plain()[0], zstd(1)[1]]);
    for codecs in [zstd(1), transposed] {
        let folder = tempfile::tempdir().unwrap();
        let store = FilesystemStore::open(folder.path()).unwrap();
        let metadata = metadata(&json!("int32"), &json!(7), [512, 256], &codecs);
        let document = serde_json::to_vec(&metadata).unwrap();
        store.writer().unwrap().set("zarr.json", &[&document], Durability::None).unwrap();
        let Node::Array(array) = zarrow::open(Arc::new(store), "").unwrap() else { panic!("not an array") };
        let mut expected: Vec<i32> = (0..1 << 20).collect();
        let write = |array: &Array, values: &[i32]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            let values =
                Values::contiguous(&bytes, zarrow_array::Number::Int32.into(), &[1024, 1024]).unwrap();
            array.write_request(Selection::all(array.shape())).unwrap().write(&values).unwrap();
        };
        write(&array, &expected);
        let folder_store = FilesystemStore::open(folder.path()).unwrap();
        let store = Arc::new(Counted { folder: folder_store, opened: AtomicUsize::new(0) });
        let options = OpenOptions::default().cache_nbytes(16 << 20);
        let Node::Array(cached) = open_with(store.clone(), "", &options).unwrap() else { panic!() };
        // Returns how many chunks a read opened.
        let opened = |expected: &[i32]| {
            let before = store.opened.load(Ordering::Relaxed);
            let read = bytes(cached.read(Selection::all(cached.shape())).unwrap());
            assert!(read.chunks(4).zip(expected).all(|(bytes, value)| bytes == value.to_ne_bytes()));
            store.opened.load(Ordering::Relaxed) - before
        };
        // Files that were just written are not cached, and none of a file system that other machines may change.
        let is_cached = |expected: &[i32]| {
            (0..300).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                opened(expected) == 0
            })
        };
        if !is_cached(&expected) {
            assert_eq!(store.version_without_opening("c/0/0").unwrap(), None);
            return;
        }
        expected.iter_mut().for_each(|value| *value += 1);
        write(&array, &expected);
        assert_eq!(opened(&expected), 8);
        assert!(is_cached(&expected));
        std::fs::remove_file(folder.path().join("c/1/2")).unwrap();
        for row in 512..1024 {
            expected[row * 1024 + 512..][..256].fill(7);
        }
        assert_eq!(opened(&expected), 1);
    }
}
