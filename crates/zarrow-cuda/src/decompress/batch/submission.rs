//! Submitting a filled slot to the device: steps 2 to 4 of [`batch`](super).

use super::Batches;
use super::answers::{ANSWER_NBYTES, Submitted};
use super::planned::FRAME_NBYTES;
use super::slot::{Batch, BatchFrame, Copied, Origin};
use crate::decompress::format::Format;
use crate::decompress::{Frames, checksums};
use crate::driver::functions::Address;
use crate::error::{Error, Result};
use crate::kernel::structs::{Guarded, Piece, Shuffle};
use crate::kernel::width;
use crate::memory::{ALIGNMENT, DeviceMemory};
use crate::meter::{Timed, Timer, Timing};
use crate::stream::Stream;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Bytes of a slot for results.
const ANSWER_SLOT_NBYTES: usize = 256 << 10;

impl Batches<'_> {
    /// Steps 2 to 4.
    pub(super) fn submit(&self, mut batch: Batch) -> Result<()> {
        if batch.pieces.is_empty() {
            return Ok(());
        }
        let device = self.result.device();
        let item_width = width(self.result.item_size());
        let lists = batch.used.next_multiple_of(ALIGNMENT);
        let guards = lists + batch.frames.len() * FRAME_NBYTES;
        let guarded_count = batch.frames.iter().filter(|frame| frame.checksum.is_some()).count();
        let boxes = guards + guarded_count * size_of::<Guarded>();
        let total =
            boxes + (batch.pieces.len() + batch.copies.len() + batch.patches.len()) * size_of::<Piece>();
        let stream = self.streams.next()?;
        let bodies = batch.bodies.iter().map(|body| body.on_device(stream));
        let bodies: Vec<Arc<DeviceMemory>> = zarrow_array::allocation::try_collected(bodies)?;
        let staging = DeviceMemory::new_in(device, total, stream)?;
        let decompressed = DeviceMemory::new_in(device, batch.decompressed, stream)?;
        let answers = DeviceMemory::new_in(device, batch.frames.len() * ANSWER_NBYTES, stream)?;
        // Groups the frames by format.
        batch.frames.sort_by_key(|frame| frame.format as u8);
        let (copies, patches) = (std::mem::take(&mut batch.copies), std::mem::take(&mut batch.patches));
        // The lists follow the bytes; if there are too many frames, they go to a separate slot.
        let (mut pointer, room) = batch.slot.ready()?;
        let (mut own, mut start) = (None, lists);
        if total > room {
            let slot =
                own.insert(device.idle.take(device.context(), (total - lists).max(ANSWER_SLOT_NBYTES))?);
            (pointer, start) = (slot.ready()?.0, 0);
        }
        // SAFETY: the slot has this many bytes there, after those of the chunks, and only this batch uses it.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(
                pointer.as_ptr().add(start).cast::<MaybeUninit<u8>>(),
                total - lists,
            )
        };
        let address = |origin: Origin| match origin {
            Origin::Slot(at) => staging.address() + at as u64,
            Origin::Body(number, at) => bodies[number].address() + at as u64,
            Origin::Decompressed(at) => decompressed.address() + at as u64,
            Origin::Fill => 0,
        };
        let (list, rest) = bytes.split_at_mut(guards - lists);
        let (guard_list, rest) = rest.split_at_mut(boxes - guards);
        let column = batch.frames.len() * 8;
        for (number, frame) in batch.frames.iter().enumerate() {
            let words = [
                address(frame.source),
                frame.source_nbytes as u64,
                decompressed.address() + frame.destination as u64,
                frame.destination_nbytes as u64,
            ];
            for (place, word) in words.into_iter().enumerate() {
                let at = place * column + number * 8;
                list[at..at + 8].write_copy_of_slice(&word.to_ne_bytes());
            }
        }
        let statuses = answers.address() + column as u64;
        let guarded = batch.frames.iter().enumerate().filter_map(|(number, frame)| {
            let checksum = frame.checksum?;
            Some(Guarded {
                source: decompressed.address() + frame.destination as u64,
                nbytes: frame.destination_nbytes as u64,
                status: statuses + number as u64 * 4,
                state: [0; 4],
                kind: checksum.kind,
                expected: checksum.expected,
            })
        });
        let guarded: Vec<Guarded> = zarrow_array::allocation::collected(guarded)?;
        for (place, frame) in guard_list.chunks_exact_mut(size_of::<Guarded>()).zip(&guarded) {
            place.write_copy_of_slice(frame.bytes());
        }
        let copied = copies.iter().map(|Copied { source, destination, nbytes }| Piece {
            source: address(*source),
            destination: address(Origin::Decompressed(*destination)),
            count: *nbytes as u64,
            shape: [*nbytes as u64, 0, 0, 0, 0, 0, 0, 0],
            source_stride: [1, 0, 0, 0, 0, 0, 0, 0],
            destination_stride: [1, 0, 0, 0, 0, 0, 0, 0],
            rank: 1,
            ..Piece::default()
        });
        let patched = patches.iter().map(|(place, value)| Piece {
            destination: address(*place),
            count: 1,
            shuffle: Shuffle::Fill,
            fill: [*value; 16],
            ..Piece::default()
        });
        let placed = batch.pieces.iter().map(|(origin, piece)| Piece { source: address(*origin), ..*piece });
        for (place, piece) in
            rest.chunks_exact_mut(size_of::<Piece>()).zip(copied.chain(patched).chain(placed))
        {
            place.write_copy_of_slice(piece.bytes());
        }
        // Step 3.
        let mut timed = Vec::new();
        let timer = Timer::start(device, stream);
        let filled = if own.is_some() { batch.used } else { total };
        for used in batch.used_ranges(filled) {
            batch.slot.send(used.clone(), staging.address() + used.start as u64, stream)?;
        }
        if let Some(slot) = &mut own {
            slot.send(0..total - lists, staging.address() + lists as u64, stream)?;
        }
        timed.extend(timer.stop(Timing::Copy { nbytes: total as u64 }));
        let list = staging.address() + lists as u64;
        let piece_list = staging.address() + boxes as u64;
        let greatest = copies.iter().map(|copy| copy.nbytes as u64).max().unwrap_or(0);
        let behind = |boxes: usize| piece_list + (boxes * size_of::<Piece>()) as u64;
        // SAFETY: the lists were written above and are copied first in the stream; their addresses point into memory
        // that is freed in the stream's order, and into the result, at positions computed within its layout.
        unsafe {
            device.launch_place(stream, 1, piece_list, count_of(copies.len())?, greatest)?;
            device.launch_place(stream, 1, behind(copies.len()), count_of(patches.len())?, 1)?;
            self.decompress(stream, &batch.frames, list, answers.address(), &mut timed)?;
            if !guarded.is_empty() {
                checksums::verify((device, stream), &guarded, staging.address() + guards as u64)?;
            }
            let first = behind(copies.len() + patches.len());
            let greatest = batch.pieces.iter().map(|(_, piece)| piece.count).max().unwrap_or(0);
            device.launch_place(stream, item_width, first, count_of(batch.pieces.len())?, greatest)?;
        }
        if batch.frames.is_empty() {
            return Ok(());
        }
        let nbytes = batch.frames.len() * ANSWER_NBYTES;
        let mut slot = device.idle.take(device.context(), nbytes.max(ANSWER_SLOT_NBYTES))?;
        slot.ready()?;
        slot.receive(answers.address(), nbytes, stream)?;
        let expected = batch.frames.iter().map(|frame| frame.destination_nbytes as u64);
        let expected = zarrow_array::allocation::collected(expected)?;
        self.submitted.lock().push(Submitted { slot, expected, timed });
        Ok(())
    }

    /// Decompresses the frames with the lists at `list`. Results go to `answers`: first the numbers of bytes
    /// written, then the statuses.
    ///
    /// # Safety
    /// See [`Decompressor::decompress`].
    unsafe fn decompress(
        &self,
        stream: Stream,
        frames: &[BatchFrame],
        list: Address,
        answers: Address,
        timed: &mut Vec<Timed>,
    ) -> Result<()> {
        let (device, column) = (self.result.device(), (frames.len() * 8) as u64);
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
            let nbytes = {
                let _current = device.enter()?;
                self.decompressor.temporary_nbytes(&batch)?
            };
            let temporary = DeviceMemory::new_in(device, nbytes, stream)?;
            let timer = Timer::start(device, stream);
            // SAFETY: the caller's contract; temporary memory is freed in the order of the stream.
            unsafe {
                let (address, nbytes) = (temporary.address(), temporary.nbytes());
                self.decompressor.decompress(&batch, address, nbytes, (device, stream))?;
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
}

fn count_of(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::Unsupported("a batch has too many boxes".to_owned()))
}
