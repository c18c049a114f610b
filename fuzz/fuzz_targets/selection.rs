//! The plan: compares reads of valid arrays with a count of every element.
//!
//! Element `i` of the array, in C order, is the number `i`; missing chunks have the fill value.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use zarrow::{Array, Index, Node, Selection};
use zarrow_array::DecodedArray;
use zarrow_fuzz::{open, positions};

#[derive(Arbitrary, Debug)]
struct Axis {
    extent: u8,
    chunk: u8,
    inner: u8,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Step {
    At(i8),
    Slice(Option<i8>, Option<i8>, Option<i8>),
}

#[derive(Arbitrary, Debug)]
struct Case {
    axes: Vec<Axis>,
    sharded: bool,
    reversed: bool,
    cached: bool,
    absent: u8,
    items: Vec<[Step; 3]>,
}

const FILL: u32 = 0xDEAD_BEEF;

/// Numbers of one grid, the outermost first, of its chunk number `at`.
fn unravel(mut at: u64, grid: &[u64]) -> Vec<u64> {
    let mut chunk_index: Vec<u64> = grid
        .iter()
        .rev()
        .map(|count| {
            let index = at % count;
            at /= count;
            index
        })
        .collect();
    chunk_index.reverse();
    chunk_index
}

/// The array, and its elements.
fn build(case: &Case) -> (Array, Vec<u32>) {
    let axes = &case.axes[..case.axes.len().min(3)];
    let inner: Vec<u64> = axes.iter().map(|axis| u64::from(axis.inner % 4) + 1).collect();
    let chunk: Vec<u64> = axes
        .iter()
        .zip(&inner)
        .map(|(axis, inner)| if case.sharded { inner * (u64::from(axis.chunk % 3) + 1) } else { *inner })
        .collect();
    let shape: Vec<u64> = axes.iter().map(|axis| u64::from(axis.extent % 14)).collect();
    let mut elements: Vec<u32> = (0..shape.iter().product::<u64>() as u32).collect();
    let order: Vec<usize> =
        if case.reversed { (0..axes.len()).rev().collect() } else { (0..axes.len()).collect() };
    let pick = |values: &[u64]| order.iter().map(|axis| values[*axis]).collect::<Vec<u64>>();
    let bytes =
        json!({"name": "bytes", "configuration": {"endian": if case.cached { "big" } else { "little" }}});
    let word = |value: u32| if case.cached { value.to_be_bytes() } else { value.to_le_bytes() };
    let plain = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let mut codecs = vec![];
    if case.reversed && axes.len() > 1 {
        codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
    }
    codecs.push(match case.sharded {
        true => json!({"name": "sharding_indexed", "configuration":
            {"chunk_shape": pick(&inner), "codecs": [bytes], "index_codecs": [plain]}}),
        false => bytes,
    });
    let metadata = zarrow_fuzz::metadata(&json!("uint32"), &shape, &chunk, &json!(FILL), &json!(codecs));
    let mut values = vec![("zarr.json".to_owned(), metadata.to_string().into_bytes())];
    let grid: Vec<u64> = shape.iter().zip(&chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
    let counts: Vec<u64> = chunk.iter().zip(&inner).map(|(chunk, inner)| chunk / inner).collect();
    let mut number = 0u8;
    for at in 0..grid.iter().product::<u64>() {
        let chunk_index = unravel(at, &grid);
        let (mut shard, mut index) = (Vec::new(), Vec::new());
        let stored_counts = pick(&counts);
        let mut any = false;
        for sub in 0..stored_counts.iter().product::<u64>() {
            number = number.wrapping_mul(37).wrapping_add(11);
            let absent = number < case.absent;
            any |= !absent;
            let start = shard.len() as u64;
            let stored_inner = pick(&inner);
            for element in 0..stored_inner.iter().product::<u64>() {
                let (sub, element) = (unravel(sub, &stored_counts), unravel(element, &stored_inner));
                let mut position = vec![0; axes.len()];
                for (stored, axis) in order.iter().enumerate() {
                    position[*axis] =
                        chunk_index[*axis] * chunk[*axis] + sub[stored] * inner[*axis] + element[stored];
                }
                let inside = position.iter().zip(&shape).all(|(at, extent)| at < extent);
                let flat = position.iter().zip(&shape).fold(0, |flat, (at, extent)| flat * extent + at);
                if absent && inside {
                    elements[flat as usize] = FILL;
                }
                if !absent {
                    shard.extend(word(if inside { flat as u32 } else { 0xBAD }));
                }
            }
            let entry = if absent { [u64::MAX; 2] } else { [start, shard.len() as u64 - start] };
            index.extend(entry.iter().flat_map(|number| number.to_le_bytes()));
        }
        if case.sharded {
            shard.extend(index);
        }
        if any || case.sharded {
            let key: String = chunk_index.iter().map(|index| format!("/{index}")).collect();
            values.push((format!("c{key}"), shard));
        }
    }
    match open(values, usize::from(case.cached) << 12) {
        Ok(Node::Array(array)) => (array, elements),
        other => panic!("{other:?}"),
    }
}

fn numbers(decoded: &DecodedArray) -> Vec<u32> {
    let DecodedArray::Tensor(tensor) = decoded else { panic!("{decoded:?}") };
    tensor
        .bytes()
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}

fuzz_target!(|case: Case| {
    let (array, elements) = build(&case);
    let selections: Vec<Selection> = case
        .items
        .iter()
        .take(6)
        .filter_map(|steps| {
            let index = |step: &Step| match *step {
                Step::At(at) => Index::At(at.into()),
                Step::Slice(start, stop, step) => Index::Slice {
                    start: start.map(Into::into),
                    stop: stop.map(Into::into),
                    step: step.map(Into::into),
                },
            };
            Selection::new(array.shape(), &steps[..array.shape().len()].iter().map(index).collect::<Vec<_>>())
                .ok()
        })
        .collect();
    let expected: Vec<Vec<u32>> = selections
        .iter()
        .map(|selection| positions(array.shape(), selection).iter().map(|at| elements[*at]).collect())
        .collect();
    for (selection, expected) in selections.iter().zip(&expected) {
        let decoded = array.read(selection).unwrap();
        assert_eq!((decoded.shape(), &numbers(&decoded)), (&selection.shape()[..], expected));
        let mut out = vec![0xA5; expected.len() * 4];
        array.request(selection).unwrap().read_into(&mut out).unwrap();
        assert!(out.chunks_exact(4).zip(expected).all(|(word, number)| word == number.to_ne_bytes()));
    }
    let requests: Vec<_> = selections.iter().map(|selection| array.request(selection).unwrap()).collect();
    match zarrow::read_many(&requests) {
        Ok(zarrow::Batch::Stacked(stack)) => assert_eq!(numbers(&stack), expected.concat()),
        Ok(zarrow::Batch::Ragged(parts)) => {
            assert_eq!(parts.iter().map(numbers).collect::<Vec<_>>(), expected);
        }
        Err(error) => assert!(requests.is_empty(), "{error}"),
    }
});
