//! Waves: pinned slots full of stored chunks, which the device decompresses and places.
//!
//! 1. A thread of the read that is handed a chunk takes a wave that nobody has, and copies the chunk's stored bytes to its
//!    slot; that is the only copy on the host. A chunk that the host is to decode is decoded straight to the slot.
//! 2. When the slot is full, or holds enough to decompress, what is to be done is listed behind the bytes: the frames, and the
//!    boxes of elements with their places. The addresses are known, since the memory of the device has been taken.
//! 3. The slot is copied at once, beside what the device still does for waves before. Then, in our stream: pieces that are
//!    stored as they are go to their place among the decompressed ones; frames are decompressed in one batch for each format;
//!    one launch undoes the shuffle and the byte order, crops, transposes and scatters all elements. Missing chunks are
//!    boxes that are filled.
//! 4. The statuses of all frames are copied back, and looked at when the last wave is done.

use super::frames::{Frame as ChunkFrame, Frames as ChunkFrames};
use super::{Decompressor, Format, Frames};
use crate::device::Device;
use crate::driver::functions::Address;
use crate::error::{Error, Result};
use crate::kernel::structs::{Piece, Shuffle};
use crate::kernel::{walk, width};
use crate::memory::DeviceMemory;
use crate::meter::{Meter, Timed, Timer, Timing};
use crate::pinned::Slot;
use crate::route::Share;
use crate::tensor::DeviceTensor;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow::{Array, ChunkAxis, ChunkSink, DecodeChunk, ErrorKind, ReadOptions, Selection, StoredChunk};
use zarrow_array::allocation::Grow;
use zarrow_array::fork::Mutex;

/// Bytes of a slot: of stored chunks and of the lists.
const SLOT_NBYTES: usize = 16 << 20;
/// The most bytes that a wave decompresses to, where chunks are smaller: zstd needs three times as many beside them.
pub(crate) const DECODED_NBYTES: usize = 64 << 20;
/// How stored and decoded chunks are aligned.
const ALIGNMENT: usize = 256;
/// Bytes that a frame has in the lists, and those that it has in the answers.
const FRAME_NBYTES: usize = 4 * 8;
const ANSWER_NBYTES: usize = 8 + 4;

/// What of a read was done where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// Chunks whose frames the device decompressed.
    pub on_device: u64,
    /// Chunks that the host decoded.
    pub on_host: u64,
    /// Chunks that are not stored.
    pub filled: u64,
    /// Frames that the device could not decompress, or decompressed to another size.
    pub failed_frames: u64,
}

impl std::ops::Add for Done {
    type Output = Done;

    fn add(self, more: Done) -> Done {
        Done {
            on_device: self.on_device + more.on_device,
            on_host: self.on_host + more.on_host,
            filled: self.filled + more.filled,
            failed_frames: self.failed_frames + more.failed_frames,
        }
    }
}

/// Reads `selection` to `result`, decompressing on the device the chunks of its `share`.
///
/// Where frames failed, some elements have no meaning: the read is to be done anew on the host.
///
/// # Errors
/// As [`Array::read_stored`], and what the driver and the decompressor answer.
pub(crate) fn read(
    array: &Array,
    selection: &Selection,
    result: &DeviceTensor,
    decompressor: &dyn Decompressor,
    share: &Share,
    options: &ReadOptions<'_>,
) -> Result<Done> {
    let waves = Waves {
        result,
        decompressor,
        share,
        idle: Mutex::default(),
        submitted: Mutex::default(),
        error: Mutex::default(),
        on_device: AtomicU64::new(0),
        on_host: AtomicU64::new(0),
        filled: AtomicU64::new(0),
        measured: Meter::default(),
    };
    let outcome = array.read_stored(selection, &waves, options);
    if let Some(error) = waves.error.lock().take() {
        return Err(error);
    }
    outcome?;
    let last = std::mem::take(&mut *waves.idle.lock());
    for wave in last {
        waves.submit(wave)?;
    }
    // Step 4.
    let mut failed_frames = 0;
    for mut submitted in std::mem::take(&mut *waves.submitted.lock()) {
        failed_frames += submitted.failed()?;
        submitted.timed.iter().for_each(|timed| timed.measure(result.device()));
    }
    if let Some(format) = share.format() {
        waves.measured.measure(format, result.device());
    }
    Ok(Done {
        on_device: waves.on_device.load(Ordering::Relaxed),
        on_host: waves.on_host.load(Ordering::Relaxed),
        filled: waves.filled.load(Ordering::Relaxed),
        failed_frames,
    })
}

/// The waves of one read.
struct Waves<'a> {
    result: &'a DeviceTensor,
    decompressor: &'a dyn Decompressor,
    share: &'a Share,
    measured: Meter,
    idle: Mutex<Vec<Wave>>,
    submitted: Mutex<Vec<Submitted>>,
    /// What stopped the read, in the words of this crate.
    error: Mutex<Option<Error>>,
    on_device: AtomicU64,
    on_host: AtomicU64,
    filled: AtomicU64,
}

/// Where a box of elements comes from.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// The slot's bytes from here on.
    Slot(usize),
    /// The decompressed bytes from here on.
    Decompressed(usize),
    /// Nowhere: it is filled.
    Fill,
}

/// A frame: where it lies in the slot, and where among the decompressed bytes.
#[derive(Debug, Clone, Copy)]
struct WaveFrame {
    format: Format,
    source: usize,
    source_nbytes: usize,
    destination: usize,
    destination_nbytes: usize,
}

/// A slot that is filled.
struct Wave {
    slot: Slot,
    room: usize,
    used: usize,
    decompressed: usize,
    frames: Vec<WaveFrame>,
    /// Stored bytes that are decoded as they are, as boxes of bytes, and the places among the decompressed ones.
    copies: Vec<(usize, usize, usize)>,
    pieces: Vec<(Origin, Piece)>,
}

impl Wave {
    fn new(device: &'static Device, nbytes: usize) -> Result<Wave> {
        let mut slot = device.idle.take(device, nbytes.max(SLOT_NBYTES))?;
        let (_, room) = slot.ready()?;
        let (frames, copies, pieces) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Wave { slot, room, used: 0, decompressed: 0, frames, copies, pieces })
    }

    /// Bytes of the slot with `nbytes` more, and with the lists of so many more frames and boxes.
    fn with(&self, nbytes: usize, frames: usize, pieces: usize) -> usize {
        let boxes = self.pieces.len() + self.copies.len() + pieces + frames;
        (self.used + nbytes).next_multiple_of(ALIGNMENT)
            + (self.frames.len() + frames) * FRAME_NBYTES
            + (boxes + 2) * size_of::<Piece>()
    }

    /// Memory of the slot for `nbytes` more, and where it begins.
    fn memory(&mut self, nbytes: usize) -> Result<(usize, &mut [MaybeUninit<u8>])> {
        let (pointer, room) = self.slot.ready()?;
        let start = self.used.next_multiple_of(ALIGNMENT);
        if start + nbytes > room {
            return Err(Error::Unsupported(format!("a slot of {room} bytes has no room for {nbytes}")));
        }
        self.used = start + nbytes;
        // SAFETY: the range lies in the slot, which is this wave's alone, and no copy uses it.
        let memory = unsafe {
            std::slice::from_raw_parts_mut(pointer.as_ptr().add(start).cast::<MaybeUninit<u8>>(), nbytes)
        };
        Ok((start, memory))
    }
}

impl Waves<'_> {
    /// Has `work` fill a wave that takes `nbytes` more bytes, so many frames, and boxes for `pieces`.
    fn fill_wave(
        &self,
        needed: (usize, usize, usize, usize),
        work: impl FnOnce(&mut Wave) -> zarrow::Result<Result<()>>,
    ) -> zarrow::Result<()> {
        let (nbytes, frames, pieces, decompressed) = needed;
        let device = self.result.device();
        let taken = self.idle.lock().pop();
        let take = || {
            let is_room = |wave: &Wave| {
                let fits = wave.with(nbytes, frames, pieces) <= wave.room;
                fits && (wave.decompressed == 0 || wave.decompressed + decompressed <= DECODED_NBYTES)
            };
            let wave = match taken {
                Some(wave) if is_room(&wave) => return Ok(wave),
                other => other,
            };
            // The next slot is taken first, so that it is another than the one whose copy is to begin.
            let lists = frames * FRAME_NBYTES + (frames + pieces + 4) * size_of::<Piece>() + 2 * ALIGNMENT;
            let next = Wave::new(device, nbytes.saturating_add(lists))?;
            wave.map_or(Ok(()), |full| self.submit(full))?;
            Ok(next)
        };
        let mut wave = take().map_err(|error| self.stop(error))?;
        work(&mut wave)?.map_err(|error| self.stop(error))?;
        self.idle.lock().push(wave);
        Ok(())
    }

    /// Keeps the error, and stops the read by another.
    fn stop(&self, error: Error) -> zarrow::Error {
        let text = error.to_string();
        self.error.lock().get_or_insert(error);
        ErrorKind::Internal(text).into()
    }

    /// Steps 2 to 4.
    fn submit(&self, mut wave: Wave) -> Result<()> {
        if wave.pieces.is_empty() {
            return Ok(());
        }
        let device = self.result.device();
        let item_width = width(self.result.item_size());
        let lists = wave.used.next_multiple_of(ALIGNMENT);
        let boxes = lists + wave.frames.len() * FRAME_NBYTES;
        let total = boxes + (wave.pieces.len() + wave.copies.len()) * size_of::<Piece>();
        let staging = Arc::new(DeviceMemory::new(device, total)?);
        let decompressed = DeviceMemory::new(device, wave.decompressed)?;
        let answers = DeviceMemory::new(device, wave.frames.len() * ANSWER_NBYTES)?;
        // Frames of one format stand together.
        wave.frames.sort_by_key(|frame| frame.format as u8);
        let copies = std::mem::take(&mut wave.copies);
        let (pointer, room) = wave.slot.ready()?;
        if total > room {
            return Err(Error::Unsupported(format!("a slot of {room} bytes has no room for {total}")));
        }
        // SAFETY: the lists lie behind the chunks' bytes in the slot, which is this wave's alone.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(
                pointer.as_ptr().add(lists).cast::<MaybeUninit<u8>>(),
                total - lists,
            )
        };
        let (list, rest) = bytes.split_at_mut(boxes - lists);
        let column = wave.frames.len() * 8;
        for (number, frame) in wave.frames.iter().enumerate() {
            let words = [
                staging.address() + frame.source as u64,
                frame.source_nbytes as u64,
                decompressed.address() + frame.destination as u64,
                frame.destination_nbytes as u64,
            ];
            for (place, word) in words.into_iter().enumerate() {
                let at = place * column + number * 8;
                list[at..at + 8].write_copy_of_slice(&word.to_ne_bytes());
            }
        }
        let copied = copies.iter().map(|(source, destination, nbytes)| Piece {
            source: staging.address() + *source as u64,
            destination: decompressed.address() + *destination as u64,
            count: *nbytes as u64,
            shape: [*nbytes as u64, 0, 0, 0, 0, 0, 0, 0],
            source_stride: [1, 0, 0, 0, 0, 0, 0, 0],
            destination_stride: [1, 0, 0, 0, 0, 0, 0, 0],
            rank: 1,
            ..Piece::none()
        });
        let placed = wave.pieces.iter().map(|(origin, piece)| match origin {
            Origin::Slot(at) => Piece { source: staging.address() + *at as u64, ..*piece },
            Origin::Decompressed(at) => Piece { source: decompressed.address() + *at as u64, ..*piece },
            Origin::Fill => *piece,
        });
        for (place, piece) in rest.chunks_exact_mut(size_of::<Piece>()).zip(copied.chain(placed)) {
            place.write_copy_of_slice(piece.bytes());
        }
        // Step 3.
        let mut timed = Vec::new();
        device.copy_beside(&staging, |stream| {
            let timer = Timer::start(device, stream);
            wave.slot.send(staging.address(), total, stream)?;
            timed.extend(timer.stop(Timing::Copy { nbytes: total as u64 }));
            Ok(())
        })?;
        let list = staging.address() + lists as u64;
        let piece_list = staging.address() + boxes as u64;
        let greatest = copies.iter().map(|(.., nbytes)| *nbytes as u64).max().unwrap_or(0);
        // SAFETY: the lists were written above and come first in the stream; what they name lies in memory that is freed
        // in its order, and in the result, whose places were computed within its layout.
        unsafe {
            device.launch_place(1, piece_list, count_of(copies.len())?, greatest)?;
            self.decompress(device, &wave.frames, list, answers.address(), &mut timed)?;
            let first = piece_list + (copies.len() * size_of::<Piece>()) as u64;
            let greatest = wave.pieces.iter().map(|(_, piece)| piece.count).max().unwrap_or(0);
            device.launch_place(item_width, first, count_of(wave.pieces.len())?, greatest)?;
        }
        if wave.frames.is_empty() {
            return Ok(());
        }
        let nbytes = wave.frames.len() * ANSWER_NBYTES;
        let mut slot = device.idle.take(device, nbytes.max(ANSWER_SLOT_NBYTES))?;
        slot.ready()?;
        slot.receive(answers.address(), nbytes, device.stream())?;
        let expected = wave.frames.iter().map(|frame| frame.destination_nbytes as u64);
        let expected = zarrow_array::allocation::collected(expected)?;
        self.submitted.lock().push(Submitted { slot, expected, timed });
        Ok(())
    }

    /// Decompresses the frames, whose lists lie at `list`; answers go to `answers`: the bytes written of all, then the
    /// statuses of all.
    ///
    /// # Safety
    /// As [`Decompressor::decompress`].
    unsafe fn decompress(
        &self,
        device: &'static Device,
        frames: &[WaveFrame],
        list: Address,
        answers: Address,
        timed: &mut Vec<Timed>,
    ) -> Result<()> {
        let column = (frames.len() * 8) as u64;
        let mut start = 0;
        for group in frames.chunk_by(|one, next| one.format == next.format) {
            let at = (start * 8) as u64;
            let batch = Frames {
                format: group.first().map_or(Format::Zstd, |frame| frame.format),
                count: group.len(),
                sources: list + at,
                source_nbytes: list + column + at,
                destinations: list + 2 * column + at,
                destination_nbytes: list + 3 * column + at,
                written: answers + at,
                statuses: answers + column + (start * 4) as u64,
                largest: group.iter().map(|frame| frame.destination_nbytes).max().unwrap_or(0),
                total: group.iter().map(|frame| frame.destination_nbytes).sum(),
            };
            let temporary = DeviceMemory::new(device, self.decompressor.temporary_nbytes(&batch)?)?;
            let timer = Timer::start(device, device.stream());
            // SAFETY: the caller's contract; temporary memory is freed in the order of the stream.
            unsafe {
                self.decompressor.decompress(&batch, temporary.address(), temporary.nbytes(), device)?;
            }
            timed.extend(timer.stop(Timing::Batch {
                format: batch.format,
                frames: batch.count as u64,
                largest: batch.largest as u64,
                total: batch.total as u64,
            }));
            start += group.len();
        }
        Ok(())
    }

    /// The boxes of elements of a part of a chunk, without where they come from.
    fn pieces(&self, axes: &[ChunkAxis], shape: &[u64], template: &Piece) -> Result<Vec<Piece>> {
        let item_size = self.result.item_size();
        let strides = self.result.byte_strides();
        let number = |value: u64| {
            i64::try_from(value).map_err(|_| Error::Unsupported("a chunk is too large".to_owned()))
        };
        let bad = || Error::Unsupported("a chunk has other axes than the result".to_owned());
        let (mut extents, mut from, mut to) = (Vec::new(), Vec::new(), Vec::new());
        let (mut source, mut destination) = (0i64, 0i64);
        // The strides of the decoded chunk, from its last axis on.
        let mut stride = item_size as i64;
        let mut source_strides = vec![0; axes.len()];
        for (place, extent) in source_strides.iter_mut().zip(shape).rev() {
            *place = stride;
            stride = stride.checked_mul(number(*extent)?).ok_or_else(bad)?;
        }
        for (axis, source_stride) in axes.iter().zip(source_strides) {
            source += number(axis.start)? * source_stride;
            let Some(output) = axis.output else { continue };
            let stride = *strides.get(output).ok_or_else(bad)?;
            destination += number(axis.place)? * stride;
            extents.push(number(axis.count)?);
            from.push(source_stride * number(axis.step)?);
            to.push(if axis.reversed { -stride } else { stride });
        }
        let width = width(item_size);
        let words = item_size / width;
        if words > 1 {
            extents.push(words as i64);
            from.push(width as i64);
            to.push(width as i64);
        }
        let walks = walk::walks(&extents, [&from, &to]);
        let pieces = walks.into_iter().map(|walk| Piece {
            source_offset: source.wrapping_add(walk.offsets[0]) as u64,
            destination: self.result.address().wrapping_add_signed(destination + walk.offsets[1]),
            count: walk.count,
            shape: walk.shape,
            source_stride: walk.strides[0],
            destination_stride: walk.strides[1],
            rank: walk.rank,
            ..*template
        });
        Ok(zarrow_array::allocation::collected(pieces)?)
    }
}

/// Bytes of a slot for answers.
const ANSWER_SLOT_NBYTES: usize = 256 << 10;

/// Bytes of the largest frame of a chunk.
fn largest(frames: &ChunkFrames) -> u64 {
    frames.frames.iter().map(|frame| frame.destination.len() as u64).max().unwrap_or(0)
}

fn count_of(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::Unsupported("a wave of too many boxes".to_owned()))
}

impl ChunkSink for Waves<'_> {
    fn take(&self, chunk: &StoredChunk<'_>, decode: &mut DecodeChunk<'_>) -> zarrow::Result<()> {
        let frames =
            chunk.compressor.and_then(|name| ChunkFrames::of(name, chunk.bytes, chunk.decoded_nbytes));
        let frames = frames.filter(|frames| self.decompressor.takes(frames.format));
        // The chunk is put where its first frame is aligned as the decompressor asks; where another is not, the host decodes.
        let alignment = frames.as_ref().map_or(1, |frames| self.decompressor.source_alignment(frames.format));
        let first =
            frames.as_ref().and_then(|frames| frames.frames.first()).map_or(0, |first| first.source.start);
        let lead = first.next_multiple_of(alignment) - first;
        let is_aligned =
            |frame: &ChunkFrame| frame.is_copy || (frame.source.start + lead).is_multiple_of(alignment);
        let frames = frames.filter(|frames| frames.frames.iter().all(is_aligned));
        let frames = frames.filter(|frames| self.share.is_next_on_device(largest(frames)));
        if chunk.compressor.is_some() {
            self.measured.stored(chunk.decoded_nbytes, chunk.bytes.len());
        }
        let template = Piece {
            decoded_nbytes: chunk.decoded_nbytes as u64,
            word_nbytes: chunk.word_nbytes as u32,
            ..Piece::none()
        };
        match frames {
            Some(ChunkFrames { format, frames, shuffle, element_nbytes, block_nbytes }) => {
                let template = Piece { shuffle, element_nbytes, block_nbytes, ..template };
                let pieces =
                    self.pieces(chunk.axes, chunk.shape, &template).map_err(|error| self.stop(error))?;
                let stored_nbytes = lead + chunk.bytes.len();
                let needed = (stored_nbytes, frames.len(), pieces.len(), chunk.decoded_nbytes);
                self.on_device.fetch_add(1, Ordering::Relaxed);
                self.fill_wave(needed, |wave| {
                    let mut add = || {
                        let (start, memory) = wave.memory(stored_nbytes)?;
                        let start = start + lead;
                        memory[lead..].write_copy_of_slice(chunk.bytes);
                        let decompressed = wave.decompressed.next_multiple_of(ALIGNMENT);
                        wave.decompressed = decompressed + chunk.decoded_nbytes;
                        for frame in &frames {
                            let source = start + frame.source.start;
                            let destination = decompressed + frame.destination.start;
                            if frame.is_copy {
                                wave.copies.try_push((source, destination, frame.destination.len()))?;
                                continue;
                            }
                            wave.frames.try_push(WaveFrame {
                                format,
                                source,
                                source_nbytes: frame.source.len(),
                                destination,
                                destination_nbytes: frame.destination.len(),
                            })?;
                        }
                        let origin = Origin::Decompressed(decompressed);
                        pieces.iter().try_for_each(|piece| Ok(wave.pieces.try_push((origin, *piece))?))
                    };
                    Ok(add())
                })
            }
            None => {
                let pieces =
                    self.pieces(chunk.axes, chunk.shape, &template).map_err(|error| self.stop(error))?;
                let needed = (chunk.decoded_nbytes, 0, pieces.len(), 0);
                self.on_host.fetch_add(1, Ordering::Relaxed);
                self.fill_wave(needed, |wave| {
                    let (start, memory) = match wave.memory(chunk.decoded_nbytes) {
                        Ok(memory) => memory,
                        Err(error) => return Ok(Err(error)),
                    };
                    self.measured.timed(chunk.decoded_nbytes, || decode(memory))?;
                    let add = |piece: &Piece| Ok(wave.pieces.try_push((Origin::Slot(start), *piece))?);
                    Ok(pieces.iter().try_for_each(add))
                })
            }
        }
    }

    fn fill(&self, axes: &[ChunkAxis], value: &[u8]) -> zarrow::Result<()> {
        let width = width(self.result.item_size());
        self.filled.fetch_add(1, Ordering::Relaxed);
        // The value is filled word by word where a kernel has no width for it.
        for (number, word) in value.chunks_exact(width).enumerate() {
            let mut fill = [0; 16];
            fill[..width].copy_from_slice(word);
            let template = Piece { shuffle: Shuffle::Fill, fill, ..Piece::none() };
            let pieces =
                self.fill_pieces(axes, &template, number * width).map_err(|error| self.stop(error))?;
            self.fill_wave((0, 0, pieces.len(), 0), |wave| {
                Ok(pieces.iter().try_for_each(|piece| Ok(wave.pieces.try_push((Origin::Fill, *piece))?)))
            })?;
        }
        Ok(())
    }
}

impl Waves<'_> {
    /// The boxes that are filled, from the byte `offset` of each element on.
    fn fill_pieces(&self, axes: &[ChunkAxis], template: &Piece, offset: usize) -> Result<Vec<Piece>> {
        let strides = self.result.byte_strides();
        let bad = || Error::Unsupported("a chunk has other axes than the result".to_owned());
        let number = |value: u64| i64::try_from(value).map_err(|_| bad());
        let (mut extents, mut to, mut destination) = (Vec::new(), Vec::new(), offset as i64);
        for axis in axes {
            let Some(output) = axis.output else { continue };
            let stride = *strides.get(output).ok_or_else(bad)?;
            destination += number(axis.place)? * stride;
            extents.push(number(axis.count)?);
            to.push(if axis.reversed { -stride } else { stride });
        }
        let pieces = walk::walks(&extents, [&to]).into_iter().map(|walk| Piece {
            destination: self.result.address().wrapping_add_signed(destination + walk.offsets[0]),
            count: walk.count,
            shape: walk.shape,
            destination_stride: walk.strides[0],
            rank: walk.rank,
            ..*template
        });
        Ok(zarrow_array::allocation::collected(pieces)?)
    }
}

/// A wave that was given to the device, and what it should answer.
struct Submitted {
    slot: Slot,
    expected: Vec<u64>,
    timed: Vec<Timed>,
}

impl Submitted {
    /// How many of its frames failed, when the device has told.
    fn failed(&mut self) -> Result<u64> {
        let (pointer, _) = self.slot.ready()?;
        let nbytes = self.expected.len() * ANSWER_NBYTES;
        // SAFETY: so many bytes were received, and no copy uses the slot any more.
        let answers = unsafe { std::slice::from_raw_parts(pointer.as_ptr().cast_const(), nbytes) };
        let (written, statuses) = answers.split_at(self.expected.len() * 8);
        let failed =
            self.expected.iter().zip(written.chunks_exact(8)).zip(statuses.chunks_exact(4)).filter(
                |((expected, written), status)| *written != expected.to_ne_bytes() || **status != [0; 4],
            );
        Ok(failed.count() as u64)
    }
}
