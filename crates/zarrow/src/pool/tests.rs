//! Threads of a job, helpers, and their limits.

use super::*;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

fn never() -> bool {
    false
}

#[test]
fn every_task_runs_once_and_may_borrow() {
    let seen: Vec<AtomicU64> = (0..1000).map(|_| AtomicU64::new(0)).collect();
    for _ in 0..20 {
        run(1000, 3, &never, &|number, _, _| {
            seen[number as usize].fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
        .unwrap();
    }
    assert!(seen.iter().all(|count| count.load(Ordering::SeqCst) == 20));
}

#[test]
fn errors_and_panics_reach_the_caller() {
    let error = run(100, 3, &never, &|number, _, _| match number {
        7 => Err(ErrorKind::NotFound.into()),
        _ => Ok(()),
    });
    assert_eq!(error.unwrap_err().kind().code(), "not_found");
    let error = run(100, 3, &never, &|number, _, _| if number == 7 { panic!("seven") } else { Ok(()) });
    assert!(matches!(error.unwrap_err().kind(), ErrorKind::Internal(text) if text == "seven"));
}

#[test]
fn many_callers_share_the_threads() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let sum = AtomicU64::new(0);
                    run(20, 3, &never, &|number, _, _| {
                        sum.fetch_add(number, Ordering::SeqCst);
                        Ok(())
                    })
                    .unwrap();
                    assert_eq!(sum.load(Ordering::SeqCst), 190);
                }
            });
        }
    });
}

#[test]
fn a_question_that_panics_is_an_error() {
    let busy = |_, _: &mut Worker, _: &Checkpoint<'_>| {
        std::thread::sleep(Duration::from_millis(2));
        Ok(())
    };
    let result = run(1000, 3, &|| panic!("question"), &busy);
    assert!(matches!(result.unwrap_err().kind(), ErrorKind::Internal(text) if text == "question"));
}

#[test]
fn a_job_that_was_cancelled_has_an_error() {
    for _ in 0..2000 {
        let open = OpenJob::new();
        let (sender, receiver) = std::sync::mpsc::channel();
        let own = open.clone();
        let task = move |_, _: &mut Worker, _: &Checkpoint<'_>| {
            if !own.is_over() {
                own.add(1);
            }
            Ok(())
        };
        open.spawn(Arc::new(task), Box::new(move |result| sender.send(result).unwrap())).unwrap();
        open.add(1);
        open.cancel();
        let result = receiver.recv().unwrap();
        assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted));
    }
}

#[test]
fn a_long_task_stops_at_a_checkpoint() {
    let endless = |_, _: &mut Worker, checkpoint: &Checkpoint<'_>| loop {
        checkpoint.pass()?;
    };
    for threads in [1, 3] {
        let result = run(3, threads, &|| true, &endless);
        assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted));
    }
}

#[test]
fn a_caller_can_stop() {
    let slow = |_, _: &mut Worker, _: &Checkpoint<'_>| {
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    };
    let result = run(100_000, 3, &|| true, &slow);
    assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted));
}
