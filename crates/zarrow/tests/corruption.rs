//! Corrupt chunks of every layout through every decoder: the answer is an error or an array, in little memory.
//!
//! 1. A case is a valid chunk: zarrs encodes its array to bytes, and then each codec from bytes to bytes by itself, so
//!    that every stage between is known.
//! 2. The chunk is flipped in one bit, or truncated, or one of its stages is made to lie (a number in it is changed to
//!    one that sizes, offsets, and counts fear) and the stages behind it are made anew, so that checksums agree.
//! 3. The array is read whole or in part, and the result compared with that of the valid chunk, while the process may
//!    take no more than [`SPARE_NBYTES`] of address space beyond what it has at the start.
//!
//! `ZARROW_CORRUPTIONS` is the number of flips and of truncations of each case, with a fifth as many lies. The table is
//! seen with `--nocapture`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use serde_json::{Value, json};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zarrow::store::MemoryStore;
use zarrow::{ErrorKind, Index, Node, Result, Selection};
use zarrow_array::DecodedArray;
use zarrs::array::{
    ArrayBytes, ArrayBytesOffsets, ArrayToBytesCodecTraits, CodecChain, CodecOptions, DataType, FillValue,
};
use zarrs::metadata::v3::MetadataV3;

const SHAPE: [u64; 2] = [40, 24];
const CHUNKS: [u64; 2] = [20, 24];
const COUNT: usize = 480;
const SPARE_NBYTES: u64 = 512 << 20;

/// One row of the table (step 1).
struct Case {
    layout: &'static str,
    element: Element,
    /// Up to and with the codec from array to bytes.
    array_codecs: Value,
    /// The codecs behind it.
    byte_codecs: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq)]
enum Element {
    Number,
    Bool,
    Text,
    Bytes,
    /// Numbers or texts, as many times optional.
    Optional(bool, usize),
}

impl Element {
    fn data_type(self) -> Value {
        let plain = |name: &str| json!({ "name": name, "configuration": {} });
        match self {
            Element::Number => json!("int32"),
            Element::Bool => json!("bool"),
            Element::Text => json!("string"),
            Element::Bytes => json!("bytes"),
            Element::Optional(text, depth) => (0..depth).fold(
                plain(if text { "string" } else { "int32" }),
                |inner, _| json!({ "name": "zarrs.optional", "configuration": inner }),
            ),
        }
    }

    fn fill(self) -> (Value, FillValue) {
        match self {
            Element::Number => (json!(7), FillValue::from(7i32)),
            Element::Bool => (json!(false), FillValue::from(false)),
            Element::Text | Element::Bytes => (json!(""), FillValue::from("")),
            Element::Optional(..) => (Value::Null, FillValue::new_optional_null()),
        }
    }

    fn elements(self) -> ArrayBytes<'static> {
        let number = |at: usize| if at.is_multiple_of(3) { (at * at * 7919) as i32 } else { (at / 8) as i32 };
        match self {
            Element::Number => {
                ArrayBytes::new_flen((0..COUNT).flat_map(|at| number(at).to_ne_bytes()).collect::<Vec<u8>>())
            }
            Element::Bool => {
                ArrayBytes::new_flen((0..COUNT).map(|at| u8::from(at % 5 == 1)).collect::<Vec<_>>())
            }
            Element::Text | Element::Bytes => {
                let words = ["", "a", "né", "日本語", "a longer string than the others"];
                let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
                for at in 0..COUNT {
                    bytes.extend(words[at * at % words.len()].as_bytes());
                    offsets.push(bytes.len());
                }
                ArrayBytes::new_vlen(bytes, ArrayBytesOffsets::new(offsets).unwrap()).unwrap()
            }
            Element::Optional(text, depth) => {
                let inner = if text { Element::Text } else { Element::Number };
                let mask =
                    |level: usize| (0..COUNT).map(|at| u8::from(at % (3 + level) > 0)).collect::<Vec<_>>();
                (0..depth).fold(inner.elements(), |data, level| data.with_optional_mask(mask(level)))
            }
        }
    }
}

fn chain(codecs: &Value) -> CodecChain {
    let metadata: Vec<MetadataV3> = serde_json::from_value(codecs.clone()).unwrap();
    CodecChain::from_metadata(&metadata).unwrap()
}

/// Encodes `bytes` by a codec from bytes to bytes.
fn seal(codec: &Value, bytes: &[u8]) -> Vec<u8> {
    match codec["name"].as_str().unwrap() {
        "numcodecs.lz4" => lz4(bytes),
        "numcodecs.bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            std::io::Write::write_all(&mut encoder, bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => {
            let chain = chain(&json!([{ "name": "bytes" }, codec]));
            let shape = [(bytes.len() as u64).try_into().unwrap()];
            let data_type = DataType::from_metadata(&MetadataV3::new("uint8")).unwrap();
            let bytes = ArrayBytes::new_flen(bytes);
            let encoded =
                chain.encode(bytes, &shape, &data_type, &FillValue::from(0u8), &CodecOptions::default());
            encoded.unwrap().into_owned()
        }
    }
}

/// An LZ4 block behind its size, as numcodecs writes it.
fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![0u8; bytes.len() * 2 + 64];
    let (length, space) = (bytes.len() as i32, block.len() as i32);
    // SAFETY: both ranges are those of the vectors.
    let written = unsafe {
        lz4_sys::LZ4_compress_default(bytes.as_ptr().cast(), block.as_mut_ptr().cast(), length, space)
    };
    block.truncate(usize::try_from(written).unwrap());
    [&(bytes.len() as u32).to_le_bytes()[..], &block].concat()
}

impl Case {
    fn name(&self) -> String {
        let name = |codec: &Value| {
            let configuration = &codec["configuration"];
            let detail = ["cname", "endian", "index_location"].map(|key| configuration[key].as_str());
            let checksum = (configuration["checksum"] == true).then_some("checksum");
            let inner = configuration["codecs"].as_array().or(configuration["data_codecs"].as_array());
            let inner = inner.map(|codecs| {
                codecs.iter().map(|codec| codec["name"].as_str().unwrap()).collect::<Vec<_>>().join("+")
            });
            let index = configuration["index_codecs"]
                .as_array()
                .filter(|codecs| codecs.len() == 1)
                .map(|_| "unchecked");
            let details: Vec<&str> =
                detail.into_iter().flatten().chain(checksum).chain(index).chain(inner.as_deref()).collect();
            let name = codec["name"].as_str().unwrap();
            if details.is_empty() { name.to_owned() } else { format!("{name}({})", details.join(" ")) }
        };
        let codecs = self.array_codecs.as_array().unwrap().iter().chain(&self.byte_codecs);
        let depth = if let Element::Optional(_, 2) = self.element { "2 × " } else { "" };
        let kind = match self.element {
            Element::Text | Element::Optional(true, _) => "text: ",
            _ => "",
        };
        format!("{depth}{kind}{}", codecs.map(name).collect::<Vec<_>>().join(" → "))
    }

    /// Whether a checksum covers all that decides on the result.
    fn is_checked(&self) -> bool {
        let checks = |codec: &Value| {
            let names = ["crc32c", "gzip", "numcodecs.zlib", "numcodecs.bz2", "fletcher32", "adler32"];
            names.iter().any(|name| codec["name"] == *name) || codec["configuration"]["checksum"] == true
        };
        let sharding = &self.array_codecs.as_array().unwrap().last().unwrap()["configuration"];
        let all = |key: &str| sharding[key].as_array().is_some_and(|codecs| codecs.iter().any(checks));
        self.byte_codecs.iter().any(checks) || (all("codecs") && all("index_codecs"))
    }

    /// Every stage of the chunk, the last of which is stored.
    fn stages(&self) -> Vec<Vec<u8>> {
        let data_type: MetadataV3 = serde_json::from_value(self.element.data_type()).unwrap();
        let data_type = DataType::from_metadata(&data_type).unwrap();
        let shape = CHUNKS.map(|extent| extent.try_into().unwrap());
        let (elements, fill) = (self.element.elements(), self.element.fill().1);
        let first =
            chain(&self.array_codecs).encode(elements, &shape, &data_type, &fill, &CodecOptions::default());
        self.sealed(0, first.unwrap().into_owned())
    }

    /// The stages from number `from` on, which is `bytes`.
    fn sealed(&self, from: usize, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut stages = vec![bytes];
        for codec in &self.byte_codecs[from..] {
            stages.push(seal(codec, stages.last().unwrap()));
        }
        stages
    }

    /// Reads the array whose first chunk is `chunk` and whose second is `valid` (step 3).
    fn read(&self, chunk: &[u8], valid: &[u8], part: bool) -> Result<Vec<u8>> {
        let mut codecs = self.array_codecs.clone();
        codecs.as_array_mut().unwrap().extend(self.byte_codecs.iter().cloned());
        let metadata = json!({
            "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": self.element.data_type(),
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": CHUNKS } },
            "chunk_key_encoding": { "name": "default" }, "fill_value": self.element.fill().0, "codecs": codecs,
        });
        let document = metadata.to_string();
        let values = [("zarr.json", document.as_bytes()), ("c/0/0", chunk), ("c/1/0", valid)];
        let store = MemoryStore::new(values.map(|(key, bytes)| (key, bytes.to_vec())))?;
        let Node::Array(array) = zarrow::open(Arc::new(store), "")? else { panic!("an array was written") };
        let slice =
            |start, stop, step| Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) };
        let indices: &[Index] = if part { &[slice(3, 37, 2), slice(5, 9, 1)] } else { &[] };
        array.read(&Selection::new(&SHAPE, indices)?, &|| false).map(|decoded| image(&decoded))
    }
}

/// All that a result says.
fn image(decoded: &DecodedArray) -> Vec<u8> {
    let elements = |variable: &zarrow_array::Variable| -> Vec<u8> {
        let all = (0..variable.size()).map(|at| variable.element(at).unwrap());
        all.flat_map(|element| [&(element.len() as u64).to_ne_bytes()[..], element].concat()).collect()
    };
    let levels = |mask: &zarrow_array::Mask| {
        (0..mask.depth()).flat_map(|at| mask.level(at).unwrap().to_vec()).collect()
    };
    match decoded {
        DecodedArray::Tensor(tensor) => tensor.bytes().to_vec(),
        DecodedArray::Variable(variable) => elements(variable),
        DecodedArray::MaskedTensor(masked) => {
            [levels(masked.mask()), masked.data().bytes().to_vec()].concat()
        }
        DecodedArray::MaskedVariable(masked) => [levels(masked.mask()), elements(masked.data())].concat(),
    }
}

fn cases() -> Vec<Case> {
    let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let big = json!({ "name": "bytes", "configuration": { "endian": "big" } });
    let transpose = json!({ "name": "transpose", "configuration": { "order": [1, 0] } });
    let zstd = json!({ "name": "zstd", "configuration": { "level": 3, "checksum": false } });
    let zstd_checked = json!({ "name": "zstd", "configuration": { "level": 3, "checksum": true } });
    let gzip = json!({ "name": "gzip", "configuration": { "level": 5 } });
    let zlib = json!({ "name": "numcodecs.zlib", "configuration": { "level": 5 } });
    let lz4 = json!({ "name": "numcodecs.lz4", "configuration": {} });
    let bz2 = json!({ "name": "numcodecs.bz2", "configuration": { "level": 1 } });
    let crc32c = json!({ "name": "crc32c" });
    let shuffle = json!({ "name": "numcodecs.shuffle", "configuration": { "elementsize": 4 } });
    let packbits = json!({ "name": "packbits", "configuration": { "padding_encoding": "first_byte" } });
    let (utf8, vlen_bytes) = (json!({ "name": "vlen-utf8" }), json!({ "name": "vlen-bytes" }));
    let blosc = |cname: &str, shuffle: &str| {
        let typesize = if shuffle == "noshuffle" { 1 } else { 4 };
        json!({ "name": "blosc", "configuration":
            { "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": typesize, "blocksize": 0 } })
    };
    let blosclz = blosc("blosclz", "shuffle");
    let optional = |depth: usize, masks: &Value, data: Value| {
        (0..depth).fold(data, |data, _| {
            let configuration = json!({ "mask_codecs": masks, "data_codecs": data });
            json!([{ "name": "zarrs.optional", "configuration": configuration }])
        })
    };
    let sharding = |chunks: [u64; 2], codecs: Value, location: &str, index: Value| {
        json!({ "name": "sharding_indexed", "configuration": {
            "chunk_shape": chunks, "codecs": codecs, "index_location": location, "index_codecs": index } })
    };
    let byte = json!({ "name": "bytes" });
    let mut cases = Vec::new();
    let mut add = |layout, element, array_codecs: &Value, byte_codecs: &[&Value]| {
        let byte_codecs = byte_codecs.iter().map(|codec| (*codec).clone()).collect();
        cases.push(Case { layout, element, array_codecs: array_codecs.clone(), byte_codecs });
    };

    let plain = json!([little]);
    let turned = json!([transpose, big]);
    for codecs in [
        &[][..],
        &[&crc32c],
        &[&zstd],
        &[&zstd_checked],
        &[&zstd, &crc32c],
        &[&gzip],
        &[&zlib],
        &[&blosc("lz4", "shuffle")],
        &[&blosc("lz4", "bitshuffle"), &crc32c],
        &[&blosc("zstd", "noshuffle")],
        &[&blosc("zlib", "shuffle")],
        &[&blosclz],
        &[&lz4],
        &[&lz4, &zstd],
        &[&bz2],
        &[&shuffle, &zlib],
        &[&shuffle, &lz4],
        &[&json!({ "name": "fletcher32" })],
        &[&json!({ "name": "adler32" })],
    ] {
        add("fixed", Element::Number, &plain, codecs);
    }
    add("fixed", Element::Number, &turned, &[]);
    add("fixed", Element::Number, &turned, &[&lz4]);
    add("fixed", Element::Number, &turned, &[&zstd, &crc32c]);
    add("fixed", Element::Bool, &json!([packbits]), &[]);
    add("fixed", Element::Bool, &json!([packbits]), &[&zstd, &crc32c]);

    for codecs in [
        &[][..],
        &[&crc32c],
        &[&zstd],
        &[&zstd_checked],
        &[&gzip],
        &[&lz4],
        &[&blosc("lz4", "shuffle")],
        &[&bz2],
    ] {
        add("variable", Element::Text, &json!([utf8]), codecs);
    }
    add("variable", Element::Bytes, &json!([vlen_bytes]), &[]);
    add("variable", Element::Bytes, &json!([vlen_bytes]), &[&zlib]);

    let byte_masks = json!([byte]);
    let bit_masks = json!([packbits, zstd]);
    for (layout, text, data) in [("masked tensor", false, &little), ("masked variable", true, &utf8)] {
        for (depth, masks) in [(1, &byte_masks), (1, &bit_masks), (2, &byte_masks)] {
            add(layout, Element::Optional(text, depth), &optional(depth, masks, json!([data])), &[]);
            add(
                layout,
                Element::Optional(text, depth),
                &optional(depth, masks, json!([data, zstd])),
                &[&crc32c],
            );
        }
        add(layout, Element::Optional(text, 1), &optional(1, &byte_masks, json!([data])), &[&zstd]);
        add(layout, Element::Optional(text, 1), &optional(1, &byte_masks, json!([data, gzip])), &[]);
    }

    let (bare, checked) = (json!([little]), json!([little, crc32c]));
    let compressed = json!([little, zstd]);
    let compressed_checked = json!([little, zstd, crc32c]);
    let inner = sharding([2, 6], json!([little, zstd]), "start", bare.clone());
    for (element, codec, rest) in [
        (Element::Number, sharding([5, 6], bare.clone(), "end", bare.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed.clone(), "end", checked.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed_checked.clone(), "end", checked.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed_checked, "start", checked.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed, "start", bare.clone()), vec![]),
        (Element::Number, sharding([10, 12], json!([inner]), "end", bare.clone()), vec![]),
        (Element::Number, sharding([5, 6], bare.clone(), "end", bare.clone()), vec![&zstd, &crc32c]),
        (Element::Text, sharding([5, 6], json!([utf8, zstd]), "end", bare.clone()), vec![]),
        (Element::Text, sharding([5, 6], json!([utf8, gzip]), "end", checked), vec![]),
        (Element::Text, sharding([5, 6], json!([utf8]), "start", bare), vec![&crc32c]),
    ] {
        add("sharded", element, &json!([codec]), &rest);
    }
    cases
}

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

#[derive(Clone, Copy)]
enum Damage {
    Flip,
    Truncation,
    Lie,
}

impl Damage {
    const ALL: [Damage; 3] = [Damage::Flip, Damage::Truncation, Damage::Lie];

    /// Step 2.
    fn apply(self, case: &Case, stages: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let stored = stages.last().unwrap();
        match self {
            Damage::Flip => {
                let mut bytes = stored.clone();
                let bit = random.below(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes
            }
            Damage::Truncation => stored[..random.below(stored.len())].to_vec(),
            Damage::Lie => {
                let stage = random.below(stages.len());
                let mut bytes = stages[stage].clone();
                lie(&mut bytes, random);
                case.sealed(stage, bytes).pop().unwrap()
            }
        }
    }
}

/// Changes a number: mostly one near an end, where headers, lengths and indexes stand.
fn lie(bytes: &mut [u8], random: &mut Random) {
    let length = bytes.len() as u64;
    let near = [0, 1, 2, length - 1, length, length + 1, length / 2, random.next() % (2 * length)];
    let far = [
        i32::MAX as u64,
        1 << 31,
        u64::from(u32::MAX),
        1 << 40,
        i64::MAX as u64,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    let number = [near, far][random.below(2)][random.below(8)];
    let width = [1, 2, 4, 4, 8, 8][random.below(6)].min(bytes.len());
    let at = match random.below(4) {
        0 => random.below(40.min(bytes.len())),
        1 => bytes.len() - 1 - random.below(136.min(bytes.len())),
        2 => random.below(bytes.len()) / 4 * 4,
        _ => random.below(40.min(bytes.len())) / 4 * 4,
    };
    let at = at.min(bytes.len() - width);
    let number = if random.below(4) == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
    let field = if number[0] == 0 && random.below(2) == 0 { &number[8 - width..] } else { &number[..width] };
    bytes[at..at + width].copy_from_slice(field);
}

/// What came of one kind of damage.
#[derive(Default)]
struct Count {
    errors: usize,
    out_of_memory: usize,
    exact: usize,
    different: usize,
    panics: usize,
}

fn count(case: &Case, damage: Damage, times: usize, longest: &mut Duration) -> Count {
    let stages = case.stages();
    let valid = stages.last().unwrap();
    let expected = [false, true].map(|part| case.read(valid, valid, part).unwrap());
    let mut random = Random(damage as u64);
    let mut count = Count::default();
    for turn in 0..times {
        let part = turn % 2 == 1;
        let chunk = damage.apply(case, &stages, &mut random);
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| case.read(&chunk, valid, part)));
        *longest = (*longest).max(start.elapsed());
        match result {
            Err(_) => count.panics += 1,
            Ok(Ok(image)) if image == expected[usize::from(part)] => count.exact += 1,
            Ok(Ok(_)) => count.different += 1,
            Ok(Err(error)) => match error.kind() {
                ErrorKind::Internal(_) => count.panics += 1,
                ErrorKind::Corrupt(text) if text.contains("panicked") => count.panics += 1,
                kind if kind.code() == "out_of_memory" => count.out_of_memory += 1,
                _ => count.errors += 1,
            },
        }
    }
    count
}

/// Lets the process have no more than `spare` bytes of address space beyond what it has now.
fn limit_address_space(spare: u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let limit = libc::rlimit { rlim_cur: kibibytes * 1024 + spare, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the function reads one struct, a local.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn corrupt_chunks_are_errors_and_never_panics() {
    let times: usize = std::env::var("ZARROW_CORRUPTIONS").map_or(300, |text| text.parse().unwrap());
    zarrow::set_num_threads(2);
    limit_address_space(SPARE_NBYTES);
    let (mut table, mut faults) = (String::new(), String::new());
    let mut longest = Duration::ZERO;
    let mut layout = "";
    for case in cases() {
        if case.layout != layout {
            layout = case.layout;
            write!(table, "\n{layout}: error / of these no memory / exact / different / panic\n").unwrap();
        }
        let name = case.name();
        write!(table, "  {name:<64}").unwrap();
        for damage in Damage::ALL {
            let times = if let Damage::Lie = damage { times.div_ceil(5) } else { times };
            let Count { errors, out_of_memory, exact, different, panics } =
                count(&case, damage, times, &mut longest);
            write!(table, "  {}/{out_of_memory}/{exact}/{different}/{panics}", errors + out_of_memory)
                .unwrap();
            let silent = if let Damage::Lie = damage { 0 } else { different };
            if panics > 0 || (case.is_checked() && silent > 0) {
                writeln!(faults, "{layout}, {name}: {panics} panics, {silent} silent").unwrap();
            }
        }
        table.push_str(if case.is_checked() { "  checked\n" } else { "\n" });
    }
    eprintln!("{table}\nlongest read: {longest:?}");
    assert!(faults.is_empty(), "{faults}");
}
