//! Orders of axes: their inverse, and the elements of an array in another order.

use crate::error::{ErrorKind, Result};

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
}
