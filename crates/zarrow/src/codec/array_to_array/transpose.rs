//! `transpose`: reorders the axes. Reading only changes strides.
//!
//! Source: Zarr core 3.1, `transpose` codec: stored axis `i` is axis `order[i]` of the codec's input.

use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::error::{ErrorKind, Result};
use crate::metadata::CodecMetadata;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["transpose"],
    parameters: &[("order", ParameterType::Any)],
    stage: Stage::Transpose,
    ..Definition::PLAIN
};

/// Returns the combined order of several transposes; `None` if it changes nothing.
///
/// # Errors
/// [`ErrorKind::BadCodec`] if an order is not a permutation of the axes.
pub fn compose(transposes: &[CodecMetadata], ndim: usize) -> Result<Option<Vec<usize>>> {
    let mut composed: Vec<usize> = (0..ndim).collect();
    for metadata in transposes {
        let order = order(metadata, ndim)
            .ok_or_else(|| {
                let expected = format!("each of the {ndim} axes once");
                wrong_parameter(&metadata.configuration, "order", &expected)
            })
            .map_err(|error| error.in_codec("transpose"))?;
        composed = order.into_iter().map(|axis| composed[axis]).collect();
    }
    Ok(composed.iter().enumerate().any(|(at, axis)| at != *axis).then_some(composed))
}

fn order(metadata: &CodecMetadata, ndim: usize) -> Option<Vec<usize>> {
    let value = metadata.configuration.get("order")?;
    // Drafts of the specification named the two common orders.
    match value.as_str() {
        Some("C") => return Some((0..ndim).collect()),
        Some("F") => return Some((0..ndim).rev().collect()),
        _ => {}
    }
    let order: Vec<usize> =
        value.as_array()?.iter().map(|axis| usize::try_from(axis.as_u64()?).ok()).collect::<Option<_>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..ndim).then_some(order)
}

/// Returns the inverse of `order`.
pub fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    for (at, axis) in order.iter().enumerate() {
        inverse[*axis] = at;
    }
    inverse
}

/// Transposes the elements of an array of `shape`: axis `i` of the result is axis `order[i]` of the array.
///
/// # Errors
/// [`zarrow_array::Error::OutOfMemory`]; [`ErrorKind::Internal`] if the number of elements does not match `shape`.
pub fn permuted(elements: &[u8], shape: &[u64], order: &[usize], item_size: usize) -> Result<Vec<u8>> {
    let nbytes = zarrow_array::shape::nbytes(shape, item_size)?;
    if nbytes != elements.len() || order.len() != shape.len() {
        return Err(ErrorKind::Internal("the elements do not match their shape".into()).into());
    }
    let mut permuted = Vec::new();
    permuted.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
    // The product of the extents is checked above, so every stride fits.
    let extents: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
    let strides = zarrow_array::shape::c_strides(&extents).unwrap_or_default();
    let stride = |axis: usize| strides.get(axis).map_or(0, |stride| *stride as isize * item_size as isize);
    let axes: Vec<(u64, isize)> = order.iter().map(|axis| (shape[*axis], stride(*axis))).collect();
    let mut position = vec![0; axes.len()];
    let mut at = 0isize;
    while permuted.len() < nbytes {
        let start = at.unsigned_abs();
        permuted.extend_from_slice(&elements[start..start + item_size]);
        for (index, (extent, stride)) in position.iter_mut().zip(&axes).rev() {
            *index += 1;
            at += stride;
            if *index < *extent {
                break;
            }
            at -= stride * (*index as isize);
            *index = 0;
        }
    }
    Ok(permuted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn transpose(order: serde_json::Value) -> CodecMetadata {
        CodecMetadata::new("transpose", [("order".to_owned(), order)].into_iter().collect())
    }

    #[test]
    fn orders_compose() {
        let cycle = transpose(json!([1, 2, 0]));
        assert_eq!(compose(std::slice::from_ref(&cycle), 3).unwrap(), Some(vec![1, 2, 0]));
        assert_eq!(compose(&[cycle.clone(), cycle.clone()], 3).unwrap(), Some(vec![2, 0, 1]));
        assert_eq!(compose(&[cycle.clone(), cycle.clone(), cycle], 3).unwrap(), None);
        assert_eq!(compose(&[transpose(json!("F"))], 2).unwrap(), Some(vec![1, 0]));
    }

    #[test]
    fn permuted_elements_round_trip() {
        let elements: Vec<u8> = (0..48).collect();
        let permuted_once = permuted(&elements, &[2, 3, 4], &[2, 0, 1], 2).unwrap();
        // The element at [1, 2, 3] is the last in both, and the one at [0, 0, 1] begins the second row.
        assert_eq!((&permuted_once[46..], &permuted_once[12..14]), (&[46u8, 47][..], &[2u8, 3][..]));
        assert_eq!(permuted(&permuted_once, &[4, 2, 3], &inverse(&[2, 0, 1]), 2).unwrap(), elements);
        assert_eq!(permuted(&[7], &[], &[], 1).unwrap(), [7]);
        assert!(permuted(&[7], &[2], &[0], 1).is_err());
    }

    #[test]
    fn what_is_no_permutation_is_refused() {
        for order in [json!([0]), json!([0, 0]), json!([0, 2]), json!([0, -1]), json!("X"), json!(null)] {
            assert!(compose(&[transpose(order.clone())], 2).is_err(), "{order}");
        }
    }
}
