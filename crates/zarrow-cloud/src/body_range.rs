//! Cuts the requested part out of a body, if a server sends more.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{HttpError, HttpResponseBody};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A byte range of a body.
pub struct BodyRange {
    inner: HttpResponseBody,
    skip: u64,
    left: u64,
}

impl BodyRange {
    pub fn new(inner: HttpResponseBody, range: &Range<u64>) -> BodyRange {
        BodyRange { inner, skip: range.start, left: range.end.saturating_sub(range.start) }
    }
}

impl Body for BodyRange {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        while self.left > 0 {
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            let Ok(data) = frame.into_data() else { continue };
            let nbytes = data.len() as u64;
            let skipped = self.skip.min(nbytes);
            let kept = self.left.min(nbytes - skipped);
            self.skip -= skipped;
            self.left -= kept;
            if kept > 0 {
                // Both are at most the length of the frame.
                let kept = data.slice(skipped as usize..(skipped + kept) as usize);
                return Poll::Ready(Some(Ok(Frame::data(kept))));
            }
        }
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
