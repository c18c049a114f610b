//! State shared by all stores of a process: the transport's threads, its connections, and statistics of each host.
//!
//! 1. It is created by the first request, and lives as long as the process.
//! 2. A forked child has none of the threads, and their locks stay locked: it detects the fork by the process id,
//!    forgets its parent's state, and creates its own. It drops nothing of its parent, because dropping a TLS
//!    connection would send a close message on the parent's socket.
//! 3. If the system refuses the first thread, the request fails, and the next one tries again.
//! 4. Each thread has its own runtime and connections, and a request stays on one thread. So a request wakes no other
//!    thread, and its memory is freed without a contended lock of the allocator. It goes to the thread with the fewest
//!    tasks, so that successive requests use one connection.

use crate::cancelled_changes::CancelledChanges;
use crate::hedge::FirstBytes;
use crate::host_lookup::Lookup;
use crate::request_limit::RequestLimit;
use crate::time_outs_and_retries::TransportPolicy;
use crate::trusted_certificates::TrustedCertificates;
use std::cell::Cell;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::AbortHandle;
use zarrow_array::fork::{Mutex, generation};
use zarrow_array::thread;

/// Threads that move bytes between sockets and receivers; decoding has separate threads.
pub const THREADS: usize = 2;

/// Maximum number of idle connections kept per host: as many as may be in flight.
const IDLE_CONNECTIONS: usize = 256;

/// Time for which idle connections are kept. Object stores close them after about twenty seconds.
const IDLE_TIME: Duration = Duration::from_secs(15);

/// Time for which an unreachable service is not contacted again, because opening requests many documents one after the
/// other.
const ABSENCE: Duration = Duration::from_secs(5);

static PROCESS: Mutex<Option<(u64, &'static Process)>> = Mutex::new(None);

thread_local! {
    /// The number of this thread among the transport's; 0 on other threads.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of this thread, below [`THREADS`].
pub fn thread_number() -> usize {
    NUMBER.get()
}

/// Shared by all stores of one process.
#[derive(Debug)]
pub struct Process {
    /// The threads; the others are missing if the system refused them.
    first: Worker,
    others: Vec<Worker>,
    lookup: Arc<Lookup>,
    clients: Mutex<Vec<(ClientKey, reqwest::Client)>>,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    /// Changes that were cancelled after they were sent.
    pub cancelled_changes: CancelledChanges,
    /// Held by the one writer that tests a server for conditions.
    pub tested: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The thread of a client, and the settings that need separate clients.
type ClientKey = (usize, Duration, TrustedCertificates);

/// Statistics of a host.
#[derive(Debug, Default)]
pub struct Host {
    /// The limit of its concurrent requests.
    pub request_limit: RequestLimit,
    /// The times of its answers.
    pub first_bytes: FirstBytes,
    /// Time at which a machine's metadata service was unreachable.
    absent: Mutex<Option<Instant>>,
}

impl Host {
    /// Records that the service is unreachable.
    pub fn is_gone(&self) {
        *self.absent.lock() = Some(Instant::now());
    }

    /// Whether the service was unreachable a moment ago.
    pub fn is_known_gone(&self) -> bool {
        self.absent.lock().is_some_and(|since| since.elapsed() < ABSENCE)
    }
}

impl Process {
    /// Returns the shared state of this process (steps 1 and 2).
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn current() -> io::Result<&'static Process> {
        let own = generation();
        let known = |process: &Option<(u64, &'static Process)>| {
            process.as_ref().filter(|(generation, _)| *generation == own).map(|(_, process)| *process)
        };
        if let Some(process) = known(&PROCESS.lock()) {
            return Ok(process);
        }
        let first = Worker::start(0)?;
        let others = (1..THREADS).map_while(|number| Worker::start(number).ok()).collect();
        let (lookup, clients, hosts) = (Arc::default(), Mutex::default(), Mutex::default());
        let (cancelled_changes, tested) = (CancelledChanges::default(), Mutex::default());
        let made = Process { first, others, lookup, clients, hosts, cancelled_changes, tested };
        let mut process = PROCESS.lock();
        if let Some(first) = known(&process) {
            drop(process);
            drop(made);
            return Ok(first);
        }
        // It lives as long as the process: it is never dropped, on purpose.
        let made: &'static Process = Box::leak(Box::new(made));
        *process = Some((own, made));
        Ok(made)
    }

    /// Runs a task on the thread with the fewest tasks, the first of several (step 4).
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let load = |worker: &Worker| worker.tasks.load(Ordering::Relaxed);
        let less = |idlest, other| if load(other) < load(idlest) { other } else { idlest };
        let idlest = self.others.iter().fold(&self.first, less);
        let counted = Counted::new(&idlest.tasks);
        idlest
            .runtime
            .spawn(async move {
                let _counted = counted;
                task.await;
            })
            .abort_handle()
    }

    /// Returns this thread's client for a policy. All stores of the process share its connections.
    ///
    /// # Errors
    /// If TLS cannot be set up, for example because no root certificate can be read.
    pub fn client(
        &self,
        policy: &TransportPolicy,
        trust: &TrustedCertificates,
    ) -> Result<reqwest::Client, reqwest::Error> {
        let key = (NUMBER.get(), policy.connect, trust.clone());
        let known = |clients: &[(ClientKey, reqwest::Client)]| {
            clients.iter().find(|(known, _)| *known == key).map(|(_, client)| client.clone())
        };
        if let Some(client) = known(&self.clients.lock()) {
            return Ok(client);
        }
        // If the program has already chosen another TLS provider, keep that one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = trust
            .apply(reqwest::Client::builder())?
            .http1_only()
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_TIME)
            .connect_timeout(policy.connect)
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::clone(&self.lookup))
            .referer(false)
            .tcp_nodelay(true)
            .user_agent(concat!("zarrow/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let mut clients = self.clients.lock();
        if let Some(first) = known(&clients) {
            return Ok(first);
        }
        clients.push((key, made.clone()));
        Ok(made)
    }

    /// Returns the statistics of the host and port of a URL.
    pub fn host(&self, authority: &str) -> Arc<Host> {
        let mut hosts = self.hosts.lock();
        match hosts.get(authority) {
            Some(host) => Arc::clone(host),
            None => Arc::clone(hosts.entry(authority.to_owned()).or_default()),
        }
    }
}

/// A thread of the transport.
#[derive(Debug)]
struct Worker {
    runtime: Handle,
    /// Number of its tasks.
    tasks: Arc<AtomicUsize>,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Worker {
    fn start(number: usize) -> io::Result<Worker> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, (stop, stopped)) = (runtime.handle().clone(), oneshot::channel());
        thread::start("zarrow-cloud", move || {
            NUMBER.set(number);
            // The sender is dropped, never used.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Worker { runtime: handle, tasks: Arc::default(), _stop: stop })
    }
}

/// Counts a task of a thread until dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(tasks: &Arc<AtomicUsize>) -> Counted {
        tasks.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(tasks))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
