//! The compressors and decompressors, each with a thread's warm contexts.

use crate::Outcome;

#[derive(Clone, Copy, PartialEq)]
pub enum Codec {
    None,
    /// With its level.
    Zstd(i32),
    Gzip,
    /// LZ4 at its default level, of shuffled elements of 4 bytes.
    Blosc,
}

/// The warm contexts and buffers of one thread.
#[derive(Default)]
pub struct Worker {
    pub scratch: Vec<u8>,
    zstd: Option<zstd_safe::DCtx<'static>>,
    zstd_compressor: Option<zstd_safe::CCtx<'static>>,
    deflate: Option<Deflate>,
}

impl Worker {
    /// Returns the elements of a chunk, or `None` for an uncompressed one.
    pub fn decompress(&mut self, codec: Codec, source: &[u8]) -> Outcome<Option<&[u8]>> {
        let elements = match codec {
            Codec::None => return Ok(None),
            Codec::Zstd(_) => {
                let size = zstd_safe::get_frame_content_size(source).map_err(|_| "not a frame")?;
                let target = room(&mut self.scratch, size.ok_or("a frame without a size")? as usize);
                let context = self.zstd.get_or_insert_with(zstd_safe::DCtx::create);
                context.decompress(target, source).map_err(zstd_safe::get_error_name)?;
                target
            }
            Codec::Gzip => {
                let size = source.last_chunk::<4>().ok_or("no gzip member")?;
                let target = room(&mut self.scratch, u32::from_le_bytes(*size) as usize);
                self.deflate.get_or_insert_with(Deflate::new).gunzip(source, target)?;
                target
            }
            Codec::Blosc => {
                let size = source.get(4..8).ok_or("no blosc buffer")?.try_into()?;
                let target = room(&mut self.scratch, u32::from_le_bytes(size) as usize);
                blosc(source, target)?;
                target
            }
        };
        Ok(Some(elements))
    }

    /// Compresses the elements of a chunk.
    pub fn compress<'a>(&'a mut self, codec: Codec, elements: &'a [u8]) -> Outcome<&'a [u8]> {
        match codec {
            Codec::None => Ok(elements),
            Codec::Zstd(level) => {
                let target = room(&mut self.scratch, zstd_safe::compress_bound(elements.len()));
                let context = self.zstd_compressor.get_or_insert_with(zstd_safe::CCtx::create);
                let length = context.compress(target, elements, level).map_err(zstd_safe::get_error_name)?;
                Ok(&target[..length])
            }
            Codec::Gzip => Err("gzip is not written here".into()),
            Codec::Blosc => {
                let target = room(&mut self.scratch, elements.len() + blosc_src::BLOSC_MAX_OVERHEAD as usize);
                let length = blosc_compress(elements, target)?;
                Ok(&target[..length])
            }
        }
    }
}

/// Returns the first `size` bytes of a buffer that only grows.
fn room(scratch: &mut Vec<u8>, size: usize) -> &mut [u8] {
    if scratch.len() < size {
        scratch.resize(size, 0);
    }
    &mut scratch[..size]
}

fn blosc(source: &[u8], target: &mut [u8]) -> Outcome<()> {
    // SAFETY: source is a valid buffer of the benchmark's data with its size in the header, and target has the given
    // length.
    let written = unsafe {
        blosc_src::blosc_decompress_ctx(source.as_ptr().cast(), target.as_mut_ptr().cast(), target.len(), 1)
    };
    if written as usize == target.len() { Ok(()) } else { Err("blosc failed".into()) }
}

fn blosc_compress(source: &[u8], target: &mut [u8]) -> Outcome<usize> {
    // SAFETY: both are slices with the given lengths, and the name is a C string.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            5,
            1,
            4,
            source.len(),
            source.as_ptr().cast(),
            target.as_mut_ptr().cast(),
            target.len(),
            c"lz4".as_ptr(),
            0,
            1,
        )
    };
    usize::try_from(written).ok().filter(|written| *written > 0).ok_or_else(|| "blosc failed".into())
}

struct Deflate(*mut libdeflate_sys::libdeflate_decompressor);

// SAFETY: any thread may use a decompressor, one at a time, which `&mut self` guarantees.
unsafe impl Send for Deflate {}

impl Deflate {
    fn new() -> Deflate {
        // SAFETY: the function has no preconditions; callers check for null.
        Deflate(unsafe { libdeflate_sys::libdeflate_alloc_decompressor() })
    }

    fn gunzip(&mut self, source: &[u8], target: &mut [u8]) -> Outcome<()> {
        if self.0.is_null() {
            return Err("no memory".into());
        }
        // SAFETY: the decompressor is not null, both slices have the given lengths, and a null pointer for the size
        // requires exactly the length of target.
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
