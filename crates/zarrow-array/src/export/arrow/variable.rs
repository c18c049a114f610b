//! Variable-length strings and bytes as Arrow arrays: large forms share both buffers, the others only the bytes.

use crate::buffer::{Buffer, UninitBuffer};
use crate::error::{Error, Result};
use crate::export::arrow::ArrowPair;
use crate::export::arrow::field::{ArrowField, no_axis, rows};
use crate::export::arrow::form::{ArrowForm, RowForm, TextForm};
use crate::export::arrow::node::{leaf, wrapped};
use crate::export::arrow::nulls::Validity;
use crate::export::arrow_abi::{ArrayNode, ArrowSchema, Owner, SchemaNode};
use crate::layout::Variable;
use crate::mask::Mask;
use crate::shape;
use crate::shared_bytes::SharedBytes;
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// Exports an array of strings or bytes as an Arrow array; with a mask, its missing elements are null.
///
/// The bytes are not copied. Offsets are only copied if the form asks for another kind. 32-bit offsets fall back to
/// 64 bits if they would overflow.
///
/// # Errors
/// [`Error::NeedsCopy`] for a 0-dimensional array, and for an element of 2 GiB as a view; [`Error::LengthMismatch`]
/// for a mask of another length; [`Error::OutOfMemory`].
pub fn variable(variable: &Variable, mask: Option<&Mask>, form: ArrowForm) -> Result<ArrowPair> {
    let fits = variable.offsets().last().is_none_or(|end| i32::try_from(*end).is_ok());
    let text = if form.text == TextForm::Small && !fits { TextForm::Large } else { form.text };
    let form = ArrowForm { text, ..form };
    Ok((variable_type(variable, form)?.into_c(), variable_memory(variable, mask, form)?.into_c()))
}

/// Returns the Arrow type of an array of strings or bytes.
///
/// # Errors
/// [`Error::NeedsCopy`] for a 0-dimensional array.
pub fn variable_schema(variable: &Variable, form: ArrowForm) -> Result<ArrowSchema> {
    Ok(variable_type(variable, form)?.into_c())
}

fn variable_type(variable: &Variable, form: ArrowForm) -> Result<SchemaNode> {
    let shape = extents(variable);
    let field =
        ArrowField { dtype: variable.dtype(), shape: &shape, order: None, dimension_names: None, form };
    field.schema()
}

fn extents(variable: &Variable) -> Vec<i64> {
    // Extents of an array in memory fit an `i64`.
    variable.shape().iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect()
}

/// Exports the memory of an array of strings or bytes in exactly this form.
///
/// # Errors
/// See [`variable`]; [`Error::NeedsCopy`] if 32-bit offsets would overflow.
pub fn variable_memory(variable: &Variable, mask: Option<&Mask>, form: ArrowForm) -> Result<ArrayNode> {
    let shape = extents(variable);
    if shape.is_empty() {
        return Err(no_axis());
    }
    let validity = Validity::from_mask(mask, variable.size())?;
    let (offsets, data) = variable.parts();
    let (offsets, data) = (offsets.clone(), data.clone());
    let address = |buffer: &SharedBytes| buffer.as_ptr().cast::<c_void>();
    let (buffers, owners) = match form.text {
        TextForm::Large => (vec![address(&offsets), address(&data)], vec![offsets, data]),
        TextForm::Small => {
            let offsets = SharedBytes::from(small_offsets(variable)?);
            (vec![address(&offsets), address(&data)], vec![offsets, data])
        }
        TextForm::Views => {
            let (views, parts) = views(variable)?;
            let lengths: Vec<u8> = parts.iter().flat_map(|(_, length)| length.to_ne_bytes()).collect();
            let (views, lengths) = (SharedBytes::from(views), SharedBytes::from(Buffer::copy_of(&lengths)?));
            let parts = parts.iter().map(|(start, _)| data[*start..].as_ptr().cast::<c_void>());
            let buffers = [address(&views)].into_iter().chain(parts).chain([address(&lengths)]);
            (buffers.collect(), vec![views, lengths, data])
        }
    };
    let owners = owners.into_iter().map(|bytes: SharedBytes| Owner::new(bytes.owner())).collect();
    let form = if shape.len() > 1 { rows(form, variable.dtype()) } else { RowForm::Flat };
    Ok(wrapped(leaf(variable.size() as i64, validity, buffers, owners), form, &shape))
}

fn small_offsets(variable: &Variable) -> Result<Buffer> {
    let too_long = || Error::NeedsCopy { protocol: "Arrow with 32-bit offsets", what: "2 GiB of text" };
    let nbytes = shape::nbytes(&[variable.offsets().len() as u64], size_of::<i32>())?;
    let mut memory = UninitBuffer::new(nbytes)?;
    let (places, _) = memory.as_mut_slice().as_chunks_mut::<{ size_of::<i32>() }>();
    for (place, offset) in places.iter_mut().zip(variable.offsets()) {
        *place = i32::try_from(*offset).map_err(|_| too_long())?.to_ne_bytes().map(MaybeUninit::new);
    }
    // SAFETY: the memory has room for one `i32` per offset, and each was written.
    Ok(unsafe { memory.assume_init() })
}

/// Start of a part of the data, and its size in bytes.
type DataPart = (usize, i64);

/// Returns the views, and the parts of the data that they refer to: each as large as 32 bits can address.
///
/// A view has a 32-bit length, followed by the text if it has at most 12 bytes, else by the first 4 bytes, the
/// index of a part, and the offset within the part. Source: Arrow columnar format, "Variable-size Binary View
/// Layout".
fn views(variable: &Variable) -> Result<(Buffer, Vec<DataPart>)> {
    const IN_PLACE: usize = 12;
    const VIEW: usize = 16;
    let too_long = || Error::NeedsCopy { protocol: "Arrow as a view", what: "an element of 2 GiB" };
    let mut views = Buffer::zeroed(shape::nbytes(&[variable.size() as u64], VIEW)?)?;
    let mut parts: Vec<DataPart> = Vec::new();
    let ranges = variable.offsets().windows(2).map(|pair| pair[0] as usize..pair[1] as usize);
    for (view, range) in views.chunks_exact_mut(VIEW).zip(ranges) {
        let bytes = variable.data().get(range.clone()).unwrap_or_default();
        view[..4].copy_from_slice(&i32::try_from(bytes.len()).map_err(|_| too_long())?.to_ne_bytes());
        if bytes.len() <= IN_PLACE {
            view[4..4 + bytes.len()].copy_from_slice(bytes);
            continue;
        }
        // A range can begin before the previous one only if another library has changed the shared offsets.
        let reaches = |start: usize| start <= range.start && i32::try_from(range.end - start).is_ok();
        let start = match parts.last() {
            Some((start, _)) if reaches(*start) => *start,
            _ => {
                parts.push((range.start, 0));
                range.start
            }
        };
        if let Some((_, length)) = parts.last_mut() {
            *length = (range.end - start) as i64;
        }
        view[4..8].copy_from_slice(&bytes[..4]);
        view[8..12].copy_from_slice(&((parts.len() - 1) as i32).to_ne_bytes());
        view[12..].copy_from_slice(&((range.start - start) as i32).to_ne_bytes());
    }
    Ok((views, parts))
}
