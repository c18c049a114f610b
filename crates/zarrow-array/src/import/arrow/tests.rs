//! Malformed structs give a typed error, and the producer's release is called once.

use super::*;
use crate::export::arrow_abi::{ArrayNode, Owner, SchemaNode};
use proptest::prelude::*;
use std::ffi::c_void;

fn schema(format: &str) -> SchemaNode {
    SchemaNode::formatted(format)
}

fn list(length: i64, item: SchemaNode) -> SchemaNode {
    SchemaNode { children: vec![item], ..schema(&format!("+w:{length}")) }
}

/// An array over `buffers`, validity first, kept by `owner`.
fn node(length: i64, buffers: &[&[u8]], owner: &Arc<()>) -> ArrayNode {
    let address =
        |buffer: &&[u8]| if buffer.is_empty() { std::ptr::null() } else { buffer.as_ptr().cast::<c_void>() };
    ArrayNode {
        length,
        null_count: -1,
        buffers: buffers.iter().map(address).collect(),
        owners: vec![Owner::new(owner.clone())],
        ..ArrayNode::default()
    }
}

fn words(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn halves(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn bytes(array: Imported) -> Vec<u8> {
    let Imported::Tensor(tensor) = array else { unreachable!("the array is a tensor") };
    // SAFETY: these tests never write to the memory.
    unsafe { tensor.copy().unwrap().bytes().unwrap().to_vec() }
}

#[test]
fn offsets_of_all_levels_are_added() {
    let owner = Arc::new(());
    let values: Vec<u8> = (0..40).collect();
    let mut inner = node(36, &[&[], &values], &owner).into_c();
    inner.offset = 4;
    let mut outer = ArrayNode { children: vec![], ..node(3, &[&[]], &owner) }.into_c();
    outer.offset = 2;
    let mut children = [&raw mut inner];
    (outer.n_children, outer.children) = (1, children.as_mut_ptr());
    let lists = list(5, schema("C")).into_c();
    // The outer struct does not own the inner one, which is dropped at the end of the test.
    let Ok(Imported::Tensor(tensor)) = array(&lists, outer, false) else { unreachable!("of numbers") };
    assert_eq!(tensor.shape(), [3, 5]);
    assert_eq!(tensor.pointer().as_ptr().cast_const(), values[4 + 2 * 5..].as_ptr());
}

#[test]
fn malformed_arrays_are_errors_and_released() {
    let owner = Arc::new(());
    let values = words(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let refused = |format: &str, lie: &dyn Fn(&mut ArrowArray)| {
        let mut lying = node(4, &[&[], &values], &owner).into_c();
        lie(&mut lying);
        let error = array(&schema(format).into_c(), lying, true).unwrap_err();
        assert_eq!(Arc::strong_count(&owner), 1, "{error}");
        error
    };
    assert!(matches!(refused("l", &|array| array.length = -1), Error::BadArrow(_)));
    assert!(matches!(refused("l", &|array| array.offset = -1), Error::BadArrow(_)));
    assert!(matches!(refused("l", &|array| array.offset = i64::MAX), Error::BadArrow(_)));
    assert!(matches!(refused("l", &|array| array.length = i64::MAX), Error::ShapeOverflow { .. }));
    assert!(matches!(refused("l", &|array| array.n_buffers = 1), Error::BadArrow(_)));
    assert!(matches!(refused("l", &|array| array.n_buffers = -5), Error::BadArrow(_)));
    assert!(matches!(refused("l", &|array| array.buffers = std::ptr::null()), Error::BadArrow(_)));
    assert!(matches!(refused("U", &|_| {}), Error::BadOffset { .. } | Error::BadArrow(_)));
    assert!(matches!(refused("vu", &|_| {}), Error::BadArrow(_)));
    assert!(matches!(refused("w:9223372036854775807", &|_| {}), Error::UnknownType { .. }));
    assert!(matches!(
        refused("w:4294967295", &|array| array.offset = i64::MAX / 5),
        Error::ShapeOverflow { .. }
    ));
    for format in
        ["", "x", "+l", "+s", "+w:", "+w:-1", "+w:3", "w:", "w:0", "d:5,2", "ts", "tsX:", "tdX", "n", "+ud:0"]
    {
        let error = refused(format, &|_| {});
        assert!(matches!(error, Error::UnknownType { .. } | Error::BadArrow(_)), "{format}: {error}");
    }
}

#[test]
fn lists_with_too_few_items_are_refused() {
    let owner = Arc::new(());
    let values: Vec<u8> = (0..6).collect();
    let lists = |length: i64, items: i64| ArrayNode {
        children: vec![node(items, &[&[], &values], &owner)],
        ..node(length, &[&[]], &owner)
    };
    let type_of = |length: i64| list(length, schema("C")).into_c();
    assert_eq!(bytes(array(&type_of(3), lists(2, 6).into_c(), false).unwrap()), values);
    assert!(matches!(array(&type_of(3), lists(2, 5).into_c(), false), Err(Error::BadArrow(_))));
    assert!(matches!(array(&type_of(i64::MAX), lists(2, 6).into_c(), false), Err(Error::BadArrow(_))));
    assert!(matches!(array(&type_of(3), node(2, &[&[]], &owner).into_c(), false), Err(Error::BadArrow(_))));
    let deep = (0..70).fold(schema("C"), |item, _| list(1, item));
    assert!(matches!(array(&deep.into_c(), lists(2, 6).into_c(), false), Err(Error::UnknownType { .. })));
    assert!(matches!(
        array(&list(0, schema("C")).into_c(), lists(2, 0).into_c(), false),
        Ok(Imported::Tensor(_))
    ));
}

#[test]
fn types_that_would_lose_meaning_are_refused() {
    let owner = Arc::new(());
    let values = words(&[0, 1, 2, 3]);
    for format in ["tss:UTC", "tsn:Europe/Oslo", "tts", "ttm", "ttu", "ttn", "tdm"] {
        let refused = array(&schema(format).into_c(), node(4, &[&[], &values], &owner).into_c(), true);
        assert!(matches!(refused, Err(Error::LosesMeaning { .. })), "{format}");
    }
    for (format, taken) in
        [("tss:", true), ("tDn", true), ("tdD", true), ("tsx:", false), ("td", false), ("t", false)]
    {
        let result = array(&schema(format).into_c(), node(4, &[&[], &values], &owner).into_c(), true);
        assert_eq!(result.is_ok(), taken, "{format}");
    }
    let rows = |validity: u8| {
        let validity = [validity];
        let children = vec![node(4, &[&[], &values], &owner)];
        let lists = ArrayNode { children, ..node(2, &[&validity], &owner) };
        array(&list(2, schema("l")).into_c(), lists.into_c(), true)
    };
    assert!(matches!(rows(0b11), Ok(Imported::Tensor(_))));
    assert!(matches!(rows(0b01), Err(Error::LosesMeaning { .. })));
}

#[test]
fn fixed_shape_tensors_have_the_shape_of_their_metadata() {
    let owner = Arc::new(());
    let values: Vec<u8> = (0..12).collect();
    let take = |metadata: &str| {
        let pairs =
            [("ARROW:extension:name", "arrow.fixed_shape_tensor"), ("ARROW:extension:metadata", metadata)];
        let metadata = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let tensor = SchemaNode { metadata, ..list(6, schema("C")) };
        let rows = ArrayNode { children: vec![node(12, &[&[], &values], &owner)], ..node(2, &[&[]], &owner) };
        array(&tensor.into_c(), rows.into_c(), false)
    };
    let shape = |metadata: &str| match take(metadata) {
        Ok(Imported::Tensor(tensor)) => Some((tensor.shape().to_vec(), tensor.strides().to_vec())),
        _ => None,
    };
    assert_eq!(shape(r#"{"shape":[2,3]}"#), Some((vec![2, 2, 3], vec![6, 3, 1])));
    assert_eq!(shape(r#"{"shape":[2,3],"permutation":[1,0]}"#), Some((vec![2, 3, 2], vec![6, 1, 3])));
    assert_eq!(
        shape(r#"{"shape":[2,3],"permutation":null,"dim_names":["a","b"]}"#).map(|it| it.0),
        Some(vec![2, 2, 3])
    );
    for wrong in [
        "",
        "[]",
        "{}",
        r#"{"shape":[2,4]}"#,
        r#"{"shape":[-2,-3]}"#,
        r#"{"shape":"x"}"#,
        r#"{"shape":[9223372036854775807,2]}"#,
        r#"{"shape":[2,3],"permutation":[0,0]}"#,
        r#"{"shape":[2,3],"permutation":[0]}"#,
        r#"{"shape":[2,3],"permutation":[0,2]}"#,
        r#"{"shape":[1,2,3],"permutation":[1,2,0]}"#,
    ] {
        assert!(take(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn views_outside_their_buffers_are_refused() {
    let owner = Arc::new(());
    let data = b"long enough to lie outside".to_vec();
    let view = |length: i32, buffer: i32, offset: i32| {
        let mut view = halves(&[length, 0, buffer, offset]);
        view[4..8].copy_from_slice(&data[..4]);
        view
    };
    let lengths = words(&[data.len() as i64]);
    let take = |views: &[u8]| {
        let views = node((views.len() / 16) as i64, &[&[], views, &data, &lengths], &owner);
        array(&schema("vu").into_c(), views.into_c(), true)
    };
    let Ok(Imported::Variable(words)) = take(&[view(20, 0, 5), view(4, 9, 9)].concat()) else {
        unreachable!("of text")
    };
    assert_eq!((words.element(0), words.element(1)), (Some(&data[5..25]), Some(&data[..4])));
    for (length, buffer, offset) in
        [(27, 0, 0), (20, 0, 7), (13, 1, 0), (13, -1, 0), (13, 0, -1), (-1, 0, 0), (i32::MAX, 0, i32::MAX)]
    {
        assert!(
            matches!(take(&view(length, buffer, offset)), Err(Error::BadArrow(_))),
            "{length} {buffer} {offset}"
        );
    }
}

#[test]
fn indices_outside_their_dictionary_are_refused() {
    let owner = Arc::new(());
    let values = words(&[10, 20, 30]);
    let take = |indices: &[u8], validity: &[u8]| {
        let dictionary = Some(Box::new(node(3, &[&[], &values], &owner)));
        let indices = ArrayNode { dictionary, ..node(indices.len() as i64, &[validity, indices], &owner) };
        let kind = SchemaNode { dictionary: Some(Box::new(schema("l"))), ..schema("c") };
        array(&kind.into_c(), indices.into_c(), true)
    };
    assert_eq!(bytes(take(&[2, 0, 0], &[]).unwrap()), words(&[30, 10, 10]));
    assert!(matches!(take(&[3], &[]), Err(Error::BadArrow(_))));
    assert!(matches!(take(&[0xff], &[]), Err(Error::BadArrow(_))));
    // Null indices are not looked up.
    let Ok(Imported::MaskedTensor(_, mask)) = take(&[0, 0xff], &[0b01]) else { unreachable!("one is null") };
    assert_eq!(mask.missing(), [0, 1]);
}

#[test]
fn nested_dictionaries_are_refused_at_any_depth() {
    let mut nested = vec![schema("l").into_c()];
    for _ in 0..20_000 {
        let mut outer = schema("c").into_c();
        // Leaked: freeing them would recurse and overflow the stack.
        outer.dictionary = &raw mut *Box::leak(Box::new(nested.pop().unwrap()));
        nested.push(outer);
    }
    let owner = Arc::new(());
    let refused = array(&nested[0], node(0, &[&[], &[]], &owner).into_c(), true);
    assert!(matches!(refused, Err(Error::UnknownType { .. })));
}

proptest! {
    #[test]
    fn bits_become_bytes(bits in prop::collection::vec(any::<u8>(), 1..20), start in 0usize..30) {
        prop_assume!(start < bits.len() * 8);
        let length = bits.len() * 8 - start;
        let is_set = |at: usize| bits[(start + at) / 8] >> ((start + at) % 8) & 1 == 1;
        // SAFETY: the bits are inside the vector.
        let (missing, bools) = unsafe {
            (
                unpacked_bits::missing(bits.as_ptr(), start, length).unwrap(),
                unpacked_bits::unpacked(bits.as_ptr(), start, length).unwrap(),
            )
        };
        let expected: Vec<u8> = (0..length).map(|at| u8::from(is_set(at))).collect();
        prop_assert_eq!(&bools[..], &expected[..]);
        let nulls: Vec<u8> = expected.iter().map(|bit| bit ^ 1).collect();
        match missing {
            Some(missing) => prop_assert_eq!(&missing[..], &nulls[..]),
            None => prop_assert!(nulls.iter().all(|byte| *byte == 0)),
        }
    }
}
