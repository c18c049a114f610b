//! The decompressors, each with what a thread keeps warm for it.

use crate::Outcome;

#[derive(Clone, Copy, PartialEq)]
pub enum Codec {
    None,
    Zstd,
    Gzip,
    Blosc,
}

/// What one thread keeps warm.
#[derive(Default)]
pub struct Worker {
    pub scratch: Vec<u8>,
    zstd: Option<zstd_safe::DCtx<'static>>,
    deflate: Option<Deflate>,
}

impl Worker {
    pub fn decompress(&mut self, codec: Codec, source: &[u8]) -> Outcome<()> {
        match codec {
            Codec::None => Ok(()),
            Codec::Zstd => {
                let size = zstd_safe::get_frame_content_size(source).map_err(|_| "not a frame")?;
                let target = room(&mut self.scratch, size.ok_or("a frame without a size")? as usize);
                let context = self.zstd.get_or_insert_with(zstd_safe::DCtx::create);
                context.decompress(target, source).map_err(zstd_safe::get_error_name)?;
                Ok(())
            }
            Codec::Gzip => {
                let size = source.last_chunk::<4>().ok_or("no gzip member")?;
                let target = room(&mut self.scratch, u32::from_le_bytes(*size) as usize);
                self.deflate.get_or_insert_with(Deflate::new).gunzip(source, target)
            }
            Codec::Blosc => {
                let size = source.get(4..8).ok_or("no blosc buffer")?.try_into()?;
                blosc(source, room(&mut self.scratch, u32::from_le_bytes(size) as usize))
            }
        }
    }
}

/// The first `size` bytes of a scratch that only grows.
fn room(scratch: &mut Vec<u8>, size: usize) -> &mut [u8] {
    if scratch.len() < size {
        scratch.resize(size, 0);
    }
    &mut scratch[..size]
}

fn blosc(source: &[u8], target: &mut [u8]) -> Outcome<()> {
    // SAFETY: source is a buffer that the writer of the benchmark's data made, whose header says its size, and
    // target has the length that is given.
    let written = unsafe {
        blosc_src::blosc_decompress_ctx(source.as_ptr().cast(), target.as_mut_ptr().cast(), target.len(), 1)
    };
    if written as usize == target.len() { Ok(()) } else { Err("blosc failed".into()) }
}

struct Deflate(*mut libdeflate_sys::libdeflate_decompressor);

// SAFETY: a decompressor may be used by any thread, by one at a time, which `&mut self` sees to.
unsafe impl Send for Deflate {}

impl Deflate {
    fn new() -> Deflate {
        // SAFETY: the function has no preconditions; null is refused where it is used.
        Deflate(unsafe { libdeflate_sys::libdeflate_alloc_decompressor() })
    }

    fn gunzip(&mut self, source: &[u8], target: &mut [u8]) -> Outcome<()> {
        if self.0.is_null() {
            return Err("no memory".into());
        }
        // SAFETY: the decompressor is not null, both slices have the lengths that are given, and a null pointer
        // for the size asks for exactly the length of target.
        let result = unsafe {
            libdeflate_sys::libdeflate_gzip_decompress(
                self.0,
                source.as_ptr().cast(),
                source.len(),
                target.as_mut_ptr().cast(),
                target.len(),
                std::ptr::null_mut(),
            )
        };
        if result == libdeflate_sys::libdeflate_result_LIBDEFLATE_SUCCESS {
            Ok(())
        } else {
            Err("gzip".into())
        }
    }
}

impl Drop for Deflate {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `libdeflate_alloc_decompressor`; null is allowed.
        unsafe { libdeflate_sys::libdeflate_free_decompressor(self.0) }
    }
}
