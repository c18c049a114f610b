//! Lists the keys below a prefix, page by page.
//!
//! 1. Every list ends: a repeated page token is an error, as are too many consecutive pages without a new name, too many
//!    names, and an oversized page (`answer_body`).
//! 2. A server may ignore the delimiter: keys further below stand for their folders.
//! 3. A page of keys that are all outside of the prefix is an error: it says nothing of the keys below.

use crate::conditional_put_check::is_probe;
use crate::connection::{Connection, Lister, client_failure};
use crate::failure::Failure;
use crate::retry::Attempts;
use crate::time_outs_and_retries::TransportPolicy;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;
use zarrow::store::remote::{ListedValue, Listing};
use zarrow::{ErrorKind, Result};

/// Lists the direct entries of `prefix`, or all keys below it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a web server, because HTTP has no lists; [`ErrorKind::Io`].
pub async fn list(
    connection: &Connection,
    prefix: &str,
    recursive: bool,
    attempts: &Arc<Attempts>,
) -> Result<Listing> {
    Ok(pages(connection, prefix, recursive, false, attempts).await?.0)
}

/// Lists all keys below `prefix` if one page holds them; else returns `None`.
pub async fn list_page(
    connection: &Connection,
    prefix: &str,
    attempts: &Arc<Attempts>,
) -> Result<Option<Listing>> {
    let (listing, is_whole) = pages(connection, prefix, true, true, attempts).await?;
    Ok(is_whole.then_some(listing))
}

/// Lists all pages, or only the first; returns whether the list is complete.
async fn pages(
    connection: &Connection,
    prefix: &str,
    recursive: bool,
    is_one: bool,
    attempts: &Arc<Attempts>,
) -> Result<(Listing, bool)> {
    let Some(Lister(lister)) = &connection.client.lister else { return Err(no_listing()) };
    let folder = connection.path(prefix)?;
    connection
        .process
        .cancelled_changes
        .wait(|| connection.place(), |path| path.prefix_matches(&folder))
        .await;
    let below = if folder.is_root() { String::new() } else { format!("{folder}/") };
    let root = if connection.location.root.is_empty() {
        String::new()
    } else {
        format!("{}/", connection.location.root)
    };
    let delimiter = (!recursive).then_some("/");
    let prefix = (!below.is_empty()).then_some(below.as_str());
    let (mut listing, mut pages, mut page_token) = (Listing::default(), Pages::default(), None);
    let mut folders = HashSet::new();
    loop {
        let page = page(connection, &**lister, prefix, delimiter, page_token);
        let checked = page.await.and_then(|page| {
            check_prefix(&page, &below)?;
            Ok((pages.check(&page, &connection.settings.policy)?, page))
        });
        let (is_new, page) = match checked {
            Ok(page) => page,
            Err(failure) => {
                attempts.fail((*failure).clone());
                return Err(connection.failure_error(*failure, false));
            }
        };
        if is_new {
            // A folder marker has the folder's own name, and is not a key below it.
            let key = |path: &str| Some(path.strip_prefix(&below).and(path.strip_prefix(&root))?.to_owned());
            for object in &page.result.objects {
                // Erasing lists all values, including leftovers of a killed process.
                let path = object.location.as_ref();
                let (Some(key), Some(name)) = (key(path), path.strip_prefix(&below)) else { continue };
                let rest = name.split_once('/').filter(|_| !recursive).map(|(_, rest)| format!("/{rest}"));
                if let Some(folder) = rest.and_then(|rest| key.strip_suffix(&*rest)) {
                    if folders.insert(folder.to_owned()) {
                        listing.prefixes.push(folder.to_owned());
                    }
                } else if recursive || !is_probe(&key) {
                    listing.values.push(ListedValue { key, nbytes: object.size });
                }
            }
            let prefixes = page.result.common_prefixes.iter();
            listing.prefixes.extend(prefixes.filter_map(|path| key(path.as_ref())));
        }
        match page.page_token {
            Some(_) if is_one => return Ok((listing, false)),
            Some(next) => page_token = Some(next),
            None => return Ok((listing, true)),
        }
    }
}

/// Step 3. A folder marker is not outside, and a server may ignore the last slash of a prefix.
fn check_prefix(page: &PaginatedListResult, below: &str) -> Result<(), Box<Failure>> {
    let objects = page.result.objects.iter().map(|object| object.location.as_ref());
    let folders = page.result.common_prefixes.iter().map(AsRef::as_ref);
    if objects.clone().chain(folders.clone()).any(|name| name.starts_with(below)) {
        return Ok(());
    }
    let mut outside = objects.filter(|name| below.strip_suffix('/') != Some(*name)).chain(folders);
    outside.next().map_or(Ok(()), |name| {
        let text = format!("the server listed the key {name:?}, which is not below {below:?}");
        Err(Box::new(Failure::new(io::ErrorKind::InvalidData, text)))
    })
}

/// Requests one page, with the usual retries.
async fn page(
    connection: &Connection,
    lister: &dyn PaginatedListStore,
    prefix: Option<&str>,
    delimiter: Option<&'static str>,
    page_token: Option<String>,
) -> Result<PaginatedListResult, Box<Failure>> {
    let attempts = connection.attempts();
    let options = PaginatedListOptions {
        delimiter: delimiter.map(Into::into),
        page_token,
        extensions: Connection::extensions(&attempts),
        ..PaginatedListOptions::default()
    };
    let page = lister.list_paginated(prefix, options).await;
    page.map_err(|error| Box::new(attempts.take_failure().unwrap_or_else(|| client_failure(&error))))
}

/// Progress of a list, page by page.
#[derive(Default)]
struct Pages {
    tokens: HashSet<String>,
    /// Hashes of the names of pages.
    known: HashSet<u64>,
    /// Consecutive pages without a new name.
    idle: u32,
    names: u64,
}

impl Pages {
    /// Checks a page; returns whether it has new names.
    fn check(&mut self, page: &PaginatedListResult, policy: &TransportPolicy) -> Result<bool, Box<Failure>> {
        /// Services send empty pages after large deletions.
        const MOST_IDLE: u32 = 1000;
        /// Maximum size of a name in the services; a longer one counts as several.
        const NAME_NBYTES: u64 = 1024;
        let endless = |text: String| Box::new(Failure::new(io::ErrorKind::InvalidData, text));
        if let Some(token) = &page.page_token
            && !self.tokens.insert(token.clone())
        {
            return Err(endless("the server repeated a page token: its list would never end".to_owned()));
        }
        let objects = page.result.objects.iter().map(|object| object.location.as_ref());
        let (mut hasher, mut count) = (DefaultHasher::new(), 0);
        for name in objects.chain(page.result.common_prefixes.iter().map(AsRef::as_ref)) {
            name.hash(&mut hasher);
            count += 1 + name.len() as u64 / NAME_NBYTES;
        }
        let is_new = count > 0 && self.known.insert(hasher.finish());
        self.idle = if is_new { 0 } else { self.idle + 1 };
        self.names = self.names.saturating_add(count);
        if self.idle > MOST_IDLE {
            let text = format!("the server sent {MOST_IDLE} consecutive pages of a list without a new name");
            return Err(endless(text));
        }
        if self.names > policy.listed_names {
            let text =
                format!("the list has more than {} names, the limit set by max_listed", policy.listed_names);
            return Err(endless(text));
        }
        Ok(is_new)
    }
}

fn no_listing() -> zarrow::Error {
    let text = "HTTP has no request for a list of keys";
    zarrow::Error::from(ErrorKind::Unsupported(text.into()))
        .with_hint("open the array by its path, or write consolidated metadata: it lists the members")
}
