//! `zarrs.optional`: a mask, and the elements that it marks as present, both with their own codecs.
//!
//! A chunk consists of two lengths (little-endian `u64`), the encoded mask and the encoded elements. The mask is an
//! array of bools, 1 for a present element. The elements are contiguous, without the missing ones, and are omitted if
//! all are missing.
//!
//! 1. A read decodes one run of the chunk's elements. The mask before the run gives the number of stored elements to
//!    skip, and the mask of the run the number of stored elements to decode.
//! 2. If the elements are stored plainly, the mask is decoded up to the end of the run, and only the run's elements are
//!    read. If their codec can decode a part of its bytes, only that part is decoded.
//! 3. Mask and elements are decoded directly into contiguous destinations. The elements are then spread from the last
//!    to the first, with zero bytes between them.
//!
//! Source: zarr-extensions pull request 33; the format that the `zarrs` crate writes.

use crate::codec::chain::{ArrayToBytes, Chain, Layout};
use crate::codec::chunk_elements::mismatch;
use crate::codec::decompress::wrong_elements_size;
use crate::codec::definition::{Definition, Stage};
use crate::codec::encoded_chunk::filled;
use crate::codec::parameter::ParameterType;
use crate::codec::variable_chunk::VariableChunk;
use crate::codec::{ChunkElements, Codecs, Decoded, EncodedChunk, FEW_NBYTES, Input, Swap, Uninit, Worker};
use crate::error::{ErrorKind, Result};
use crate::metadata::FillValue;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::{DataType, Number, allocation, shape};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &[NAME, "optional"],
    parameters: &[("mask_codecs", ParameterType::List), ("data_codecs", ParameterType::List)],
    inner: |data_type| match data_type {
        DataType::Optional(inner) => {
            vec![("mask_codecs", Number::Bool.into()), ("data_codecs", (**inner).clone())]
        }
        _ => Vec::new(),
    },
    stage: Stage::Serializer(|metadata, layout| {
        let DataType::Optional(inner) = layout.data_type else { return Err(layout.unfit()) };
        let mask = layout.part(metadata, "mask_codecs", &Number::Bool.into())?;
        Ok(Box::new(OptionalCodec { mask, data: layout.part(metadata, "data_codecs", inner)? }))
    }),
    ..Definition::PLAIN
};

/// The name in errors.
const NAME: &str = "zarrs.optional";

/// Bytes before the mask.
const HEADER_NBYTES: usize = 16;

/// The codecs of both parts.
#[derive(Debug)]
struct OptionalCodec {
    /// Codecs of the mask.
    mask: Chain,
    /// Codecs of the elements.
    data: Chain,
}

impl OptionalCodec {
    /// Returns the sizes of the encoded mask and the encoded elements, from the header of a chunk of `nbytes` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if they do not fill the chunk.
    fn lengths(&self, header: &[u8], nbytes: u64) -> Result<(u64, u64)> {
        let lengths = || {
            let [mask, data] = header.as_chunks::<8>().0 else { return None };
            let (mask, data) = (u64::from_le_bytes(*mask), u64::from_le_bytes(*data));
            let sum = (HEADER_NBYTES as u64).checked_add(mask)?.checked_add(data)?;
            (sum == nbytes).then_some((mask, data))
        };
        lengths()
            .ok_or_else(|| ErrorKind::Corrupt("the lengths of mask and data do not add up".into()).into())
    }

    /// Returns the encoded mask and the encoded elements.
    fn parts<'a>(&self, input: &Input<'a>) -> Result<(Input<'a>, Input<'a>)> {
        let nbytes = input.nbytes()?;
        let mut header = [MaybeUninit::uninit(); HEADER_NBYTES];
        let length = HEADER_NBYTES.min(usize::try_from(nbytes).unwrap_or(HEADER_NBYTES));
        let (mask, data) = self.lengths(input.read(0, &mut header[..length])?, nbytes)?;
        let start = HEADER_NBYTES as u64;
        Ok((input.slice(start, mask)?, input.slice(start.saturating_add(mask), data)?))
    }

    /// Returns the number of mask elements to decode (step 2). The elements' codecs need the whole mask to know the
    /// number of elements.
    fn known(&self, count: usize, run: &Range<usize>) -> usize {
        if is_plain(&self.data) { run.end } else { count }
    }

    /// Decodes the first bytes of the mask, 1 for a present element.
    fn decode_mask(
        &self,
        input: &Input<'_>,
        count: usize,
        memory: &mut Uninit,
        worker: &mut Worker,
    ) -> Result<()> {
        let (shape, known) = ([count as u64], memory.len());
        self.mask.decode_run(input, &shape, 0..known, memory, worker).map(|_| ())
    }

    /// Decodes the elements in `run` of `count` to fresh memory.
    fn decode_parts(
        &self,
        input: &Input<'_>,
        count: usize,
        run: Range<usize>,
        worker: &mut Worker,
    ) -> Result<Decoded> {
        let (mask, data) = self.parts(input)?;
        let mut missing =
            filled(self.known(count, &run), |memory| self.decode_mask(&mask, count, memory, worker))?;
        let given = Given::of(invert(&mut missing), &run, count);
        missing.truncate(run.end);
        missing.drain(..run.start);
        let item_size = self.data.item_size().unwrap_or(0);
        let data = if given.is_nothing(&data)? {
            nothing(&self.data.data_type)?
        } else if is_plain(&self.data) {
            let mut swap = Swap::None;
            let bytes = filled(shape::nbytes(&[given.run.len() as u64], item_size)?, |memory| {
                swap = read_plain(&self.data, &data, &given, memory)?;
                Ok(())
            })?;
            Decoded::Fixed { bytes, swap }
        } else {
            self.data.decode(&data, &[given.all as u64], given.run.clone(), worker)?
        };
        let data = Box::new(data.spread(&missing, item_size)?);
        Ok(Decoded::Optional { missing, data })
    }

    /// Decodes the fixed-size elements in `run` of `count` to the destinations of mask and elements (step 3).
    fn decode_in_place(
        &self,
        input: &Input<'_>,
        count: usize,
        run: Range<usize>,
        missing: &mut Uninit,
        elements: &mut Uninit,
        worker: &mut Worker,
    ) -> Result<()> {
        let (mask, data) = self.parts(input)?;
        let item_size = self.data.item_size().unwrap_or(0);
        let known = self.known(count, &run);
        let (given, missing) = if (0..known) == run {
            self.decode_mask(&mask, count, missing, worker)?;
            // SAFETY: decoding has written every byte.
            let missing = invert(unsafe { missing.assume_init_mut() });
            (Given::of(missing, &run, count), &*missing)
        } else {
            let mut all = filled(known, |memory| self.decode_mask(&mask, count, memory, worker))?;
            let given = Given::of(invert(&mut all), &run, count);
            (given, &*missing.write_copy_of_slice(&all[run]))
        };
        if given.is_nothing(&data)? {
            elements.fill(MaybeUninit::new(0));
            return Ok(());
        }
        let dense = &mut elements[..given.run.len() * item_size];
        let swap = if is_plain(&self.data) {
            read_plain(&self.data, &data, &given, dense)?
        } else {
            self.data.decode_run(&data, &[given.all as u64], given.run.clone(), dense, worker)?
        };
        // SAFETY: both write every byte of their memory.
        swap.in_place(unsafe { dense.assume_init_mut() }, item_size);
        move_apart(elements, missing, given.run.len(), item_size);
        Ok(())
    }
}

impl ArrayToBytes for OptionalCodec {
    fn layout(&self) -> Layout<'_> {
        // Finding a run of strings requires the lengths of all strings before it.
        if self.data.data_type.is_variable() { Layout::Whole } else { Layout::Masked }
    }

    fn elements_chain(&self) -> Option<&Chain> {
        Some(&self.data)
    }

    fn decode(&self, chunk: &EncodedChunk<'_>, run: Range<usize>, worker: &mut Worker) -> Result<Decoded> {
        open(chunk, worker, |input, worker| self.decode_parts(input, chunk.count, run, worker))
            .map_err(|error| error.in_codec(NAME))
    }

    fn decode_masked(
        &self,
        chunk: &EncodedChunk<'_>,
        run: Range<usize>,
        mask: &mut Uninit,
        elements: &mut Uninit,
        worker: &mut Worker,
    ) -> Result<()> {
        open(chunk, worker, |input, worker| {
            self.decode_in_place(input, chunk.count, run, mask, elements, worker)
        })
        .map_err(|error| error.in_codec(NAME))
    }

    fn encode(&self, elements: ChunkElements<'_>, _: &[u64], codecs: &mut Codecs) -> Result<Vec<u8>> {
        let ChunkElements::Optional { missing, data } = elements else { return Err(mismatch()) };
        encode(self, &missing, *data, codecs).map_err(|error| error.in_codec(NAME))
    }

    fn check_settings(&self, _fill_value: &FillValue) -> Result<()> {
        let any = FillValue::Variable(Vec::new());
        self.mask.check_settings(&any)?;
        self.data.check_settings(&any)
    }
}

/// Encodes a mask and the present elements.
fn encode(
    optional: &OptionalCodec,
    missing: &[u8],
    data: ChunkElements<'_>,
    codecs: &mut Codecs,
) -> Result<Vec<u8>> {
    // Stored as 1 for a present element.
    let valid: Vec<u8> = allocation::collected(missing.iter().map(|missing| u8::from(*missing == 0)))?;
    let given = missing.iter().filter(|missing| **missing == 0).count();
    let mask = optional.mask.encode(ChunkElements::Fixed(valid), &[missing.len() as u64], codecs)?;
    let data = match given {
        0 => Vec::new(),
        given => {
            let present = data.present(missing, optional.data.item_size().unwrap_or(0));
            optional.data.encode(present, &[given as u64], codecs)?
        }
    };
    let lengths = [mask.len() as u64, data.len() as u64].map(u64::to_le_bytes);
    Ok(allocation::concatenated(&[lengths.as_flattened(), &mask, &data])?)
}

/// Passes the decompressed bytes of a chunk to `read`: from memory, unless they are large and uncompressed.
fn open<T>(
    chunk: &EncodedChunk<'_>,
    worker: &mut Worker,
    read: impl FnOnce(&Input<'_>, &mut Worker) -> Result<T>,
) -> Result<T> {
    let input = chunk.input.measured()?;
    let is_plain = chunk.bytes_to_bytes.is_empty();
    if is_plain && (input.bytes().is_some() || input.nbytes()? > FEW_NBYTES) {
        return read(&input, worker);
    }
    // Moved out of the worker, which decodes the parts.
    let mut scratch = std::mem::take(&mut worker.encoded);
    let limit = if is_plain { usize::MAX } else { chunk.limits.max_variable_nbytes };
    let result = EncodedChunk { input: &input, ..*chunk }
        .decompressed(limit, &mut scratch, &mut worker.codecs)
        .and_then(|bytes| read(&Input::from_bytes(&bytes), worker));
    worker.encoded = scratch;
    result
}

/// Moves the first `given` elements to the zeros of `missing`, and sets the elements at its ones to zero bytes.
fn move_apart(elements: &mut Uninit, missing: &[u8], given: usize, item_size: usize) {
    fn chunks<const SIZE: usize>(elements: &mut Uninit, missing: &[u8], given: usize) {
        let mut left = given;
        let elements = elements.as_chunks_mut::<SIZE>().0;
        for (at, missing) in missing.iter().enumerate().rev() {
            if left > at {
                // No missing element precedes this one: all earlier elements are in place.
                return;
            }
            elements[at] = if *missing == 0 {
                left -= 1;
                elements[left]
            } else {
                [MaybeUninit::new(0); SIZE]
            };
        }
    }
    match item_size {
        1 => chunks::<1>(elements, missing, given),
        2 => chunks::<2>(elements, missing, given),
        4 => chunks::<4>(elements, missing, given),
        8 => chunks::<8>(elements, missing, given),
        16 => chunks::<16>(elements, missing, given),
        size => {
            let mut left = given;
            for (at, missing) in missing.iter().enumerate().rev() {
                if *missing == 0 {
                    left -= 1;
                    elements.copy_within(left * size..(left + 1) * size, at * size);
                } else {
                    elements[at * size..(at + 1) * size].fill(MaybeUninit::new(0));
                }
            }
        }
    }
}

/// The stored elements of a run (step 1).
struct Given {
    /// Range of the stored elements.
    run: Range<usize>,
    /// Number of stored elements in the decoded mask, which is the whole mask unless elements are stored plainly.
    all: usize,
    /// Whether the run is the whole chunk.
    whole: bool,
}

impl Given {
    fn of(missing: &[u8], run: &Range<usize>, count: usize) -> Given {
        let there = |missing: &[u8]| missing.len() - zarrow_array::count_missing(missing);
        let before = there(&missing[..run.start]);
        let end = before + there(&missing[run.clone()]);
        let all = end + there(&missing[run.end..]);
        Given { run: before..end, all, whole: *run == (0..count) }
    }

    /// Returns whether there is nothing to decode: stored elements of a wrong size then go unnoticed, unless the run is
    /// the whole chunk.
    fn is_nothing(&self, data: &Input<'_>) -> Result<bool> {
        Ok(self.run.is_empty() && (!self.whole || data.nbytes()? == 0))
    }
}

/// Returns whether elements are stored plainly.
fn is_plain(data: &Chain) -> bool {
    matches!(data.stored_layout(), Layout::Elements(_))
}

/// Reads the plain elements of a run, filling `memory`. Returns the words of each element that the caller reverses.
fn read_plain(chain: &Chain, data: &Input<'_>, given: &Given, memory: &mut Uninit) -> Result<Swap> {
    let item_size = chain.item_size().unwrap_or(0) as u64;
    let (start, end) = (given.run.start as u64 * item_size, given.run.end as u64 * item_size);
    let actual = data.nbytes()?;
    if actual < end || (given.whole && actual != end) || !actual.is_multiple_of(item_size.max(1)) {
        return Err(wrong_elements_size(end, actual));
    }
    data.read(start, memory)?;
    Ok(match chain.layout() {
        Layout::Elements(swap) => swap.clone(),
        _ => Swap::None,
    })
}

/// Turns the stored mask, 1 for a present element, into 1 for a missing element.
fn invert(mask: &mut [u8]) -> &mut [u8] {
    mask.iter_mut().for_each(|byte| *byte = u8::from(*byte == 0));
    mask
}

/// Creates an empty list of elements of a type.
fn nothing(data_type: &DataType) -> Result<Decoded> {
    Ok(match data_type {
        DataType::Optional(inner) => {
            Decoded::Optional { missing: Vec::new(), data: Box::new(nothing(inner)?) }
        }
        other if other.is_variable() => {
            Decoded::Variable(Arc::new(VariableChunk::parse(allocation::filled(0, 4)?, 0)?))
        }
        _ => Decoded::Fixed { bytes: Vec::new(), swap: Swap::None },
    })
}
