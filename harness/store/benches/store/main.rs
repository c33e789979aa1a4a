//! Commits against bare SQLite: the same rows in the same tables with the same
//! settings, in the same run.
//!
//! "Bare" is the least that a program has to do: one connection, prepared
//! statements, everything serialised and hashed beforehand, no condition looked
//! at, no thread.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints a table and may end with a panic")]

mod actions;
mod bare;
mod fill;
mod large;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actions::{claim_first, in_one, opened};
use bare::Bare;
use glovebox_store::{Commit, Options, Sqlite, Store, StoreError};

/// How long one side is measured before it is the other's turn: what else the
/// machine does hits both alike.
const SLICE: Duration = Duration::from_millis(250);
/// Turns of each side.
const TURNS: usize = 12;
/// Callers of the throughput figures.
const CALLERS: usize = 64;

fn main() {
    // `cargo test --benches` only wants to know that it links.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!(
        "{:<36} {:>12} {:>12} {:>7} {:>12} {:>12}",
        "one caller", "bare p50", "ours p50", "ratio", "bare p99", "ours p99"
    );
    one_caller("all in one commit", in_one);
    one_caller("claimed first, then ended", claim_first);
    reads();
    println!("\n{:<36} {:>12}", "64 callers", "actions/s");
    many_callers("all in one commit", in_one);
    many_callers("claimed first, then ended", claim_first);
    if std::env::args().any(|argument| argument == "--large") {
        large::compare();
    }
}

/// The commits of one action.
type Make = fn(usize) -> Vec<Commit>;

/// An action with one caller, and one bare transaction with its rows.
fn one_caller(title: &str, make: Make) {
    let (ours, bare) = (Ours::new(), Bare::new());
    let mut times = [Vec::new(), Vec::new()];
    let mut n = 0;
    for _ in 0..TURNS {
        let start = Instant::now();
        while start.elapsed() < SLICE {
            // The floor is one transaction, whatever the action takes.
            let rows = bare.rows(make(n));
            n += 1;
            let start = Instant::now();
            bare.write(&rows);
            times[0].push(start.elapsed());
        }
        ours.measure(make, &mut n, &mut times[1]);
    }
    let [mut bare, mut ours] = times;
    let mut at = |place| (percentile(&mut bare, place), percentile(&mut ours, place));
    let ((bare50, ours50), (bare99, ours99)) = (at(50), at(99));
    println!(
        "{title:<36} {bare50:>9.0} us {ours50:>9.0} us {:>7.2} {bare99:>9.0} us {ours99:>9.0} us",
        ours50 / bare50
    );
}

/// Questions that are asked for each action.
fn reads() {
    let ours = Ours::new();
    ours.measure(in_one, &mut 0, &mut Vec::new());
    let commit = in_one(0).remove(0);
    let (tenant, id) = (commit.log.tenant.clone(), commit.events[0].action.clone().unwrap());
    let task = "task-0".parse().unwrap();
    let ask = |title: &str, question: &dyn Fn()| {
        let mut times = Vec::new();
        for _ in 0..10_000 {
            let start = Instant::now();
            question();
            times.push(start.elapsed());
        }
        println!("{title:<36} {:>9.1} us", percentile(&mut times, 50));
    };
    println!("\n{:<36} {:>12}", "one question", "p50");
    ask("whether everything is stopped", &|| assert!(ours.store.halted().unwrap().is_none()));
    ask("an action", &|| assert!(ours.store.action(&tenant, &id).unwrap().is_some()));
    ask("a commit that meets a conflict", &|| {
        let again = ours.runtime.block_on(ours.store.commit(commit.clone()));
        assert!(matches!(again, Err(StoreError::Conflict(_))));
    });
    ask("what a task used", &|| assert!(ours.store.task(&tenant, &task).unwrap().used.actions > 0));
    ours.runtime.block_on(ours.store.commit(opened("task-0"))).unwrap();
    ask("and what it is, where it was opened", &|| assert!(ours.store.task(&tenant, &task).unwrap().record.is_some()));
}

fn many_callers(title: &str, make: Make) {
    let ours = Ours::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (start, length) = (Instant::now(), SLICE * 12);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let store = Arc::clone(&ours.store);
            runtime.spawn(async move {
                let mut done = 0;
                while start.elapsed() < length {
                    for commit in make(caller * 1_000_000 + done) {
                        store.commit(commit).await.unwrap();
                    }
                    done += 1;
                }
                done
            })
        })
        .collect();
    let done: usize = callers.into_iter().map(|caller| runtime.block_on(caller).unwrap()).sum();
    println!("{title:<36} {:>12.0}", done as f64 / start.elapsed().as_secs_f64());
}

/// A store of ours.
pub(crate) struct Ours {
    store: Arc<Sqlite>,
    _folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Ours {
    pub(crate) fn new() -> Self {
        Self::filled(|_| {})
    }

    /// With what this puts into its file.
    pub(crate) fn filled(fill: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        drop(Sqlite::open(folder.path(), &Options::default()).unwrap());
        fill(folder.path());
        let store = Arc::new(Sqlite::open(folder.path(), &Options::default()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { store, _folder: folder, runtime }
    }

    /// Actions of one caller, for the length of a slice.
    pub(crate) fn measure(&self, make: Make, n: &mut usize, times: &mut Vec<Duration>) {
        let begin = Instant::now();
        while begin.elapsed() < SLICE {
            let commits = make(*n);
            *n += 1;
            let start = Instant::now();
            self.runtime.block_on(async {
                for commit in commits {
                    self.store.commit(commit).await.unwrap();
                }
            });
            times.push(start.elapsed());
        }
    }
}

/// The time below which so many of a hundred lie, in microseconds.
pub(crate) fn percentile(times: &mut [Duration], place: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * place / 100].as_secs_f64() * 1e6
}
