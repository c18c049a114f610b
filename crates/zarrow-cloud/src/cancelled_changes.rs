//! Changes that were cancelled after they were sent.
//!
//! 1. A server may apply a change that it has received, although its caller stopped waiting. Such a change continues without its
//!    caller until the answer comes, for the longest silence of the policy at most. It is not tried again.
//! 2. Puts, deletes and lists of this process wait for it if they concern its keys. So the list of a cleanup shows the values
//!    that a cancelled write stored, and a cancelled put is not applied after a later delete or put.
//! 3. A request that waits for its permit is dropped: the server does not know it.

use crate::retry::Attempts;
use object_store::path::Path;
use std::sync::Arc;
use tokio::sync::watch;
use zarrow_array::fork::Mutex;

tokio::task_local! {
    /// The count of the change that this task sends, for requests that carry none.
    pub static ATTEMPTS: Arc<Attempts>;
}

/// Returns the count of the change that this task sends, if any.
pub fn attempts_of_task() -> Option<Arc<Attempts>> {
    ATTEMPTS.try_with(Arc::clone).ok()
}

/// The abandoned changes of a process.
#[derive(Debug, Default)]
pub struct CancelledChanges(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    place: String,
    paths: Vec<Path>,
    /// Closes when the change has ended.
    ended: watch::Receiver<()>,
}

impl CancelledChanges {
    /// Waits for the abandoned changes at `place` of paths that `concerns` accepts (step 2).
    pub async fn wait(&self, place: impl Fn() -> String, concerns: impl Fn(&Path) -> bool) {
        loop {
            let found = {
                let mut entries = self.0.lock();
                entries.retain(|entry| entry.ended.has_changed().is_ok());
                if entries.is_empty() {
                    return;
                }
                let place = place();
                let is_found = |entry: &&Entry| entry.place == place && entry.paths.iter().any(&concerns);
                entries.iter().find(is_found).map(|entry| entry.ended.clone())
            };
            match found {
                Some(mut ended) => while ended.changed().await.is_ok() {},
                None => return,
            }
        }
    }

    /// Adds a change at `place`, which ends when the sender is dropped.
    pub fn add(&self, place: String, paths: Vec<Path>) -> watch::Sender<()> {
        let (going, ended) = watch::channel(());
        self.0.lock().push(Entry { place, paths, ended });
        going
    }
}
