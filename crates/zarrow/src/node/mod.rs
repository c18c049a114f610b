//! Nodes of a hierarchy: arrays, groups, and the documents that describe them.

pub(crate) mod absent;
pub(crate) mod any;
pub(crate) mod array;
pub(crate) mod batch;
pub(crate) mod group;
pub(crate) mod hierarchy;
pub(crate) mod known_documents;
pub(crate) mod link_loops;
pub(crate) mod listed;
pub(crate) mod node_documents;
pub(crate) mod open;
pub(crate) mod open_detached;
pub(crate) mod open_options;
pub(crate) mod table;
