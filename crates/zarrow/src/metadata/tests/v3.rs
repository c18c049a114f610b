//! Version 3: names, fill values and grids that zarr-python does not write.

use proptest::prelude::*;
use zarrow_array::{DataType, Number, TimeUnit};

use super::*;

fn fill_value(data_type: Value, value: Value) -> Result<FillValue, MetadataError> {
    // Null removes a key from the document, but here it is a value.
    let mut document = v3_document(json!({"data_type": data_type}));
    document["fill_value"] = value;
    v3_array(&document).map(|array| array.fill_value)
}

fn fixed<const N: usize>(bytes: [u8; N]) -> FillValue {
    FillValue::Fixed(bytes.to_vec())
}

#[test]
fn every_number_has_its_name() {
    for number in Number::ALL {
        let fill = if *number == Number::Bool { json!(false) } else { json!(1) };
        let fill = if number.names().zarr.starts_with("complex") { json!([1, 1]) } else { fill };
        let array =
            v3_array(&v3_document(json!({"data_type": number.names().zarr, "fill_value": fill}))).unwrap();
        assert_eq!(array.data_type, DataType::Number(*number));
    }
}

#[test]
fn names_of_the_other_types() {
    let named = |name: &str, configuration: Value| json!({"name": name, "configuration": configuration});
    for (name, expected) in [
        (json!("r16"), DataType::RawBytes { length: 2 }),
        (named("raw_bytes", json!({"length_bytes": 3})), DataType::RawBytes { length: 3 }),
        (
            named("null_terminated_bytes", json!({"length_bytes": 3})),
            DataType::NullTerminatedBytes { length: 3 },
        ),
        (named("fixed_length_utf32", json!({"length_bytes": 8})), DataType::FixedLengthUtf32 { length: 2 }),
        (json!({"name": "string"}), DataType::String),
        (json!("variable_length_bytes"), DataType::Bytes),
        (
            named("numpy.datetime64", json!({"unit": "us", "scale_factor": 10})),
            DataType::DateTime64 { unit: TimeUnit::Microsecond, scale: 10 },
        ),
        (named("zarrs.optional", named("string", json!({}))), DataType::Optional(Box::new(DataType::String))),
        (
            named("optional", named("optional", json!({"name": "int8"}))),
            DataType::Optional(Box::new(DataType::Optional(Box::new(Number::Int8.into())))),
        ),
    ] {
        assert_eq!(data_type::parse(&name).unwrap(), expected);
    }
}

#[test]
fn names_that_are_no_types() {
    let named = |name: &str, configuration: Value| json!({"name": name, "configuration": configuration});
    for name in [
        json!("int3"),
        json!("r"),
        json!("r7"),
        json!("r0"),
        json!("r99999999999"),
        json!("r+8"),
        json!(null),
        json!({"configuration": {}}),
        json!({"name": "int8", "else": 1}),
        named("raw_bytes", json!({"length_bytes": 0})),
        named("raw_bytes", json!({})),
        named("fixed_length_utf32", json!({"length_bytes": 6})),
        named("numpy.datetime64", json!({"unit": "us", "scale_factor": 0})),
        named("numpy.datetime64", json!({"unit": "us", "scale_factor": 2_147_483_648_u32})),
        named("numpy.datetime64", json!({"unit": "century", "scale_factor": 1})),
        named("optional", json!({})),
    ] {
        assert!(data_type::parse(&name).is_err(), "{name}");
    }
}

#[test]
fn floating_point_fill_values() {
    for (name, value, expected) in [
        ("float32", json!("NaN"), fixed(0x7fc0_0000_u32.to_ne_bytes())),
        ("float64", json!("NaN"), fixed(0x7ff8_0000_0000_0000_u64.to_ne_bytes())),
        ("float16", json!("NaN"), fixed(0x7e00_u16.to_ne_bytes())),
        ("bfloat16", json!("NaN"), fixed(0x7fc0_u16.to_ne_bytes())),
        ("bfloat16", json!(-1.5), fixed(0xbfc0_u16.to_ne_bytes())),
        ("float16", json!(65504), fixed(0x7bff_u16.to_ne_bytes())),
        ("float32", json!("0x7fc00001"), fixed(0x7fc0_0001_u32.to_ne_bytes())),
        ("float64", json!("0xfff8000000000001"), fixed(0xfff8_0000_0000_0001_u64.to_ne_bytes())),
        ("float64", json!(-0.0), fixed((-0.0_f64).to_ne_bytes())),
        ("float8_e4m3fn", json!("0x7f"), fixed([0x7f])),
        ("float8_e4m3fn", json!("NaN"), fixed([0x7f])),
        ("float8_e4m3fn", json!(448), fixed([0x7e])),
        ("float8_e5m2", json!("-Infinity"), fixed([0xfc])),
        ("float8_e5m2", json!("NaN"), fixed([0x7e])),
        ("float8_e4m3", json!("NaN"), fixed([0x7c])),
        ("float8_e3m4", json!(-1), fixed([0xb0])),
        ("float8_e4m3fnuz", json!("NaN"), fixed([0x80])),
        ("float8_e8m0fnu", json!(2), fixed([0x80])),
        ("float6_e2m3fn", json!(-0.5), fixed([0b10_0100])),
        ("float6_e3m2fn", json!(28), fixed([0b01_1111])),
        ("float4_e2m1fn", json!(6), fixed([7])),
        ("complex_float4_e2m1fn", json!([6, -0.5]), fixed([7, 9])),
        (
            "complex_bfloat16",
            json!([-1.5, "NaN"]),
            fixed([0xbfc0_u16, 0x7fc0].map(u16::to_ne_bytes).concat().try_into().unwrap_or([0; 4])),
        ),
        ("complex_float32", json!([0, 0]), fixed([0; 8])),
    ] {
        assert_eq!(fill_value(json!(name), value.clone()).unwrap(), expected, "{name} {value}");
    }
}

#[test]
fn every_small_float_finds_its_own_code() {
    let small = |number: &&Number| number.names().zarr.starts_with("float") && number.names().bits <= 8;
    for number in Number::ALL.iter().filter(small) {
        for code in (0..=u8::MAX).take(1 << number.names().bits) {
            let expected = float8::decode(*number, code).map(|value| float8::encode(*number, value));
            assert!(expected.is_none_or(|found| found == Some(code)), "{number:?} {code}");
        }
    }
}

#[test]
fn fill_values_of_the_other_types() {
    let time = json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}});
    let null_terminated = json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}});
    let optional = |inner: &str| json!({"name": "zarrs.optional", "configuration": {"name": inner, "configuration": {}}});
    for (name, value, expected) in [
        (json!("int8"), json!(-0.0), fixed([0])),
        (json!("int8"), json!(1.0), fixed([1])),
        (json!("int2"), json!(-2), fixed([0xfe])),
        (json!("int4"), json!(7), fixed([7])),
        (json!("uint2"), json!(3), fixed([3])),
        (json!("r16"), json!([1, 255]), fixed([1, 255])),
        (json!("r16"), json!("Af8="), fixed([1, 255])),
        (json!("bytes"), json!([1, 2]), FillValue::Variable(vec![1, 2])),
        (null_terminated, json!("YQ=="), fixed([b'a', 0, 0])),
        (time, json!("NaT"), fixed(i64::MIN.to_ne_bytes())),
        (optional("uint8"), json!(null), FillValue::Missing),
        (optional("uint8"), json!([42]), FillValue::Present(Box::new(fixed([42])))),
        (optional("string"), json!(["a"]), FillValue::Present(Box::new(FillValue::Variable(b"a".to_vec())))),
    ] {
        assert_eq!(fill_value(name.clone(), value.clone()).unwrap(), expected, "{name} {value}");
    }
}

#[test]
fn bools_that_are_numbers() {
    for (value, expected) in [(json!(0), 0), (json!(1), 1), (json!(false), 0), (json!(true), 1)] {
        assert_eq!(fill_value(json!("bool"), value).unwrap(), FillValue::Fixed(vec![expected]));
    }
}

#[test]
fn fill_values_that_do_not_fit() {
    let utf32 = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}});
    let optional = json!({"name": "optional", "configuration": {"name": "uint8"}});
    for (name, value) in [
        (json!("int8"), json!(128)),
        (json!("uint8"), json!(-1)),
        (json!("uint64"), json!(1e30)),
        (json!("int16"), json!(0.5)),
        (json!("int16"), json!("1.5")),
        (json!("bool"), json!(2)),
        (json!("bool"), json!(1.0)),
        (json!("bool"), json!("true")),
        (json!("float32"), json!("none")),
        (json!("float32"), json!("0x7fc0")),
        (json!("float32"), json!("0x+7fc000")),
        (json!("float16"), json!([0])),
        (json!("float8_e4m3fn"), json!("Infinity")),
        (json!("float8_e4m3fn"), json!(0.3)),
        (json!("float8_e8m0fnu"), json!(0)),
        (json!("complex64"), json!(1)),
        (json!("complex64"), json!([1, 2, 3])),
        (json!("complex64"), json!([1, "x"])),
        (json!("string"), json!(0)),
        (json!("bytes"), json!([256])),
        (json!("bytes"), json!("a")),
        (json!("r16"), json!([1])),
        (json!("r16"), json!("AQ==")),
        (utf32, json!("abc")),
        (optional.clone(), json!(1)),
        (optional.clone(), json!([1, 2])),
        (optional, json!([300])),
    ] {
        let error = fill_value(name.clone(), value.clone()).unwrap_err();
        assert!(matches!(error, MetadataError::Invalid { key: "fill_value", .. }), "{name} {value}: {error}");
    }
}

#[test]
fn chunk_keys() {
    for (encoding, expected) in [
        (json!("default"), "c/1/2"),
        (json!({"name": "default", "configuration": {"separator": "."}}), "c.1.2"),
        (json!({"name": "v2"}), "1.2"),
        (json!({"name": "v2", "configuration": {"separator": "/"}}), "1/2"),
    ] {
        let mut key = String::new();
        ChunkKeyEncoding::parse(&encoding).unwrap().encode(&[1, 2], &mut key);
        assert_eq!(key, expected);
    }
}

fn rectilinear(chunk_shapes: Value, shape: &[u64]) -> Result<ChunkGrid, MetadataError> {
    let configuration = json!({"kind": "inline", "chunk_shapes": chunk_shapes});
    ChunkGrid::parse(&json!({"name": "rectilinear", "configuration": configuration}), shape)
}

#[test]
fn rectilinear_edges_may_be_runs() {
    let shapes = json!([4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]]);
    let grid = rectilinear(shapes, &[6, 6, 6, 6, 6]).unwrap();
    assert_eq!(grid.grid_shape(&[6, 6, 6, 6, 6]), [2, 3, 2, 4, 2]);
    let extents: Vec<_> = (0..4).map(|index| grid.chunk_extent(3, index)).collect();
    assert_eq!(extents, [(0, 1), (1, 1), (2, 1), (3, 3)]);
    assert_eq!(grid.largest_chunk(), [4, 3, 4, 3, 4]);
}

#[test]
fn rectilinear_runs_are_not_written_out() {
    let grid = rectilinear(json!([[[1, i64::MAX - 4], 4]]), &[i64::MAX as u64]).unwrap();
    assert_eq!(grid.grid_shape(&[i64::MAX as u64]), [i64::MAX as u64 - 3]);
    assert_eq!(grid.chunk_extent(0, 1 << 60), (1 << 60, 1));
}

#[test]
fn rectilinear_edges_that_are_wrong() {
    for shapes in [
        json!([[]]),
        json!([0]),
        json!([[0]]),
        json!([[[4, 0]]]),
        json!([[[4, 2, 1]]]),
        json!([["4"]]),
        json!(["4"]),
        json!([[1, 2]]),
        json!([[[i64::MAX, i64::MAX], 4]]),
        json!([[i64::MAX, 1]]),
        json!([4, 4]),
        json!(4),
    ] {
        let error = rectilinear(shapes.clone(), &[6]).unwrap_err();
        assert!(matches!(error, MetadataError::Invalid { key: "chunk_grid", .. }), "{shapes}: {error}");
    }
}

proptest! {
    #[test]
    fn a_coordinate_lies_in_the_chunk_that_it_is_located_in(
        runs in prop::collection::vec((1u64..9, 1u64..5), 1..6),
        regular in prop::bool::ANY,
        part in 0.0..1.0,
    ) {
        let covered: u64 = runs.iter().map(|(extent, count)| extent * count).sum();
        let grid = if regular {
            ChunkGrid::Regular { chunk_shape: vec![runs[0].0] }
        } else {
            rectilinear(json!([runs]), &[covered]).unwrap()
        };
        let expanded: Vec<u64> = if regular {
            vec![runs[0].0; covered.div_ceil(runs[0].0) as usize]
        } else {
            runs.iter().flat_map(|(extent, count)| vec![*extent; *count as usize]).collect()
        };
        prop_assert_eq!(grid.grid_shape(&[covered])[0], expanded.len() as u64);
        let coordinate = (part * covered as f64) as u64;
        let index = grid.locate(0, coordinate);
        let start: u64 = expanded[..index as usize].iter().sum();
        prop_assert_eq!(grid.chunk_extent(0, index), (start, expanded[index as usize]));
        prop_assert!((start..start + expanded[index as usize]).contains(&coordinate));
    }
}
