//! The C decompressors behind safe functions.
//!
//! Each writes into memory that need not be initialised, of a size that the caller chose, and says how many
//! bytes it wrote. None is told a size by the compressed bytes.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How an attempt to decompress into memory of a given size went wrong.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The output is larger than the memory.
    TooSmall,
    /// The input is not valid.
    Corrupt(String),
    /// The input may be valid, and needs what is not built in.
    Unsupported(String),
    /// The decompressor found no memory for its own tables.
    OutOfMemory,
}

fn corrupt(text: impl Into<String>) -> Failure {
    Failure::Corrupt(text.into())
}

/// `ZSTD_error_memory_allocation`, as zstd returns it: the negated number.
pub const ZSTD_NO_MEMORY: usize = 64usize.wrapping_neg();

/// Asks the C allocator for as much memory as a library is about to take that does not look whether it got any, or calls
/// its lack bad data; and gives it back.
///
/// It is a check and no promise: what other threads take in between is missing to the library all the same.
pub fn probe_memory(nbytes: usize) -> Result<(), Failure> {
    // SAFETY: a pointer that `malloc` gave, null too, may be freed once. The hint keeps the compiler from taking the
    // pair for nothing.
    unsafe {
        let memory = std::hint::black_box(libc::malloc(nbytes));
        libc::free(memory);
        if memory.is_null() { Err(Failure::OutOfMemory) } else { Ok(()) }
    }
}

/// The threads that are in c-blosc.
static IN_BLOSC: AtomicUsize = AtomicUsize::new(0);

/// A call of c-blosc, which takes memory for its blocks without looking whether it got any.
pub struct BloscCall;

impl BloscCall {
    /// Asks for the memory of a buffer of such blocks and elements: three blocks, and what its compressors use; and for as much
    /// again for each thread that is in c-blosc, which may have asked and not yet have taken it.
    pub fn begin(block_nbytes: usize, item_size: usize, tables: usize) -> Result<BloscCall, Failure> {
        let words = item_size.saturating_mul(size_of::<i32>());
        let one = block_nbytes.saturating_mul(3).saturating_add(words).saturating_add(tables);
        // It ends where the call ends, or where there is no memory.
        let call = BloscCall;
        let others = IN_BLOSC.fetch_add(1, Ordering::SeqCst);
        probe_memory(one.saturating_mul(others.saturating_add(1)))?;
        Ok(call)
    }
}

impl Drop for BloscCall {
    fn drop(&mut self) {
        IN_BLOSC.fetch_sub(1, Ordering::SeqCst);
    }
}

/// As [`BloscCall::begin`], for what the header of a buffer says; it was validated.
fn begin_blosc(source: &[u8]) -> Result<BloscCall, Failure> {
    /// More than zlib's and zstd's decompressors take; the others need none.
    const TABLES: usize = 256 << 10;
    let [_, _, flags, item_size, sizes @ ..] = source else {
        return BloscCall::begin(0, 0, 0);
    };
    let size = |at: usize| {
        let word = sizes.get(at..).and_then(|word| word.first_chunk::<4>());
        word.map_or(0, |word| u32::from_le_bytes(*word) as usize)
    };
    let (nbytes, block) = (size(0), size(4));
    if block > nbytes {
        // Blosc refuses that before it takes memory.
        return BloscCall::begin(0, 0, 0);
    }
    if flags & 2 != 0 {
        // Copied as it is, in one go.
        return BloscCall::begin(block, usize::from(*item_size), 0);
    }
    BloscCall::begin(block, usize::from(*item_size), if flags >> 5 >= 3 { TABLES } else { 0 })
}

/// A zstd decompressor, whose tables are reused from chunk to chunk.
pub struct Zstd(zstd_safe::DCtx<'static>);

/// Memory for zstd to write to.
pub struct Destination<'a>(pub &'a mut [MaybeUninit<u8>]);

// SAFETY: the pointer and the capacity are those of one exclusive slice; `as_slice` claims nothing initialised.
unsafe impl zstd_safe::WriteBuf for Destination<'_> {
    fn as_slice(&self) -> &[u8] {
        &[]
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn filled_until(&mut self, _count: usize) {}
}

impl Zstd {
    /// A new context; `None` where there is no memory.
    pub fn new() -> Option<Zstd> {
        zstd_safe::DCtx::try_create().map(Zstd)
    }

    /// Bytes of its tables.
    pub fn nbytes(&self) -> usize {
        self.0.sizeof()
    }

    /// Decompresses every frame of `source` to the start of `destination`.
    pub fn decompress(
        &mut self,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
    ) -> Result<usize, Failure> {
        /// `ZSTD_error_dstSize_tooSmall`, as zstd returns it: the negated number.
        const DESTINATION_TOO_SMALL: usize = 70usize.wrapping_neg();
        match self.0.decompress(&mut Destination(destination), source) {
            Ok(written) => Ok(written),
            Err(DESTINATION_TOO_SMALL) => Err(Failure::TooSmall),
            Err(ZSTD_NO_MEMORY) => Err(Failure::OutOfMemory),
            Err(code) => Err(corrupt(zstd_safe::get_error_name(code))),
        }
    }
}

/// The bytes that the first zstd frame of `source` claims to decompress to, where it says so.
pub fn zstd_size(source: &[u8]) -> Option<usize> {
    usize::try_from(zstd_safe::get_frame_content_size(source).ok()??).ok()
}

/// The two containers around a deflate stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeflateContainer {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Zlib,
}

/// A deflate decompressor, whose tables are reused from chunk to chunk.
pub struct Deflate(NonNull<libdeflate_sys::libdeflate_decompressor>);

// SAFETY: the decompressor is memory that this value owns alone, bound to no thread.
unsafe impl Send for Deflate {}

impl Deflate {
    /// A new context; `None` where there is no memory.
    pub fn new() -> Option<Deflate> {
        // SAFETY: the function takes no argument and returns a new object or null.
        NonNull::new(unsafe { libdeflate_sys::libdeflate_alloc_decompressor() }).map(Deflate)
    }

    /// Decompresses one member from the start of `source`; returns the bytes read and the bytes written.
    pub fn decompress(
        &mut self,
        container: DeflateContainer,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
    ) -> Result<(usize, usize), Failure> {
        let function = match container {
            DeflateContainer::Gzip => libdeflate_sys::libdeflate_gzip_decompress_ex,
            DeflateContainer::Zlib => libdeflate_sys::libdeflate_zlib_decompress_ex,
        };
        let (mut read, mut written) = (0usize, 0usize);
        // SAFETY: both ranges are those of slices, the second exclusive; the two results are written on success.
        let result = unsafe {
            function(
                self.0.as_ptr(),
                source.as_ptr().cast::<c_void>(),
                source.len(),
                destination.as_mut_ptr().cast::<c_void>(),
                destination.len(),
                &mut read,
                &mut written,
            )
        };
        match result {
            0 => Ok((read, written)),
            3 => Err(Failure::TooSmall),
            _ => Err(corrupt("not a valid deflate stream")),
        }
    }
}

impl Drop for Deflate {
    fn drop(&mut self) {
        // SAFETY: the pointer is the one that `new` got, freed once.
        unsafe { libdeflate_sys::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

/// Decompresses one LZ4 block to the start of `destination`; returns the bytes written.
pub fn lz4_decompress(source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Result<usize, Failure> {
    let (Ok(read), Ok(space)) = (c_int::try_from(source.len()), c_int::try_from(destination.len())) else {
        return Err(corrupt("an LZ4 block is smaller than 2 GiB"));
    };
    // SAFETY: both ranges are those of slices, the second exclusive; the function stays inside both.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(source.as_ptr().cast(), destination.as_mut_ptr().cast(), read, space)
    };
    usize::try_from(written).map_err(|_| corrupt("not a valid LZ4 block of this size"))
}

/// A Blosc buffer whose header is sound, without what may be stored behind it.
pub struct BloscFrame<'a> {
    bytes: &'a [u8],
    nbytes: usize,
}

impl<'a> BloscFrame<'a> {
    /// Bytes of a header.
    const HEADER: usize = 16;

    /// The buffer at the start of `source`. It says its own length; c-blosc decompresses by that and never looks at what
    /// is behind it, and so do those who use it.
    pub fn new(source: &'a [u8]) -> Result<BloscFrame<'a>, Failure> {
        let word = |at: usize| Some(u32::from_le_bytes(*source.get(at..)?.first_chunk()?) as usize);
        let bytes = word(12).and_then(|length| source.get(..length)).unwrap_or(source);
        let mut nbytes = 0usize;
        // SAFETY: the range is that of a slice, and the result is a local.
        let result =
            unsafe { blosc_src::blosc_cbuffer_validate(bytes.as_ptr().cast(), bytes.len(), &mut nbytes) };
        if result != 0 || bytes.len() < Self::HEADER {
            return Err(corrupt("not a valid Blosc header"));
        }
        // c-blosc up to 1.21.6 overflows an `int` where one BloscLZ block has more than 8 MB of matches; no writer makes
        // blocks of that size.
        const SAFE: usize = 8 << 20;
        match bytes[2] >> 5 {
            0 if bytes.len() > SAFE && word(8).is_none_or(|block| block > SAFE) => {
                Err(corrupt("a BloscLZ block of more than 8 MiB"))
            }
            2 if bytes[2] & 2 == 0 => {
                Err(Failure::Unsupported("Blosc with snappy, which is not built in".into()))
            }
            _ => Ok(BloscFrame { bytes, nbytes }),
        }
    }

    /// The bytes that it claims to decompress to.
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Decompresses to the start of `destination`; returns the bytes written.
    pub fn decompress(&self, destination: &mut [MaybeUninit<u8>]) -> Result<usize, Failure> {
        let destination = destination.get_mut(..self.nbytes).ok_or(Failure::TooSmall)?;
        self.attempt(destination.len(), || {
            // SAFETY: `blosc_cbuffer_validate` accepted the source, which makes it safe to try; the destination is an
            // exclusive slice of the length that is passed.
            unsafe {
                blosc_src::blosc_decompress_ctx(
                    self.bytes.as_ptr().cast(),
                    destination.as_mut_ptr().cast(),
                    destination.len(),
                    1,
                )
            }
        })?;
        Ok(self.nbytes)
    }

    /// Makes a call that has to give so many bytes. A decompressor inside that has no memory gives none, as for bad data: so
    /// it is made once more.
    fn attempt(&self, nbytes: usize, mut decompress: impl FnMut() -> c_int) -> Result<(), Failure> {
        for _ in 0..2 {
            let call = begin_blosc(self.bytes)?;
            if usize::try_from(decompress()) == Ok(nbytes) {
                return Ok(());
            }
            drop(call);
        }
        Err(corrupt("not a valid Blosc buffer"))
    }

    /// Decompresses the bytes from `start` on to all of `destination`, and only the blocks that hold them; `None` where
    /// they do not begin and end with an element of the buffer, or lie outside of it.
    pub fn range(&self, start: usize, destination: &mut [MaybeUninit<u8>]) -> Option<Result<(), Failure>> {
        let item = usize::from(self.bytes[3]);
        let end = start.checked_add(destination.len())?;
        if item == 0 || !start.is_multiple_of(item) || !end.is_multiple_of(item) || end > self.nbytes {
            return None;
        }
        let first = c_int::try_from(start / item).ok()?;
        let count = c_int::try_from(destination.len() / item).ok()?;
        Some(self.attempt(destination.len(), || {
            // SAFETY: `blosc_cbuffer_validate` accepted the source, the range lies within its size, and the destination is
            // an exclusive slice of as many bytes as the elements have.
            unsafe {
                blosc_src::blosc_getitem(
                    self.bytes.as_ptr().cast(),
                    first,
                    count,
                    destination.as_mut_ptr().cast(),
                )
            }
        }))
    }
}

/// Zlib's CRC-32 of what `before` is the checksum of (0 for nothing), and then `bytes`.
pub fn crc32(before: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the range is that of a slice.
    unsafe { libdeflate_sys::libdeflate_crc32(before, bytes.as_ptr().cast::<c_void>(), bytes.len()) }
}

/// Zlib's Adler-32 of what `before` is the checksum of (1 for nothing), and then `bytes`.
pub fn adler32(before: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the range is that of a slice.
    unsafe { libdeflate_sys::libdeflate_adler32(before, bytes.as_ptr().cast::<c_void>(), bytes.len()) }
}

/// Whether there is nothing but zeros, with which some stores fill up their last block.
pub fn is_padding(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Bytes of memory for one block of Bzip2.
pub const BZ2_BLOCK: usize = 3_600_000;

/// Decompresses every Bzip2 stream of `source` to the start of `destination`; returns the bytes written.
pub fn bz2_decompress(source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Result<usize, Failure> {
    let (mut read, mut written) = (0usize, 0usize);
    while read < source.len() && (read == 0 || !is_padding(&source[read..])) {
        // It panics where it has no memory.
        let mut stream =
            std::panic::catch_unwind(|| bzip2::Decompress::new(false)).map_err(|_| Failure::OutOfMemory)?;
        loop {
            // The library takes and gives 4 GiB at a time.
            let (input, output) = (&source[read..], &mut destination[written..]);
            let full = output.is_empty();
            let before = (stream.total_in(), stream.total_out());
            let status =
                stream.decompress_uninit(input, output).map_err(|error| corrupt(error.to_string()))?;
            let progress = (stream.total_in() - before.0, stream.total_out() - before.1);
            read += usize::try_from(progress.0).unwrap_or(usize::MAX);
            written += usize::try_from(progress.1).unwrap_or(usize::MAX);
            match status {
                bzip2::Status::StreamEnd => break,
                bzip2::Status::MemNeeded => return Err(Failure::OutOfMemory),
                _ if progress != (0, 0) => {}
                _ if full => return Err(Failure::TooSmall),
                _ => return Err(corrupt("the stream ends too early")),
            }
        }
    }
    Ok(written)
}

/// Appends what `fill` writes to the vector's spare memory, which must have `space` bytes.
pub fn extend(
    vector: &mut Vec<u8>,
    space: usize,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<usize, Failure>,
) -> Result<(), Failure> {
    let spare = vector.spare_capacity_mut().get_mut(..space).ok_or(Failure::TooSmall)?;
    let written = fill(spare)?;
    if written > space {
        return Err(corrupt("the decompressor wrote too much"));
    }
    // SAFETY: `fill` has written `written` bytes from the end of the vector on, inside its spare memory. Every
    // decompressor of this file, and every one in `bytes_to_bytes`, returns what it has written.
    unsafe { vector.set_len(vector.len() + written) };
    Ok(())
}
