//! Choice of where the chunks of a read are decompressed.
//!
//! 1. The metadata give the number of chunks in a selection, their size and compression ([`takes`]).
//! 2. The rates of the device and of the host ([`Rates`]) give the number of chunks for each ([`split()`]).
//! 3. Within the read each chunk is assigned by its number ([`Share`]), so that both sides begin and end at the
//!    same time. A chunk that the device cannot take is decoded on the host.

use crate::decompress::frames::{Frames, LARGEST_FRAME};
use crate::decompress::{Format, decompressor};
use crate::device::Device;
use crate::rates::Rates;
use crate::split::{Alike, Split, split};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zarrow::metadata::CodecMetadata;
use zarrow::{Array, AxisSelection, DataType, Selection, num_threads};

/// Assumed size of a Blosc block, if the metadata lack it.
const LIKELY_BLOCK: u64 = 256 << 10;

/// Where to decompress chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// On the host. This works for every array, and corrupt bytes never reach the device's decompressor.
    #[default]
    Host,
    /// On the device, if it supports the compression.
    Device,
    /// On the host, on the device or on both, whichever is likely to be fastest, see [`explain`].
    Auto,
}

/// Where the chunks of a read are decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecompressedBy {
    /// By the threads of the host.
    Host,
    /// By the device.
    Device,
    /// By both.
    Both,
}

impl fmt::Display for DecompressedBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            DecompressedBy::Host => "host",
            DecompressedBy::Device => "device",
            DecompressedBy::Both => "both",
        })
    }
}

/// The decision for a read, with its reasons.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// Where the chunks would be decompressed.
    pub decompressed_by: DecompressedBy,
    /// The reason, in a sentence.
    pub why: String,
    /// Compressor of the chunks; `None` without a compressor, or with several.
    pub compressor: Option<String>,
    /// Upper bound of the number of chunks in the selection; with shards, of inner chunks.
    pub chunks: u64,
    /// Decoded bytes per chunk.
    pub chunk_nbytes: u64,
    /// Approximate number of frames to decompress.
    pub frames: u64,
    /// Number of host threads that would help.
    pub threads: usize,
    /// Numbers of chunks by place, and estimated times; `None` if only the host can decompress them.
    pub split: Option<Split>,
    /// Rates that the decision is based on, for the format of the frames.
    pub rates: Option<Rates>,
}

/// Explains the decision of [`Route::Auto`] for `selection` on `device`; without a device, for one with estimated
/// rates only. Reads nothing.
#[must_use]
pub fn explain(array: &Array, selection: &Selection, device: Option<&'static Device>) -> Explanation {
    let (chunks, chunk_nbytes) = (touched(array, selection), chunk_nbytes(array));
    let compressor = Compressor::from_array(array);
    let largest_frame =
        compressor.as_ref().map_or(chunk_nbytes, |compressor| compressor.largest_frame(chunk_nbytes));
    let frames = chunks.saturating_mul(chunk_nbytes.div_ceil(largest_frame.max(1)).max(1));
    let threads = num_threads();
    let format = compressor.as_ref().and_then(|compressor| compressor.format);
    let rates =
        format.map(|format| device.map_or_else(|| Rates::estimate(format), |device| device.rates(format)));
    let name = compressor.map(|compressor| compressor.name);
    let by_host = |why: String| Explanation {
        decompressed_by: DecompressedBy::Host,
        why,
        compressor: name.clone(),
        chunks,
        chunk_nbytes,
        frames,
        threads,
        split: None,
        rates: None,
    };
    let rates = match (takes(array, selection, LARGEST_FRAME), rates, decompressor()) {
        (Err(why), ..) => return by_host(why),
        (_, None, _) => {
            return by_host("the device does not support the format inside these chunks".to_owned());
        }
        (.., Err(error)) => return by_host(error.to_string()),
        (_, Some(rates), Ok(_)) => rates,
    };
    let split = split(&[Alike { chunks, nbytes: chunk_nbytes, largest_frame }], &rates, threads);
    let (decompressed_by, outcome) = match split {
        Split { on_device: 0, .. } => (DecompressedBy::Host, "the host decompresses all".to_owned()),
        Split { on_host: 0, .. } => (DecompressedBy::Device, "the device decompresses all".to_owned()),
        Split { on_device, seconds, .. } => {
            let part = format!("the device decompresses {on_device} of them, and the host the rest");
            (DecompressedBy::Both, format!("{part}, together in {}", Milliseconds(seconds)))
        }
    };
    let why = format!(
        "{} with about {} of {largest_frame} bytes would take the device {}, and {} of the host {}: {outcome}",
        Counted(chunks, "chunk"),
        Counted(frames, "frame"),
        Milliseconds(split.device_seconds),
        Counted(threads as u64, "thread"),
        Milliseconds(split.host_seconds),
    );
    Explanation { decompressed_by, split: Some(split), rates: Some(rates), ..by_host(why) }
}

/// A count with its noun.
struct Counted(u64, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted(count, noun) = self;
        write!(formatter, "{count} {noun}{}", if *count == 1 { "" } else { "s" })
    }
}

struct Milliseconds(f64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3} ms", self.0 * 1e3)
    }
}

/// Assignment of a read's chunks to the device: evenly spread, so that both sides always have work (step 3).
#[derive(Debug)]
pub(crate) struct Share {
    format: Option<Format>,
    on_device: AtomicU64,
    chunks: u64,
    taken: AtomicU64,
    /// Assumptions of the share, until the first chunk shows the size of its frames; `None` if all chunks go to the
    /// device.
    assumed: Option<Assumed>,
    is_known: AtomicBool,
}

#[derive(Debug)]
struct Assumed {
    alike: Alike,
    rates: Rates,
    threads: usize,
}

impl Share {
    /// Assigns all chunks to the device, of any size.
    pub(crate) fn all(array: &Array) -> Share {
        let format = Compressor::from_array(array).and_then(|compressor| compressor.format);
        Share::new(format, 1, 1)
    }

    /// Creates the share of an explanation; `None` if the device gets no chunks.
    pub(crate) fn from_array(array: &Array, explanation: &Explanation) -> Option<Share> {
        let (split, rates) = (explanation.split.filter(|split| split.on_device > 0)?, explanation.rates?);
        let compressor = Compressor::from_array(array)?;
        let Explanation { chunks, chunk_nbytes: nbytes, threads, .. } = *explanation;
        let alike = Alike { chunks, nbytes, largest_frame: compressor.largest_frame(nbytes) };
        let share = Share::new(compressor.format, split.on_device, chunks);
        Some(Share { assumed: Some(Assumed { alike, rates, threads }), ..share })
    }

    fn new(format: Option<Format>, on_device: u64, chunks: u64) -> Share {
        Share {
            format,
            on_device: AtomicU64::new(on_device),
            chunks,
            taken: AtomicU64::new(0),
            assumed: None,
            is_known: AtomicBool::new(false),
        }
    }

    /// Returns the format of the frames from the metadata; `None` if the device does not support it.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    /// Returns the maximum frame size for the device: unlimited if the caller asked for the device.
    pub(crate) fn largest_frame(&self) -> usize {
        self.assumed.as_ref().map_or(usize::MAX, |_| LARGEST_FRAME)
    }

    /// Returns whether the next chunk goes to the device, given its largest frame. The first chunk corrects the
    /// assumptions: Blosc's block size is only known from a chunk.
    pub(crate) fn is_next_on_device(&self, largest_frame: u64) -> bool {
        if let Some(Assumed { alike, rates, threads }) = &self.assumed
            && !self.is_known.swap(true, Ordering::Relaxed)
            && largest_frame != alike.largest_frame
        {
            let known = split(&[Alike { largest_frame, ..*alike }], rates, *threads);
            self.on_device.store(known.on_device, Ordering::Relaxed);
        }
        let number = u128::from(self.taken.fetch_add(1, Ordering::Relaxed));
        let on_device = u128::from(self.on_device.load(Ordering::Relaxed));
        let before = |number: u128| number * on_device / u128::from(self.chunks.max(1));
        before(number + 1) > before(number)
    }
}

/// Returns an upper bound of the number of chunks in a selection.
fn touched(array: &Array, selection: &Selection) -> u64 {
    let shape = array.innermost_chunk_shape().unwrap_or_default();
    let touched = selection.axes().iter().zip(&shape).map(|(axis, extent)| {
        let (count, extent) = (axis.count(), (*extent).max(1));
        match axis {
            AxisSelection::Even { .. } if count > 0 => {
                let (first, last) = (axis.position(0) / extent, axis.position(count - 1) / extent);
                count.min(first.abs_diff(last) + 1)
            }
            _ => count,
        }
    });
    touched.fold(u64::from(!shape.is_empty()), u64::saturating_mul)
}

/// Returns the decoded bytes of a chunk.
fn chunk_nbytes(array: &Array) -> u64 {
    let item_size = array.data_type().item_size().unwrap_or(0) as u64;
    let shape = array.innermost_chunk_shape().unwrap_or_default();
    shape.iter().fold(item_size, |nbytes, extent| nbytes.saturating_mul(*extent))
}

/// Returns the compressors of separately decoded chunks, without checksums.
fn compressors(array: &Array) -> Vec<CodecMetadata> {
    let mut compressors = array.codec_stages().map(|stages| stages.compressors).unwrap_or_default();
    compressors.retain(|codec| codec.name != "crc32c");
    compressors
}

/// The only compressor of separately decoded chunks.
struct Compressor {
    name: String,
    /// Format of its frames; `None` if the device does not support it.
    format: Option<Format>,
    /// Bytes of a Blosc block.
    block_nbytes: Option<u64>,
}

impl Compressor {
    fn from_array(array: &Array) -> Option<Compressor> {
        let compressors = compressors(array);
        let [only] = compressors.as_slice() else { return None };
        let setting = |name: &str| only.configuration.get(name);
        let name = only.name.trim_start_matches("numcodecs.").to_owned();
        let inside = match setting("cname").and_then(|cname| cname.as_str()) {
            Some("lz4hc") if name == "blosc" => "lz4",
            Some(cname) if name == "blosc" => cname,
            _ => &*name,
        };
        let format = Frames::format_of(inside);
        let given = setting("blocksize").and_then(|nbytes| nbytes.as_u64()).filter(|nbytes| *nbytes > 0);
        let block_nbytes = (name == "blosc").then(|| given.unwrap_or(LIKELY_BLOCK));
        Some(Compressor { name, format, block_nbytes })
    }

    /// Returns the approximate decoded size of a chunk's frames.
    fn largest_frame(&self, chunk_nbytes: u64) -> u64 {
        self.block_nbytes.map_or(chunk_nbytes, |block_nbytes| block_nbytes.min(chunk_nbytes))
    }
}

/// Checks with the metadata whether the device can decompress chunks of the selection, with frames of at most
/// `largest_frame` decoded bytes.
pub(crate) fn takes(array: &Array, selection: &Selection, largest_frame: usize) -> Result<(), String> {
    let no = |why: &str| Err(format!("{why}: use decompress=\"host\""));
    if array.data_type().item_size().is_none() || matches!(array.data_type(), DataType::Optional(_)) {
        let why = "variable-length and optional elements are not supported on a device: read without device=";
        return Err(why.to_owned());
    }
    if selection.axes().iter().any(|axis| !matches!(axis, AxisSelection::Even { .. })) {
        return no(
            "the device does not support selections with points, or with positions without a constant step",
        );
    }
    let Some(Compressor { name, .. }) = Compressor::from_array(array) else {
        return match compressors(array).is_empty() {
            true => no("the chunks are not compressed"),
            false => no("several codecs compress the chunks, but the device supports only one"),
        };
    };
    let format = Frames::format_of(&name);
    if format.is_none() && name != "blosc" {
        return no(&format!("the device decompresses zstd, lz4, gzip, zlib and blosc, not {name}"));
    }
    let chunk_nbytes = chunk_nbytes(array);
    let most = format.map_or(u64::MAX, |format| format.largest_frame().min(largest_frame as u64));
    if chunk_nbytes > most {
        let why = format!(
            "each chunk is one frame of {chunk_nbytes} bytes, but the device decompresses at most {most} at once"
        );
        return no(&why);
    }
    if !array.hands_over(selection) {
        return no("the elements are filtered, or are non-native-endian structures");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::Mean;

    fn taken(share: &Share, chunks: usize, largest_frame: u64) -> usize {
        (0..chunks).filter(|_| share.is_next_on_device(largest_frame)).count()
    }

    #[test]
    fn a_share_is_spread_evenly() {
        let share = Share::new(Some(Format::Zstd), 3, 8);
        assert_eq!((taken(&share, 4, 1), taken(&share, 4, 1)), (1, 2));
        assert_eq!(taken(&share, 80, 1), 30);
        assert_eq!(taken(&Share::new(Some(Format::Zstd), 1, 1), 100, 1), 100);
        assert_eq!(taken(&Share::new(Some(Format::Zstd), 0, 5), 100, 1), 0);
    }

    #[test]
    fn the_first_chunk_corrects_the_assumed_frame_size() {
        let mean = Mean::estimate;
        let rates = Rates {
            device: mean(1e9),
            device_frame: mean(1e5),
            link: mean(1e12),
            host_thread: mean(1e8),
            ratio: mean(2.0),
        };
        let alike = Alike { chunks: 100, nbytes: 1 << 20, largest_frame: 1 << 10 };
        let share = || {
            let share = Share::new(Some(Format::Lz4), split(&[alike], &rates, 1).on_device, 100);
            Share { assumed: Some(Assumed { alike, rates, threads: 1 }), ..share }
        };
        assert!(taken(&share(), 100, 1 << 10) > 80, "the assumption holds");
        // A block of a megabyte would take the device ten seconds.
        assert_eq!(taken(&share(), 100, 1 << 20), 0);
    }
}
