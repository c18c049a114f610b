//! Staged reads, for slow stores: many requests fetch the needed bytes at once, and chunks are decoded as their bytes
//! land.
//!
//! 1. The selected chunks come from a [list](super::chunk_list). Each is an [object](object): a pure plan computes the
//!    [needed bytes](need) and [splits them into requests](coalesce). A shard needs its index first, which splits it
//!    into leaves, one per inner chunk; if [most of it](whole_shard) is selected, index and inner chunks are fetched
//!    together. Any other chunk is one leaf.
//! 2. The store's preference and the limit on a read's memory in flight bound the number of concurrent requests. Shard
//!    indexes go first; the other requests take turns over the objects. Memory is reserved for all ranges of a
//!    leaf together. Otherwise incomplete leaves could wait for each other's memory for ever.
//! 3. A receiver copies frames to a [body](crate::store::remote::bodies), in
//!    [memory](crate::store::remote::body_memory) of ours or the sink's, or, if elements are stored in the result's own
//!    form, directly to their [places](direct_copy) in the result. Then it notifies the job. The read can revoke the
//!    receiver's memory at any time, so that a late frame of a cancelled request, or of one in a forked child, writes
//!    nowhere.
//! 4. A thread that takes a task handles an arrived answer, or decodes a leaf with complete bytes by the same
//!    [`Chunk::read`](crate::decode::chunk) as any other read. Each leaf is decoded once, and its claims are made there.
//! 5. All bytes of an object are of one version, if the store distinguishes versions. If a request finds another
//!    version, the object's earlier bytes are discarded, and the object restarts, including its index, once no work on
//!    it is left.
//! 6. An index is cached for later reads together with its version, and so are decoded chunks if their array has a cache.
//!    Requests that depend on them ask for that version only. A cached chunk needs one request, without its bytes.
//! 7. The first error, or the caller, stops the job; then all requests are cancelled.

pub(crate) mod cached_data;
pub(crate) mod coalesce;
pub(crate) mod direct_copy;
pub(crate) mod direct_leaves;
pub(crate) mod driver;
pub(crate) mod inbox;
pub(crate) mod index_request;
pub(crate) mod needed_bytes;
pub(crate) mod object;
pub(crate) mod object_size;
pub(crate) mod state;
pub(crate) mod whole_shard;

pub use driver::read_into;
