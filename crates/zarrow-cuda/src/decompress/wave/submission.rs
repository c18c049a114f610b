//! Giving a filled slot to the device: steps 2 to 4 of [`wave`](super).

use super::Waves;
use super::answers::{ANSWER_NBYTES, Submitted};
use super::filling::{ALIGNMENT, FRAME_NBYTES, Origin, Wave, WaveFrame};
use crate::decompress::{Format, Frames};
use crate::driver::functions::Address;
use crate::error::{Error, Result};
use crate::kernel::structs::Piece;
use crate::kernel::width;
use crate::memory::DeviceMemory;
use crate::stream::Stream;
use std::mem::MaybeUninit;

/// Bytes of a slot for answers.
const ANSWER_SLOT_NBYTES: usize = 256 << 10;
impl Waves<'_> {
    /// Steps 2 to 4.
    pub(super) fn submit(&self, mut wave: Wave) -> Result<()> {
        if wave.pieces.is_empty() {
            return Ok(());
        }
        let device = self.result.device();
        let item_width = width(self.result.item_size());
        let lists = wave.used.next_multiple_of(ALIGNMENT);
        let boxes = lists + wave.frames.len() * FRAME_NBYTES;
        let total = boxes + (wave.pieces.len() + wave.copies.len()) * size_of::<Piece>();
        let lane = self.lanes.next()?;
        let staging = DeviceMemory::new_in(device, total, lane)?;
        let decompressed = DeviceMemory::new_in(device, wave.decompressed, lane)?;
        let answers = DeviceMemory::new_in(device, wave.frames.len() * ANSWER_NBYTES, lane)?;
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
        wave.slot.send(staging.address(), total, lane)?;
        let list = staging.address() + lists as u64;
        let piece_list = staging.address() + boxes as u64;
        let greatest = copies.iter().map(|(.., nbytes)| *nbytes as u64).max().unwrap_or(0);
        // SAFETY: the lists were written above and come first in the lane; what they name lies in memory that is freed
        // in its order, and in the result, whose places were computed within its layout.
        unsafe {
            device.launch_place(lane, 1, piece_list, count_of(copies.len())?, greatest)?;
            self.decompress(lane, &wave.frames, list, answers.address())?;
            let first = piece_list + (copies.len() * size_of::<Piece>()) as u64;
            let greatest = wave.pieces.iter().map(|(_, piece)| piece.count).max().unwrap_or(0);
            device.launch_place(lane, item_width, first, count_of(wave.pieces.len())?, greatest)?;
        }
        if wave.frames.is_empty() {
            return Ok(());
        }
        let nbytes = wave.frames.len() * ANSWER_NBYTES;
        let mut slot = device.idle.take(device, nbytes.max(ANSWER_SLOT_NBYTES))?;
        slot.ready()?;
        slot.receive(answers.address(), nbytes, lane)?;
        let expected = wave.frames.iter().map(|frame| frame.destination_nbytes as u64);
        let expected = zarrow_array::allocation::collected(expected)?;
        self.submitted.lock().push(Submitted { slot, expected });
        Ok(())
    }

    /// Decompresses the frames, whose lists lie at `list`; answers go to `answers`: the bytes written of all, then the
    /// statuses of all.
    ///
    /// # Safety
    /// As [`Decompressor::decompress`].
    unsafe fn decompress(
        &self,
        lane: Stream,
        frames: &[WaveFrame],
        list: Address,
        answers: Address,
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
            let temporary = DeviceMemory::new_in(device, self.decompressor.temporary_nbytes(&batch)?, lane)?;
            let _current = device.enter()?;
            // SAFETY: the caller's contract; temporary memory is freed in the order of the lane.
            unsafe {
                let (address, nbytes) = (temporary.address(), temporary.nbytes());
                self.decompressor.decompress(&batch, address, nbytes, lane)?;
            }
            start += group.len();
        }
        Ok(())
    }
}

fn count_of(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::Unsupported("a wave of too many boxes".to_owned()))
}
