//! The texts of HTTP's ranges.

use std::ops::Range;

/// Which bytes a request asks for, by its `Range` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedRange {
    /// From the first to the last of these numbers, or to the end.
    From(u64, Option<u64>),
    /// So many before the end.
    Suffix(u64),
}

impl AskedRange {
    /// Of a header such as `bytes=0-99`.
    pub fn parse(text: &str) -> Option<AskedRange> {
        let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
        if first.is_empty() {
            return last.parse().ok().map(AskedRange::Suffix);
        }
        let last = if last.is_empty() { None } else { Some(last.parse().ok()?) };
        Some(AskedRange::From(first.parse().ok()?, last))
    }

    /// The bytes that it means of a value with so many; `None` where it has none of them.
    pub fn of(self, nbytes: u64) -> Option<Range<u64>> {
        let range = match self {
            AskedRange::From(first, last) => {
                first..last.map_or(nbytes, |last| last.saturating_add(1).min(nbytes))
            }
            AskedRange::Suffix(length) => nbytes.saturating_sub(length)..nbytes,
        };
        (range.start < range.end).then_some(range)
    }
}

/// The size in a `Content-Range` header of an answer that has no bytes, such as `bytes */100`.
pub fn unsatisfied_nbytes(text: &str) -> Option<u64> {
    text.trim().strip_prefix("bytes")?.trim().strip_prefix("*/")?.parse().ok()
}

/// The number of bytes that a `Content-Range` header such as `bytes 10-19/100` says are sent.
pub fn partial_nbytes(text: &str) -> Option<u64> {
    let (range, _) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    last.parse::<u64>().ok()?.checked_add(1)?.checked_sub(first.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        assert_eq!(AskedRange::parse("bytes=3-9"), Some(AskedRange::From(3, Some(9))));
        assert_eq!(AskedRange::parse("bytes=3-").and_then(|range| range.of(5)), Some(3..5));
        assert_eq!(AskedRange::parse("bytes=-9").and_then(|range| range.of(5)), Some(0..5));
        assert_eq!(AskedRange::parse("bytes=5-9").and_then(|range| range.of(5)), None);
        assert_eq!(AskedRange::parse("bytes=x-9"), None);
        assert_eq!(unsatisfied_nbytes("bytes */12"), Some(12));
        assert_eq!(unsatisfied_nbytes("bytes 0-1/12"), None);
        assert_eq!(partial_nbytes("bytes 10-19/100"), Some(10));
        assert_eq!(partial_nbytes("bytes 10-19/*"), Some(10));
        assert_eq!(partial_nbytes("bytes 19-10/100"), None);
        assert_eq!(partial_nbytes("bytes 0-18446744073709551615/*"), None);
    }
}
