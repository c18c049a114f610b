//! Staged reads: where a store's answers take long, what is needed is fetched by many requests at once, and decoded as it
//! lands.
//!
//! 1. The chunks that are wanted come from a [list](super::chunk_list). Each is an [object](object): a pure plan says
//!    [what it needs](need), and how that is [cut into requests](coalesce). A shard needs its index first, which
//!    splits it into leaves, one an inner chunk; where [most of it](whole_shard) is wanted, index and inner chunks are fetched
//!    together. Any other chunk is one leaf.
//! 2. As many requests are in flight as the store likes, and as fit the memory that a read may have in flight. The indexes
//!    of shards go first, the rest in turns over the objects. All ranges of a leaf are admitted at once, so that no leaf
//!    waits for memory that other unfinished leaves have.
//! 3. A receiver copies frames to a [body](crate::store::remote::bodies), in [memory](crate::store::remote::body_memory) of ours or of the sink's, or straight to their
//!    [places](landing) where elements lie in the result as they are stored, and tells the job. It has nothing of the read but places that can be taken from it, so that a request
//!    that is cancelled, or lost in a forked child, is nobody's concern.
//! 4. A thread that takes a task handles what has landed, or decodes a leaf whose bytes are there by the same
//!    [`Chunk::read`](super::chunk) as any other read. Each leaf is decoded once: its claims are made where it is.
//! 5. All bytes of an object are of one version, where the store tells versions apart. Where a request finds another, what
//!    came of the object is void, and it begins anew when no work on it is left, index included.
//! 6. An index is kept for later reads with the version that it is of. Requests that rest on it ask for that version alone.
//! 7. The first error, or the caller, stops the job; then all requests are cancelled.

mod coalesce;
mod detached;
mod driver;
mod inbox;
mod kept;
mod landing;
mod need;
mod object;
mod placing;
mod splitting;
mod state;
mod whole_shard;

pub use detached::{Keeper, Target, read_detached};
pub use driver::read_into;
pub use inbox::{Arrival, Inbox, Told};
pub use state::SeenVersion;
