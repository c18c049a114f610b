//! The compressors inside Blosc: each takes a block or a plane of a block, and may fail to make it smaller.
//!
//! The worker owns their tables. BloscLZ and LZ4 keep tables on the stack.

use crate::codec::Codecs;
use crate::codec::Uninit;
use crate::codec::bytes_to_bytes::libdeflate::DeflateContainer;
use crate::codec::bytes_to_bytes::lz4;
use crate::codec::failure::{Failure, Refusal};
use crate::error::{ErrorKind, Result};
// Only to link its library, which contains BloscLZ.
use blosc_src as _;
use std::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    // From c-blosc (`blosclz.h`), which hides them from programs that link it as a shared library; `blosc-src` is
    // pinned for them. Neither allocates.
    fn blosclz_compress(
        level: c_int,
        input: *const c_void,
        length: c_int,
        output: *mut c_void,
        room: c_int,
        is_split: c_int,
    ) -> c_int;
    fn blosclz_decompress(input: *const c_void, length: c_int, output: *mut c_void, room: c_int) -> c_int;

    // From LZ4 (`lz4hc.h`): `LZ4_compress_HC` with tables that the caller allocates.
    fn LZ4_sizeofStateHC() -> c_int;
    fn LZ4_compress_HC_extStateHC(
        state: *mut c_void,
        source: *const c_char,
        destination: *mut c_char,
        length: c_int,
        room: c_int,
        level: c_int,
    ) -> c_int;
}

/// Inner compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// BloscLZ, c-blosc's own.
    BloscLz,
    /// LZ4.
    Lz4,
    /// LZ4 HC, which searches longer.
    Lz4Hc,
    /// Deflate in a zlib container.
    Zlib,
    /// Zstandard.
    Zstd,
}

/// Format of a compressor's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// BloscLZ's.
    BloscLz,
    /// LZ4's, for both variants.
    Lz4,
    /// zlib's.
    Zlib,
    /// Zstandard's.
    Zstd,
}

impl Compressor {
    /// Returns the compressor that a codec's configuration names; LZ4 by default.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`]; [`ErrorKind::Unsupported`] for snappy.
    pub fn named(name: Option<&str>) -> Result<Compressor> {
        Ok(match name {
            None | Some("lz4") => Compressor::Lz4,
            Some("lz4hc") => Compressor::Lz4Hc,
            Some("blosclz") => Compressor::BloscLz,
            Some("zlib") => Compressor::Zlib,
            Some("zstd") => Compressor::Zstd,
            Some("snappy") => {
                let text = "Blosc with snappy: use cname \"lz4\" or \"zstd\"";
                return Err(ErrorKind::Unsupported(text.into()).into());
            }
            Some(other) => {
                return Err(ErrorKind::BadCodec(format!(
                    "cname is {other:?}, expected \"blosclz\", \"lz4\", \"lz4hc\", \"zlib\" or \"zstd\""
                ))
                .into());
            }
        })
    }

    /// Returns the format of the output.
    pub fn format(self) -> Format {
        match self {
            Compressor::BloscLz => Format::BloscLz,
            Compressor::Lz4 | Compressor::Lz4Hc => Format::Lz4,
            Compressor::Zlib => Format::Zlib,
            Compressor::Zstd => Format::Zstd,
        }
    }

    /// Returns whether the compressor favours size over speed.
    pub fn is_thorough(self) -> bool {
        matches!(self, Compressor::Lz4Hc | Compressor::Zlib | Compressor::Zstd)
    }

    /// Returns the size of its tables in bytes, if the caller provides their memory.
    pub fn tables_nbytes(self) -> usize {
        match self {
            // SAFETY: the function returns a number.
            Compressor::Lz4Hc => unsafe { LZ4_sizeofStateHC() as usize + align_of::<u64>() },
            _ => 0,
        }
    }

    /// Compresses `source` to the start of `destination`; returns the bytes written, `None` if they do not fit.
    /// `tables` have [`tables_nbytes`](Compressor::tables_nbytes).
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`]; [`Refusal::Unsupported`] for 2 GiB or more.
    pub fn compress(
        self,
        (level, is_split): (u8, bool),
        source: &[u8],
        destination: &mut Uninit,
        tables: &mut Uninit,
        codecs: &mut Codecs,
    ) -> std::result::Result<Option<usize>, Refusal> {
        let no_memory = || Refusal::OutOfMemory { nbytes: source.len() };
        let [Ok(length), Ok(room)] = [source.len(), destination.len()].map(c_int::try_from) else {
            return Err("a Blosc block must be smaller than 2 GiB".into());
        };
        let level_number = c_int::from(level);
        let (from, to) = (source.as_ptr(), destination.as_mut_ptr());
        let written = match self {
            Compressor::Zlib => {
                // libdeflate's output is as small as zlib's at the same level, except at the lowest levels, where
                // libdeflate only finds longer matches. Adding two levels there takes no longer than zlib.
                let level = if level < 4 { level_number + 2 } else { level_number };
                let deflate = codecs.deflate_compressor(level).ok_or_else(no_memory)?;
                return Ok(deflate.compress_within(DeflateContainer::Zlib, source, destination));
            }
            Compressor::Zstd => {
                // Nine levels for zstd's twenty-two, as in c-blosc.
                let level = if level < 9 { level_number * 2 - 1 } else { zstd_safe::max_c_level() };
                let zstd = codecs.zstd_compressor().ok_or_else(no_memory)?;
                return zstd.compress_within(level, source, destination);
            }
            // SAFETY: both ranges are from slices, the second exclusive, and the function stays inside both.
            Compressor::BloscLz => unsafe {
                blosclz_compress(level_number, from.cast(), length, to.cast(), room, is_split.into())
            },
            // SAFETY: as above.
            Compressor::Lz4 => unsafe {
                lz4_sys::LZ4_compress_fast(from.cast(), to.cast(), length, room, 10 - level_number)
            },
            Compressor::Lz4Hc => {
                let aligned = tables.as_ptr().align_offset(align_of::<u64>());
                let tables = tables.get_mut(aligned..).ok_or_else(no_memory)?;
                // SAFETY: as above; the tables are aligned, exclusive, and as large as LZ4 says, with a few extra bytes
                // for their alignment.
                unsafe {
                    let tables = tables.as_mut_ptr().cast();
                    LZ4_compress_HC_extStateHC(tables, from.cast(), to.cast(), length, room, level_number)
                }
            }
        };
        match usize::try_from(written) {
            Ok(0) | Err(_) => Ok(None),
            Ok(written) => Ok(Some(written)),
        }
    }
}

impl Format {
    /// Returns the format for the number in a header.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] for snappy, [`Failure::Corrupt`] for an unknown number.
    pub fn numbered(number: u8) -> std::result::Result<Format, Failure> {
        match number {
            0 => Ok(Format::BloscLz),
            1 => Ok(Format::Lz4),
            2 => Err(Failure::Unsupported("Blosc with snappy".into())),
            3 => Ok(Format::Zlib),
            4 => Ok(Format::Zstd),
            _ => Err(Failure::Corrupt(format!("unknown Blosc compressor {number}"))),
        }
    }

    /// Returns the number in a header.
    pub fn number(self) -> u8 {
        match self {
            Format::BloscLz => 0,
            Format::Lz4 => 1,
            Format::Zlib => 3,
            Format::Zstd => 4,
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Format::BloscLz => "BloscLZ",
            Format::Lz4 => "LZ4",
            Format::Zlib => "zlib",
            Format::Zstd => "zstd",
        }
    }

    /// Decompresses to the start of `destination`; returns the bytes written.
    pub fn decompress(
        self,
        source: &[u8],
        destination: &mut Uninit,
        codecs: &mut Codecs,
    ) -> std::result::Result<usize, Failure> {
        match self {
            Format::Lz4 => lz4::decompress(source, destination),
            Format::Zstd => codecs.zstd().ok_or(Failure::OutOfMemory)?.decompress(source, destination),
            Format::Zlib => {
                let deflate = codecs.deflate().ok_or(Failure::OutOfMemory)?;
                Ok(deflate.decompress(DeflateContainer::Zlib, source, destination)?.1)
            }
            Format::BloscLz => {
                let [Ok(length), Ok(room)] = [source.len(), destination.len()].map(c_int::try_from) else {
                    return Err(Failure::Corrupt("a Blosc block must be smaller than 2 GiB".into()));
                };
                let (from, to) = (source.as_ptr(), destination.as_mut_ptr());
                // SAFETY: both ranges are from slices, the second exclusive, and the function stays inside both.
                let written = unsafe { blosclz_decompress(from.cast(), length, to.cast(), room) };
                usize::try_from(written).map_err(|_| Failure::Corrupt("not a valid BloscLZ block".into()))
            }
        }
    }
}
