//! Batches: pinned slots full of stored chunks that the device decompresses and places.
//!
//! 1. The threads of the read fill one batch together. A thread with a chunk reserves bytes of the slot and reads
//!    the chunk's stored bytes into them: that is the only copy on the host. Chunks of a remote store are in pinned
//!    memory already, and stay there (`bodies.rs`). A chunk for the host is decoded directly to the slot.
//! 2. When the slot is full, or has enough to decompress, the next one is taken. The last thread that fills the
//!    full batch submits it to the device: it allocates device memory, and lists the frames and the boxes of
//!    elements by address, after the bytes or in a separate slot.
//! 3. The batch goes to a stream (`read_streams.rs`): its slot and bodies are copied while the device still works on others.
//!    Then uncompressed pieces are copied to their position in the decompressed bytes, and misaligned frames to an
//!    aligned one; frames are decompressed in one batch per format; their checksums are verified; one launch undoes
//!    the shuffle and the byte order, crops, transposes and scatters all elements, and fills the boxes of missing
//!    chunks.
//! 4. The statuses of all frames are copied back, and checked when the last batch is done.

mod answers;
mod boxes;
mod chunks;
mod filling;
mod planned;
mod slot;
mod submission;

use self::answers::Submitted;
use self::slot::FillingBatch;
use super::Decompressor;
use crate::bodies::PinnedBodies;
use crate::error::{Error, Result};
use crate::meter::{self, Meter};
use crate::read_streams::ReadStreams;
use crate::route::Share;
use crate::tensor::DeviceTensor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zarrow::{ErrorKind, ReadRequest};
use zarrow_array::fork::Mutex;

/// Counts of a read's work by place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// Chunks decompressed by the device.
    pub on_device: u64,
    /// Chunks decoded by the host.
    pub on_host: u64,
    /// Chunks received in pinned memory.
    pub landed: u64,
    /// Missing chunks.
    pub filled: u64,
    /// Frames that the device failed to decompress, or that had another size.
    pub failed_frames: u64,
    /// Whether a value of a remote store was replaced during its transfer, which ended the read.
    pub is_replaced: bool,
}

impl std::ops::Add for Done {
    type Output = Done;

    fn add(self, more: Done) -> Done {
        Done {
            on_device: self.on_device + more.on_device,
            on_host: self.on_host + more.on_host,
            landed: self.landed + more.landed,
            filled: self.filled + more.filled,
            failed_frames: self.failed_frames + more.failed_frames,
            is_replaced: self.is_replaced || more.is_replaced,
        }
    }
}

/// Reads `request` to `result`; the device decompresses the chunks of its `share`.
///
/// If frames failed, or a value was replaced concurrently, some elements are undefined: repeat the read on the
/// host.
///
/// # Errors
/// See [`ReadRequest::stored`]; errors of the driver and the decompressor.
pub(crate) fn read(
    request: &ReadRequest<'_>,
    result: &DeviceTensor,
    decompressor: &dyn Decompressor,
    share: &Share,
) -> Result<Done> {
    let batches = Batches {
        result,
        streams: ReadStreams::new(result)?,
        decompressor,
        share,
        measured: Meter::default(),
        bodies: Arc::new(PinnedBodies::new(result.device())),
        is_replaced: AtomicBool::new(false),
        open: Mutex::default(),
        submitted: Mutex::default(),
        error: Mutex::default(),
        on_device: AtomicU64::new(0),
        on_host: AtomicU64::new(0),
        landed: AtomicU64::new(0),
        filled: AtomicU64::new(0),
    };
    let outcome = request.by_ref().stored(&batches).read();
    if let Some(error) = batches.error.lock().take() {
        return Err(error);
    }
    match outcome {
        Err(error)
            if batches.is_replaced.load(Ordering::Relaxed)
                && !matches!(error.kind(), ErrorKind::Interrupted) =>
        {
            return Ok(Done { is_replaced: true, ..Done::default() });
        }
        outcome => outcome?,
    }
    batches.submit_last()?;
    // Step 4.
    let (mut failed_frames, mut timed) = (0, Vec::new());
    for mut submitted in std::mem::take(&mut *batches.submitted.lock()) {
        failed_frames += submitted.failed()?;
        timed.append(&mut submitted.timed);
    }
    if let Some(format) = share.format() {
        batches.measured.measure(format, result.device());
    }
    meter::measure(&timed, result.device());
    let done = Done {
        on_device: batches.on_device.load(Ordering::Relaxed),
        on_host: batches.on_host.load(Ordering::Relaxed),
        landed: batches.landed.load(Ordering::Relaxed),
        filled: batches.filled.load(Ordering::Relaxed),
        failed_frames,
        is_replaced: false,
    };
    batches.streams.finish().map(|()| done)
}

/// The batches of one read.
struct Batches<'a> {
    result: &'a DeviceTensor,
    streams: ReadStreams<'a>,
    decompressor: &'a dyn Decompressor,
    share: &'a Share,
    measured: Meter,
    bodies: Arc<PinnedBodies>,
    is_replaced: AtomicBool,
    open: Mutex<Option<Arc<Mutex<FillingBatch>>>>,
    submitted: Mutex<Vec<Submitted>>,
    /// The error of this crate that stopped the read.
    error: Mutex<Option<Error>>,
    on_device: AtomicU64,
    on_host: AtomicU64,
    landed: AtomicU64,
    filled: AtomicU64,
}

impl Batches<'_> {
    /// Stores the error, and stops the read by an equivalent one.
    fn stop(&self, error: Error) -> zarrow::Error {
        let text = error.to_string();
        self.error.lock().get_or_insert(error);
        ErrorKind::Internal(text).into()
    }
}
