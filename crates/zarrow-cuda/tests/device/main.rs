//! Tensors on a device, against the same on the host: on the software device, which checks every address and every order.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod arrays;
mod batches;
mod checksums;
mod decompressed;
mod decompressor;
mod exchange;
mod software;
mod tensors;
