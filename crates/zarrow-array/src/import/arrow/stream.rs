//! Takes all chunks out of a stream.
//!
//! Source: Arrow C stream interface.

use super::foreign::take_array;
use crate::allocation::Grow;
use crate::error::{Error, Result};
use crate::export::arrow_abi::{ArrowArray, ArrowSchema};
use crate::export::arrow_stream::ArrowArrayStream;
use std::ffi::{CStr, c_int};

/// Moves a stream out of a producer's struct and marks the struct as released; `None` if it was released already.
///
/// # Safety
/// `place` must point to a struct of the C stream interface, released or not, without any concurrent access.
#[must_use]
pub unsafe fn take_stream(place: *mut ArrowArrayStream) -> Option<ArrowArrayStream> {
    // SAFETY: by this function's contract.
    unsafe {
        (*place).release?;
        let stream = place.read();
        (*place).release = None;
        Some(stream)
    }
}

/// Takes the type and all chunks out of a stream.
///
/// # Errors
/// [`Error::BadArrow`] with the producer's error message.
pub fn collect_stream(mut stream: ArrowArrayStream) -> Result<(ArrowSchema, Vec<ArrowArray>)> {
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(Error::BadArrow("the stream lacks get_schema or get_next".into()));
    };
    let mut schema = ArrowSchema::released();
    // SAFETY: the stream is live and ours alone, and the place may be written to: its current content needs no
    // release.
    let code = unsafe { get_schema(&mut stream, &mut schema) };
    check(&mut stream, code)?;
    if schema.release.is_none() {
        return Err(Error::BadArrow("the stream has no schema".into()));
    }
    let mut chunks = Vec::new();
    loop {
        let mut place = ArrowArray::released();
        // SAFETY: as above.
        let code = unsafe { get_next(&mut stream, &mut place) };
        check(&mut stream, code)?;
        // SAFETY: the place is ours.
        match unsafe { take_array(&mut place) } {
            Some(chunk) => chunks.try_push(chunk)?,
            None => return Ok((schema, chunks)),
        }
    }
}

fn check(stream: &mut ArrowArrayStream, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let text = match stream.get_last_error {
        // SAFETY: the stream is live, and its last call failed; the text lives until the next one.
        Some(get) => unsafe { get(stream).as_ref().map(|text| CStr::from_ptr(text).to_string_lossy()) },
        None => None,
    };
    let text = text.unwrap_or_default();
    Err(Error::BadArrow(format!("the stream's producer failed with error {code}: {text}")))
}
