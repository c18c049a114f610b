//! HTTP's range headers.

use std::fmt;
use std::ops::Range;

/// The bytes that a request asks for, by its `Range` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeHeader {
    /// From the first of these positions to the last, or to the end.
    From(u64, Option<u64>),
    /// This many bytes at the end.
    Suffix(u64),
}

impl RangeHeader {
    /// Parses a header such as `bytes=0-99`.
    pub fn parse(text: &str) -> Option<RangeHeader> {
        let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
        if first.is_empty() {
            return last.parse().ok().map(RangeHeader::Suffix);
        }
        let last = if last.is_empty() { None } else { Some(last.parse().ok()?) };
        Some(RangeHeader::From(first.parse().ok()?, last))
    }

    /// Whether `range` is the requested part of a value with `nbytes` bytes, if its size is known.
    pub fn is_met_by(self, range: &Range<u64>, nbytes: Option<u64>) -> bool {
        match (self, nbytes) {
            (_, Some(nbytes)) => self.of(nbytes).as_ref() == Some(range),
            (RangeHeader::From(first, last), None) => {
                range.start == first && last.is_none_or(|last| range.end <= last.saturating_add(1))
            }
            (RangeHeader::Suffix(length), None) => range.end - range.start <= length,
        }
    }

    /// Returns the requested part of a value with `nbytes` bytes; `None` if it is empty.
    pub fn of(self, nbytes: u64) -> Option<Range<u64>> {
        let range = match self {
            RangeHeader::From(first, last) => {
                first..last.map_or(nbytes, |last| last.saturating_add(1).min(nbytes))
            }
            RangeHeader::Suffix(length) => nbytes.saturating_sub(length)..nbytes,
        };
        (range.start < range.end).then_some(range)
    }
}

impl fmt::Display for RangeHeader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeHeader::From(first, Some(last)) => write!(formatter, "bytes {first}-{last}"),
            RangeHeader::From(first, None) => write!(formatter, "bytes {first} and after"),
            RangeHeader::Suffix(length) => write!(formatter, "the last {length} bytes"),
        }
    }
}

/// Returns the size in a `Content-Range` header of an answer without bytes, such as `bytes */100`.
pub fn unsatisfied_nbytes(text: &str) -> Option<u64> {
    text.trim().strip_prefix("bytes")?.trim().strip_prefix("*/")?.parse().ok()
}

/// Parses a `Content-Range` header such as `bytes 10-19/100`: the bytes that are sent, and the size of the value if
/// given.
pub fn partial_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, nbytes) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let range = first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?;
    (range.start < range.end).then_some((range, nbytes.parse().ok()))
}

/// Returns the number of bytes that such a header announces.
pub fn partial_nbytes(text: &str) -> Option<u64> {
    partial_range(text).map(|(range, _)| range.end - range.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        assert_eq!(RangeHeader::parse("bytes=3-9"), Some(RangeHeader::From(3, Some(9))));
        assert_eq!(RangeHeader::parse("bytes=3-").and_then(|range| range.of(5)), Some(3..5));
        assert_eq!(RangeHeader::parse("bytes=-9").and_then(|range| range.of(5)), Some(0..5));
        assert_eq!(RangeHeader::parse("bytes=5-9").and_then(|range| range.of(5)), None);
        assert_eq!(RangeHeader::parse("bytes=x-9"), None);
        let met = |requested: &str, answered: &str| {
            let (range, nbytes) = partial_range(answered).unwrap();
            RangeHeader::parse(requested).unwrap().is_met_by(&range, nbytes)
        };
        assert!(
            met("bytes=3-9", "bytes 3-9/100")
                && met("bytes=3-9", "bytes 3-5/6")
                && met("bytes=-9", "bytes 1-9/10")
        );
        assert!(!met("bytes=3-9", "bytes 4-9/100") && !met("bytes=3-9", "bytes 3-5/100"));
        assert!(!met("bytes=-9", "bytes 0-8/10") && met("bytes=3-9", "bytes 3-5/*"));
        assert_eq!(unsatisfied_nbytes("bytes */12"), Some(12));
        assert_eq!(unsatisfied_nbytes("bytes 0-1/12"), None);
        assert_eq!(partial_nbytes("bytes 10-19/100"), Some(10));
        assert_eq!(partial_nbytes("bytes 10-19/*"), Some(10));
        assert_eq!(partial_nbytes("bytes 19-10/100"), None);
        assert_eq!(partial_nbytes("bytes 0-18446744073709551615/*"), None);
    }
}
