//! The size of an object, from the answer to a request for a range of it.
//!
//! Not every store reports sizes. An answer that ends before the requested range does, or at the end itself, shows it.

use crate::store::remote::bodies::InFlightBody;
use crate::store::remote::{Body, ByteRange};

/// Returns the size of the object in bytes, if `landed`, the answer to a request for `range`, determines it.
pub(crate) fn object_size(landed: &InFlightBody, range: &ByteRange) -> Option<u64> {
    let Body { start, bytes, .. } = landed.body();
    let end = start.saturating_add(bytes.len() as u64);
    let ends = match range {
        ByteRange::Whole | ByteRange::Suffix(_) => true,
        ByteRange::Range(range) => !bytes.is_empty() && end < range.end,
    };
    ends.then_some(end)
}
