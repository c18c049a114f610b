//! nvCOMP, NVIDIA's library of decompressors, loaded at run time from the user's own wheel (`nvidia-libnvcomp-cu12`
//! or `-cu13`, 5.1 or later).
//!
//! Its batched functions have the same signatures in versions 5 and 6, except the one that returns the temporary
//! memory of a batch. Options are 64 bytes, all zero for the defaults.
//!
//! Source: the headers of nvCOMP 5.3 and 6.0. `software_nvcomp` implements these functions against the headers
//! themselves, so that a compiler checks names, types and sizes.

use super::format::Format;
use super::{Decompressor, Frames};
use crate::device::Device;
use crate::driver::functions::{Address, StreamHandle};
use crate::driver::library::Library;
use crate::error::{Error, Result};
use crate::stream::Stream;
use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use zarrow_array::fork::{Mutex, OnceCell};

/// Environment variable with the path of the library.
const LIBRARY_VARIABLE: &str = "ZARROW_NVCOMP";
/// Names that the loader searches for.
const NAMES: [&str; 2] = ["libnvcomp.so.6", "libnvcomp.so.5"];

static PATHS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Adds a possible path of the library, before its first use.
pub fn add_path(path: &str) {
    let mut paths = PATHS.lock();
    if !paths.iter().any(|known| known == path) {
        paths.push(path.to_owned());
    }
}

/// `nvcompBatched…DecompressOpts_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Options([c_int; 16]);

const DEFAULTS: Options = Options([0; 16]);

/// `nvcompAlignmentRequirements_t`: alignment of the input, the output and the temporary memory, in bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alignments {
    /// Alignment of each frame.
    pub input: usize,
    /// Alignment of each destination.
    pub output: usize,
    /// Alignment of the temporary memory.
    pub temporary: usize,
}

/// `nvcompProperties_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Properties {
    version: u32,
    runtime: u32,
}

type GetProperties = unsafe extern "C" fn(*mut Properties) -> c_int;
type GetAlignments = unsafe extern "C" fn(Options, *mut Alignments) -> c_int;
type TemporarySize5 = unsafe extern "C" fn(usize, usize, Options, *mut usize, usize) -> c_int;
type TemporarySize6 = unsafe extern "C" fn(usize, usize, Options, *mut usize, usize, StreamHandle) -> c_int;
type Decompress = unsafe extern "C" fn(
    Address,
    Address,
    Address,
    Address,
    usize,
    Address,
    usize,
    Address,
    Options,
    Address,
    StreamHandle,
) -> c_int;

#[derive(Debug, Clone, Copy)]
enum TemporarySize {
    Version5(TemporarySize5),
    Version6(TemporarySize6),
}

/// The functions of one format.
#[derive(Debug, Clone, Copy)]
struct Functions {
    alignments: Alignments,
    temporary_size: TemporarySize,
    decompress: Decompress,
}

/// The library.
#[derive(Debug)]
pub struct Nvcomp {
    version: u32,
    /// Functions of each format, in the order of [`Format::ALL`]; `None` if the library lacks some of the
    /// functions.
    formats: [Option<Functions>; Format::ALL.len()],
}

impl Nvcomp {
    /// Returns the library, loading it at the first call.
    ///
    /// # Errors
    /// The reason why it is missing.
    pub fn get() -> std::result::Result<&'static Nvcomp, String> {
        static LIBRARY: OnceCell<std::result::Result<Nvcomp, String>> = OnceCell::new();
        LIBRARY.get_or_make(Nvcomp::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> std::result::Result<Nvcomp, String> {
        let named = std::env::var(LIBRARY_VARIABLE).ok().filter(|name| !name.is_empty());
        let added = PATHS.lock().clone();
        let is_named = named.is_some();
        let names = named.into_iter().chain(added).chain(NAMES.map(str::to_owned));
        let mut reasons = Vec::new();
        for name in names {
            match Library::open(&name).and_then(|library| Nvcomp::from_library(&library)) {
                Ok(nvcomp) => return Ok(nvcomp),
                Err(reason) => reasons.push(reason),
            }
            if is_named {
                break;
            }
        }
        let advice = match is_named {
            true => "check the path in ZARROW_NVCOMP",
            false => "pip install nvidia-libnvcomp-cu13 (or -cu12)",
        };
        Err(format!("{}: {advice}", reasons.join("; ")))
    }

    /// Looks up the functions of `library`.
    fn from_library(library: &Library) -> std::result::Result<Nvcomp, String> {
        let mut properties = Properties::default();
        // SAFETY: the library declares the function so; the struct lives through the call.
        let status = unsafe {
            let properties_of: GetProperties = find(library, "nvcompGetProperties")?;
            properties_of(&raw mut properties)
        };
        // A version is encoded as 6000 for 6.0.0, or 50300 for 5.3.0.
        let major = if properties.version >= 10_000 {
            properties.version / 10_000
        } else {
            properties.version / 1000
        };
        if status != 0 || !(5..=6).contains(&major) {
            return Err(format!("unsupported nvCOMP version {}: expected 5 or 6", properties.version));
        }
        let formats = Format::ALL.map(|format| Functions::find(library, format));
        match &formats {
            // If all formats fail, the first error names a missing function.
            [Err(reason), ..] if formats.iter().all(|found| found.is_err()) => Err(reason.clone()),
            _ => Ok(Nvcomp { version: properties.version, formats: formats.map(|found| found.ok()) }),
        }
    }

    /// Returns the library's encoded version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    fn functions(&self, format: Format) -> Result<&Functions> {
        let found = Format::ALL.iter().zip(&self.formats).find(|(known, _)| **known == format);
        found.and_then(|(_, functions)| functions.as_ref()).ok_or_else(|| {
            Error::Unsupported(format!("this version of nvCOMP does not decompress {}", format.name()))
        })
    }

    /// Returns the alignment of frames and memory.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the library does not decompress the format.
    pub fn alignments(&self, format: Format) -> Result<Alignments> {
        self.functions(format).map(|functions| functions.alignments)
    }
}

impl Functions {
    fn find(library: &Library, format: Format) -> std::result::Result<Functions, String> {
        let name = |function: &str| {
            let format = match format {
                Format::Zstd => "Zstd",
                Format::Lz4 => "LZ4",
                Format::Deflate => "Deflate",
                Format::Gzip => "Gzip",
                Format::Snappy => "Snappy",
            };
            format!("nvcompBatched{format}{function}")
        };
        let mut alignments = Alignments::default();
        // SAFETY: the headers of both versions declare functions of these names so. The struct lives through the
        // call.
        let (functions, status) = unsafe {
            let alignments_of: GetAlignments = find(library, &name("DecompressGetRequiredAlignments"))?;
            let status = alignments_of(DEFAULTS, &raw mut alignments);
            let temporary_size = match find(library, &name("DecompressGetTempSizeAsync")) {
                Ok(function) => TemporarySize::Version5(function),
                Err(_) => TemporarySize::Version6(find(library, &name("DecompressGetTempSize"))?),
            };
            let decompress = find(library, &name("DecompressAsync"))?;
            (Functions { alignments, temporary_size, decompress }, status)
        };
        if status != 0 {
            return Err(format!("{}: error {status}", name("DecompressGetRequiredAlignments")));
        }
        Ok(functions)
    }
}

/// Returns the function `name`.
///
/// # Safety
/// The library must declare it as `F`, a function pointer.
unsafe fn find<F: Copy>(library: &Library, name: &str) -> std::result::Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let symbol = CString::new(name).map_err(|_| name.to_owned())?;
    let address = library.function(&symbol).ok_or_else(|| format!("nvCOMP has no function {name}"))?;
    // SAFETY: both are addresses; the rest is the caller's contract.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

fn check(function: &'static str, status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        code => {
            let text = "see nvcompStatus_t in nvCOMP's documentation".to_owned();
            Err(Error::Driver { function, code, name: "an error of nvCOMP".to_owned(), text })
        }
    }
}

impl Decompressor for Nvcomp {
    fn takes(&self, format: Format) -> bool {
        self.functions(format).is_ok()
    }

    fn source_alignment(&self, format: Format) -> usize {
        self.functions(format).map_or(1, |functions| functions.alignments.input.max(1))
    }

    fn temporary_nbytes(&self, frames: &Frames) -> Result<usize> {
        let Frames { format, count, largest, total, .. } = *frames;
        let functions = self.functions(format)?;
        let mut nbytes = 0;
        // SAFETY: the number lives through the call; this host function does not use the stream.
        let status = unsafe {
            match functions.temporary_size {
                TemporarySize::Version5(function) => {
                    function(count, largest, DEFAULTS, &raw mut nbytes, total)
                }
                TemporarySize::Version6(function) => {
                    function(count, largest, DEFAULTS, &raw mut nbytes, total, null_mut())
                }
            }
        };
        check("DecompressGetTempSize", status).map(|()| nbytes)
    }

    unsafe fn decompress(
        &self,
        frames: &Frames,
        temporary: Address,
        temporary_nbytes: usize,
        (device, stream): (&'static Device, Stream),
    ) -> Result<()> {
        let functions = self.functions(frames.format)?;
        let _current = device.enter()?;
        // SAFETY: the caller's contract; the device's context is current.
        let status = unsafe {
            (functions.decompress)(
                frames.sources,
                frames.source_nbytes,
                frames.destination_nbytes,
                frames.written,
                frames.count,
                temporary,
                temporary_nbytes,
                frames.destinations,
                DEFAULTS,
                frames.statuses,
                stream.handle(),
            )
        };
        check("DecompressAsync", status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_as_large_as_the_headers_say() {
        assert_eq!((size_of::<Options>(), align_of::<Options>()), (64, 4));
        assert_eq!(size_of::<Alignments>(), 24);
    }

    /// These calls need no device.
    #[test]
    #[ignore = "needs the library at ZARROW_NVCOMP: make test-kernels installs it"]
    fn the_library_reports_the_memory_of_a_batch() {
        let name = std::env::var(LIBRARY_VARIABLE).unwrap();
        let nvcomp = Nvcomp::from_library(&Library::open(&name).unwrap()).unwrap();
        for format in Format::ALL {
            assert!(nvcomp.takes(format));
            let alignments = nvcomp.alignments(format).unwrap();
            // The software library has the same requirements.
            let input = if format == Format::Deflate { 4 } else { 1 };
            let temporary = if format == Format::Zstd { 8 } else { 1 };
            assert_eq!(alignments, Alignments { input, output: 1, temporary }, "{format:?}");
            let frames = Frames {
                format,
                count: 64,
                sources: 0,
                source_nbytes: 0,
                destinations: 0,
                destination_nbytes: 0,
                written: 0,
                statuses: 0,
                largest: 1 << 20,
                total: 64 << 20,
            };
            let nbytes = nvcomp.temporary_nbytes(&frames).unwrap();
            // zstd needs about three times the decompressed size, the others need nothing.
            let expected = if format == Format::Zstd { 64 << 20..512 << 20 } else { 0..1 << 20 };
            assert!(expected.contains(&nbytes), "{format:?}: {nbytes}");
        }
    }
}
