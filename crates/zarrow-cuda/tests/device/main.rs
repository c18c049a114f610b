//! Tensors on a device, against the same on the host: on the software device, which checks every address and every order.

mod arrays;
mod exchange;
mod software;
mod tensors;
