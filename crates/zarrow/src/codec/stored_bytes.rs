//! The stored bytes of a chunk: a value of the store, a range of one, or bytes already in memory.

use crate::codec::Scratch;
use crate::codec::Uninit;
use crate::error::{ErrorKind, Result};
use crate::store::Value;
use crate::store::remote::BodyMemory;
use crate::store::remote::bodies::Bodies;

/// Bytes to read at once even if few are needed, since a second request costs as much.
pub const FEW_NBYTES: u64 = 256 << 10;

/// Location of a chunk's encoded bytes.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    bytes: EncodedBytes<'a>,
    /// `None` for a whole value of unknown size.
    nbytes: Option<u64>,
    /// The allocator's memory that contains the bytes, if any.
    borrowed: Option<&'a BodyMemory>,
}

#[derive(Clone, Copy)]
enum EncodedBytes<'a> {
    Value {
        value: &'a dyn Value,
        offset: u64,
    },
    Bytes(&'a [u8]),
    /// The fetched parts of a value; these bytes begin at `offset` in the value.
    Bodies {
        bodies: &'a Bodies,
        offset: u64,
    },
}

impl<'a> Input<'a> {
    /// Creates the input for a whole value.
    pub fn from_value(value: &'a dyn Value) -> Input<'a> {
        match value.bytes() {
            Some(bytes) => Input::from_bytes(bytes),
            None => Input { bytes: EncodedBytes::Value { value, offset: 0 }, nbytes: None, borrowed: None },
        }
    }

    /// Creates the input for bytes in memory.
    pub fn from_bytes(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes: EncodedBytes::Bytes(bytes), nbytes: Some(bytes.len() as u64), borrowed: None }
    }

    /// Creates the input for a number of bytes of a value from `offset` on; the parts to read have been fetched.
    pub fn from_bodies(bodies: &'a Bodies, offset: u64, nbytes: u64) -> Input<'a> {
        match bodies.run(offset..offset.saturating_add(nbytes)) {
            Some((bytes, borrowed)) => Input { borrowed, ..Input::from_bytes(bytes) },
            None => {
                Input { bytes: EncodedBytes::Bodies { bodies, offset }, nbytes: Some(nbytes), borrowed: None }
            }
        }
    }

    /// Returns whether a plan's requests fetched the bytes, so that other bytes of the value are not in memory.
    pub fn is_fetched(&self) -> bool {
        matches!(self.bytes, EncodedBytes::Bodies { .. })
    }

    /// Returns the number of bytes.
    pub fn nbytes(&self) -> Result<u64> {
        match (self.nbytes, self.bytes) {
            (Some(nbytes), _) => Ok(nbytes),
            (None, EncodedBytes::Value { value, .. }) => value.nbytes(),
            (None, EncodedBytes::Bytes(bytes)) => Ok(bytes.len() as u64),
            (None, EncodedBytes::Bodies { .. }) => Err(not_landed()),
        }
    }

    /// Returns the same bytes with their number known.
    pub fn measured(self) -> Result<Input<'a>> {
        Ok(Input { nbytes: Some(self.nbytes()?), ..self })
    }

    /// Returns the same bytes after checking that there are at most `limit`.
    pub fn within(self, limit: usize) -> Result<Input<'a>> {
        let (input, limit) = (self.measured()?, limit as u64);
        match input.nbytes()? {
            actual if actual > limit => {
                Err(ErrorKind::Limit { what: "the size of an encoded chunk", actual, limit }.into())
            }
            _ => Ok(input),
        }
    }

    /// Returns the bytes if they are in memory.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.bytes {
            EncodedBytes::Bytes(bytes) => Some(bytes),
            EncodedBytes::Value { .. } | EncodedBytes::Bodies { .. } => None,
        }
    }

    /// Returns the bytes if they are in an allocator's memory.
    pub fn borrowed(&self) -> Option<(&'a BodyMemory, &'a [u8])> {
        Some((self.borrowed?, self.bytes()?))
    }

    /// Returns a range of these bytes, which are [`measured`](Input::measured).
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the range exceeds the bytes.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Input<'a>> {
        if offset.checked_add(length).is_none_or(|end| Some(end) > self.nbytes) {
            return Err(ErrorKind::Corrupt("a range reaches beyond the end".into()).into());
        }
        let bytes = match self.bytes {
            EncodedBytes::Value { value, offset: start } => {
                EncodedBytes::Value { value, offset: start.saturating_add(offset) }
            }
            // The range is inside a slice, so both bounds fit.
            EncodedBytes::Bytes(bytes) => {
                EncodedBytes::Bytes(&bytes[offset as usize..(offset + length) as usize])
            }
            EncodedBytes::Bodies { bodies, offset: start } => {
                return Ok(Input::from_bodies(bodies, start.saturating_add(offset), length));
            }
        };
        Ok(Input { bytes, nbytes: Some(length), ..*self })
    }

    /// Reads from `offset` on, filling `memory`.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`] if the value has become shorter, [`ErrorKind::Io`].
    pub fn read<'m>(&self, offset: u64, memory: &'m mut Uninit) -> Result<&'m mut [u8]> {
        let (start, expected) = (memory.as_ptr().cast::<u8>(), memory.len());
        let filled = match self.bytes {
            EncodedBytes::Value { value, offset: start } => {
                value.read_at(start.saturating_add(offset), memory)?
            }
            EncodedBytes::Bytes(bytes) => {
                let rest = bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or(&[]);
                let length = rest.len().min(expected);
                memory[..length].write_copy_of_slice(&rest[..length])
            }
            EncodedBytes::Bodies { bodies, offset: start } => {
                let filled = bodies.copy(start.saturating_add(offset), memory);
                if filled.len() != expected {
                    return Err(not_landed());
                }
                filled
            }
        };
        // Bytes returned by a store are initialised; check here that they fill the memory, since the caller takes it
        // for filled.
        if filled.len() != expected || filled.as_ptr() != start {
            let (expected, actual) = (expected as u64, filled.len() as u64);
            return Err(ErrorKind::WrongSize { expected, actual }.into());
        }
        Ok(filled)
    }

    /// Reads like [`read`](Input::read), unless the read would wait for a disk. `None` if it would, or if the store
    /// cannot tell.
    pub fn read_at_once<'m>(&self, offset: u64, memory: &'m mut Uninit) -> Result<Option<&'m mut [u8]>> {
        let EncodedBytes::Value { value, offset: start } = self.bytes else {
            return self.read(offset, memory).map(Some);
        };
        let (place, expected) = (memory.as_ptr().cast::<u8>(), memory.len());
        let filled = value.read_at_once(start.saturating_add(offset), memory)?;
        // As in `read`.
        Ok(filled.filter(|filled| filled.len() == expected && filled.as_ptr() == place))
    }

    /// Reads all the bytes to the start of `memory`; `None` if their number is not exactly `length`. The next byte of
    /// `memory` may be overwritten.
    pub fn read_whole<'m>(&self, memory: &'m mut Uninit, length: usize) -> Result<Option<&'m mut [u8]>> {
        if let (EncodedBytes::Value { value, offset: 0 }, None) = (self.bytes, self.nbytes) {
            let start = memory.as_ptr().cast::<u8>();
            let filled = value.read_whole(memory, length)?;
            // As in `read`.
            return Ok(filled.filter(|filled| filled.len() == length && filled.as_ptr() == start));
        }
        if self.nbytes()? != length as u64 {
            return Ok(None);
        }
        self.read(0, &mut memory[..length]).map(Some)
    }

    /// Returns all the bytes, at most `limit`, read into `scratch` unless they are in memory.
    pub fn load<'s>(&'s self, limit: usize, scratch: &'s mut Scratch) -> Result<&'s [u8]> {
        let input = self.within(limit)?;
        match input.bytes {
            EncodedBytes::Bytes(bytes) => Ok(bytes),
            EncodedBytes::Value { .. } | EncodedBytes::Bodies { .. } => {
                let memory = scratch.take(usize::try_from(input.nbytes()?).unwrap_or(usize::MAX))?;
                Ok(input.read(0, memory)?)
            }
        }
    }
}

/// Error for a read that the plan did not request.
fn not_landed() -> crate::Error {
    ErrorKind::Internal("a read needs bytes that were not fetched".into()).into()
}
