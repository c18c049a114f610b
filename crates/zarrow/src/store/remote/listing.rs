//! What lies below a prefix of a remote store.

/// The answer to a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The values, by keys from the store's root.
    pub values: Vec<ListedValue>,
    /// The prefixes directly below that hold something, from the store's root and without a slash at the end; none where
    /// the listing was recursive.
    pub prefixes: Vec<String>,
}

/// A value in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedValue {
    /// Its key.
    pub key: String,
    /// Its bytes.
    pub nbytes: u64,
}
