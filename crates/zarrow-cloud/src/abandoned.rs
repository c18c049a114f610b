//! Changes that were cancelled after they were sent.
//!
//! 1. A server may apply a change that it has received, although its caller stopped waiting. Such a change continues without its
//!    caller until the answer comes, for the longest silence of the policy at most. It is not tried again.
//! 2. Puts, deletes and lists of this process wait for it if they concern its keys. So the list of a cleanup shows the values
//!    that a cancelled write stored, and a cancelled put is not applied after a later delete or put.
//! 3. A request that waits for its permit is dropped: the server does not know it.

use crate::connection::Connection;
use crate::retry::Attempts;
use object_store::path::Path;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::watch;
use zarrow_array::fork::Mutex;

tokio::task_local! {
    /// The count of the change that this task sends, for requests that carry none.
    static ATTEMPTS: Arc<Attempts>;
}

/// Returns the count of the change that this task sends, if any.
pub fn attempts_of_task() -> Option<Arc<Attempts>> {
    ATTEMPTS.try_with(Arc::clone).ok()
}

/// The abandoned changes of a process.
#[derive(Debug, Default)]
pub struct Abandoned(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    place: String,
    paths: Vec<Path>,
    /// Closes when the change has ended.
    ended: watch::Receiver<()>,
}

impl Abandoned {
    /// Waits for the abandoned changes of paths that `concerns` accepts (step 2).
    pub async fn wait(&self, connection: &Connection, concerns: impl Fn(&Path) -> bool) {
        loop {
            let found = {
                let mut entries = self.0.lock();
                entries.retain(|entry| entry.ended.has_changed().is_ok());
                if entries.is_empty() {
                    return;
                }
                let place = connection.place();
                let is_found = |entry: &&Entry| entry.place == place && entry.paths.iter().any(&concerns);
                entries.iter().find(is_found).map(|entry| entry.ended.clone())
            };
            match found {
                Some(mut ended) => while ended.changed().await.is_ok() {},
                None => return,
            }
        }
    }

    fn add(&self, place: String, paths: Vec<Path>) -> watch::Sender<()> {
        let (going, ended) = watch::channel(());
        self.0.lock().push(Entry { place, paths, ended });
        going
    }
}

/// Waits for the answer to `change`, which concerns these paths; if the caller stops waiting, see step 1.
pub async fn finish<T: Send + 'static>(
    connection: &Connection,
    paths: Vec<Path>,
    attempts: &Arc<Attempts>,
    change: impl Future<Output = T> + Send + 'static,
) -> T {
    let change = ATTEMPTS.scope(Arc::clone(attempts), change);
    Change { connection, paths, attempts, change: Some(Box::pin(change)) }.await
}

/// A change that its caller waits for.
struct Change<'a, T: Send + 'static> {
    connection: &'a Connection,
    paths: Vec<Path>,
    attempts: &'a Arc<Attempts>,
    /// `None` after the end.
    change: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
}

impl<T: Send + 'static> Future for Change<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(change) = &mut self.change else { return Poll::Pending };
        let done = ready!(change.as_mut().poll(context));
        self.change = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for Change<'_, T> {
    fn drop(&mut self) {
        let Some(change) = self.change.take().filter(|_| self.attempts.abandon()) else { return };
        let process = self.connection.process;
        let going = process.abandoned.add(self.connection.place(), std::mem::take(&mut self.paths));
        let longest: Duration = self.connection.settings.policy.silence;
        process.runtime.spawn(async move {
            drop(tokio::time::timeout(longest, change).await);
            drop(going);
        });
    }
}
