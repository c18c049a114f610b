//! What decompresses on the software device: the libraries of the host, on memory that is the host's in truth.
//!
//! It takes lists of device addresses as nvCOMP does, after all work before it, and tells of each frame what became of it.

use crate::software::device;
use std::ffi::c_int;
use zarrow_cuda::decompress::{Decompressor, Format, Frames, set_decompressor};
use zarrow_cuda::{Result, Stream};

/// The mark of the software device's addresses.
const TAG: u64 = 1 << 62;

struct OnTheHost;

/// Names it as the process's decompressor.
pub fn install() {
    device(0);
    set_decompressor(OnTheHost);
}

/// A list on the device.
unsafe fn list<'a, T>(address: u64, count: usize) -> &'a mut [T] {
    // SAFETY: the caller's contract; the mark is all that keeps the host from the memory.
    unsafe { std::slice::from_raw_parts_mut((address & !TAG) as *mut T, count) }
}

impl Decompressor for OnTheHost {
    fn takes(&self, _format: Format) -> bool {
        true
    }

    fn source_alignment(&self, _format: Format) -> usize {
        1
    }

    fn temporary_nbytes(&self, frames: &Frames) -> Result<usize> {
        Ok(frames.total.max(1))
    }

    unsafe fn decompress(
        &self,
        frames: &Frames,
        temporary: u64,
        nbytes: usize,
        stream: Stream,
    ) -> Result<()> {
        assert!(stream == device(0).stream() && temporary != 0 && nbytes >= frames.total);
        device(0).synchronize()?;
        let count = frames.count;
        // SAFETY: the lists lie on the device, which has done what was before.
        unsafe {
            let (sources, source_nbytes) =
                (list::<u64>(frames.sources, count), list::<u64>(frames.source_nbytes, count));
            let places = list::<u64>(frames.destinations, count);
            let room = list::<u64>(frames.destination_nbytes, count);
            let written = list::<u64>(frames.written, count);
            let statuses = list::<i32>(frames.statuses, count);
            assert_eq!(room.iter().sum::<u64>(), frames.total as u64);
            assert_eq!(room.iter().max().copied(), Some(frames.largest as u64));
            for number in 0..count {
                let source = list::<u8>(sources[number], source_nbytes[number] as usize);
                let place = list::<u8>(places[number], room[number] as usize);
                let done = match frames.format {
                    Format::Zstd => zstd_safe::decompress(place, source).ok(),
                    _ => {
                        let (from, to) = (source.as_ptr().cast(), place.as_mut_ptr().cast());
                        let (length, room) = (source.len() as c_int, place.len() as c_int);
                        usize::try_from(lz4_sys::LZ4_decompress_safe(from, to, length, room)).ok()
                    }
                };
                (written[number], statuses[number]) = done.map_or((0, 12), |nbytes| (nbytes as u64, 0));
            }
        }
        Ok(())
    }
}
