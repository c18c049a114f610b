//! The body of an answer: watched for silence, with the permit of its request.

use crate::budget::Permit;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{HttpError, HttpErrorKind, HttpResponseBody};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The body of an answer.
///
/// The time of a frame is noted without touching the timer: it is set anew only when it has run out, and frames came
/// meanwhile.
pub struct AnswerBody {
    inner: HttpResponseBody,
    silence: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
    permit: Option<Permit>,
}

impl AnswerBody {
    pub fn new(inner: HttpResponseBody, silence: Duration, permit: Permit) -> AnswerBody {
        let timer = Box::pin(tokio::time::sleep(silence));
        AnswerBody { inner, silence, last: Instant::now(), timer, permit: Some(permit) }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        loop {
            if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) {
                match &frame {
                    Some(Ok(_)) => self.last = Instant::now(),
                    _ => self.permit = None,
                }
                return Poll::Ready(frame);
            }
            ready!(self.timer.as_mut().poll(context));
            let end = self.last + self.silence;
            if end <= Instant::now() {
                self.permit = None;
                return Poll::Ready(Some(Err(silent(self.silence))));
            }
            self.timer.as_mut().reset(end);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The error of a server that was silent for so long.
pub fn silent(time: Duration) -> HttpError {
    let error = io::Error::new(io::ErrorKind::TimedOut, format!("the server was silent for {time:?}"));
    HttpError::new(HttpErrorKind::Timeout, error)
}
