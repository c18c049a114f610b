//! Fields compared with a model: the bytes of all elements in memory, with the same reads and writes one by one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use zarrow::store::{MemoryStore, Store};
use zarrow::{Array, Batch, ErrorKind, Index, Node, Selection, Values};
use zarrow_array::DecodedArray;

/// The fields of an element: the path, the offset and the bytes of each.
const FIELDS: &[(&str, usize, usize)] =
    &[("id", 0, 1), ("x", 1, 2), ("inner", 3, 9), ("inner.p", 3, 8), ("inner.q", 11, 1), ("z", 12, 4)];
const ELEMENT: usize = 16;

fn data_type() -> Value {
    let field = |name: &str, data_type: Value| json!({"name": name, "data_type": data_type});
    let structure = |fields: Value| json!({"name": "struct", "configuration": {"fields": fields}});
    let inner = structure(json!([field("p", json!("float64")), field("q", json!("uint8"))]));
    structure(json!([
        field("id", json!("uint8")),
        field("x", json!("int16")),
        field("inner", inner),
        field("z", json!("float32")),
    ]))
}

fn open(shape: &[u64], chunk: &[u64], codecs: &Value) -> (Array, Arc<MemoryStore>) {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
        "fill_value": {"id": 3, "x": -2, "inner": {"p": 0.5, "q": 9}, "z": 1.5},
    });
    let store = Arc::new(MemoryStore::new([("zarr.json", serde_json::to_vec(&document).unwrap())]).unwrap());
    let Node::Array(array) = zarrow::open(store.clone(), "").unwrap() else { panic!("not an array") };
    (array, store)
}

fn fill() -> Vec<u8> {
    let mut bytes = vec![3];
    bytes.extend((-2i16).to_ne_bytes());
    bytes.extend(0.5f64.to_ne_bytes());
    bytes.push(9);
    bytes.extend(1.5f32.to_ne_bytes());
    bytes
}

fn bytes_of(decoded: &DecodedArray) -> Vec<u8> {
    match decoded {
        DecodedArray::Tensor(tensor) => tensor.bytes().to_vec(),
        _ => panic!("not a tensor"),
    }
}

fn codecs() -> impl Strategy<Value = Value> {
    let bytes = |order: &str| json!({"name": "bytes", "configuration": {"endian": order}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let sharded = |inner: Value| {
        json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": [2, 3], "codecs": inner, "index_codecs": [bytes("little")], "index_location": "end",
        }})
    };
    prop::sample::select(vec![
        json!([bytes("little")]),
        json!([bytes("big")]),
        json!([bytes("big"), zstd]),
        json!([transpose, bytes("little"), zstd]),
        json!([sharded(json!([bytes("big")]))]),
        json!([sharded(json!([bytes("little"), zstd]))]),
        json!([sharded(json!([bytes("little")])), zstd]),
    ])
}

/// A field, slices of both axes, and the first written byte.
fn writes() -> impl Strategy<Value = Vec<(usize, [Index; 2], u8)>> {
    let bound = || proptest::option::of(-8i64..8);
    let step = || prop::sample::select(vec![None, Some(1), Some(-1), Some(2)]);
    let slice =
        || (bound(), bound(), step()).prop_map(|(start, stop, step)| Index::Slice { start, stop, step });
    prop::collection::vec((0..FIELDS.len(), [slice(), slice()], any::<u8>()), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn a_field_is_read_and_written_past_the_others(codecs in codecs(), writes in writes()) {
        let shape = [7u64, 8];
        let (array, _) = open(&shape, &[4, 6], &codecs);
        let mut model: Vec<Vec<u8>> = vec![fill(); 56];
        for (field, slices, first) in writes {
            let (name, offset, nbytes) = FIELDS[field];
            let selection = Selection::new(&shape, &slices).unwrap();
            let positions = selection.axes()[0].positions().into_iter().flat_map(|row| {
                selection.axes()[1].positions().into_iter().map(move |column| (row * 8 + column) as usize)
            });
            let positions: Vec<usize> = positions.collect();
            let field = array.field(name).unwrap();
            let taken = |model: &[Vec<u8>]| -> Vec<u8> {
                positions.iter().flat_map(|at| model[*at][offset..offset + nbytes].to_vec()).collect()
            };
            prop_assert_eq!(bytes_of(&array.request(&selection).unwrap().field(&field).read().unwrap()), taken(&model));

            let values: Vec<u8> = (0..positions.len() * nbytes).map(|at| first.wrapping_add(at as u8)).collect();
            let written = Values::contiguous(&values, field.data_type().clone(), &selection.shape()).unwrap();
            array.write_request(&selection).unwrap().field(&field).write(&written).unwrap();
            for (at, value) in positions.iter().zip(values.chunks_exact(nbytes)) {
                model[*at][offset..offset + nbytes].copy_from_slice(value);
            }
            let whole = array.read(Selection::all(&shape)).unwrap();
            prop_assert_eq!(bytes_of(&whole), model.concat());
        }
    }
}

#[test]
fn fields_are_found_by_name_or_the_names_on_the_way() {
    let little = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let (array, store) = open(&[2, 2], &[2, 2], &little);
    let all = Selection::all(array.shape());
    let two = array.fields(&["x", "z"]).unwrap();
    assert_eq!(two.data_type().to_string(), "struct{x: int16, z: float32}");
    assert_eq!(two.data_type().item_size(), Some(ELEMENT));
    assert_eq!(bytes_of(&array.request(&all).unwrap().field(&two).read().unwrap()), fill().repeat(4));
    for name in ["y", "", "inner.", "inner.p.q", ".x", "x.y"] {
        assert!(matches!(array.field(name).unwrap_err().kind(), ErrorKind::Index(_)), "{name}");
    }
    for names in [&["z", "x"][..], &["x", "x"], &["x", "y"], &["inner.p"], &[]] {
        assert!(matches!(array.fields(names).unwrap_err().kind(), ErrorKind::Index(_)), "{names:?}");
    }
    let values = fill().repeat(4);
    let values = Values::contiguous(&values, two.data_type().clone(), &[2, 2]).unwrap();
    for field in [&two, &array.field("x").unwrap()] {
        let refused = array.write_request(&all).unwrap().field(field).write(&values).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unsupported(_)));
    }
    assert_eq!(store.get("c/0/0", 64).unwrap(), None);
}

#[test]
fn a_field_of_another_array_is_refused() {
    let little = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let ((array, _), (larger, _)) = (open(&[2, 2], &[2, 2], &little), open(&[4, 2], &[2, 2], &little));
    let field = larger.field("x").unwrap();
    let read = array.request(..).unwrap().field(&field).read();
    assert!(matches!(read.unwrap_err().kind(), ErrorKind::Index(_)));
    let values = Values::contiguous(&[1, 2], field.data_type().clone(), &[]).unwrap();
    let written = array.write_request(..).unwrap().field(&field).write(&values);
    assert!(matches!(written.unwrap_err().kind(), ErrorKind::Index(_)));
}

#[test]
fn a_field_is_an_option_of_every_read() {
    let little = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let (array, _) = open(&[4, 6], &[3, 4], &little);
    let field = array.field("x").unwrap();
    let values: Vec<u8> = (0..48).collect();
    let written = Values::contiguous(&values, field.data_type().clone(), &[4, 6]).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let done = move |written: zarrow::Result<()>| sender.send(written).unwrap();
    let decoded = {
        array.write_request(..).unwrap().field(&field).write(&written).unwrap();
        array.request(..).unwrap().field(&field).read().unwrap()
    };
    assert_eq!(bytes_of(&decoded), values);
    array.write_request(..).unwrap().field(&field).detach(Box::new(decoded), done).unwrap();
    receiver.recv().unwrap().unwrap();

    let request = || array.request(..).unwrap().field(&field);
    let (sender, receiver) = std::sync::mpsc::channel();
    request().detach(move |read| sender.send(read).unwrap()).unwrap();
    assert_eq!(bytes_of(&receiver.recv().unwrap().unwrap()), values);
    let mut out = vec![0u8; 48];
    request().read_into(&mut out).unwrap();
    assert_eq!(out, values);
    let turned = request().column_major().read().unwrap();
    assert_eq!(turned.strides(), [1, 4]);
    let back = turned.transpose(&[1, 0]).unwrap();
    // SAFETY: no other code has the memory.
    let by_column: Vec<u8> = unsafe { back.bytes() }.unwrap().to_vec();
    let at = |row: usize, column: usize| &values[(row * 6 + column) * 2..][..2];
    assert_eq!(by_column, (0..24).flat_map(|index| at(index % 4, index / 4).to_vec()).collect::<Vec<u8>>());
    assert!(request().map().unwrap().is_none());
    let whole = array.read(..).unwrap();
    match zarrow::read_many(&[request(), request()]).unwrap() {
        Batch::Stacked(both) => assert_eq!(bytes_of(&both), values.repeat(2)),
        Batch::Ragged(_) => panic!("fields of one type and shape are stacked"),
    }
    let each = zarrow::read_each(&[request(), array.request(..).unwrap()]).unwrap();
    assert_eq!(each.iter().map(bytes_of).collect::<Vec<_>>(), [values, bytes_of(&whole)]);
}
