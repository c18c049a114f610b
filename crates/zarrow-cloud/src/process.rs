//! What all stores of a process share: the threads of the transport, its connections, and what is known of each host.
//!
//! 1. It is made at the first request, and stays as long as the process.
//! 2. A forked child has none of the threads, and what they held locked stays locked: it forgets its parent's, by the number
//!    of the process, and makes its own. Nothing of the parent's is dropped there, since a TLS connection would say
//!    goodbye on a socket that is the parent's.
//! 3. Where the system refuses the threads, the request fails, and the next one tries again.

use crate::abandoned::Abandoned;
use crate::budget::Budget;
use crate::hedge::FirstBytes;
use crate::lookup::Lookup;
use crate::policy::TransportPolicy;
use crate::trust::Trust;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use zarrow_array::fork::{Mutex, generation};
use zarrow_array::thread;

/// Threads that move bytes between sockets and receivers; decoding has its own.
const THREADS: usize = 2;

/// Connections to a host that are kept for the next request: as many as may be in flight.
const IDLE_CONNECTIONS: usize = 256;

/// How long they are kept. Object stores close them after some twenty seconds.
const IDLE_TIME: Duration = Duration::from_secs(15);

/// How long a service that was not there is not asked again: opening asks for many documents, one after the other.
const ABSENCE: Duration = Duration::from_secs(5);

static PROCESS: Mutex<Option<(u64, &'static Process)>> = Mutex::new(None);

/// Shared by all stores of one process.
#[derive(Debug)]
pub struct Process {
    pub runtime: Runtime,
    lookup: Arc<Lookup>,
    clients: Mutex<Vec<(ClientKey, reqwest::Client)>>,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    /// Changes that were cancelled after they were sent.
    pub abandoned: Abandoned,
    /// The turn of the one writer that tests a server for conditions.
    pub tested: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// What makes one client differ from another.
type ClientKey = (Duration, Trust);

/// What is known of a host.
#[derive(Debug, Default)]
pub struct Host {
    /// How many requests it gets at once.
    pub budget: Budget,
    /// How long its answers take.
    pub first_bytes: FirstBytes,
    /// When a machine's own service was found not to be there.
    absent: Mutex<Option<Instant>>,
}

impl Host {
    /// Notes that nobody is there.
    pub fn is_gone(&self) {
        *self.absent.lock() = Some(Instant::now());
    }

    /// Whether nobody was there a moment ago.
    pub fn is_known_gone(&self) -> bool {
        self.absent.lock().is_some_and(|since| since.elapsed() < ABSENCE)
    }
}

impl Process {
    /// What the stores of this process share (steps 1 and 2).
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn current() -> io::Result<&'static Process> {
        let own = generation();
        let known = |process: &Option<(u64, &'static Process)>| {
            process.as_ref().filter(|(generation, _)| *generation == own).map(|(_, process)| *process)
        };
        if let Some(process) = known(&PROCESS.lock()) {
            return Ok(process);
        }
        let runtime = start_runtime()?;
        let (lookup, clients, hosts) = (Arc::default(), Mutex::default(), Mutex::default());
        let (abandoned, tested) = (Abandoned::default(), Mutex::default());
        let made = Process { runtime, lookup, clients, hosts, abandoned, tested };
        let mut process = PROCESS.lock();
        if let Some(first) = known(&process) {
            drop(process);
            made.runtime.shutdown_background();
            return Ok(first);
        }
        // It stays as long as the process: on purpose nothing ever drops it.
        let made: &'static Process = Box::leak(Box::new(made));
        *process = Some((own, made));
        Ok(made)
    }

    /// The client for requests under a policy, whose connections all stores of the process share.
    ///
    /// # Errors
    /// Where TLS cannot be set up: no certificate of a root can be read, for one.
    pub fn client(&self, policy: &TransportPolicy, trust: &Trust) -> Result<reqwest::Client, reqwest::Error> {
        let key = (policy.connect, trust.clone());
        let known = |clients: &[(ClientKey, reqwest::Client)]| {
            clients.iter().find(|(known, _)| *known == key).map(|(_, client)| client.clone())
        };
        if let Some(client) = known(&self.clients.lock()) {
            return Ok(client);
        }
        // Where the program has chosen another provider of TLS, that one stays.
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

    /// What is known of the host of a URL, with its port.
    pub fn host(&self, authority: &str) -> Arc<Host> {
        let mut hosts = self.hosts.lock();
        match hosts.get(authority) {
            Some(host) => Arc::clone(host),
            None => Arc::clone(hosts.entry(authority.to_owned()).or_default()),
        }
    }
}

/// The threads of the transport (step 3).
fn start_runtime() -> io::Result<Runtime> {
    // tokio panics if its first thread cannot start, and runs without further ones.
    let attempt = thread::start("zarrow-cloud", || {})?;
    // An empty closure does not panic, and until it has ended it counts as a thread.
    let _ = attempt.join();
    let build = || {
        Builder::new_multi_thread().worker_threads(THREADS).thread_name("zarrow-cloud").enable_all().build()
    };
    // Other threads may have come between.
    catch_unwind(AssertUnwindSafe(build)).unwrap_or_else(|_| {
        Err(io::Error::other("cannot start the threads that send requests: there are too many threads"))
    })
}
