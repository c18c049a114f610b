//! Changes that were cancelled after they were sent.
//!
//! 1. A server may apply a change that it has received, although its caller stopped waiting. Such a change continues without its
//!    caller until the answer comes, but no longer than the policy lets a server be silent. It is not tried again.
//! 2. Puts, deletes and lists of this process wait for it if they concern its keys. So the list of a cleanup shows the values
//!    that a cancelled write stored, and a cancelled put is not applied after a later delete or put.
//! 3. A request that waits for its permit is dropped: the server does not know it.
//! 4. A cancelled task ends later, in its own thread. Only then is it known which changes it sent: until then, puts,
//!    deletes and lists wait.

use crate::retry::Attempts;
use object_store::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use zarrow_array::fork::Mutex;

tokio::task_local! {
    /// The count of the change that this task sends, for requests that carry none.
    pub static ATTEMPTS: Arc<Attempts>;
}

/// Returns the count of the change that this task sends, if any.
pub fn attempts_of_task() -> Option<Arc<Attempts>> {
    ATTEMPTS.try_with(Arc::clone).ok()
}

/// Pause between two looks at tasks that end.
const PAUSE: Duration = Duration::from_micros(200);

/// The abandoned changes of a process.
#[derive(Debug, Default)]
pub struct CancelledChanges {
    entries: Mutex<Vec<Entry>>,
    /// Cancelled tasks that have not ended (step 4).
    ending: Mutex<Vec<AbortHandle>>,
}

#[derive(Debug)]
struct Entry {
    place: String,
    paths: Vec<Path>,
    /// Closes when the change has ended.
    ended: watch::Receiver<()>,
}

impl CancelledChanges {
    /// Cancels a task (step 4).
    pub fn cancel(&self, task: &AbortHandle) {
        let mut ending = self.ending.lock();
        ending.retain(|task| !task.is_finished());
        ending.push(task.clone());
        drop(ending);
        task.abort();
    }

    /// Returns whether cancelled tasks have not ended.
    fn are_tasks_ending(&self) -> bool {
        let mut ending = self.ending.lock();
        ending.retain(|task| !task.is_finished());
        !ending.is_empty()
    }

    /// Waits for the abandoned changes at `place` of paths that `concerns` accepts (steps 2 and 4).
    pub async fn wait(&self, place: impl Fn() -> String, concerns: impl Fn(&Path) -> bool) {
        while self.are_tasks_ending() {
            tokio::time::sleep(PAUSE).await;
        }
        loop {
            let found = {
                let mut entries = self.entries.lock();
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
        self.entries.lock().push(Entry { place, paths, ended });
        going
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a change when it is dropped, some time after its task was cancelled.
    struct Late(&'static CancelledChanges, watch::Sender<()>);

    impl Drop for Late {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_millis(50));
            let (going, ended) = watch::channel(());
            self.0.entries.lock().push(Entry {
                place: "here".to_owned(),
                paths: vec![Path::from("a")],
                ended,
            });
            self.1.send_replace(());
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                drop(going);
            });
        }
    }

    #[test]
    fn a_put_waits_for_a_task_that_was_cancelled_just_before() {
        let changes: &CancelledChanges = Box::leak(Box::default());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (began, mut has_begun) = watch::channel(());
        let (dropped, is_dropped) = watch::channel(());
        let task = runtime.spawn(async move {
            let _late = Late(changes, dropped);
            began.send_replace(());
            std::future::pending::<()>().await;
        });
        runtime.block_on(async {
            has_begun.changed().await.unwrap();
            changes.cancel(&task.abort_handle());
            changes.wait(|| "here".to_owned(), |path| *path == Path::from("a")).await;
        });
        assert!(is_dropped.has_changed().is_err() || is_dropped.has_changed().unwrap());
        assert!(changes.entries.lock().iter().all(|entry| entry.ended.has_changed().is_err()));
    }
}
