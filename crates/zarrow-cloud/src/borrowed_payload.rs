//! Bodies of puts that are copied from the writer's memory while they are sent.
//!
//! 1. `object_store` makes the request, with a placeholder as its body: zeros of the same size. The request carries the
//!    borrowed bytes in its extensions, and the transport sends these instead.
//! 2. Each piece is copied just before it is sent, so that the kernel copies it from the processor's cache. No page of
//!    new memory is touched.
//! 3. A put that succeeds without its borrowed bytes has stored the placeholder, and is an error.
//! 4. Only for clients that do not examine the body: a signature or a checksum would be that of the placeholder.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::PutPayload;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use zarrow::Result;
use zarrow::store::remote::BorrowedBytes;

/// Bytes that are copied at once.
const PIECE_NBYTES: usize = 64 << 10;

/// The placeholder's bytes.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// A body to be copied while it is sent.
#[derive(Debug, Clone)]
pub struct BorrowedPayload {
    bytes: Arc<dyn BorrowedBytes>,
    /// Whether the last piece was copied.
    is_sent: Arc<AtomicBool>,
}

impl BorrowedPayload {
    pub fn new(bytes: Arc<dyn BorrowedBytes>) -> BorrowedPayload {
        BorrowedPayload { bytes, is_sent: Arc::default() }
    }

    /// Returns the placeholder (step 1).
    pub fn placeholder(&self) -> PutPayload {
        let nbytes = self.bytes.nbytes();
        let starts = (0..nbytes).step_by(ZEROS.len());
        starts.map(|start| Bytes::from_static(&ZEROS[..ZEROS.len().min(nbytes - start)])).collect()
    }

    /// Returns the body of one attempt to send it.
    pub fn body(&self) -> BorrowedBody {
        BorrowedBody { payload: self.clone(), at: 0 }
    }

    /// Whether the transport has sent the borrowed bytes (step 3).
    pub fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Acquire)
    }
}

/// The pieces of a borrowed body.
pub struct BorrowedBody {
    payload: BorrowedPayload,
    at: usize,
}

impl Body for BorrowedBody {
    type Data = Bytes;
    type Error = zarrow::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let left = self.payload.bytes.nbytes() - self.at;
        if left == 0 {
            return Poll::Ready(None);
        }
        let mut piece = Vec::with_capacity(left.min(PIECE_NBYTES));
        let copied = self.payload.bytes.append_to(self.at, left.min(PIECE_NBYTES), &mut piece);
        self.at += piece.len();
        if piece.len() == left {
            self.payload.is_sent.store(true, Ordering::Release);
        }
        Poll::Ready(Some(copied.map(|()| Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.payload.bytes.nbytes()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.payload.bytes.nbytes() - self.at) as u64)
    }
}
