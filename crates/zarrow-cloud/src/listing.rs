//! What lies below a prefix, page by page.

use crate::connection::{Connection, Lister, of_client};
use crate::heeding::is_probe;
use crate::retry::Attempts;
use object_store::list::PaginatedListOptions;
use std::sync::Arc;
use zarrow::store::remote::{ListedValue, Listing};
use zarrow::{ErrorKind, Result};

/// Lists what is directly below `prefix`, or all of it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a web server, which has no such request; [`ErrorKind::Io`].
pub async fn list(
    connection: &Connection,
    prefix: &str,
    recursive: bool,
    attempts: &Arc<Attempts>,
) -> Result<Listing> {
    let Some(Lister(lister)) = &connection.client.lister else { return Err(no_listing()) };
    let folder = connection.path(prefix)?;
    let below = if folder.is_root() { String::new() } else { format!("{folder}/") };
    let root = if connection.location.root.is_empty() {
        String::new()
    } else {
        format!("{}/", connection.location.root)
    };
    let mut listing = Listing::default();
    let mut page_token = None;
    loop {
        // Each page may fail as often as any other request.
        let own = connection.attempts();
        let options = PaginatedListOptions {
            delimiter: (!recursive).then_some("/".into()),
            page_token: page_token.take(),
            extensions: Connection::extensions(&own),
            ..PaginatedListOptions::default()
        };
        let asked = (!below.is_empty()).then_some(below.as_str());
        let page = match lister.list_paginated(asked, options).await {
            Ok(page) => page,
            Err(error) => {
                let failure = own.take_failure().unwrap_or_else(|| of_client(&error));
                attempts.fail(failure.clone());
                return Err(connection.failure_error(failure, false));
            }
        };
        // What marks a folder is a value of the folder's own name, and no key below it.
        let key = |path: &str| Some(path.strip_prefix(&below).and(path.strip_prefix(&root))?.to_owned());
        for object in &page.result.objects {
            // Erasing lists all values, and takes what a killed process has left of them.
            if let Some(key) = key(object.location.as_ref()).filter(|key| recursive || !is_probe(key)) {
                listing.values.push(ListedValue { key, nbytes: object.size });
            }
        }
        listing.prefixes.extend(page.result.common_prefixes.iter().filter_map(|path| key(path.as_ref())));
        match page.page_token {
            Some(next) => page_token = Some(next),
            None => return Ok(listing),
        }
    }
}

fn no_listing() -> zarrow::Error {
    let text = "a web server does not list what it has";
    zarrow::Error::from(ErrorKind::Unsupported(text.into())).with_hint(
        "name the array by its path, or consolidate the metadata where the store is written, so that its members are \
         known",
    )
}
