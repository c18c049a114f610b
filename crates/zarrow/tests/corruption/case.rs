//! A valid chunk, every stage of its encoding, and the array that it is read from.

use serde_json::{Value, json};
use std::sync::Arc;
use zarrow::metadata::CodecMetadata;
use zarrow::store::{MemoryStore, Store};
use zarrow::{
    ArrayBuilder, Existing, Index, Node, OpenOptions, Result, Selection, Values, WriteOptions, create_array,
};
use zarrow_array::{Buffer, DecodedArray, Number, Variable};
use zarrs::array::{
    ArrayBytes, ArrayBytesOffsets, ArrayToBytesCodecTraits, CodecChain, CodecOptions, DataType, FillValue,
};
use zarrs::metadata::v3::MetadataV3;

const SHAPE: [u64; 2] = [40, 24];
const CHUNKS: [u64; 2] = [20, 24];
/// Elements of a chunk.
const COUNT: usize = 480;

/// One row of the table (step 1).
pub struct Case {
    pub layout: &'static str,
    pub element: Element,
    /// The codecs up to and including the one from array to bytes.
    pub array_codecs: Value,
    /// The codecs after it.
    pub byte_codecs: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Element {
    Number,
    Bool,
    Text,
    Bytes,
    /// Numbers or texts, with this many levels of optional.
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
        let number =
            |at: usize| if at.is_multiple_of(3) { (at * at * 7919 % 1000) as i32 } else { (at / 24) as i32 };
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
        "blosc" | "numcodecs.lzma" | "numcodecs.base64" | "numcodecs.crc32" | "numcodecs.jenkins_lookup3" => {
            own(codec, bytes)
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

/// Encodes `bytes` with zarrow, for codecs that zarrs lacks.
fn own(codec: &Value, bytes: &[u8]) -> Vec<u8> {
    let nbytes = bytes.len() as u64;
    let options = OpenOptions::default();
    let data_type = zarrow_array::DataType::from(Number::UInt8);
    let codec = CodecMetadata::from_choice(codec, &data_type).unwrap();
    let metadata = ArrayBuilder::new([nbytes], Number::UInt8)
        .chunk_shape([nbytes])
        .compressors([codec])
        .build()
        .unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let array = create_array(Arc::clone(&store), "", metadata, Existing::Refuse, &options).unwrap();
    let values = Values::contiguous(bytes, data_type, &[nbytes]).unwrap();
    let write = WriteOptions::default().write_empty_chunks(true);
    array
        .write_request(Selection::new(&[nbytes], &[]).unwrap())
        .unwrap()
        .options(&write)
        .write(&values)
        .unwrap();
    store.get("c/0", u64::MAX).unwrap().unwrap()
}

/// Returns an LZ4 block after its size, as numcodecs writes it.
fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![0u8; bytes.len() * 2 + 64];
    let (length, space) = (bytes.len() as i32, block.len() as i32);
    // SAFETY: both ranges are inside their vectors.
    let written = unsafe {
        lz4_sys::LZ4_compress_default(bytes.as_ptr().cast(), block.as_mut_ptr().cast(), length, space)
    };
    block.truncate(usize::try_from(written).unwrap());
    [&(bytes.len() as u32).to_le_bytes()[..], &block].concat()
}

impl Case {
    pub fn name(&self) -> String {
        let names = |codecs: &Value| {
            let codecs = codecs.as_array()?;
            Some(codecs.iter().map(|codec| codec["name"].as_str().unwrap()).collect::<Vec<_>>().join("+"))
        };
        let name = |codec: &Value| {
            let settings = &codec["configuration"];
            let texts =
                ["cname", "endian", "index_location"].map(|key| settings[key].as_str().map(str::to_owned));
            let lists =
                ["mask_codecs", "data_codecs", "codecs", "index_codecs"].map(|key| names(&settings[key]));
            let checksum = (settings["checksum"] == true).then(|| "checksum".to_owned());
            let details: Vec<String> = texts.into_iter().chain(lists).flatten().chain(checksum).collect();
            let name = codec["name"].as_str().unwrap().trim_start_matches("numcodecs.");
            if details.is_empty() { name.to_owned() } else { format!("{name}({})", details.join(", ")) }
        };
        let codecs = self.array_codecs.as_array().unwrap().iter().chain(&self.byte_codecs);
        let depth = if let Element::Optional(_, 2) = self.element { "2 × " } else { "" };
        let kind = match self.element {
            Element::Text | Element::Optional(true, _) => "text: ",
            _ => "",
        };
        format!("{depth}{kind}{}", codecs.map(name).collect::<Vec<_>>().join(" → "))
    }

    /// Returns whether a checksum covers all bytes that affect the result.
    pub fn is_checked(&self) -> bool {
        let checks = |codec: &Value| {
            let names = [
                "crc32c", "gzip", "numcodecs.zlib", "numcodecs.bz2", "numcodecs.fletcher32",
                "numcodecs.adler32", "numcodecs.crc32", "numcodecs.jenkins_lookup3",
            ];
            names.iter().any(|name| codec["name"] == *name) || codec["configuration"]["checksum"] == true
                // An `.xz` file has checks, and the other formats of lzma do not.
                || (codec["name"] == "numcodecs.lzma" && codec["configuration"]["format"].is_null())
        };
        let sharding = &self.array_codecs.as_array().unwrap().last().unwrap()["configuration"];
        let all = |key: &str| sharding[key].as_array().is_some_and(|codecs| codecs.iter().any(checks));
        self.byte_codecs.iter().any(checks) || (all("codecs") && all("index_codecs"))
    }

    /// Returns every stage of the chunk; the last one is stored.
    pub fn stages(&self) -> Vec<Vec<u8>> {
        let data_type: MetadataV3 = serde_json::from_value(self.element.data_type()).unwrap();
        let data_type = DataType::from_metadata(&data_type).unwrap();
        let shape = CHUNKS.map(|extent| extent.try_into().unwrap());
        let (elements, fill) = (self.element.elements(), self.element.fill().1);
        let first = if self.layout == "filtered" {
            self.encoded(elements)
        } else {
            let options = CodecOptions::default();
            let first = chain(&self.array_codecs).encode(elements, &shape, &data_type, &fill, &options);
            first.unwrap().into_owned()
        };
        self.sealed(0, first)
    }

    /// Encodes the elements with zarrow.
    fn encoded(&self, elements: ArrayBytes<'static>) -> Vec<u8> {
        let document = self.document(&self.array_codecs);
        let store: Arc<dyn Store> =
            Arc::new(MemoryStore::new([("zarr.json", document.into_bytes())]).unwrap());
        let Node::Array(array) = zarrow::open(Arc::clone(&store), "").unwrap() else {
            panic!("an array was written")
        };
        let data_type = array.data_type().without_optional().clone();
        let (elements, mask) = match elements {
            ArrayBytes::Optional(optional) => {
                let (data, mask) = optional.into_parts();
                (*data, Some(mask.iter().map(|given| u8::from(*given == 0)).collect::<Vec<u8>>()))
            }
            other => (other, None),
        };
        let text;
        let bytes;
        let mut values = if data_type.is_variable() {
            let (data, offsets) = elements.into_variable().unwrap().into_parts();
            let offsets = offsets.iter().map(|offset| *offset as i64).collect::<Vec<_>>();
            let (offsets, data) = (Buffer::from(offsets), Buffer::from(data.into_owned()));
            text = Variable::new(offsets, data, CHUNKS.to_vec(), data_type).unwrap();
            Values::variable(&text)
        } else {
            bytes = elements.into_fixed().unwrap().into_owned();
            Values::contiguous(&bytes, data_type, &CHUNKS).unwrap()
        };
        let missing;
        if let Some(mask) = &mask {
            missing = Values::contiguous(mask, Number::Bool.into(), &CHUNKS).unwrap();
            values = values.with_mask(&missing).unwrap();
        }
        let rows = Index::Slice { start: Some(0), stop: Some(20), step: Some(1) };
        let selection = Selection::new(&SHAPE, &[rows]).unwrap();
        array.write(&selection, &values).unwrap();
        store.get("c/0/0", u64::MAX).unwrap().unwrap()
    }

    /// Returns the array's document, with these codecs.
    fn document(&self, codecs: &Value) -> String {
        let metadata = json!({
            "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": self.element.data_type(),
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": CHUNKS } },
            "chunk_key_encoding": { "name": "default" }, "fill_value": self.element.fill().0, "codecs": codecs,
        });
        metadata.to_string()
    }

    /// Returns the stages from number `from` on, which is `bytes`.
    pub fn sealed(&self, from: usize, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut stages = vec![bytes];
        for codec in &self.byte_codecs[from..] {
            stages.push(seal(codec, stages.last().unwrap()));
        }
        stages
    }

    /// Reads the array with `chunk` as its first chunk and `valid` as its second (step 3).
    pub fn read(&self, chunk: &[u8], valid: &[u8], part: bool) -> Result<Vec<u8>> {
        let mut codecs = self.array_codecs.clone();
        codecs.as_array_mut().unwrap().extend(self.byte_codecs.iter().cloned());
        let document = self.document(&codecs);
        let values = [("zarr.json", document.as_bytes()), ("c/0/0", chunk), ("c/1/0", valid)];
        let store = MemoryStore::new(values.map(|(key, bytes)| (key, bytes.to_vec())))?;
        let Node::Array(array) = zarrow::open(Arc::new(store), "")? else { panic!("an array was written") };
        let slice =
            |start, stop, step| Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) };
        let indices: &[Index] = if part { &[slice(3, 37, 2), slice(5, 9, 1)] } else { &[] };
        array.read(&Selection::new(&SHAPE, indices)?).map(|decoded| image(&decoded))
    }
}

/// Returns all values of a result.
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
