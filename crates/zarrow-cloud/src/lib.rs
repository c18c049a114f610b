//! Stores in the cloud: S3, GCS, Azure and HTTP, as [remote stores](zarrow::store::remote) of the engine.
//!
//! ```no_run
//! use zarrow_cloud::{CloudStore, StorageOptions};
//!
//! let options = StorageOptions::from_json(r#"{"anon": true}"#)?;
//! let store = CloudStore::new("s3://bucket/data.zarr", options)?;
//! let node = zarrow::open(store.into_store(), "")?;
//! # Ok::<(), zarrow::Error>(())
//! ```
//!
//! The path of a request, from top to bottom:
//!
//! 1. `fetch` asks for the bytes of a range and hands them to the receiver. After an interrupted body it resumes with a
//!    range of the same version, else it starts again.
//! 2. `object_store` makes an HTTP request of it, and signs it. Its own retries are off.
//! 3. `transport` sends it: `retry` decides whether and when to try again, `request_limit` limits the concurrent requests of a host,
//!    `hedge` decides when to send a second copy of a request; `answer_body` watches for silence, speed and size;
//!    `diagnosis` and `tls_failure` explain missing answers, and `secret` redacts every message.
//! 4. `reqwest` owns the connections, which all stores of a process share (`process`).
//!
//! Nothing runs before the first request. A forked child forgets its parent's state, and creates its own.

mod answer_body;
mod answer_document;
mod body_range;
mod borrowed_payload;
mod cancelled_changes;
mod conditional_put_check;
mod connection;
mod credentials;
mod diagnosis;
mod document_request;
mod failure;
mod fetch;
mod hedge;
mod host_lookup;
mod http_call;
mod http_date;
mod list_body;
mod listing;
mod location;
mod option_checks;
mod options;
mod process;
mod range_header;
mod request_limit;
mod retry;
mod secret;
mod sent_change;
mod store;
mod time_outs_and_retries;
mod tls_failure;
mod transport;
mod trusted_certificates;
mod version;
mod writer;

pub use location::is_cloud_url;
pub use options::StorageOptions;
pub use secret::redact;
pub use store::{CloudStore, open_urls};
pub use time_outs_and_retries::TransportPolicy;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
