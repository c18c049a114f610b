//! Where the chunks of a read are decompressed.
//!
//! 1. The metadata say how many chunks a selection touches, how large they are, and how they are compressed ([`takes`]).
//! 2. The rates of the device and of the host ([`Rates`]) say how many of them each is to decompress ([`split()`]).
//! 3. Within the read each chunk goes where its number says ([`Share`]), so that both begin at once and end together. A chunk that
//!    the device cannot take is decoded on the host.

use crate::decompress::frames::{Frames, LARGEST_FRAME};
use crate::decompress::{Format, decompressor};
use crate::device::Device;
use crate::rates::Rates;
use crate::split::{Alike, Split, split};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zarrow::metadata::CodecMetadata;
use zarrow::{Array, AxisSelection, DataType, Selection, num_threads};

/// About how many bytes a block of Blosc has, where the metadata do not say it.
const LIKELY_BLOCK: u64 = 256 << 10;

/// Where chunks are decompressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// On the host. Every array can be read so, and bad bytes never reach the device's decompressor.
    #[default]
    Host,
    /// On the device, where it can decompress them.
    Device,
    /// On the host, on the device or on both, whatever is likely to be the fastest, as [`explain`] says.
    Auto,
}

/// Who decompresses the chunks of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecompressedBy {
    /// The threads of the host.
    Host,
    /// The device.
    Device,
    /// Some the one, some the other.
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

/// What a read would do, and why.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// Who would decompress.
    pub decompressed_by: DecompressedBy,
    /// Why, in a sentence.
    pub why: String,
    /// The compressor of the chunks; `None` where they have none, or several.
    pub compressor: Option<String>,
    /// How many chunks the selection touches, inner ones where there are shards, at most.
    pub chunks: u64,
    /// Bytes that each decodes to.
    pub chunk_nbytes: u64,
    /// About how many frames there are to decompress.
    pub frames: u64,
    /// Threads of the host that would help.
    pub threads: usize,
    /// How many chunks go where, and how long it is likely to take; `None` where only the host can decompress them.
    pub split: Option<Split>,
    /// The rates that this follows from, of the format of the frames.
    pub rates: Option<Rates>,
}

/// What [`Route::Auto`] would do for `selection` on `device`, and why; without a device, what it would do on one of which only
/// estimates are known. Nothing is read.
#[must_use]
pub fn explain(array: &Array, selection: &Selection, device: Option<&'static Device>) -> Explanation {
    let (chunks, chunk_nbytes) = (touched(array, selection), chunk_nbytes(array));
    let compressor = Compressor::of(array);
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
            return by_host("the device does not decompress what is inside these chunks".to_owned());
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

/// So many of what the noun names.
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

/// Which chunks of a read go to the device: evenly spread, so that both sides have work all the time (step 3).
#[derive(Debug)]
pub struct Share {
    format: Option<Format>,
    on_device: AtomicU64,
    chunks: u64,
    taken: AtomicU64,
    /// What the share follows from, until the first chunk shows how large its frames are; `None` for all of them.
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
    /// All of them, however large.
    #[must_use]
    pub fn all(array: &Array) -> Share {
        let format = Compressor::of(array).and_then(|compressor| compressor.format);
        Share::new(format, 1, 1)
    }

    /// Those of an explanation; `None` for none.
    pub(crate) fn of(array: &Array, explanation: &Explanation) -> Option<Share> {
        let (split, rates) = (explanation.split.filter(|split| split.on_device > 0)?, explanation.rates?);
        let compressor = Compressor::of(array)?;
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

    /// The format of the frames, as the metadata say; `None` for one that the device does not decompress.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    /// The most bytes that the device decompresses a frame to: any where it is asked for.
    pub(crate) fn largest_frame(&self) -> usize {
        self.assumed.as_ref().map_or(usize::MAX, |_| LARGEST_FRAME)
    }

    /// Whether the next chunk goes to the device, whose largest frame has so many bytes. The first one says what was assumed of
    /// all: the blocks of Blosc are known from a chunk alone.
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

/// How many chunks a selection touches, at most.
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

/// Bytes that a chunk decodes to.
fn chunk_nbytes(array: &Array) -> u64 {
    let item_size = array.data_type().item_size().unwrap_or(0) as u64;
    let shape = array.innermost_chunk_shape().unwrap_or_default();
    shape.iter().fold(item_size, |nbytes, extent| nbytes.saturating_mul(*extent))
}

/// What compresses the chunks that are decoded by themselves: checksums do not.
fn compressors(array: &Array) -> Vec<CodecMetadata> {
    let mut compressors = array.codec_stages().map(|stages| stages.compressors).unwrap_or_default();
    compressors.retain(|codec| codec.name != "crc32c");
    compressors
}

/// The one compressor of the chunks that are decoded by themselves.
struct Compressor {
    name: String,
    /// Of its frames; `None` where no device decompresses them.
    format: Option<Format>,
    /// Bytes of a block of Blosc.
    block_nbytes: Option<u64>,
}

impl Compressor {
    fn of(array: &Array) -> Option<Compressor> {
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

    /// About how many bytes a frame of a chunk decodes to.
    fn largest_frame(&self, chunk_nbytes: u64) -> u64 {
        self.block_nbytes.map_or(chunk_nbytes, |block_nbytes| block_nbytes.min(chunk_nbytes))
    }
}

/// Whether the device can decompress chunks of the selection, as far as the metadata tell, whose frames decode to at most
/// `largest_frame` bytes.
///
/// # Errors
/// Why it cannot, in a sentence.
pub(crate) fn takes(array: &Array, selection: &Selection, largest_frame: usize) -> Result<(), String> {
    let no = |why: &str| Err(format!("{why}: decompress=\"host\" reads this"));
    if array.data_type().item_size().is_none() || matches!(array.data_type(), DataType::Optional(_)) {
        let why = "elements of no fixed size, or that may be missing, have no layout on a device: read without device=";
        return Err(why.to_owned());
    }
    if selection.axes().iter().any(|axis| !matches!(axis, AxisSelection::Even { .. })) {
        return no(
            "the selection has points, or a list of positions without a constant step, which the device does not place",
        );
    }
    let Some(Compressor { name, .. }) = Compressor::of(array) else {
        return match compressors(array).is_empty() {
            true => no("the chunks are not compressed"),
            false => no("several codecs compress the chunks, and the device undoes one"),
        };
    };
    let format = Frames::format_of(&name);
    if format.is_none() && name != "blosc" {
        return no(&format!("the device decompresses zstd, lz4, gzip, zlib and blosc, and not {name}"));
    }
    let chunk_nbytes = chunk_nbytes(array);
    let most = format.map_or(u64::MAX, |format| format.largest_frame().min(largest_frame as u64));
    if chunk_nbytes > most {
        let why = format!(
            "each chunk is one frame of {chunk_nbytes} bytes, and the device decompresses at most {most} at once"
        );
        return no(&why);
    }
    if !array.hands_over(selection) {
        return no("the elements are filtered, or structures in the other byte order");
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
    fn the_first_chunk_says_how_large_its_frames_are() {
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
        assert!(taken(&share(), 100, 1 << 10) > 80, "as it was assumed");
        // A block of a megabyte would take the device ten seconds.
        assert_eq!(taken(&share(), 100, 1 << 20), 0);
    }
}
