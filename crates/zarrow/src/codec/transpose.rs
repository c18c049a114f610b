//! `transpose`: the axes in another order. Reading it is a matter of strides.
//!
//! Source: Zarr core 3.1, `transpose` codec: stored axis `i` is axis `order[i]` of what was encoded.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::CodecMetadata;

/// The order that several transposes have together; `None` where it changes nothing.
///
/// # Errors
/// [`ErrorKind::BadCodec`] where an order is no permutation of the axes.
pub fn compose(transposes: &[CodecMetadata], ndim: usize) -> Result<Option<Vec<usize>>> {
    let mut composed: Vec<usize> = (0..ndim).collect();
    for metadata in transposes {
        let order = order(metadata, ndim)
            .ok_or_else(|| Error::from(ErrorKind::BadCodec(format!("order must permute {ndim} axes"))))
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
    fn what_is_no_permutation_is_refused() {
        for order in [json!([0]), json!([0, 0]), json!([0, 2]), json!([0, -1]), json!("X"), json!(null)] {
            assert!(compose(&[transpose(order.clone())], 2).is_err(), "{order}");
        }
    }
}
