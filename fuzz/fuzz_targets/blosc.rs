//! Blosc frames: decodes any bytes as a frame of the claimed size, and round-trips any bytes with any settings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use zarrow::{Selection, Values};
use zarrow_array::{DecodedArray, Number};
use zarrow_fuzz::{array, checked, metadata, read};

/// Maximum size of a tested frame.
const MOST: u64 = 64 << 10;

fn bytes_in_blosc(nbytes: u64, configuration: &Value) -> Value {
    let codecs = json!([{"name": "bytes"}, {"name": "blosc", "configuration": configuration}]);
    metadata(&json!("uint8"), &[nbytes * 2], &[nbytes], &json!(0), &codecs)
}

fuzz_target!(|data: &[u8]| match data {
    [number @ 0..128, frame @ ..] => {
        let claimed = frame.get(4..8).and_then(|size| size.first_chunk());
        let nbytes = u64::from(claimed.map_or(0, |size| u32::from_le_bytes(*size))).clamp(1, MOST);
        let settings =
            json!({"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0});
        read(&array(&bytes_in_blosc(nbytes, &settings), frame, usize::from(number / 64) << 16));
    }
    [number, level, item_size, block, values @ ..] if !values.is_empty() => {
        let names = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"];
        let shuffles = ["noshuffle", "shuffle", "bitshuffle"];
        // The highest level of zstd is slow.
        let level = level % if number % 5 == 4 { 5 } else { 10 };
        // A small input can claim a long chunk.
        let values = values.repeat(1 + usize::from(level) * 4);
        let settings = json!({
            "cname": names[usize::from(number % 5)], "clevel": level, "typesize": (*item_size).max(1),
            "shuffle": shuffles[usize::from(number / 5 % 3)], "blocksize": u32::from(*block) * 16,
        });
        let array = array(&bytes_in_blosc(values.len() as u64, &settings), &[], 0);
        let shape = [values.len() as u64];
        let written = Values::contiguous(&values, Number::UInt8.into(), &shape);
        let first = zarrow::Index::Slice { start: None, stop: Some(values.len() as i64), step: None };
        let (Ok(written), Ok(first)) = (written, Selection::new(array.shape(), &[first])) else { return };
        checked(array.write(&first, &written)).expect("it can be written");
        let Ok(DecodedArray::Tensor(found)) = checked(array.read(&first)) else { panic!("it can be read") };
        assert!(found.bytes() == values, "{settings}");
    }
    _ => {}
});
