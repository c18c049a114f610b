//! Round trips of metadata: [`ArrayMetadata::documents`] are read back as the same.

use proptest::prelude::*;
use zarrow_array::{DataType, Field, Number, Struct, TimeUnit};

use super::*;

/// Parses the documents of `array`.
fn reread(array: &ArrayMetadata) -> ArrayMetadata {
    let documents = array.documents().unwrap();
    let named = |wanted: &str| {
        documents.iter().find(|(name, _)| *name == wanted).map(|(_, document)| document.as_slice())
    };
    match array.zarr_format {
        ZarrFormat::V2 => parse_v2_array(named(".zarray").unwrap(), named(".zattrs"), &limits()).unwrap(),
        ZarrFormat::V3 => match parse_v3(named("zarr.json").unwrap(), &limits()).unwrap() {
            NodeMetadata::Array(array) => array,
            NodeMetadata::Group(_) => panic!("a group"),
        },
    }
}

#[test]
fn what_zarr_python_wrote_stays_the_same() {
    for (name, line) in zarr_python::written() {
        let array = zarr_python::read(&line);
        assert_eq!(reread(&array), array, "{name}");
        if array.zarr_format == ZarrFormat::V2 {
            let json: Value = serde_json::from_slice(&array.documents().unwrap().pop().unwrap().1).unwrap();
            let written = &line["documents"][".zarray"];
            for key in ["shape", "chunks", "dtype", "order", "dimension_separator"] {
                assert_eq!(json[key], written[key], "{name}: {key}");
            }
        }
    }
}

#[test]
fn grids_of_unequal_chunks_stay_the_same() {
    for edges in [json!([4, [5, 6]]), json!([[4, 3]]), json!([[4, 3], 5]), json!([12])] {
        let grid = json!({"name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": [7, edges]}});
        let array = v3_array(&v3_document(json!({"shape": [10, 6], "chunk_grid": grid}))).unwrap();
        assert_eq!(reread(&array), array, "{edges}");
    }
}

#[test]
fn names_attributes_and_keys_stay_the_same() {
    let array = v3_array(&v3_document(json!({
        "dimension_names": ["x", null],
        "attributes": {"b": [1, {"a": 0.1}], "a": 18_446_744_073_709_551_615_u64},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        "codecs": ["bytes", {"name": "unheard", "must_understand": false}],
    })))
    .unwrap();
    assert_eq!(reread(&array), array);
    assert_eq!(array.attributes.keys().collect::<Vec<_>>(), ["b", "a"]);
    let group = GroupMetadata {
        zarr_format: ZarrFormat::V2,
        attributes: array.attributes.clone(),
        consolidated: None,
    };
    let names: Vec<&str> = group.documents().unwrap().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [".zattrs", ".zgroup"]);
    let version_3 = GroupMetadata { zarr_format: ZarrFormat::V3, ..group };
    let (_, document) = version_3.documents().unwrap().pop().unwrap();
    assert_eq!(parse_v3(&document, &limits()).unwrap(), NodeMetadata::Group(version_3));
}

#[test]
fn version_2_refuses_metadata_that_it_cannot_express() {
    let refused = |changes: Value| {
        let mut array = v3_array(&v3_document(changes)).unwrap();
        array.zarr_format = ZarrFormat::V2;
        array.documents().unwrap_err()
    };
    let key = json!({"name": "v2", "configuration": {"separator": "."}});
    for changes in [
        json!({}),
        json!({"chunk_key_encoding": key, "dimension_names": ["x", "y"]}),
        json!({"chunk_key_encoding": key, "codecs": [{"name": "sharding_indexed", "configuration": {}}]}),
        json!({"chunk_key_encoding": key,
               "codecs": ["bytes", {"name": "transpose", "configuration": {"order": [1, 0]}}]}),
        json!({"chunk_key_encoding": key, "chunk_grid":
               {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [5, 3]}}}),
    ] {
        assert!(matches!(refused(changes), MetadataError::Unsupported { .. }));
    }
}

fn data_types() -> impl Strategy<Value = DataType> {
    let units = prop::sample::select(vec![TimeUnit::Nanosecond, TimeUnit::Day, TimeUnit::Generic]);
    let plain = prop_oneof![
        prop::sample::select(Number::ALL.to_vec()).prop_map(DataType::Number),
        units.clone().prop_map(|unit| DataType::DateTime64 { unit, scale: 1 }),
        (1..50u32).prop_map(|scale| DataType::TimeDelta64 { unit: TimeUnit::Second, scale }),
        (1..4u32).prop_map(|length| DataType::FixedLengthUtf32 { length }),
        (1..4u32).prop_map(|length| DataType::NullTerminatedBytes { length }),
        (1..4u32).prop_map(|length| DataType::RawBytes { length }),
        Just(DataType::String),
        Just(DataType::Bytes),
    ];
    let optional =
        plain.prop_recursive(2, 2, 1, |inner| inner.prop_map(|inner| DataType::Optional(Box::new(inner))));
    prop_oneof![4 => optional, 1 => structures()]
}

/// Structures of at most 24 bytes, padded or not, with a shape or without.
fn structures() -> impl Strategy<Value = DataType> {
    let inner = Struct::packed([
        ("x".into(), Number::Int16.into(), [].into()),
        ("y".into(), Number::UInt8.into(), [].into()),
    ]);
    let inner = DataType::Struct(inner.unwrap());
    let types = prop::sample::select(vec![Number::Int32.into(), Number::UInt8.into(), inner]);
    let field = (types, prop::sample::select(vec![None, Some(1u64), Some(2)]), 0..3usize);
    (prop::collection::vec(field, 1..3), 0..2usize).prop_map(|(fields, rest)| {
        let mut offset = 0;
        let mut placed = Vec::new();
        for (at, (data_type, shape, gap)) in fields.into_iter().enumerate() {
            offset += gap;
            let field = Field {
                name: format!("f{at}").into(),
                data_type,
                shape: shape.into_iter().collect(),
                offset,
            };
            offset += field.nbytes().unwrap();
            placed.push(field);
        }
        DataType::Struct(Struct::new(placed, offset + rest).unwrap())
    })
}

/// A fill value of the type from random bytes.
fn fill_value(data_type: &DataType, seed: &[u8]) -> FillValue {
    match data_type {
        DataType::Optional(_) if seed[0] < 50 => FillValue::Missing,
        DataType::Optional(inner) => FillValue::Present(Box::new(fill_value(inner, &seed[1..]))),
        DataType::String => {
            FillValue::Variable(String::from_utf8_lossy(&seed[..8]).into_owned().into_bytes())
        }
        DataType::Bytes => FillValue::Variable(seed[..seed[0] as usize % 9].to_vec()),
        DataType::Number(Number::Bool) => FillValue::Fixed(vec![seed[0] % 2]),
        DataType::Number(number) if number.is_sub_byte() => {
            // The upper bits have no meaning; reading sets them to the sign.
            let unused = 8 - number.names().bits;
            let signed = matches!(number, Number::Int2 | Number::Int4);
            let item = seed[..number.names().item_size].iter().map(|byte| match signed {
                true => ((*byte as i8) << unused >> unused) as u8,
                false => byte << unused >> unused,
            });
            FillValue::Fixed(item.collect())
        }
        DataType::FixedLengthUtf32 { length } => FillValue::Fixed(
            (0..*length as usize).flat_map(|at| u32::from(b'a' + seed[at] % 3).to_ne_bytes()).collect(),
        ),
        fixed => FillValue::Fixed(seed[..fixed.item_size().unwrap()].to_vec()),
    }
}

fn has_nan(data_type: &DataType, fill: &FillValue) -> bool {
    fill.document(data_type, ZarrFormat::V2).unwrap().to_string().contains("NaN")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_type_and_fill_value_stay_the_same(
        data_type in data_types(),
        random in prop::array::uniform24(any::<u8>()),
        special in prop::sample::select(vec![None, Some(0x00), Some(0x80), Some(0xff), Some(0x7f), Some(0x7c)]),
        version_2: bool,
        big_endian: bool,
    ) {
        let mut seed = random;
        if let Some(byte) = special {
            // Zeros, NaNs and infinities, which are rare otherwise.
            seed = [0; 24];
            for at in [1, 3, 7, 15] {
                seed[at] = byte;
            }
        }
        let fill_value = fill_value(&data_type, &seed);
        let endian = if big_endian { "big" } else { "little" };
        let codec = match &data_type {
            DataType::String => CodecMetadata::new("vlen-utf8", Map::new()),
            DataType::Bytes => CodecMetadata::new("vlen-bytes", Map::new()),
            other if other.word_size() == 1 => CodecMetadata::new("bytes", Map::new()),
            _ => CodecMetadata::new("bytes", Map::from_iter([("endian".to_owned(), json!(endian))])),
        };
        let array = ArrayMetadata {
            has_fill_value: true,
            zarr_format: if version_2 { ZarrFormat::V2 } else { ZarrFormat::V3 },
            shape: vec![3, 4],
            chunk_grid: ChunkGrid::Regular { chunk_shape: vec![2, 4] },
            chunk_key_encoding: ChunkKeyEncoding::V2 { separator: '.' },
            codecs: vec![codec],
            attributes: Attributes::default(),
            dimension_names: None,
            fill_value,
            data_type,
        };
        if !version_2 && !structure::is_v3(&array.data_type) {
            prop_assert!(array.documents().is_err());
        } else if !version_2 {
            prop_assert_eq!(reread(&array), array);
        } else if let Ok(documents) = array.documents() {
            prop_assert_eq!(documents.len(), 1);
            let read = reread(&array);
            // Version 2 has only one NaN; nothing else is lost.
            if has_nan(&array.data_type, &array.fill_value) {
                prop_assert_eq!(&read.data_type, &array.data_type);
            } else {
                prop_assert_eq!(read, array);
            }
        } else {
            let optional = matches!(array.data_type, DataType::Optional(_));
            let narrow = matches!(&array.data_type, DataType::Number(number) if number.names().numpy.is_none());
            prop_assert!(optional || narrow && big_endian, "{}", array.data_type);
        }
    }
}
