//! A forked child uses its parent's stores, with separate connections.

use crate::arrays::{adapter, store};
use crate::server::{Fault, Server};
use zarrow::store::Store;
use zarrow::store::remote::{ByteRange, Fetched, Request, fetch};

/// Runs `child` in a forked process; returns whether it returned true.
fn forked(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `child` and exits, without returning into the test harness.
    match unsafe { libc::fork() } {
        0 => {
            let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!matches!(status, Ok(true)))) }
        }
        pid => {
            assert!(pid > 0);
            let mut status = 0;
            for _ in 0..6_000 {
                // SAFETY: `pid` is a child of this process, and `status` is valid for writes.
                if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } != 0 {
                    return status == 0;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            // SAFETY: the child has not been awaited yet, so that its id is still in use.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            false
        }
    }
}

/// Runs the test below in a process of its own: the threads of other tests may hold locks of the standard library at
/// the fork, such as that of the output, which a child then waits for.
#[test]
fn a_child_reads_while_its_parent_reads_on() {
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let arguments = ["--exact", "--ignored", "--test-threads=1", "fork::a_child_of_this_process_reads"];
    let output = alone.args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by the test above, alone in its process"]
fn a_child_of_this_process_reads() {
    let server = Server::start(Box::new(|_, _| Some(Fault::Late)));
    server.objects(|objects| objects.put("bucket/a", (0..200).collect()));
    let (adapter, store) = (adapter(&server, "bucket", true), store(&server, "bucket", false));
    let expected: Option<Vec<u8>> = Some((0..200).collect());
    assert_eq!(adapter.get("a", 1000).unwrap(), expected);
    let read = || fetch(&store, Request::new("a", ByteRange::Range(5..9)), 10, &|| Ok(())).unwrap();
    let is_right = |fetched: Fetched| matches!(fetched, Fetched::Body(body) if body.bytes == [5, 6, 7, 8]);
    std::thread::scope(|scope| {
        // Requests are under way at each fork.
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..20).all(|_| is_right(read())))).collect();
        for _ in 0..5 {
            let child = || adapter.get("a", 1000).unwrap() == expected && is_right(read());
            assert!(forked(child));
        }
        // The child drops a store that only the parent used, and the parent can still use it.
        let other = crate::arrays::store(&server, "bucket", true);
        drop(fetch(&other, Request::new("a", ByteRange::Whole), 1000, &|| Ok(())).unwrap());
        let mut other = Some(other);
        assert!(forked(|| {
            drop(other.take());
            true
        }));
        assert!(readers.into_iter().all(|reader| reader.join().unwrap()));
    });
    assert_eq!(adapter.get("a", 1000).unwrap(), expected);
}
