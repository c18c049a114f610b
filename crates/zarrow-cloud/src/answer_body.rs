//! The body of an answer: watched for silence, speed and size, with the permit of its request.

use crate::failure::{Failure, causes, innermost};
use crate::http_call::failed;
use crate::request_limit::Permit;
use crate::retry::Fault;
use crate::time_outs_and_retries::TransportPolicy;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{HttpError, HttpErrorKind};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Size limit of an answer that is parsed as a whole: a page of a list, the answer to a delete, a token.
const PARSED_NBYTES: u64 = 64 << 20;

/// The body of an answer.
///
/// The time of a frame is noted without touching the timer, which is reset only after it ran out.
pub struct AnswerBody {
    inner: reqwest::Body,
    policy: TransportPolicy,
    /// The time of the last frame.
    last: Instant,
    /// The start of the time over which speed is measured, and the bytes since.
    measured: (Instant, u64),
    /// The bytes that may still come.
    room: u64,
    timer: Pin<Box<Sleep>>,
    permit: Option<Permit>,
}

impl AnswerBody {
    /// Wraps `inner`. Ends it with an error if it is silent or slow for too long or, unless it `is_streamed`, too
    /// large.
    pub fn new(
        inner: reqwest::Body,
        policy: TransportPolicy,
        is_streamed: bool,
        permit: Permit,
    ) -> AnswerBody {
        let first = if policy.low_speed > 0 { policy.low_speed_time } else { policy.silence };
        let (timer, now) = (Box::pin(tokio::time::sleep(policy.silence.min(first))), Instant::now());
        let room = if is_streamed { u64::MAX } else { PARSED_NBYTES };
        AnswerBody { inner, policy, last: now, measured: (now, 0), room, timer, permit: Some(permit) }
    }

    fn check_frame(&mut self, frame: &Frame<Bytes>) -> Result<(), HttpError> {
        let nbytes = frame.data_ref().map_or(0, Bytes::len) as u64;
        self.last = Instant::now();
        self.measured.1 = self.measured.1.saturating_add(nbytes);
        self.room = self.room.checked_sub(nbytes).ok_or_else(|| {
            let text = format!("the answer has more than {} MiB", PARSED_NBYTES >> 20);
            HttpError::new(HttpErrorKind::Decode, io::Error::new(io::ErrorKind::InvalidData, text))
        })?;
        Ok(())
    }

    /// Resets the timer after it ran out, unless the server was silent or slow.
    fn look(&mut self) -> Result<(), HttpError> {
        let (now, TransportPolicy { silence, low_speed, low_speed_time, .. }) = (Instant::now(), self.policy);
        let mut end = self.last + silence;
        if end <= now {
            return Err(silent(silence));
        }
        if low_speed > 0 {
            let (begun, nbytes) = self.measured;
            if begun + low_speed_time <= now {
                let least = low_speed as f64 * low_speed_time.as_secs_f64();
                if (nbytes as f64) < least {
                    return Err(slow(TooSlow { nbytes, time: low_speed_time, low_speed }));
                }
                self.measured = (now, 0);
            }
            end = end.min(self.measured.0 + low_speed_time);
        }
        self.timer.as_mut().reset(end);
        Ok(())
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
                let frame = match frame {
                    Some(Ok(frame)) => Some(self.check_frame(&frame).map(|()| frame)),
                    Some(Err(error)) => Some(Err(failed(error))),
                    None => None,
                };
                if !matches!(frame, Some(Ok(_))) {
                    self.permit = None;
                }
                return Poll::Ready(frame);
            }
            ready!(self.timer.as_mut().poll(context));
            if let Err(error) = self.look() {
                self.permit = None;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Returns the error for a server that was silent for `time`.
pub fn silent(time: Duration) -> HttpError {
    let error = io::Error::new(io::ErrorKind::TimedOut, format!("the server was silent for {time:?}"));
    HttpError::new(HttpErrorKind::Timeout, error)
}

/// Error for a body that was slower than `low_speed` for too long.
#[derive(Debug)]
struct TooSlow {
    nbytes: u64,
    time: Duration,
    low_speed: u64,
}

impl fmt::Display for TooSlow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooSlow { nbytes, time, low_speed } = self;
        write!(
            formatter,
            "the server sent {nbytes} bytes in {time:?}, below low_speed_limit ({low_speed} bytes per second)"
        )
    }
}

impl Error for TooSlow {}

fn slow(error: TooSlow) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, io::Error::new(io::ErrorKind::TimedOut, error))
}

/// Returns the fault and the failure of a body that ended with `error`.
pub fn broken(error: &(dyn Error + 'static)) -> (Fault, Failure) {
    let is_too_slow = causes(error).any(|error| error.is::<TooSlow>());
    let fault = if is_too_slow { Fault::Slow } else { Fault::Connection };
    let own = causes(error).find_map(|error| error.downcast_ref::<io::Error>());
    let kind = own.map_or(io::ErrorKind::ConnectionReset, io::Error::kind);
    (fault, Failure::new(kind, format!("the server's answer was cut off: {}", innermost(error))))
}
