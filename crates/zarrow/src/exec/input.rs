//! The stored bytes of a chunk: a value of the store, a range of one, or bytes that are in memory already.
//!
//! Here threads take their turns where the store is slow: one to ask it, and one to decode what it answered.

use crate::error::{ErrorKind, Result};
use crate::exec::job::Checkpoint;
use crate::exec::scratch::Scratch;
use crate::exec::turns::Turn;
use crate::store::Value;
use std::mem::MaybeUninit;

/// Where a chunk's encoded bytes are.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    place: Place<'a>,
    /// `None` for a whole value that nobody asked yet.
    nbytes: Option<u64>,
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Value { value: &'a dyn Value, offset: u64, checkpoint: Option<&'a Checkpoint<'a>> },
    Bytes(&'a [u8]),
}

impl<'a> Input<'a> {
    /// A whole value, read by a task that stops at `checkpoint`.
    ///
    /// # Errors
    /// As [`Checkpoint::pass`].
    pub fn of_value(value: &'a dyn Value, checkpoint: Option<&'a Checkpoint<'a>>) -> Result<Input<'a>> {
        match value.bytes() {
            Some(bytes) => {
                take(checkpoint, Turn::Decode)?;
                Ok(Input::of_bytes(bytes))
            }
            None => Ok(Input { place: Place::Value { value, offset: 0, checkpoint }, nbytes: None }),
        }
    }

    /// Bytes in memory.
    pub fn of_bytes(bytes: &'a [u8]) -> Input<'a> {
        Input { place: Place::Bytes(bytes), nbytes: Some(bytes.len() as u64) }
    }

    /// How many bytes there are.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn nbytes(&self) -> Result<u64> {
        match (self.nbytes, self.place) {
            (Some(nbytes), _) => Ok(nbytes),
            (None, Place::Value { value, checkpoint, .. }) => {
                take(checkpoint, Turn::Fetch)?;
                value.nbytes()
            }
            (None, Place::Bytes(bytes)) => Ok(bytes.len() as u64),
        }
    }

    /// The same bytes, which know their number.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn measured(self) -> Result<Input<'a>> {
        Ok(Input { nbytes: Some(self.nbytes()?), ..self })
    }

    /// The same bytes, which are `limit` at most.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`], [`ErrorKind::Io`].
    pub fn within(self, limit: usize) -> Result<Input<'a>> {
        let (input, limit) = (self.measured()?, limit as u64);
        match input.nbytes()? {
            actual if actual > limit => {
                Err(ErrorKind::Limit { what: "the size of an encoded chunk", actual, limit }.into())
            }
            _ => Ok(input),
        }
    }

    /// The bytes, where they are in memory.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.place {
            Place::Bytes(bytes) => Some(bytes),
            Place::Value { .. } => None,
        }
    }

    /// A range of these bytes, which are [`measured`](Input::measured).
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where it reaches behind the end.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Input<'a>> {
        if offset.checked_add(length).is_none_or(|end| Some(end) > self.nbytes) {
            return Err(ErrorKind::Corrupt("a range reaches behind the end".into()).into());
        }
        let place = match self.place {
            Place::Value { value, offset: start, checkpoint } => {
                Place::Value { value, offset: start.saturating_add(offset), checkpoint }
            }
            // The range lies inside a slice, so that both bounds fit.
            Place::Bytes(bytes) => Place::Bytes(&bytes[offset as usize..(offset + length) as usize]),
        };
        Ok(Input { place, nbytes: Some(length) })
    }

    /// Reads from `offset` on to fill all of `memory`.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`] where the value has become shorter, [`ErrorKind::Io`].
    pub fn read<'m>(&self, offset: u64, memory: &'m mut [MaybeUninit<u8>]) -> Result<&'m mut [u8]> {
        let (start, expected) = (memory.as_ptr().cast::<u8>(), memory.len());
        let filled = match self.place {
            Place::Value { value, offset: start, checkpoint } => {
                take(checkpoint, Turn::Fetch)?;
                let filled = value.read_at(start.saturating_add(offset), memory)?;
                take(checkpoint, Turn::Decode)?;
                filled
            }
            Place::Bytes(bytes) => {
                let rest = bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or(&[]);
                let length = rest.len().min(expected);
                memory[..length].write_copy_of_slice(&rest[..length])
            }
        };
        // What a store returns is initialised; that it is all of this memory is checked here, since whoever
        // called takes the memory for filled.
        if filled.len() != expected || filled.as_ptr() != start {
            let (expected, actual) = (expected as u64, filled.len() as u64);
            return Err(ErrorKind::WrongSize { expected, actual }.into());
        }
        Ok(filled)
    }

    /// All the bytes, which have to be as many as `memory` has; `None` where they are not.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn read_whole<'m>(&self, memory: &'m mut [MaybeUninit<u8>]) -> Result<Option<&'m mut [u8]>> {
        if let (Place::Value { value, offset: 0, checkpoint }, None) = (self.place, self.nbytes) {
            let (start, expected) = (memory.as_ptr().cast::<u8>(), memory.len());
            take(checkpoint, Turn::Fetch)?;
            let filled = value.read_whole(memory)?;
            take(checkpoint, Turn::Decode)?;
            // As in `read`.
            return Ok(filled.filter(|filled| filled.len() == expected && filled.as_ptr() == start));
        }
        if self.nbytes()? != memory.len() as u64 { Ok(None) } else { self.read(0, memory).map(Some) }
    }

    /// All the bytes, `limit` at most, read into `scratch` unless they are in memory.
    ///
    /// # Errors
    /// As [`read`](Input::read), [`ErrorKind::Limit`], [`zarrow_array::Error::OutOfMemory`].
    pub fn load<'s>(&'s self, limit: usize, scratch: &'s mut Scratch) -> Result<&'s [u8]> {
        let input = self.within(limit)?;
        match input.place {
            Place::Bytes(bytes) => Ok(bytes),
            Place::Value { .. } => {
                let memory = scratch.take(usize::try_from(input.nbytes()?).unwrap_or(usize::MAX))?;
                Ok(input.read(0, memory)?)
            }
        }
    }
}

fn take(checkpoint: Option<&Checkpoint<'_>>, turn: Turn) -> Result<()> {
    checkpoint.map_or(Ok(()), |checkpoint| checkpoint.take(turn))
}
