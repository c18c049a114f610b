//! Estimates the memory of a parsed JSON text, in one pass without allocation.
//!
//! The tree of a text can take fifty times its bytes. The parser cannot report failed allocations of objects and of
//! strings with escapes; for lists and strings of the tree it can ([`json_values`](super::json_values)). So before a
//! text is parsed:
//! 1. its depth is bounded, which bounds every recursion over the tree, its drop included;
//! 2. as much memory as the tree can take is allocated and freed again. If that fails, it is an error. Small pieces are
//!    among it, for the description of the node that is made from the tree.
//!
//! Step 2 is a check without a guarantee, since other threads allocate between it and the parse. Limits on the size of
//! documents keep the risk small.
//!
//! Most documents are small. To recognise those, bytes are counted first, which the processor does many at a time.
//! This counts the content of strings as well, so that the result is never less than the pass would find.

use super::MetadataError;
use serde_json::Value;
use zarrow_array::allocation;

/// Maximum depth of a document, equal to the parser's.
pub(super) const MAX_DEPTH: usize = 127;

/// Counts of one text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outline {
    /// Maximum number of objects and lists around a value.
    depth: usize,
    /// Number of values, including keys.
    values: usize,
    nbytes: usize,
}

/// Memory of most trees, which [`check_spare`](allocation::check_spare) covers.
const SMALL_NBYTES: usize = 64 << 10;

impl Outline {
    /// Does steps 1 and 2 for a text.
    pub(super) fn admit_text(text: &[u8]) -> Result<(), MetadataError> {
        let most = Outline::at_most(text);
        if most.depth <= MAX_DEPTH && most.tree_nbytes() <= SMALL_NBYTES {
            return Ok(allocation::check_spare()?);
        }
        Outline::parse(text).admit()
    }

    /// Returns an upper bound of [`of`](Outline::parse) in every field.
    fn at_most(text: &[u8]) -> Outline {
        let opening = text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
        let between = text.iter().filter(|byte| matches!(byte, b',' | b':')).count();
        Outline { depth: opening, values: 1 + opening + between, nbytes: text.len() }
    }

    pub(super) fn parse(text: &[u8]) -> Outline {
        let mut outline = Outline { values: 1, nbytes: text.len(), ..Outline::default() };
        let (mut depth, mut in_string, mut at) = (0usize, false, 0);
        while let Some(byte) = text.get(at) {
            at += 1;
            match (in_string, byte) {
                (true, b'\\') => at += 1,
                (_, b'"') => in_string = !in_string,
                (true, _) => {}
                (false, b'{' | b'[') => {
                    depth += 1;
                    outline.values += 1;
                    outline.depth = outline.depth.max(depth);
                }
                (false, b'}' | b']') => depth = depth.saturating_sub(1),
                (false, b',' | b':') => outline.values += 1,
                (false, _) => {}
            }
        }
        outline
    }

    /// Returns the maximum bytes of the tree while it is built: lists grow by doubling, and are copied when they do; a
    /// member of an object has a key, a hash and a table slot besides its value.
    pub(super) fn tree_nbytes(&self) -> usize {
        const VALUE_NBYTES: usize = 3 * (size_of::<Value>() + size_of::<String>() + 2 * size_of::<usize>());
        // Each string is a separate allocation.
        const PIECE_NBYTES: usize = 32;
        self.values.saturating_mul(VALUE_NBYTES + PIECE_NBYTES).saturating_add(self.nbytes.saturating_mul(2))
    }

    /// Does steps 1 and 2.
    pub(super) fn admit(&self) -> Result<(), MetadataError> {
        self.check_depth()?;
        let nbytes = self.tree_nbytes();
        if nbytes > SMALL_NBYTES {
            std::hint::black_box(allocation::with_capacity::<u8>(nbytes)?);
        }
        Ok(allocation::check_spare()?)
    }

    /// Does step 1.
    pub(super) fn check_depth(&self) -> Result<(), MetadataError> {
        match self.depth > MAX_DEPTH {
            true => {
                Err(MetadataError::TooLarge { what: "the depth of the metadata", limit: MAX_DEPTH as u64 })
            }
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_hide_what_they_hold() {
        let outline = Outline::parse(br#"{"a[[{\"[": [1, {"b": []}], "c": "]]"}"#);
        assert_eq!(outline.depth, 4);
        assert_eq!(outline.values, 1 + 4 + 3 + 2);
    }

    #[test]
    fn the_count_of_bytes_is_never_less() {
        for text in [r#"{"a[[{\"[": [1, {"b": []}], "c": "]]"}"#, "[[1], {}, 2]", "", "\"::,,[[\""] {
            let (most, found) = (Outline::at_most(text.as_bytes()), Outline::parse(text.as_bytes()));
            assert!(most.depth >= found.depth && most.values >= found.values, "{text}");
        }
        assert!(Outline::admit_text("[".repeat(MAX_DEPTH + 1).as_bytes()).is_err());
    }

    #[test]
    fn depth_is_bounded_where_the_parser_bounds_it() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for depth in [1, MAX_DEPTH, MAX_DEPTH + 1] {
            let text = nested(depth);
            let parsed = serde_json::from_str::<Value>(&text).is_ok();
            assert_eq!(Outline::parse(text.as_bytes()).admit().is_ok(), parsed, "{depth}");
        }
        assert!(Outline::parse("[".repeat(10_000_000).as_bytes()).check_depth().is_err());
    }
}
