//! Listing of a prefix of a remote store.

/// The answer to a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The values, with keys relative to the store's root.
    pub values: Vec<ListedValue>,
    /// Non-empty prefixes directly below, relative to the store's root and without a trailing slash; empty if the
    /// listing was recursive.
    pub prefixes: Vec<String>,
}

/// A value in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedValue {
    /// The key.
    pub key: String,
    /// The size in bytes.
    pub nbytes: u64,
}
