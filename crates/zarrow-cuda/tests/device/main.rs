//! Tensors on a device, compared to the host: on the software device, which checks every address and all ordering.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod arrays;
mod batches;
mod checksums;
mod decompressed;
mod decompressor;
mod exchange;
mod software;
mod tensors;
