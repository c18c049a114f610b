//! Memory that another thread writes to while it is written from, or read into: each stored byte existed in its place
//! at some moment, every chunk decodes, and no other memory is accessed (`make asan` uses AddressSanitizer).
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zarrow::store::MemoryStore;
use zarrow::{Array, ErrorKind, Index, Node, Selection, Strided, Values, open};
use zarrow_array::{DataType, DecodedArray, Number, SharedBytes, Variable};

/// Bytes of the values, and of the chunk in arrays of one chunk.
const NBYTES: usize = 96 << 10;
/// Number of writes or reads of each case.
const ROUNDS: usize = 8;

/// Memory that several threads write to: one of two patterns, or a mixture.
struct Changing {
    memory: *mut u8,
    patterns: [Vec<u8>; 2],
}

// SAFETY: the memory is only accessed by address.
unsafe impl Send for Changing {}
// SAFETY: as above.
unsafe impl Sync for Changing {}

impl Changing {
    fn new(patterns: [Vec<u8>; 2]) -> Changing {
        let memory = Box::into_raw(patterns[0].clone().into_boxed_slice()).cast();
        Changing { memory, patterns }
    }

    fn nbytes(&self) -> usize {
        self.patterns[0].len()
    }

    fn put(&self, pattern: usize, range: Range<usize>) {
        // SAFETY: both have this many bytes.
        unsafe {
            let from = self.patterns[pattern].as_ptr().add(range.start);
            from.copy_to_nonoverlapping(self.memory.add(range.start), range.len());
        }
    }

    /// Calls `work` a number of times while another thread alternates the patterns.
    fn during(&self, mut work: impl FnMut(usize)) {
        let (begun, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // At once, and in pieces from the end, so that it changes ahead of the reader.
                let piece = self.nbytes() / 16;
                while !stop.load(Ordering::Relaxed) {
                    for pattern in [1, 0] {
                        self.put(pattern, 0..self.nbytes());
                        begun.store(true, Ordering::Relaxed);
                    }
                    for pattern in [1, 0] {
                        (0..16)
                            .rev()
                            .for_each(|number| self.put(pattern, number * piece..(number + 1) * piece));
                    }
                }
            });
            while !begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            // Also if the work panics: otherwise joining the other thread would hang.
            let _stop = Stop(&stop);
            (0..ROUNDS).for_each(&mut work);
        });
    }

    /// Returns whether each byte equals a pattern's at its offset.
    fn check(&self, name: &str, found: &[u8]) {
        assert_eq!(found.len(), self.nbytes(), "{name}");
        let [old, new] = &self.patterns;
        let odd = (0..found.len()).find(|at| found[*at] != old[*at] && found[*at] != new[*at]);
        assert_eq!(odd, None, "{name}: a byte that its place never held");
    }
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let all = std::ptr::slice_from_raw_parts_mut(self.memory, self.nbytes());
        // SAFETY: the box comes from `new`.
        drop(unsafe { Box::from_raw(all) });
    }
}

/// Returns a few numbers, each close to the previous one.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// Skewed bytes, mostly of small values; and bytes that are rare among them, with the longest words in a code made for
/// the first.
fn skewed() -> [Vec<u8>; 2] {
    let mut next = numbers(11);
    let common = (0..NBYTES).map(|_| (next() | next() << 31).trailing_zeros().min(20) as u8).collect();
    let rare = (0..NBYTES).map(|_| 14 + (next() % 7) as u8).collect();
    [common, rare]
}

/// Bytes below 128 without repetitions, with a few of the others in between; and only those others. A code made for the
/// first has words of nearly two bytes for the second.
fn unlikely() -> [Vec<u8>; 2] {
    let mut next = numbers(13);
    let likely =
        (0..NBYTES).map(|_| (next() % 128) as u8 | u8::from(next().is_multiple_of(1000)) << 7).collect();
    let unlikely = (0..NBYTES).map(|_| 128 + (next() % 128) as u8).collect();
    [likely, unlikely]
}

fn codecs() -> Vec<(String, Vec<Value>)> {
    let one = |name: &str, configuration: Value| json!({"name": name, "configuration": configuration});
    let mut all = vec![
        ("raw".to_owned(), vec![]),
        ("crc32c".to_owned(), vec![json!({"name": "crc32c"})]),
        (
            "crc32c zstd".to_owned(),
            vec![json!({"name": "crc32c"}), one("zstd", json!({"level": 1, "checksum": false}))],
        ),
        ("lz4".to_owned(), vec![one("numcodecs.lz4", json!({"acceleration": 1}))]),
        ("bz2".to_owned(), vec![one("numcodecs.bz2", json!({"level": 1}))]),
    ];
    for (level, checksum) in [(-5, false), (3, true), (3, false), (19, false)] {
        all.push((
            format!("zstd {level} {checksum}"),
            vec![one("zstd", json!({"level": level, "checksum": checksum}))],
        ));
    }
    for level in [1, 2, 5, 6, 9] {
        all.push((format!("gzip {level}"), vec![one("gzip", json!({"level": level}))]));
    }
    all.push(("zlib".to_owned(), vec![one("numcodecs.zlib", json!({"level": 6}))]));
    for cname in ["lz4", "lz4hc", "blosclz", "zlib", "zstd"] {
        for (shuffle, typesize, blocksize) in [
            ("shuffle", 4, 0),
            ("noshuffle", 4, 0),
            ("shuffle", 1, 0),
            ("bitshuffle", 4, 0),
            ("bitshuffle", 200, 130),
        ] {
            let blosc = json!({
                "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": typesize, "blocksize": blocksize,
            });
            all.push((format!("blosc {cname} {shuffle} {typesize}"), vec![one("blosc", blosc)]));
        }
    }
    all
}

fn array(data_type: &Value, shape: usize, chunk: usize, codecs: &[Value], fill: &Value) -> Array {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [shape], "data_type": data_type, "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}}, "fill_value": fill,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "attributes": {},
    });
    let store = MemoryStore::new([("zarr.json", document.to_string().into_bytes())]).unwrap();
    match open(Arc::new(store), "").unwrap() {
        Node::Array(array) => array,
        Node::Group(_) => panic!("not an array"),
    }
}

fn with_bytes(compressors: &[Value]) -> Vec<Value> {
    [&[json!({"name": "bytes", "configuration": {"endian": "little"}})], compressors].concat()
}

fn sharded(inner: usize, codecs: &[Value]) -> Vec<Value> {
    let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]);
    let configuration = json!({"chunk_shape": [inner], "codecs": codecs, "index_codecs": index});
    vec![json!({"name": "sharding_indexed", "configuration": configuration})]
}

fn uint8() -> DataType {
    Number::UInt8.into()
}

/// Returns all of the memory as one-byte elements.
fn values(changing: &Changing) -> Values<'_> {
    let place = (changing.memory.cast_const(), changing.nbytes(), 0);
    // SAFETY: the memory outlives the values, and may be written to by others.
    unsafe { Values::strided(place, uint8(), &[changing.nbytes() as u64], &[1], false) }.unwrap()
}

fn write(array: &Array, values: &Values<'_>) {
    let all = Selection::all(array.shape());
    array.write(&all, values).unwrap();
}

fn read(array: &Array) -> DecodedArray {
    array.read(Selection::all(array.shape())).unwrap()
}

fn bytes(decoded: &DecodedArray) -> &[u8] {
    match decoded {
        DecodedArray::Tensor(tensor) => tensor.bytes(),
        DecodedArray::MaskedTensor(masked) => masked.data().bytes(),
        _ => panic!("no elements of one size"),
    }
}

#[test]
fn every_codec_at_every_door() {
    let changing = Changing::new(skewed());
    for (name, compressors) in codecs() {
        let codecs = with_bytes(&compressors);
        let doors = [
            ("whole", array(&json!("uint8"), NBYTES, NBYTES, &codecs, &json!(99))),
            ("part", array(&json!("uint8"), NBYTES, NBYTES * 2, &codecs, &json!(99))),
            ("sharded", array(&json!("uint8"), NBYTES, NBYTES, &sharded(NBYTES / 2, &codecs), &json!(99))),
        ];
        let slow = name.contains("19") || name.contains("hc") || name.contains("bz2");
        for (door, array) in &doors {
            changing.during(|round| {
                if !slow || round < 3 {
                    write(array, &values(&changing));
                    changing.check(&format!("{name}, {door}"), bytes(&read(array)));
                }
            });
        }
    }
}

/// Deflate measures a block with the bytes that its code was made for, and encodes the bytes that it finds later: if they
/// differ, it could write beyond the end of its output.
#[test]
fn words_longer_than_measured() {
    let changing = Changing::new(unlikely());
    for (name, compressors) in codecs() {
        if name.contains("gzip") || name.contains("zlib") {
            let codecs = with_bytes(&compressors);
            let array = array(&json!("uint8"), NBYTES, NBYTES, &codecs, &json!(0));
            changing.during(|_| {
                for _ in 0..4 {
                    write(&array, &values(&changing));
                    changing.check(&name, bytes(&read(&array)));
                }
            });
        }
    }
}

/// A chunk is omitted as filled only if each element was the fill value at some moment: zeros are read only where the
/// source held zeros.
#[test]
fn chunks_skipped_as_fill_values_held_only_fill_values() {
    let mut patterns = [vec![0u8; NBYTES], vec![7u8; NBYTES]];
    // Never 0 after the first quarter.
    patterns[0][NBYTES / 4..].fill(5);
    let changing = Changing::new(patterns);
    for chunk in [NBYTES, 4096, 64] {
        let array = array(&json!("uint8"), NBYTES, chunk, &with_bytes(&[]), &json!(0));
        changing.during(|_| {
            write(&array, &values(&changing));
            changing.check("filled", bytes(&read(&array)));
        });
    }
}

/// A mask may change while it is read; the stored mask is valid.
#[test]
fn masks_that_change() {
    let (data, mask) = (Changing::new(skewed()), Changing::new([vec![0; NBYTES], vec![0x83; NBYTES]]));
    let bytes_codec = json!([{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 5}}]);
    let optional = json!({"name": "zarrs.optional", "configuration": {
        "mask_codecs": [{"name": "packbits"}], "data_codecs": bytes_codec,
    }});
    let data_type =
        json!({"name": "zarrs.optional", "configuration": {"name": "uint8", "configuration": {}}});
    let array = array(&data_type, NBYTES, NBYTES / 3, &[optional], &json!(null));
    let both = values(&data).with_mask(&values(&mask)).unwrap();
    data.during(|_| {
        mask.during(|_| {
            write(&array, &both);
            let DecodedArray::MaskedTensor(found) = read(&array) else { panic!("no mask") };
            let missing = found.mask().missing();
            assert!(missing.iter().all(|missing| *missing <= 1));
            let [old, new] = &data.patterns;
            let there =
                |at: usize| missing[at] == 1 || [old[at], new[at]].contains(&found.data().bytes()[at]);
            assert!((0..NBYTES).all(there));
        });
    });
}

/// Offsets and text that another library changes after the check: an error, or text.
#[test]
fn strings_that_change() {
    const COUNT: usize = 4000;
    let rising: Vec<u8> = (0..=COUNT as i64).flat_map(|at| (at * 3).to_ne_bytes()).collect();
    let mut next = numbers(5);
    let mut anywhere = |at: usize| match (at, next() % 3) {
        (0, _) => 0i64,
        (_, 0) => next() as i64,
        (_, 1) => next() as i64 % (4 * COUNT as i64),
        _ => -(next() as i64) << 20,
    };
    let wild: Vec<u8> = (0..=COUNT).flat_map(|at| anywhere(at).to_ne_bytes()).collect();
    let text: Vec<u8> = "é1".bytes().cycle().take(3 * COUNT).collect();
    let broken: Vec<u8> = text.iter().map(|byte| byte ^ 0x40).collect();
    let offsets = Changing::new([rising, wild]);
    let data = Changing::new([text, broken]);
    let vlen = [
        json!({"name": "vlen-utf8"}),
        json!({"name": "zstd", "configuration": {"level": 0, "checksum": false}}),
    ];
    let array = array(&json!("string"), COUNT, COUNT / 4, &vlen, &json!(""));
    let shared = |changing: &Changing| {
        // SAFETY: both outlive the imported array.
        unsafe { SharedBytes::from_foreign(Arc::new(()), changing.memory, changing.nbytes()) }.unwrap()
    };
    let words = Variable::new(shared(&offsets), shared(&data), vec![COUNT as u64], DataType::String).unwrap();
    let all = Selection::all(array.shape());
    let (mut written, mut refused) = (0, 0);
    let mut attempt = |_| match array.write(&all, &Values::variable(&words)) {
        Ok(()) => {
            written += 1;
            let DecodedArray::Variable(found) = read(&array) else { panic!("no strings") };
            assert_eq!(found.size(), COUNT);
        }
        Err(error) => {
            refused += 1;
            let is_known = matches!(
                error.kind(),
                ErrorKind::Shape(_)
                    | ErrorKind::Unsupported(_)
                    | ErrorKind::Array(zarrow_array::Error::NotUtf8 { .. })
            );
            assert!(is_known, "{error}");
        }
    };
    data.during(|round| (0..4).for_each(|_| attempt(round)));
    offsets.during(|round| (0..4).for_each(|_| attempt(round)));
    assert_eq!(written + refused, 8 * ROUNDS);
}

/// Decoders read their output again: another thread that writes there changes the result and nothing else.
#[test]
fn every_codec_into_memory_that_changes() {
    let patterns = skewed();
    let place = Changing::new([vec![0x55; NBYTES], vec![0xaa; NBYTES]]);
    for (name, compressors) in codecs() {
        let codecs = with_bytes(&compressors);
        for codecs in [codecs.clone(), sharded(NBYTES / 4, &codecs)] {
            let array = array(&json!("uint8"), NBYTES, NBYTES, &codecs, &json!(0));
            write(&array, &Values::contiguous(&patterns[0], uint8(), &[NBYTES as u64]).unwrap());
            let all = Selection::all(array.shape());
            place.during(|_| {
                let out = Strided::new(place.memory, NBYTES, 0, vec![1]);
                // SAFETY: the memory is live; concurrent writes only change the bytes found in it.
                match unsafe { array.request(&all).unwrap().out(out) }.read() {
                    Ok(()) => {}
                    // A frame's checksum covers the output.
                    Err(error) => {
                        assert!(matches!(error.kind(), ErrorKind::Corrupt(_)), "{name}: {error}");
                    }
                }
            });
        }
    }
}

/// Parts, in another order and byte order, are copied element by element.
#[test]
fn strided_parts() {
    let changing = Changing::new(skewed());
    let count = NBYTES / 4;
    let codecs = with_bytes(&[json!({"name": "gzip", "configuration": {"level": 6}})]);
    let array = array(&json!("uint32"), count, count / 3, &codecs, &json!(0));
    let place = (changing.memory.cast_const(), NBYTES, (count - 1) * 4);
    // SAFETY: as in `values`.
    let values =
        unsafe { Values::strided(place, Number::UInt32.into(), &[count as u64], &[-4], true) }.unwrap();
    changing.during(|_| {
        write(&array, &values);
        let mut found = bytes(&read(&array)).to_vec();
        // Backwards and swapped is every byte backwards.
        found.reverse();
        changing.check("backwards", &found);
    });
    let slice = Index::Slice { start: Some(5), stop: Some(count as i64 - 5), step: None };
    let some = Selection::new(array.shape(), &[slice]).unwrap();
    // SAFETY: as above.
    let one =
        unsafe { Values::strided((changing.memory, 4, 0), Number::UInt32.into(), &[], &[], false) }.unwrap();
    changing.during(|_| array.write(&some, &one).unwrap());
}
