//! Arrays and groups as Python classes: opening, creating, reading and writing.

pub mod array;
pub mod array_access;
pub mod array_input;
pub mod array_parts;
pub mod array_summary;
pub mod attributes;
pub mod batch;
pub mod cloud_store;
pub mod codec;
pub mod create;
pub mod current;
pub mod detached;
pub mod fill_value;
pub mod group;
pub mod group_iterator;
pub mod indexer;
pub mod metadata;
pub mod missing;
pub mod node_path;
pub mod open;
pub mod origin;
pub mod out;
pub mod remote_zip;
pub mod store;
pub mod tree;
pub mod zip_url;
