//! The C compressors behind safe functions: each writes to the start of memory that need not be initialised, and says how
//! many bytes it wrote, or why it did not.

use crate::codec::native::{BZ2_BLOCK, BloscCall, DeflateContainer, Destination, ZSTD_NO_MEMORY};
use crate::error::ErrorKind;
use crate::memory::Lent;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use zstd_safe::CParameter;

/// The bytes written, or what went wrong.
pub type Written = Result<usize, Refusal>;

/// Why a compressor gave nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not take such bytes.
    Unsupported(String),
    /// There is no memory for its own tables.
    OutOfMemory {
        /// Bytes that are missing, as far as is known.
        nbytes: usize,
    },
}

impl From<&str> for Refusal {
    fn from(text: &str) -> Refusal {
        Refusal::Unsupported(text.into())
    }
}

impl From<Refusal> for ErrorKind {
    fn from(refusal: Refusal) -> ErrorKind {
        match refusal {
            Refusal::Unsupported(text) => ErrorKind::Unsupported(text),
            Refusal::OutOfMemory { nbytes } => zarrow_array::Error::OutOfMemory { nbytes }.into(),
        }
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Unsupported(text)
    }
}

/// A zstd compressor, whose tables are reused from chunk to chunk.
pub struct ZstdCompressor(zstd_safe::CCtx<'static>);

impl ZstdCompressor {
    /// A new context; `None` where there is no memory.
    pub fn new() -> Option<ZstdCompressor> {
        zstd_safe::CCtx::try_create().map(ZstdCompressor)
    }

    /// Bytes of its tables.
    pub fn nbytes(&self) -> usize {
        self.0.sizeof()
    }

    /// Compresses `source` to one frame, which says its size, and has a checksum where asked.
    pub fn compress(
        &mut self,
        level: i32,
        checksum: bool,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
    ) -> Written {
        let failed = |code| match code {
            ZSTD_NO_MEMORY => Refusal::OutOfMemory { nbytes: source.len() },
            code => zstd_safe::get_error_name(code).into(),
        };
        self.0.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
        self.0.set_parameter(CParameter::ChecksumFlag(checksum)).map_err(failed)?;
        self.0.compress2(&mut Destination(destination), source).map_err(failed)
    }
}

/// A deflate compressor of one level.
pub struct DeflateCompressor {
    pointer: NonNull<libdeflate_sys::libdeflate_compressor>,
    level: i32,
}

// SAFETY: the compressor is memory that this value owns alone, bound to no thread.
unsafe impl Send for DeflateCompressor {}

impl DeflateCompressor {
    /// A new context for levels from 0 to 12; `None` where there is no memory.
    pub fn new(level: i32) -> Option<DeflateCompressor> {
        // SAFETY: the function takes a number and returns a new object or null, also for a level that it does not have.
        let pointer = NonNull::new(unsafe { libdeflate_sys::libdeflate_alloc_compressor(level) })?;
        Some(DeflateCompressor { pointer, level })
    }

    /// Its level.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// The most bytes that `nbytes` can become in either container.
    pub fn bound(&mut self, nbytes: usize) -> usize {
        // SAFETY: the pointer is the one that `new` got.
        unsafe { libdeflate_sys::libdeflate_gzip_compress_bound(self.pointer.as_ptr(), nbytes) }
    }

    /// Compresses `source` to one member.
    pub fn compress(
        &mut self,
        container: DeflateContainer,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
    ) -> Written {
        let function = match container {
            DeflateContainer::Gzip => libdeflate_sys::libdeflate_gzip_compress,
            DeflateContainer::Zlib => libdeflate_sys::libdeflate_zlib_compress,
        };
        // SAFETY: both ranges are those of slices, the second exclusive, and the function stays inside both.
        let written = unsafe {
            function(
                self.pointer.as_ptr(),
                source.as_ptr().cast::<c_void>(),
                source.len(),
                destination.as_mut_ptr().cast::<c_void>(),
                destination.len(),
            )
        };
        if written == 0 { Err("deflate needs more memory than its bound".into()) } else { Ok(written) }
    }
}

impl Drop for DeflateCompressor {
    fn drop(&mut self) {
        // SAFETY: the pointer is the one that `new` got, freed once.
        unsafe { libdeflate_sys::libdeflate_free_compressor(self.pointer.as_ptr()) }
    }
}

/// What Blosc was set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blosc {
    /// The compressor inside.
    pub compressor: &'static CStr,
    /// From 0 to 9.
    pub level: c_int,
    /// 0 for none, 1 for bytes, 2 for bits.
    pub shuffle: c_int,
    /// Bytes of an element, for the shuffle.
    pub typesize: usize,
    /// Bytes of a block; 0 lets Blosc choose.
    pub blocksize: usize,
}

/// The most bytes that `nbytes` can become.
pub fn blosc_bound(nbytes: usize) -> usize {
    nbytes.saturating_add(blosc_src::BLOSC_MAX_OVERHEAD as usize)
}

/// The largest block that Blosc chooses by itself.
const LARGEST_BLOSC_BLOCK: usize = 1 << 20;
/// The largest element that Blosc knows.
const BLOSC_ITEM: usize = blosc_src::BLOSC_MAX_TYPESIZE as usize;

impl Blosc {
    /// Whether so many bytes can be compressed where they lie, though others write to them meanwhile.
    ///
    /// Where Blosc shuffles, it moves each block to memory of its own first, reading each byte once, and compresses what
    /// is there. Where the result is no smaller than the source, it begins anew and copies all bytes. (`blosc_c` and
    /// `serial_blosc` of c-blosc 1.) A block is shuffled where elements have several bytes; to bits where it has
    /// one element at least, so that all blocks have whole elements and are not made shorter than one.
    pub fn reads_once(&self, nbytes: usize) -> bool {
        let several = (2..=blosc_src::BLOSC_MAX_TYPESIZE as usize).contains(&self.typesize);
        let whole = || {
            nbytes.is_multiple_of(self.typesize) && (self.blocksize == 0 || self.blocksize >= self.typesize)
        };
        several && (self.shuffle == 1 || (self.shuffle == 2 && whole()))
    }
}

/// Compresses `source` to one Blosc buffer, on this thread. Where others may write to it meanwhile, Blosc has to read each byte
/// once ([`Blosc::reads_once`]).
pub fn blosc_compress(blosc: &Blosc, source: Lent<'_>, destination: &mut [MaybeUninit<u8>]) -> Written {
    let nbytes = source.nbytes();
    if nbytes > blosc_src::BLOSC_MAX_BUFFERSIZE as usize {
        return Err(format!("Blosc takes less than 2 GiB at once, not {nbytes} bytes").into());
    }
    // A compressor inside that has no memory leaves its block as it is, which is valid; Blosc itself does not look.
    let block = if blosc.blocksize == 0 { LARGEST_BLOSC_BLOCK } else { blosc.blocksize }.min(nbytes);
    let Ok(_call) = BloscCall::begin(block, blosc.typesize.min(BLOSC_ITEM), 0) else {
        return Err(Refusal::OutOfMemory { nbytes: block });
    };
    // SAFETY: lent memory can be read, the destination is exclusive, and the function stays inside both; the name is a C
    // string; and one thread means that none is started.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            blosc.level,
            blosc.shuffle,
            // What a byte cannot say is no type for Blosc, which would then not shuffle.
            if blosc.typesize > blosc_src::BLOSC_MAX_TYPESIZE as usize { 1 } else { blosc.typesize },
            nbytes,
            source.pointer().cast(),
            destination.as_mut_ptr().cast(),
            destination.len(),
            blosc.compressor.as_ptr(),
            // A block is not larger than all.
            blosc.blocksize.min(nbytes),
            1,
        )
    };
    match usize::try_from(written) {
        Ok(written) if written > 0 => Ok(written),
        _ => Err(format!("Blosc cannot compress {nbytes} bytes so").into()),
    }
}

/// The most bytes that `nbytes` can become, its size before the block included.
pub fn lz4_bound(nbytes: usize) -> crate::Result<usize> {
    let nbytes = c_int::try_from(nbytes).map_err(|_| {
        crate::ErrorKind::Unsupported(format!("LZ4 takes less than 2 GiB at once, not {nbytes} bytes"))
    })?;
    // SAFETY: the function takes a number and returns one.
    let bound = unsafe { lz4_sys::LZ4_compressBound(nbytes) };
    Ok(usize::try_from(bound).unwrap_or(0) + 4)
}

/// Compresses `source` to its size and one block, as numcodecs does.
pub fn lz4_compress(acceleration: i32, source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Written {
    let (Ok(read), Some((size, block))) =
        (c_int::try_from(source.len()), destination.split_first_chunk_mut::<4>())
    else {
        return Err("LZ4 takes less than 2 GiB at once".into());
    };
    size.write_copy_of_slice(&read.to_le_bytes());
    let space = c_int::try_from(block.len()).unwrap_or(c_int::MAX);
    // SAFETY: both ranges are those of slices, the second exclusive, and the function stays inside both.
    let written = unsafe {
        lz4_sys::LZ4_compress_fast(
            source.as_ptr().cast(),
            block.as_mut_ptr().cast(),
            read,
            space,
            acceleration,
        )
    };
    match usize::try_from(written) {
        Ok(written) if written > 0 => Ok(written + 4),
        _ => Err(format!("LZ4 cannot compress {read} bytes").into()),
    }
}

/// The most bytes that `nbytes` can become: a hundredth more and some hundred, as the library's manual says.
pub fn bz2_bound(nbytes: usize) -> usize {
    nbytes.saturating_add(nbytes / 50).saturating_add(1024)
}

/// Compresses `source` to one Bzip2 stream.
pub fn bz2_compress(level: u32, source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Written {
    // It panics where it has no memory.
    let mut stream = std::panic::catch_unwind(|| bzip2::Compress::new(bzip2::Compression::new(level), 0))
        .map_err(|_| Refusal::OutOfMemory { nbytes: BZ2_BLOCK })?;
    loop {
        // The library takes and gives 4 GiB at a time.
        let read = usize::try_from(stream.total_in()).unwrap_or(usize::MAX).min(source.len());
        let written = usize::try_from(stream.total_out()).unwrap_or(usize::MAX).min(destination.len());
        let (input, output) = (&source[read..], &mut destination[written..]);
        if output.is_empty() {
            return Err("Bzip2 needs more memory than its bound".into());
        }
        let rest = input.len() <= u32::MAX as usize;
        let action = if rest { bzip2::Action::Finish } else { bzip2::Action::Run };
        match stream.compress_uninit(input, output, action) {
            Ok(bzip2::Status::StreamEnd) => {
                return usize::try_from(stream.total_out()).map_err(|error| error.to_string().into());
            }
            Ok(_) => {}
            Err(error) => return Err(error.to_string().into()),
        }
    }
}
