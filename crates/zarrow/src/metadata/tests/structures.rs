//! Structured types of both versions.

use zarrow_array::{DataType, Number, Struct};

use super::*;

fn packed(fields: &[(&str, DataType, &[u64])]) -> DataType {
    let field = |(name, data_type, shape): &(&str, DataType, &[u64])| {
        ((*name).into(), data_type.clone(), (*shape).into())
    };
    DataType::Struct(Struct::packed(fields.iter().map(field)).unwrap())
}

fn v2(dtype: Value, fill_value: Value) -> Result<ArrayMetadata, MetadataError> {
    let mut document = v2_document(json!({"dtype": dtype, "compressor": null}));
    document["fill_value"] = fill_value;
    v2_array(&document)
}

fn v3(name: &str, fields: Value, fill_value: Value) -> Result<ArrayMetadata, MetadataError> {
    let data_type = json!({"name": name, "configuration": {"fields": fields}});
    v3_array(&v3_document(json!({"data_type": data_type, "fill_value": fill_value})))
}

#[test]
fn lists_of_fields() {
    let point = packed(&[("x", Number::Float32.into(), &[]), ("y", Number::Int64.into(), &[2, 3])]);
    let array = v2(json!([["x", "<f4"], ["y", "<i8", [2, 3]]]), Value::Null).unwrap();
    assert_eq!((&array.data_type, array.data_type.item_size()), (&point, Some(52)));
    assert_eq!(codecs(&array), json!([["bytes", {"endian": "little"}]]));
    let nested = packed(&[("p", point, &[2]), ("n", DataType::NullTerminatedBytes { length: 3 }, &[])]);
    let array =
        v2(json!([["p", [["x", "<f4"], ["y", "<i8", [2, 3]]], 2], ["n", "|S3"]]), Value::Null).unwrap();
    assert_eq!(array.data_type, nested);
    assert_eq!(codecs(&array), json!([["bytes", {"endian": "little"}]]));
    let array = v2(json!([["a", "|u1"], ["b", "|S2"]]), Value::Null).unwrap();
    assert_eq!(codecs(&array), json!([["bytes", {}]]));
}

#[test]
fn each_field_has_its_byte_order() {
    let dtype = json!([["a", "<i2"], ["b", "|u1"], ["c", [["d", ">f4"], ["e", "<f4"]], [2]]]);
    let array = v2(dtype, json!("AQIDAAAAAQIAAAAEBQAABgAHAA==")).unwrap();
    let orders = ["little", "little", "big", "little", "big", "little"];
    assert_eq!(codecs(&array), json!([["bytes", {"endian": orders}]]));
    let words = |bytes: [u8; 4], big| if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    let stored = [1, 2, 3, 0, 0, 0, 1, 2, 0, 0, 0, 4, 5, 0, 0, 6, 0, 7, 0];
    let mut expected = u16::from_le_bytes([1, 2]).to_ne_bytes().to_vec();
    expected.push(3);
    for (at, word) in stored[3..].chunks_exact(4).enumerate() {
        expected.extend(words(word.try_into().unwrap(), at % 2 == 0).to_ne_bytes());
    }
    assert_eq!(array.fill_value, FillValue::Fixed(expected));
}

#[test]
fn an_entry_without_a_name_is_padding() {
    let array = v2(json!([["a", "|u1"], ["", "|V3"], ["b", ">i4"], ["", "|V8"]]), json!(0)).unwrap();
    let DataType::Struct(structure) = &array.data_type else { panic!("no structure") };
    let places: Vec<_> = structure.fields().iter().map(|field| (&*field.name, field.offset)).collect();
    assert_eq!((places.as_slice(), structure.item_size()), (&[("a", 0), ("b", 4)][..], 16));
    assert_eq!(codecs(&array), json!([["bytes", {"endian": "big"}]]));
    assert_eq!(array.fill_value, FillValue::Fixed(vec![0; 16]));
}

#[test]
fn documents_keep_all_their_content() {
    let dtype = json!([
        ["a", "|u1"],
        ["", "|V3"],
        ["b", ">i4"],
        ["c", [["d", ">f4"], ["e", "<f4"], ["", "|V2"]], [2]],
        ["g", "bfloat16"]
    ]);
    let array = v2(dtype.clone(), json!("AQAAAAECAwQFBgcICQoLDAAAAQIDBAUGBwgAAAkA")).unwrap();
    let document: Value = serde_json::from_slice(&array.documents().unwrap()[0].1).unwrap();
    assert_eq!(
        (&document["dtype"], &document["fill_value"]),
        (&dtype, &json!("AQAAAAECAwQFBgcICQoLDAAAAQIDBAUGBwgAAAkA"))
    );
    assert_eq!(v2_array(&document).unwrap(), array);
    let version_3 = ArrayMetadata { zarr_format: ZarrFormat::V3, ..array };
    assert!(matches!(version_3.documents(), Err(MetadataError::Unsupported { .. })));
    assert_eq!(version_3.v3_document().unwrap()["data_type"]["configuration"]["fields"][1]["offset"], 4);
}

#[test]
fn objects_and_pairs_of_version_3() {
    let time = json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}});
    let inner = json!({"name": "struct", "configuration": {"fields": [{"name": "x", "data_type": "int8"}]}});
    let fields = [("a", json!("uint16")), ("t", time), ("s", inner)];
    let objects =
        fields.iter().map(|(name, data_type)| json!({"name": name, "data_type": data_type})).collect();
    let pairs = fields.iter().map(|(name, data_type)| json!([name, data_type])).collect();
    let fill = json!({"a": 258, "t": "NaT", "s": {"x": -1}});
    let as_objects = v3("struct", objects, fill.clone()).unwrap();
    let as_pairs = v3("structured", pairs, fill).unwrap();
    assert_eq!(as_objects.data_type, as_pairs.data_type);
    assert_eq!(as_objects.data_type.to_string(), "struct{a: uint16, t: datetime64[s], s: struct{x: int8}}");
    let expected = [&258u16.to_ne_bytes()[..], &i64::MIN.to_ne_bytes(), &[255]].concat();
    assert_eq!(as_objects.fill_value, FillValue::Fixed(expected));
    // Fill values before objects: little-endian bytes.
    let old = v3("structured", json!([["a", "uint16"], ["b", "uint8"]]), json!("AgED")).unwrap();
    assert_eq!(old.fill_value, FillValue::Fixed([&258u16.to_ne_bytes()[..], &[3]].concat()));
}

#[test]
fn what_is_no_structure() {
    for dtype in [
        json!([]),
        json!([["a"]]),
        json!([["a", "<i4"], ["a", "<i4"]]),
        json!([["", "<i4"]]),
        json!([["", "|V4"]]),
        json!([["a", "<i4", [0]]]),
        json!([["a", "<i4", [-1]]]),
        json!([["a", "<i4", [9_223_372_036_854_775_807_u64, 9]]]),
        json!([["a", "|O"]]),
        json!([["a", []]]),
        json!([1]),
        json!([[1, "<i4"]]),
        json!([["a", [["b", "<i2"], ["c", "<i4"]], [1_000_000]]]),
    ] {
        assert!(v2(dtype.clone(), Value::Null).is_err(), "{dtype}");
    }
    for fields in [
        json!([]),
        json!({}),
        json!([["a", "string"]]),
        json!([["", "int8"]]),
        json!([["a", "int8"], ["a", "int8"]]),
        json!([{"name": "a"}]),
        json!([["a", {"name": "zarrs.optional", "configuration": {"name": "int8"}}]]),
    ] {
        assert!(v3("struct", fields.clone(), json!({"a": 0})).is_err(), "{fields}");
    }
    let fields = json!([["a", "int8"], ["b", "int16"]]);
    for fill in
        [json!({"a": 0}), json!({"a": 0, "c": 0}), json!({"a": 0, "b": 99999}), json!(0), json!("AAA=")]
    {
        assert!(v3("struct", fields.clone(), fill.clone()).is_err(), "{fill}");
    }
    let orders = json!([{"name": "bytes", "configuration": {"endian": ["little", "little"]}}]);
    let data_type = json!({"name": "struct", "configuration": {"fields": fields}});
    let document =
        v3_document(json!({"data_type": data_type, "fill_value": {"a": 0, "b": 0}, "codecs": orders}));
    assert!(v3_array(&document).is_err(), "an order for each field is no word of version 3");
}
