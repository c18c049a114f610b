//! Where the chunks of a read are decompressed.
//!
//! The host is right unless the device has much to do at once: a frame is decompressed by one block of threads, slower than by
//! one core of the host, and a device has hundreds of such blocks. So the device is chosen where there are many frames and
//! none is large. Chunks that it cannot take are decoded on the host within the same read.

use crate::decompress::{decompressor, frames::LARGEST_FRAME};
use zarrow::{Array, AxisSelection, DataType, Selection};

/// The fewest chunks for which the device is chosen, where each is a frame.
const FEWEST_FRAMES: u64 = 256;
/// About how many bytes a block of Blosc has, each of which is a frame at least.
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
    /// Where it is likely to be faster, as [`explain`] says.
    Auto,
}

/// What a read would do, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// [`Route::Host`] or [`Route::Device`].
    pub route: Route,
    /// Why, in a sentence.
    pub why: String,
    /// The compressor of the chunks; `None` where they have none, or several.
    pub compressor: Option<String>,
    /// How many chunks the selection touches, inner ones where there are shards, at most.
    pub chunks: u64,
    /// Bytes that each decodes to.
    pub chunk_nbytes: u64,
    /// About how many frames the device would decompress.
    pub frames: u64,
}

/// What [`Route::Auto`] would do for `selection`, and why. Nothing is read.
#[must_use]
pub fn explain(array: &Array, selection: &Selection) -> Explanation {
    let shape = array.chunk_shape().unwrap_or_default();
    let item_size = array.data_type().item_size().unwrap_or(0) as u64;
    let chunk_nbytes = shape.iter().fold(item_size, |nbytes, extent| nbytes.saturating_mul(*extent));
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
    let chunks = touched.fold(u64::from(!shape.is_empty()), u64::saturating_mul);
    let compressor = compressor_of(array).map(|codec| codec.0);
    let each = match compressor.as_deref() {
        Some("blosc") => chunk_nbytes.div_ceil(LIKELY_BLOCK).max(1),
        _ => 1,
    };
    let frames = chunks.saturating_mul(each);
    let host = |why: String| (Route::Host, why);
    let (route, why) = match (takes(array, selection), decompressor()) {
        (Err(why), _) => host(why),
        (Ok(()), _) if frames < FEWEST_FRAMES => host(format!(
            "about {frames} of {FEWEST_FRAMES} frames that would keep the device busy: it would be idle"
        )),
        (Ok(()), Err(error)) => host(error.to_string()),
        (Ok(()), Ok(_)) => (Route::Device, format!("the frames, about {frames}, keep the device busy")),
    };
    Explanation { route, why, compressor, chunks, chunk_nbytes, frames }
}

/// Whether the device can decompress chunks of the selection, as far as the metadata tell.
///
/// # Errors
/// Why it cannot, in a sentence.
pub(crate) fn takes(array: &Array, selection: &Selection) -> Result<(), String> {
    let no = |why: &str| Err(format!("{why}: the host decompresses, as decompress=\"host\" says"));
    if array.data_type().item_size().is_none() || matches!(array.data_type(), DataType::Optional(_)) {
        return no("elements of no fixed size, or that may be missing, have no layout on a device");
    }
    if selection.axes().iter().any(|axis| !matches!(axis, AxisSelection::Even { .. })) {
        return no(
            "the selection has a list of positions, and only slices and integers are placed by the device",
        );
    }
    let Some((name, has_checksum)) = compressor_of(array) else {
        return no("the chunks are not compressed, or by several codecs");
    };
    if !["zstd", "lz4", "blosc"].contains(&name.as_str()) {
        return no(&format!("the device decompresses zstd, lz4 and blosc, and not {name}"));
    }
    if has_checksum {
        return no("the frames carry a checksum of the elements, which the host verifies");
    }
    let chunk_nbytes = array
        .chunk_shape()
        .unwrap_or_default()
        .iter()
        .fold(array.data_type().item_size().unwrap_or(0) as u64, |nbytes, extent| {
            nbytes.saturating_mul(*extent)
        });
    if name != "blosc" && chunk_nbytes > LARGEST_FRAME as u64 {
        let why = format!(
            "each chunk is one frame of {chunk_nbytes} bytes, which one block of threads would decompress"
        );
        return no(&why);
    }
    if !array.hands_over(selection) {
        return no("the elements are filtered, or structures in the other byte order");
    }
    Ok(())
}

/// The one compressor of the chunks that are decoded by themselves, and whether its frames have a checksum.
fn compressor_of(array: &Array) -> Option<(String, bool)> {
    let stages = array.codec_stages().ok()?;
    let mut compressors = stages.compressors.iter().filter(|codec| codec.name != "crc32c");
    let only = compressors.next()?;
    let has_checksum = only.configuration.get("checksum").is_some_and(|checksum| *checksum == true);
    let name = only.name.trim_start_matches("numcodecs.").to_owned();
    compressors.next().is_none().then_some((name, has_checksum))
}
