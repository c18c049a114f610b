//! Each allocation of 4 KiB and more in reads, writes and changes of a hierarchy fails once. Then the operation is out of
//! memory, or did not need it; the store has each value's old or new state; and the same operation succeeds when
//! repeated.
//!
//! With `ALLOCATION_TRACE` set, each failed allocation prints its stack.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]

use serde_json::{Map, Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use zarrow::arrow::{Column, Table, TableOptions};
use zarrow::metadata::{Attributes, CodecMetadata, FillValue, MetadataLimits};
use zarrow::store::{MemoryStore, Store};
use zarrow::{
    Array, ArrayBuilder, AttributeChange, AxisIndex, Existing, Group, Index, Node, OpenOptions, Result,
    Selection, Values, ZarrFormat,
};
use zarrow_array::{Buffer, DataType, DecodedArray, Field, Number, Struct, Tensor, Variable};

/// The system's allocator, with injected failures.
struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Smaller allocations do not grow with data.
const LEAST: usize = 4096;

// Failures apply to the thread that attacks. When a test ends, the test harness copies the captured output on that test's
// thread, while the next test already attacks; a failure there would abort the process. The engine uses one thread.
thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static FAILS: Cell<u64> = const { Cell::new(0) };

    /// Allocations of at least this size always fail.
    static MOST: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn fails(nbytes: usize) -> bool {
    if nbytes >= MOST.get() {
        return true;
    }
    if nbytes < LEAST || !ARMED.get() {
        return false;
    }
    COUNT.set(COUNT.get() + 1);
    let fails = COUNT.get() == FAILS.get();
    if fails && std::env::var_os("ALLOCATION_TRACE").is_some() {
        ARMED.set(false);
        eprintln!("{nbytes} bytes:\n{}", std::backtrace::Backtrace::force_capture());
        ARMED.set(true);
    }
    fails
}

// SAFETY: all memory comes from the system, and an allocator may return null.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        if fails(layout.size()) { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        if fails(layout.size()) { std::ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, nbytes: usize) -> *mut u8 {
        if fails(nbytes) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's contract.
        unsafe { System.realloc(pointer, layout, nbytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs one test at a time: all tests share the number of threads and the recycled memory.
static ONE: Mutex<()> = Mutex::new(());

/// The state that an operation works on, and the operation.
type Prepared = (Arc<MemoryStore>, Box<dyn FnMut() -> Result<()>>);

/// Returns all values of a store.
fn values(store: &MemoryStore, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for name in store.list(prefix).unwrap() {
        let key = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        match store.get(&key, u64::MAX).unwrap() {
            Some(value) => drop(found.insert(key, value)),
            None => values(store, &key, found),
        }
    }
}

fn stored(store: &MemoryStore) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    values(store, "", &mut found);
    found
}

/// Repeats the operation, each time with another failing allocation.
fn attack(name: &str, prepare: &dyn Fn() -> Prepared) {
    let (store, mut act) = prepare();
    let before = stored(&store);
    act().unwrap_or_else(|error| panic!("{name}: {error}"));
    let after = stored(&store);
    for number in 1.. {
        let (store, mut act) = prepare();
        zarrow::release_idle();
        zarrow_array::release_recycled();
        if std::env::var_os("ALLOCATION_TRACE").is_some() {
            eprintln!("{name}: allocation {number}");
        }
        COUNT.set(0);
        FAILS.set(number);
        ARMED.set(true);
        let result = act();
        ARMED.set(false);
        if let Err(error) = result {
            assert_eq!(error.kind().code(), "out_of_memory", "{name}, allocation {number}: {error}");
        }
        let now = stored(&store);
        for key in before.keys().chain(after.keys()).chain(now.keys()) {
            let value = now.get(key);
            assert!(
                value == before.get(key) || value == after.get(key),
                "{name}, allocation {number}: {key}"
            );
        }
        if COUNT.get() < number {
            return;
        }
        act().unwrap_or_else(|error| panic!("{name}, again after allocation {number}: {error}"));
    }
}

const COUNT_OF_ELEMENTS: usize = 20_000;

fn codec(name: &str, configuration: Value) -> CodecMetadata {
    CodecMetadata::new(name, configuration.as_object().cloned().unwrap_or_default())
}

fn blosc(cname: &str, shuffle: &str) -> CodecMetadata {
    let configuration =
        json!({"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 8, "blocksize": 4096});
    codec("blosc", configuration)
}

fn create(store: &Arc<MemoryStore>, path: &str, builder: ArrayBuilder) -> Array {
    let store: Arc<dyn Store> = store.clone();
    let options = OpenOptions::default();
    zarrow::create_array(store, path, builder.build().unwrap(), Existing::Refuse, &options).unwrap()
}

/// Returns numbers that compress somewhat.
fn numbers(dtype: &DataType, shape: &[u64]) -> DecodedArray {
    let nbytes = shape.iter().product::<u64>() as usize * dtype.item_size().unwrap();
    let is_bool = dtype.as_number() == Some(Number::Bool);
    let bytes: Vec<u8> = (0..nbytes as u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as u8)
        .map(|byte| if is_bool { byte & 1 } else { byte })
        .collect();
    DecodedArray::Tensor(Tensor::new(Buffer::from(bytes), shape.to_vec(), dtype.clone()).unwrap())
}

fn strings(count: usize) -> DecodedArray {
    let texts: Vec<String> = (0..count).map(|at| "é".repeat(at % 7) + &at.to_string()).collect();
    let mut offsets = vec![0i64];
    texts.iter().for_each(|text| offsets.push(offsets.last().unwrap() + text.len() as i64));
    let data = Buffer::from(texts.concat().into_bytes());
    let variable = Variable::new(Buffer::from(offsets), data, vec![count as u64], DataType::String).unwrap();
    DecodedArray::Variable(variable)
}

/// One array of each kind: its name, its constructor, and values for all of it.
fn kinds() -> Vec<(&'static str, ArrayBuilder, DecodedArray, Option<Vec<u8>>)> {
    let count = COUNT_OF_ELEMENTS as u64;
    let int64 = DataType::from(Number::Int64);
    let plain = |dtype: &DataType| ArrayBuilder::new([count], dtype.clone()).chunk_shape([count / 4]);
    let mut kinds = Vec::new();
    let compressed: [(&str, Vec<CodecMetadata>); 14] = [
        ("raw", vec![]),
        ("zstd", vec![codec("zstd", json!({"level": 1, "checksum": true}))]),
        ("gzip", vec![codec("gzip", json!({"level": 1}))]),
        ("zlib", vec![codec("numcodecs.zlib", json!({"level": 6}))]),
        ("lz4", vec![codec("numcodecs.lz4", json!({"acceleration": 1}))]),
        ("bz2", vec![codec("numcodecs.bz2", json!({"level": 1}))]),
        ("blosc", vec![blosc("lz4", "shuffle")]),
        ("blosc, lz4hc", vec![blosc("lz4hc", "bitshuffle")]),
        ("blosc, zlib", vec![blosc("zlib", "noshuffle")]),
        ("blosc, zstd", vec![blosc("zstd", "shuffle")]),
        ("blosc, blosclz", vec![blosc("blosclz", "bitshuffle")]),
        ("crc32c", vec![codec("crc32c", json!({}))]),
        (
            "zstd, crc32c, gzip",
            vec![codec("zstd", json!({})), codec("crc32c", json!({})), codec("gzip", json!({"level": 1}))],
        ),
        ("crc32c, zstd", vec![codec("crc32c", json!({})), codec("zstd", json!({}))]),
    ];
    for (name, compressors) in compressed {
        kinds.push((name, plain(&int64).compressors(compressors), numbers(&int64, &[count]), None));
    }
    let shape = [100, count / 100];
    let square = |dtype: &DataType| ArrayBuilder::new(shape, dtype.clone());
    kinds.push((
        "shards",
        square(&int64).chunk_shape([10, 20]).shard_shape([50, 100]),
        numbers(&int64, &shape),
        None,
    ));
    kinds.push((
        "turned",
        square(&int64).chunk_shape([50, 60]).column_major(true),
        numbers(&int64, &shape),
        None,
    ));
    kinds.push((
        "swapped",
        square(&int64).chunk_shape([50, 60]).big_endian(true),
        numbers(&int64, &shape),
        None,
    ));
    let bool = DataType::from(Number::Bool);
    let packed = plain(&bool).serializer(codec("packbits", json!({})));
    kinds.push(("bits", packed, numbers(&bool, &[count]), None));
    let field = |name: &str, number: Number, offset| Field {
        name: name.into(),
        data_type: number.into(),
        shape: [].into(),
        offset,
    };
    let fields = vec![field("a", Number::Int32, 0), field("b", Number::Float64, 4)];
    let structure = DataType::Struct(Struct::new(fields, 12).unwrap());
    kinds.push(("structures", plain(&structure), numbers(&structure, &[count]), None));
    kinds.push(("strings", plain(&DataType::String), strings(count as usize), None));
    let mask: Vec<u8> = (0..count).map(|at| u8::from(at % 3 == 1)).collect();
    let optional = |inner: DataType| DataType::Optional(Box::new(inner));
    kinds.push(("optional", plain(&optional(int64.clone())), numbers(&int64, &[count]), Some(mask.clone())));
    kinds.push(("optional strings", plain(&optional(DataType::String)), strings(count as usize), Some(mask)));
    kinds
}

fn write(array: &Array, selection: &Selection, values: &Values<'_>) -> Result<()> {
    array.write(selection, values)
}

/// Runs `act` with each kind of array, filled, and with its values.
fn with_each(operation: &str, act: fn(&mut Array, &DecodedArray, Option<&Values<'_>>) -> Result<()>) {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    zarrow::set_num_threads(1);
    let wanted = std::env::var("ALLOCATION_KIND").ok();
    let kinds = kinds();
    for (name, builder, source, mask) in &kinds {
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        attack(&format!("{operation}, {name}"), &|| {
            let store = Arc::new(MemoryStore::default());
            let mut array = create(&store, "", builder.clone());
            let all = Selection::all(array.shape());
            let shape = [source_shape(source)].concat();
            let (source, mask) = (clone(source), mask.clone());
            {
                let mask =
                    mask.as_ref().map(|mask| Values::contiguous(mask, Number::Bool.into(), &shape).unwrap());
                let values = Values::decoded(&source).unwrap();
                let values = match &mask {
                    Some(mask) => values.with_mask(mask).unwrap(),
                    None => values,
                };
                write(&array, &all, &values).unwrap();
            }
            let act = move || {
                let mask =
                    mask.as_ref().map(|mask| Values::contiguous(mask, Number::Bool.into(), &shape).unwrap());
                act(&mut array, &source, mask.as_ref())
            };
            (store, Box::new(act))
        });
    }
}

fn source_shape(source: &DecodedArray) -> Vec<u64> {
    match source {
        DecodedArray::Tensor(tensor) => tensor.shape().to_vec(),
        DecodedArray::Variable(variable) => variable.shape().to_vec(),
        _ => panic!("a source of another layout"),
    }
}

fn clone(source: &DecodedArray) -> DecodedArray {
    match source {
        DecodedArray::Tensor(tensor) => {
            let bytes = Buffer::copy_of(tensor.bytes()).unwrap();
            DecodedArray::Tensor(Tensor::new(bytes, tensor.shape().to_vec(), tensor.dtype().clone()).unwrap())
        }
        DecodedArray::Variable(variable) => strings(variable.shape()[0] as usize),
        _ => panic!("a source of another layout"),
    }
}

fn read(array: &Array, selection: &Selection) -> Result<()> {
    array.read(selection).map(drop)
}

/// Positions that are not a slice: every third one, backwards in pairs.
fn list(extent: u64) -> zarrow_array::Result<Vec<i64>> {
    let positions = (0..extent as i64 / 3).map(|at| (at ^ 1) * 3).filter(|at| *at < extent as i64);
    zarrow_array::allocation::collected(positions)
}

#[test]
fn reads() {
    with_each("all", |array, _, _| read(array, &Selection::all(array.shape())));
}

#[test]
fn reads_of_slices() {
    with_each("a slice", |array, _, _| {
        let index = Index::Slice { start: Some(7), stop: Some(-5), step: Some(3) };
        read(array, &Selection::new(array.shape(), &[index])?)
    });
}

#[test]
fn reads_of_lists() {
    with_each("a list", |array, _, _| {
        let list = list(array.shape()[0])?;
        read(array, &Selection::orthogonal(array.shape(), &[AxisIndex::List(&list)])?)
    });
}

#[test]
fn reads_of_points_and_masks() {
    with_each("a mask", |array, _, _| {
        let count = array.shape().iter().product::<u64>();
        let mask = zarrow_array::allocation::collected((0..count).map(|at| at % 5 == 2))?;
        read(array, &Selection::mask(array.shape(), &mask)?)
    });
}

#[test]
fn batches() {
    with_each("a batch", |array, _, _| {
        let index = |start| Index::Slice { start: Some(start), stop: Some(start + 40), step: None };
        let (one, other) =
            (Selection::new(array.shape(), &[index(3)])?, Selection::new(array.shape(), &[index(30)])?);
        let all = Selection::all(array.shape());
        zarrow::read_many(&[array.request(&one)?, array.request(&other)?])?;
        zarrow::read_many(&[array.request(&one)?, array.request(&all)?]).map(drop)
    });
}

#[test]
fn whole_writes() {
    with_each("all written", |array, source, mask| {
        let values = Values::decoded(source)?;
        let values = match mask {
            Some(mask) => values.with_mask(mask)?,
            None => values,
        };
        write(array, &Selection::all(array.shape()), &values)
    });
}

#[test]
fn writes_of_parts() {
    with_each("a part written", |array, source, mask| {
        let index = |stop: u64| Index::Slice { start: Some(1), stop: Some(1 + stop as i64), step: None };
        let extent = array.shape()[0] - 2;
        let selection = Selection::new(array.shape(), &[index(extent)])?;
        // All rows but the last two, shifted by one.
        let shape: Vec<u64> = std::iter::once(extent).chain(array.shape()[1..].iter().copied()).collect();
        let array_of = |extent: u64| shape.iter().product::<u64>() as usize * extent as usize;
        match source {
            DecodedArray::Tensor(tensor) => {
                let bytes = &tensor.bytes()[..array_of(tensor.dtype().item_size().unwrap() as u64)];
                let values = Values::contiguous(bytes, tensor.dtype().clone(), &shape)?;
                let missing = vec_of(array_of(1))?;
                let other = Values::contiguous(&missing, Number::Bool.into(), &shape)?;
                let values = if mask.is_some() { values.with_mask(&other)? } else { values };
                write(array, &selection, &values)
            }
            DecodedArray::Variable(_) => {
                write(array, &Selection::all(array.shape()), &Values::decoded(source)?)
            }
            _ => Ok(()),
        }
    });
}

fn vec_of(count: usize) -> Result<Vec<u8>> {
    Ok(zarrow_array::allocation::filled(0u8, count)?)
}

#[test]
fn writes_of_lists() {
    with_each("a list written", |array, source, _| {
        let list = list(array.shape()[0])?;
        let selection = Selection::orthogonal(array.shape(), &[AxisIndex::List(&list)])?;
        match source {
            DecodedArray::Tensor(tensor) => {
                let item = vec_of(tensor.dtype().item_size().unwrap())?;
                write(array, &selection, &Values::contiguous(&item, tensor.dtype().clone(), &[])?)
            }
            _ => Ok(read(array, &selection)?),
        }
    });
}

#[test]
fn resizes_and_appends() {
    with_each("a resize", |array, _, _| {
        let mut shape = array.shape().to_vec();
        shape[0] = shape[0] / 2 + 1;
        array.resize(&shape)
    });
    with_each("an append", |array, source, mask| {
        let values = Values::decoded(source)?;
        let values = match mask {
            Some(mask) => values.with_mask(mask)?,
            None => values,
        };
        array.append(&values, 0).map(drop)
    });
}

/// Returns a group of many arrays, with attributes.
fn hierarchy(zarr_format: ZarrFormat, consolidated: bool) -> (Arc<MemoryStore>, Group) {
    let store = Arc::new(MemoryStore::default());
    let attributes = Map::from_iter([("title".to_owned(), json!("x".repeat(500)))]);
    let options = OpenOptions::default();
    let mut group =
        zarrow::create_group(store.clone(), "", zarr_format, attributes, Existing::Refuse, &options).unwrap();
    for number in 0..20 {
        let array = ArrayBuilder::new([10], Number::Int16).zarr_format(zarr_format).build().unwrap();
        group.create_array(&format!("array-{number}"), array, Existing::Refuse).unwrap();
    }
    if consolidated {
        group.consolidate_metadata().unwrap();
    }
    (store, group)
}

/// Returns attributes to add, of less than 4 KiB.
fn more() -> Result<Attributes> {
    let text = ["{\"more\": \"", &"y".repeat(3000), "\"}"].concat();
    Ok(Attributes::parse(text.as_bytes(), &MetadataLimits::default())?)
}

#[test]
fn hierarchies() {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    zarrow::set_num_threads(1);
    for format in [ZarrFormat::V2, ZarrFormat::V3] {
        let with = |name: &str, consolidated: bool, act: fn(&mut Group) -> Result<()>| {
            attack(&format!("{name}, {format:?}"), &|| {
                let (store, mut group) = hierarchy(format, consolidated);
                (store, Box::new(move || act(&mut group)))
            });
        };
        with("consolidate", false, Group::consolidate_metadata);
        with("open", true, |group| zarrow::open(Arc::clone(group.store()), "").map(drop));
        with("open a child", true, |group| {
            let Node::Group(group) = zarrow::open(Arc::clone(group.store()), "")? else { panic!("an array") };
            group.get("array-7").map(drop)
        });
        with("children", true, |group| {
            group.refresh()?;
            group.children()?.into_iter().try_for_each(|(_, child)| child.map(drop))
        });
        with("attributes", true, |group| group.change_attributes(&AttributeChange::Update(more()?)));
        with("attributes of a child", true, |group| {
            let Node::Array(mut array) = group.get("array-3")? else { panic!("a group") };
            array.change_attributes(&AttributeChange::Update(more()?))
        });
        with("an array more", true, |group| {
            let array = ArrayBuilder::new([10], Number::Int16).zarr_format(group.zarr_format()).build()?;
            group.create_array("another", array, Existing::Erase).map(drop)
        });
    }
}

#[test]
fn fill_values() {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    zarrow::set_num_threads(1);
    attack("a large fill value", &|| {
        let store = Arc::new(MemoryStore::default());
        let dtype = DataType::RawBytes { length: 6000 };
        let fill = FillValue::Fixed(vec![3; 6000]);
        let array = create(&store, "", ArrayBuilder::new([9], dtype).chunk_shape([3]).fill_value(fill));
        // A handle that has seen its document once does not parse it again, so the parser's tree is not tested here.
        let one = vec![3; 6000];
        let values = Values::contiguous(&one, array.data_type().clone(), &[]).unwrap();
        write(&array, &Selection::new(array.shape(), &[Index::At(8)]).unwrap(), &values).unwrap();
        let act = move || {
            let item = vec_of(6000)?;
            let values = Values::contiguous(&item, array.data_type().clone(), &[])?;
            write(&array, &Selection::new(array.shape(), &[Index::At(4)])?, &values)?;
            read(&array, &Selection::all(array.shape()))
        };
        (store, Box::new(act))
    });
}

/// Runs `act` without and then with free blocks of 1 MiB. It requests one before it calls a library that would end the
/// process; the library's allocations are smaller.
fn asks_before(name: &str, act: &dyn Fn() -> Result<()>) {
    zarrow::set_num_threads(1);
    MOST.set(1 << 20);
    let refused = act();
    MOST.set(usize::MAX);
    assert_eq!(refused.unwrap_err().kind().code(), "out_of_memory", "{name}");
    act().unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn pcodec_asks_before() {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let int64 = DataType::from(Number::Int64);
    let count = COUNT_OF_ELEMENTS as u64;
    let builder = ArrayBuilder::new([count], int64.clone()).chunk_shape([count]);
    let pcodec = builder.serializer(codec("numcodecs.pcodec", json!({"level": 8})));
    let array = create(&Arc::default(), "", pcodec);
    let (all, numbers) = (Selection::all(array.shape()), numbers(&int64, &[count]));
    asks_before("a write of pcodec", &|| write(&array, &all, &Values::decoded(&numbers)?));
    asks_before("a read of pcodec", &|| read(&array, &all));
}

/// Texts of 200 kB: their document is parsed in less than 1 MiB, and their copies take more.
#[test]
fn long_texts_ask_before() {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let long = "a long text ".repeat(17_000);
    let stored = |data_type: &str, fill: &str, attributes: Value| {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": data_type, "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "vlen-utf8"}], "attributes": attributes,
        });
        Arc::new(MemoryStore::new([("zarr.json", document.to_string().into_bytes())]).unwrap())
    };
    let open = |store: &Arc<MemoryStore>| zarrow::open(store.clone(), "");
    let filled = stored("string", &long, json!({}));
    asks_before("a fill value", &|| open(&filled).map(drop));
    let noted = stored("string", "", json!({"note": long}));
    let Node::Array(array) = open(&noted).unwrap() else { panic!("no array") };
    let table = Table::new(vec![Column::new("noted", array).unwrap()], TableOptions::default()).unwrap();
    asks_before("attributes in a schema of Arrow", &|| table.schema().map(drop));
}
