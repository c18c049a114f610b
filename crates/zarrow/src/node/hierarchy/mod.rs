//! Changes to a hierarchy: creating, changing, resizing and erasing nodes.
//!
//! 1. A new node is fully checked before anything is written (`builder`), by the parser that will read it.
//! 2. A document is read, compared with the caller's view of it, changed and written in one step, under the locks of
//!    its node and of the groups above (`node_lock`, `attributes`). So no change of another thread or process is lost.
//!    Parts of a document that this crate does not know are kept byte for byte.
//! 3. A node that replaces another, or is created with elements, is built beside it and swapped in (`create`), or has
//!    its document put last (`unfinished`).
//! 4. A write of chunks checks before and after that the stored array is still the array of the handle (`stored`).
//!    Documents that another library prepared are stored in the same way (`commit`).
//! 5. After every change of a node, the consolidated metadata of the groups above it, up to the store's root, are
//!    updated (`consolidate`).

mod ahead;
mod append_parts;
pub(crate) mod attributes;
mod builder;
mod chunk_shape;
mod chunks_outside;
mod commit;
pub(crate) mod consolidate;
mod contents;
mod create;
mod create_whole;
mod document;
pub(crate) mod document_guard;
mod document_names;
pub(crate) mod document_version;
mod erase;
mod new_place;
mod node_batch;
mod node_lock;
pub(crate) mod node_path;
mod resize;
pub(crate) mod revision;
pub(crate) mod stored;
mod unfinished;
pub(crate) mod unfinished_mark;

#[cfg(test)]
mod tests;

pub use append_parts::Parts as AppendParts;
pub use attributes::AttributeChange;
pub use builder::{ArrayBuilder, DimensionName, NewFillValue};
pub(crate) use chunks_outside::stored_count;
pub use commit::{DocumentChange, commit_documents};
pub use contents::Source;
pub use create::{create_absent_group, create_array, create_array_from, create_array_with, create_group};
pub use create_whole::{Members, create_group_with};
pub(crate) use erase::erase;
pub use new_place::Existing;
pub use node_batch::{NewNode, create_all};
pub use node_path::new_path;
pub use resize::with_fixed_shapes;
