//! Reading elements that may be missing: a mask, and the elements that it says are there, in one run.
//!
//! 1. What is wanted lies in one run of the chunk's elements, from the first wanted one to the last. The mask before the
//!    run says how many of the stored elements come before those of the run, and the mask of the run how many these are.
//! 2. So where the elements are stored plainly, the mask is decoded up to the run's end, and only the run's elements are
//!    read; where their codec gives a part of its bytes, only these are decoded.
//! 3. Where the run is what is wanted and is one run of the result too, mask and elements are decoded straight to their
//!    places, and the elements moved apart from the last to the first, zero bytes between them.
//! 4. Otherwise both are decoded to memory of their own, and moved to their places.

use crate::codec::Decoded;
use crate::codec::Input;
use crate::codec::Worker;
use crate::codec::{ArrayToBytes, Chain, FEW_NBYTES, OPTIONAL_HEADER_NBYTES, OptionalCodec, Swap};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::chunk::Chunk;
use crate::exec::elements::{decode_elements, decode_fixed, filled, grow};
use crate::exec::output_claim::OutputClaim;
use crate::exec::output_strides::c_strides;
use crate::exec::part::run_of;
use crate::exec::range::span;
use std::mem::MaybeUninit;
use std::ops::Range;
use zarrow_array::allocation;
use zarrow_array::shape;

impl Chunk<'_> {
    /// Reads what is wanted of this chunk, whose elements may be missing.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that bytes can give, with the codec.
    pub fn read_optional(
        &self,
        optional: &OptionalCodec,
        input: &Input<'_>,
        claims: &mut [OutputClaim<'_>],
        worker: &mut Worker,
    ) -> Result<()> {
        let count = shape::nbytes(self.shape, 1)?;
        let run = if self.chain.data_type.without_optional().is_variable() {
            0..count
        } else {
            run_of_all(claims, self.shape)?
        };
        open_optional(self.chain, input, worker, |input, worker| {
            if let [claim] = claims
                && run_of(claim.part(), self.shape).is_some()
                && optional.data.has_fixed_elements()
                && let Some(memory) = claim.contiguous_optional()
            {
                decode_in_place(optional, input, count, run, memory, worker)?;
                // SAFETY: the mask was decoded to all of its places.
                unsafe { claim.pack() };
                return Ok(());
            }
            let decoded = decode_optional(optional, input, count, run.clone(), worker)?;
            claims.iter_mut().try_for_each(|claim| claim.place(&decoded, run.start, self.shape))
        })
        .map_err(|error| error.in_codec("zarrs.optional"))
    }
}

/// Hands the bytes of a chunk of `chain` to `read`, with what is behind the optional codec undone: as they lie in the
/// store, unless they are few.
///
/// # Errors
/// What the store and `read` give.
pub fn open_optional<T>(
    chain: &Chain,
    input: &Input<'_>,
    worker: &mut Worker,
    read: impl FnOnce(&Input<'_>, &mut Worker) -> Result<T>,
) -> Result<T> {
    let input = input.measured()?;
    let plain = chain.bytes_to_bytes.is_empty();
    if plain && (input.bytes().is_some() || input.nbytes()? > FEW_NBYTES) {
        return read(&input, worker);
    }
    // Out of the worker's hands, which the parts are decoded with.
    let mut scratch = std::mem::take(&mut worker.encoded);
    let result = input.load(usize::MAX, &mut scratch).and_then(|encoded| {
        if plain {
            return read(&Input::of_bytes(encoded), worker);
        }
        let bytes = grow(chain, encoded, chain.limits.max_variable_nbytes, &mut worker.codecs)?;
        read(&Input::of_bytes(&bytes), worker)
    });
    worker.encoded = scratch;
    result
}

/// Decodes the elements in `run` of `count`, to memory of their own (step 4).
///
/// # Errors
/// Any [`ErrorKind`] that bytes can give, with the codec.
pub fn decode_optional(
    optional: &OptionalCodec,
    input: &Input<'_>,
    count: usize,
    run: Range<usize>,
    worker: &mut Worker,
) -> Result<Decoded> {
    let (mask, data) = parts(optional, input)?;
    let known = known(&optional.data, count, &run);
    let mut missing = filled(known, |memory| {
        decode_fixed(&optional.mask, &mask, &[count as u64], 0..known, memory, worker).map(|_| ())
    })?;
    let given = Given::of(invert(&mut missing), &run, count);
    missing.truncate(run.end);
    missing.drain(..run.start);
    let data = if given.is_nothing(&data)? {
        nothing(&optional.data)?
    } else if is_plain(&optional.data) {
        let item_size = optional.data.item_size().unwrap_or(0);
        let mut swap = Swap::None;
        let bytes = filled(shape::nbytes(&[given.run.len() as u64], item_size)?, |memory| {
            swap = read_plain(&optional.data, &data, &given, memory)?;
            Ok(())
        })?;
        Decoded::Fixed { bytes, swap }
    } else {
        decode_elements(&optional.data, &data, &[given.all as u64], given.run.clone(), worker)?
    };
    let data = Box::new(data.spread(&missing, optional.data.item_size().unwrap_or(0))?);
    Ok(Decoded::Optional { missing, data })
}

/// Decodes the elements in `run` of `count`, which have a fixed size, to the places of mask and elements (step 3).
fn decode_in_place(
    optional: &OptionalCodec,
    input: &Input<'_>,
    count: usize,
    run: Range<usize>,
    (missing, elements): (&mut [MaybeUninit<u8>], &mut [MaybeUninit<u8>]),
    worker: &mut Worker,
) -> Result<()> {
    let (mask, data) = parts(optional, input)?;
    let item_size = optional.data.item_size().unwrap_or(0);
    let known = known(&optional.data, count, &run);
    let decode_mask = |memory: &mut [MaybeUninit<u8>], worker: &mut Worker| {
        decode_fixed(&optional.mask, &mask, &[count as u64], 0..known, memory, worker).map(|_| ())
    };
    let (given, missing) = if (0..known) == run {
        decode_mask(missing, worker)?;
        // SAFETY: `decode_fixed` has written every byte.
        let missing = invert(unsafe { missing.assume_init_mut() });
        (Given::of(missing, &run, count), &*missing)
    } else {
        let mut all = filled(known, |memory| decode_mask(memory, worker))?;
        let given = Given::of(invert(&mut all), &run, count);
        (given, &*missing.write_copy_of_slice(&all[run]))
    };
    if given.is_nothing(&data)? {
        elements.fill(MaybeUninit::new(0));
        return Ok(());
    }
    let dense = &mut elements[..given.run.len() * item_size];
    let swap = if is_plain(&optional.data) {
        read_plain(&optional.data, &data, &given, dense)?
    } else {
        decode_fixed(&optional.data, &data, &[given.all as u64], given.run.clone(), dense, worker)?
    };
    // SAFETY: both write every byte of their memory.
    swap.in_place(unsafe { dense.assume_init_mut() }, item_size);
    move_apart(elements, missing, given.run.len(), item_size);
    Ok(())
}

/// Moves the first `given` elements to where `missing` has a 0, and sets those where it has a 1 to zero bytes.
fn move_apart(elements: &mut [MaybeUninit<u8>], missing: &[u8], given: usize, item_size: usize) {
    fn chunks<const SIZE: usize>(elements: &mut [MaybeUninit<u8>], missing: &[u8], given: usize) {
        let mut left = given;
        let elements = elements.as_chunks_mut::<SIZE>().0;
        for (at, missing) in missing.iter().enumerate().rev() {
            if left > at {
                // No missing one is before this one: the others are in their places.
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

/// Which of the stored elements belong to a run (step 1).
struct Given {
    /// These.
    run: Range<usize>,
    /// How many there are by as much of the mask as was decoded, which is all unless elements are stored plainly.
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

    /// Whether nothing is to be decoded: then what would be of another size is not noticed, unless all is wanted.
    fn is_nothing(&self, data: &Input<'_>) -> Result<bool> {
        Ok(self.run.is_empty() && (!self.whole || data.nbytes()? == 0))
    }
}

/// The encoded mask and the encoded elements.
fn parts<'a>(optional: &OptionalCodec, input: &Input<'a>) -> Result<(Input<'a>, Input<'a>)> {
    let nbytes = input.nbytes()?;
    let mut header = [MaybeUninit::uninit(); OPTIONAL_HEADER_NBYTES];
    let length = OPTIONAL_HEADER_NBYTES.min(usize::try_from(nbytes).unwrap_or(OPTIONAL_HEADER_NBYTES));
    let (mask, data) = optional.lengths(input.read(0, &mut header[..length])?, nbytes)?;
    let start = OPTIONAL_HEADER_NBYTES as u64;
    Ok((input.slice(start, mask)?, input.slice(start.saturating_add(mask), data)?))
}

/// The run from the first element that is wanted to the last.
fn run_of_all(claims: &[OutputClaim<'_>], extents: &[u64]) -> Result<Range<usize>> {
    let strides = c_strides(extents, 1);
    let mut run = None;
    for claim in claims {
        let own = span(claim.part(), &strides, 1)?;
        run =
            Some(run.map_or(own.clone(), |run: Range<usize>| run.start.min(own.start)..run.end.max(own.end)));
    }
    let (run, count) = (run.unwrap_or(0..0), shape::nbytes(extents, 1)?);
    if run.end > count {
        return Err(ErrorKind::Internal("a part lies outside its chunk".into()).into());
    }
    Ok(run)
}

/// How much of the mask is to be decoded (step 2): all of it where it says how many elements a codec has to give.
fn known(data: &Chain, count: usize, run: &Range<usize>) -> usize {
    if is_plain(data) { run.end } else { count }
}

/// Whether elements are stored plainly.
fn is_plain(data: &Chain) -> bool {
    matches!(data.array_to_bytes, ArrayToBytes::Bytes { .. }) && data.bytes_to_bytes.is_empty()
}

/// Reads plain elements to `memory`, which has the bytes of those of the run; returns what of each is still to
/// be reversed.
fn read_plain(
    chain: &Chain,
    data: &Input<'_>,
    given: &Given,
    memory: &mut [MaybeUninit<u8>],
) -> Result<Swap> {
    let item_size = chain.item_size().unwrap_or(0) as u64;
    let (start, end) = (given.run.start as u64 * item_size, given.run.end as u64 * item_size);
    let actual = data.nbytes()?;
    if actual < end || (given.whole && actual != end) || !actual.is_multiple_of(item_size.max(1)) {
        return Err(Error::from(ErrorKind::WrongSize { expected: end, actual }).in_codec("bytes"));
    }
    data.read(start, memory)?;
    Ok(match &chain.array_to_bytes {
        ArrayToBytes::Bytes { swap } => swap.clone(),
        _ => Swap::None,
    })
}

/// Turns what is stored, 1 where an element is there, into 1 where it is missing.
fn invert(mask: &mut [u8]) -> &mut [u8] {
    mask.iter_mut().for_each(|byte| *byte = u8::from(*byte == 0));
    mask
}

/// No elements, in the layout of a chain.
fn nothing(chain: &Chain) -> Result<Decoded> {
    use crate::codec::VariableChunk;
    Ok(match &chain.array_to_bytes {
        ArrayToBytes::Optional(inner) => {
            Decoded::Optional { missing: Vec::new(), data: Box::new(nothing(&inner.data)?) }
        }
        _ if chain.data_type.is_variable() => {
            Decoded::Variable(std::sync::Arc::new(VariableChunk::parse(allocation::filled(0, 4)?, 0)?))
        }
        _ => Decoded::Fixed { bytes: Vec::new(), swap: Swap::None },
    })
}
