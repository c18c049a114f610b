//! Waits for the answer to a change, and leaves it to the process if the caller stops waiting (steps 1 and 3 of `cancelled_changes.rs`).

use crate::cancelled_changes::ATTEMPTS;
use crate::connection::Connection;
use crate::retry::Attempts;
use object_store::path::Path;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Waits for the answer to `change`, which concerns these paths; if the caller stops waiting, the process waits
/// instead.
pub async fn finish<T: Send + 'static>(
    connection: &Connection,
    paths: Vec<Path>,
    attempts: &Arc<Attempts>,
    change: impl Future<Output = T> + Send + 'static,
) -> T {
    let change = ATTEMPTS.scope(Arc::clone(attempts), change);
    Change { connection, paths, attempts, change: Some(Box::pin(change)) }.await
}

/// A change with a waiting caller.
struct Change<'a, T: Send + 'static> {
    connection: &'a Connection,
    paths: Vec<Path>,
    attempts: &'a Arc<Attempts>,
    /// `None` after its end.
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
        let going = process.cancelled_changes.add(self.connection.place(), std::mem::take(&mut self.paths));
        let longest: Duration = self.connection.settings.policy.silence;
        process.spawn(async move {
            drop(tokio::time::timeout(longest, change).await);
            drop(going);
        });
    }
}
