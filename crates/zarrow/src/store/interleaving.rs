//! Runs writers of one value in every order of their steps, on the real stores.
//!
//! 1. Each writer is a thread that stops at each [`step`] until its turn, so that one runs at a time. At a step the
//!    schedule chooses the next writer, and every choice is tried: the first run takes the first choice everywhere, and
//!    each later run repeats an earlier one up to its last choice with an untried alternative, and takes that.
//! 2. A writer that waits for a lock is resumed when a lock was released, or when no other writer can run.
//! 3. Switching to another writer while the current one could continue is a preemption. Faults usually appear with few
//!    preemptions: two are tried, and one with three writers.
//! 4. Whenever an operation returns, the test reads the value. It must be the result of all returned operations and
//!    some of the operations in progress, in an order in which each operation follows the operations that had returned
//!    before it began. An operation that returned an error may have happened or not; but if it was a write through a
//!    store pinned to the node, the error means that the node was removed, and its effect is never visible.

use super::key::split;
use crate::store::{Durability, FilesystemStore, MemoryStore, Store, Version, join};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use zarrow_array::fork::{Condvar, Mutex};

thread_local! {
    /// This thread's run, and its number among the run's writers.
    static WRITER: RefCell<Option<(Arc<Run>, usize)>> = const { RefCell::new(None) };
}

/// Waits until the schedule chooses this writer; does nothing in other threads.
pub fn step(call: &'static str) {
    stop(State::Ready, call);
}

/// Works like [`step`], for a writer that waits for another.
pub fn pause(time: Duration) {
    if !stop(State::Paused, "wait") {
        std::thread::sleep(time);
    }
}

fn stop(state: State, call: &'static str) -> bool {
    WRITER.with_borrow(|writer| match writer {
        Some((run, number)) => {
            run.stop(*number, state, call);
            true
        }
        None => false,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Paused,
    Done,
}

/// One run of the writers.
#[derive(Default)]
struct Run {
    schedule: Mutex<Schedule>,
    /// Wakes each writer.
    turns: [Condvar; 3],
}

#[derive(Default)]
struct Schedule {
    /// State of each started writer.
    states: Vec<State>,
    /// Number of writers.
    count: usize,
    /// Writer to run now.
    turn: Option<usize>,
    preemptions: usize,
    most_preemptions: usize,
    /// Choices to repeat.
    prefix: Vec<usize>,
    /// Choices taken, each with the number of alternatives.
    choices: Vec<(usize, usize)>,
    trace: Vec<(usize, &'static str)>,
    history: Vec<Event>,
}

enum Event {
    Begin(usize, Operation),
    /// Writer, whether its operation succeeded, and the value at that time.
    Return(usize, bool, Value),
}

impl Run {
    fn stop(&self, number: usize, state: State, call: &'static str) {
        let mut schedule = self.schedule.lock();
        schedule.states[number] = state;
        if call == "unlock" {
            let paused = schedule.states.iter_mut().filter(|state| **state == State::Paused);
            paused.for_each(|state| *state = State::Ready);
        }
        let next = schedule.choose(Some(number));
        drop(schedule);
        if next == Some(number) {
            self.schedule.lock().trace.push((number, call));
            return;
        }
        self.wake(next);
        if state != State::Done {
            self.wait_for_turn(number, call);
        }
    }

    fn wake(&self, writer: Option<usize>) {
        writer.iter().for_each(|number| self.turns[*number].notify_all());
    }

    fn wait_for_turn(&self, number: usize, call: &'static str) {
        let mut schedule = self.schedule.lock();
        while schedule.turn != Some(number) {
            (schedule, _) = self.turns[number].wait(schedule, None);
        }
        schedule.trace.push((number, call));
    }
}

impl Schedule {
    fn choose(&mut self, at_work: Option<usize>) -> Option<usize> {
        let ready = |number: &usize| self.states[*number] == State::Ready;
        let mut able: Vec<usize> = at_work.into_iter().filter(ready).collect();
        let is_going_on = !able.is_empty();
        if !is_going_on || self.preemptions < self.most_preemptions {
            able.extend((0..self.count).filter(|number| Some(*number) != at_work).filter(ready));
        }
        if able.is_empty() {
            able.extend((0..self.count).find(|number| self.states[*number] == State::Paused));
        }
        // A run may differ from the earlier one that it repeats: a child forked by another test briefly holds a copy of
        // a lock, and a writer waits once more. Then there may be fewer choices.
        let taken = self.prefix.get(self.choices.len()).copied().unwrap_or(0);
        let taken = taken.min(able.len().saturating_sub(1));
        self.turn = able.get(taken).copied();
        self.preemptions += usize::from(is_going_on && taken > 0);
        self.choices.push((taken, able.len()));
        self.turn
    }
}

/// Two elements; nothing is stored if both are 0.
type Value = [u8; 2];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// Sets both elements, without reading.
    Whole(u8),
    /// Sets the first element, under the lock.
    Part(u8),
    /// Sets the second element, under the lock.
    OtherPart(u8),
    /// Erases like a chunk of an array that is made smaller.
    Shrink,
    /// Erases like the folder of a deleted array.
    Delete,
    /// Erases like a deleted array, with its document.
    DeleteNode,
    /// Replaces the node like a new array with its own document.
    ReplaceNode(u8),
    /// Writes like a whole chunk through a handle, which looks up the array before and after.
    Pinned(u8),
    /// Sweeps leftovers; changes no value.
    Sweep,
}

impl Operation {
    fn apply(self, [first, second]: Value) -> Value {
        match self {
            Operation::Whole(number) => [number; 2],
            Operation::Part(number) => [number, second],
            Operation::OtherPart(number) => [first, number],
            Operation::Shrink | Operation::Delete | Operation::DeleteNode => [0; 2],
            Operation::ReplaceNode(number) | Operation::Pinned(number) => [number; 2],
            Operation::Sweep => [first, second],
        }
    }

    fn run(self, store: &dyn Store, key: &str) -> crate::Result<()> {
        let (folder, writer) = (split(key).0, store.writer().unwrap());
        let node = split(folder).0;
        match self {
            Operation::Whole(number) => {
                let value = [number; 2];
                let parts: &[&[u8]] = &[&value];
                writer.overwrite(key, (number > 0).then_some(parts), Durability::None, &|| Ok(()))
            }
            Operation::Part(_) | Operation::OtherPart(_) => {
                let lock = writer.lock(key, &|| Ok(()))?;
                step("read");
                match self.apply(look(store, key)) {
                    [0, 0] => writer.erase_under(&*lock, Durability::None).map(drop),
                    value => writer.set_under(&*lock, &[&value], Durability::None),
                }
            }
            Operation::Shrink => writer.erase_each(vec![key.to_owned()], Durability::None),
            Operation::Delete => writer.erase_prefix(folder, Durability::None).map(drop),
            Operation::DeleteNode => writer.erase_prefix(node, Durability::None).map(drop),
            Operation::ReplaceNode(number) => {
                let stage = writer.stage(node, Durability::None)?.unwrap();
                let inside = stage.store().writer().unwrap();
                inside.set(DOCUMENT, &[b"new"], Durability::None)?;
                inside.set(&key[node.len() + 1..], &[&[number; 2]], Durability::None)?;
                step("replace the node");
                stage.publish(true, &[DOCUMENT])?.clear()
            }
            Operation::Pinned(number) => {
                let gone = || crate::Error::from(crate::ErrorKind::NotFound);
                step("pin the node");
                let pinned = store.subtree(node)?.ok_or_else(gone)?;
                let before = pinned.version_of(DOCUMENT)?;
                if before == Version::Missing {
                    return Err(gone());
                }
                let chunk = &key[node.len() + 1..];
                let value: &[u8] = &[number; 2];
                pinned.writer().unwrap().overwrite(chunk, Some(&[value]), Durability::None, &|| Ok(()))?;
                step("check whether the node still exists");
                if store.version_of(&join(node, DOCUMENT))? == before { Ok(()) } else { Err(gone()) }
            }
            Operation::Sweep => writer.sweep(folder).map(drop),
        }
    }
}

/// The document that makes its folder a node.
const DOCUMENT: &str = "zarr.json";

fn look(store: &dyn Store, key: &str) -> Value {
    store.get(key, 2).unwrap().map_or([0; 2], |value| value.try_into().unwrap())
}

/// Performs one run, starting with the choices of `prefix`.
fn run(
    store: &dyn Store,
    key: &str,
    writers: &[&[Operation]],
    most_preemptions: usize,
    prefix: Vec<usize>,
) -> Schedule {
    let set = |key: &str, value: &[u8]| store.writer().unwrap().set(key, &[value], Durability::None).unwrap();
    set(key, &BEFORE);
    set(&join(split(split(key).0).0, DOCUMENT), b"old");
    let schedule = Schedule {
        states: vec![State::Ready; writers.len()],
        count: writers.len(),
        most_preemptions,
        prefix,
        ..Schedule::default()
    };
    let run = Arc::new(Run { schedule: Mutex::new(schedule), ..Run::default() });
    std::thread::scope(|scope| {
        for (number, operations) in writers.iter().enumerate() {
            let run = Arc::clone(&run);
            scope.spawn(move || {
                run.wait_for_turn(number, "begin");
                WRITER.set(Some((Arc::clone(&run), number)));
                for operation in *operations {
                    run.schedule.lock().history.push(Event::Begin(number, *operation));
                    let result = operation.run(store, key);
                    let value = look(store, key);
                    run.schedule.lock().history.push(Event::Return(number, result.is_ok(), value));
                }
                WRITER.set(None);
                run.stop(number, State::Done, "end");
            });
        }
        let first = run.schedule.lock().choose(None);
        run.wake(first);
    });
    std::mem::take(&mut *run.schedule.lock())
}

/// Value when the writers start.
const BEFORE: Value = [5, 6];

/// An operation in a history: when it began and returned, if it did, and whether it must have happened.
struct Span {
    operation: Operation,
    begin: usize,
    end: usize,
}

/// Step 4: returns the first observed value that is inconsistent with every order.
fn unexplained(history: &[Event], writers: usize) -> Option<Value> {
    let mut under_way: Vec<Option<usize>> = vec![None; writers];
    let mut spans: Vec<Span> = Vec::new();
    let mut must: Vec<bool> = Vec::new();
    for (time, event) in history.iter().enumerate() {
        match event {
            Event::Begin(writer, operation) => {
                under_way[*writer] = Some(spans.len());
                spans.push(Span { operation: *operation, begin: time, end: usize::MAX });
                must.push(false);
            }
            Event::Return(writer, is_ok, value) => {
                let number = under_way[*writer].take().unwrap();
                spans[number].end = time;
                must[number] = *is_ok;
                if let (false, Operation::Pinned(_)) = (*is_ok, spans[number].operation) {
                    // It had no visible effect.
                    spans[number].operation = Operation::Sweep;
                }
                if !is_explained(&spans, &must, 0, BEFORE, *value) {
                    return Some(*value);
                }
            }
        }
    }
    None
}

/// Whether the operations outside `done` lead from `value` to `wanted`.
fn is_explained(spans: &[Span], must: &[bool], done: u32, value: Value, wanted: Value) -> bool {
    let left = |number: &usize| done & (1 << number) == 0;
    if value == wanted && !(0..spans.len()).any(|number| left(&number) && must[number]) {
        return true;
    }
    (0..spans.len()).filter(left).any(|number| {
        // An operation that has surely happened, and had returned before this one began, precedes it.
        let is_next = !(0..spans.len())
            .any(|other| left(&other) && must[other] && spans[other].end < spans[number].begin);
        let after = spans[number].operation.apply(value);
        is_next && is_explained(spans, must, done | 1 << number, after, wanted)
    })
}

/// Runs the writers in every order, on a store of each kind; returns the number of orders.
fn explore(writers: &[&[Operation]], most_preemptions: usize) -> usize {
    let memory = std::path::Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let stores: [&dyn Store; 2] = [&FilesystemStore::create(folder.path()).unwrap(), &MemoryStore::default()];
    stores.into_iter().map(|store| explore_in(store, writers, most_preemptions)).sum()
}

fn explore_in(store: &dyn Store, writers: &[&[Operation]], most_preemptions: usize) -> usize {
    let (mut prefix, mut runs) = (Vec::new(), 0);
    loop {
        let node = format!("{}/a", runs % 64);
        let key = join(&node, "c/0");
        let ran = run(store, &key, writers, most_preemptions, prefix);
        runs += 1;
        if let Some(value) = unexplained(&ran.history, writers.len()) {
            panic!("{}, {writers:?}: {value:?} after {:#?}", store.name(), ran.trace);
        }
        store.writer().unwrap().erase_prefix(&node, Durability::None).unwrap();
        let mut choices = ran.choices;
        while choices.pop_if(|(taken, able)| *taken + 1 >= *able).is_some() {}
        let Some((last, _)) = choices.last_mut() else { return runs };
        *last += 1;
        prefix = choices.into_iter().map(|(taken, _)| taken).collect();
    }
}

use Operation::{Delete, DeleteNode, OtherPart, Part, Pinned, ReplaceNode, Shrink, Sweep, Whole};

/// Any two operations on one value, in every order of their steps.
#[test]
fn two_writers_lose_nothing() {
    let all = [Whole(1), Whole(0), Part(2), OtherPart(0), Shrink, Delete, Sweep];
    let mut runs = 0;
    for (number, first) in all.iter().enumerate() {
        for second in &all[number..] {
            runs += explore(&[&[*first], &[*second]], 2);
        }
    }
    assert!(runs > 1000, "{runs}");
}

#[test]
fn three_writers_lose_nothing() {
    let mut runs = 0;
    for first in [Whole(1), Whole(0), Delete, Shrink] {
        for others in [
            [Part(2), OtherPart(3)],
            [Part(0), OtherPart(0)],
            [Part(2), Whole(4)],
            [Part(2), Delete],
            [Part(2), Sweep],
        ] {
            runs += explore(&[&[first], &[others[0]], &[others[1]]], 1);
        }
    }
    assert!(runs > 1000, "{runs}");
}

/// Later operations of one writer see the earlier ones.
#[test]
fn writers_of_several_values_lose_nothing() {
    let runs = explore(&[&[Whole(1), Part(2)], &[OtherPart(3), Whole(0)]], 2)
        + explore(&[&[Part(2), Shrink], &[OtherPart(0), Part(4)]], 2)
        + explore(&[&[Delete, Whole(1)], &[Part(2), OtherPart(3)]], 2);
    assert!(runs > 100, "{runs}");
}

/// A writer that has opened a node before its removal or replacement leaves nothing behind.
#[test]
fn nothing_is_written_to_the_successor_of_a_node() {
    let mut runs = 0;
    for first in [DeleteNode, ReplaceNode(2)] {
        runs += explore(&[&[Pinned(1)], &[first]], 2)
            + explore(&[&[Pinned(1)], &[first, Whole(3)]], 2)
            + explore(&[&[Pinned(1), Pinned(4)], &[first]], 1)
            + explore(&[&[Pinned(1)], &[first], &[Part(3)]], 1);
    }
    assert!(runs > 100, "{runs}");
}
