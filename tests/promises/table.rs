//! Running the rows, and the table that comes of it.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use glovebox_runtime::Backend;

use crate::act::RefusedByBackend;
use crate::columns::{COLUMNS, Column};
use crate::guests::checkout;
use crate::house::House;
use crate::rows::{self, Promise};

/// The committed table.
const PAGE: &str = "docs/promises.md";

/// The list of what hostile guests try, with the rows that try it.
const GUESTS: &str = "tests/guests/README.md";

/// Rows at one time: most of them wait for a clock.
const AT_ONCE: usize = 4;

const HEAD: &str = "\
# Promises

What an action can rely on, and which backend keeps it. Every row is a test of `tests/promises`: it sends requests to
guests that try to break the promise, and looks at what came back and at the host afterwards. *kept* names how such
an action ends; *refused* means that the backend can't keep the promise and says so before anything runs, naming the
clause. `cargo xtask gen` writes this page.

";

/// What the command line chose.
#[derive(Default)]
pub(crate) struct Selection {
    words: Vec<String>,
    skipped: Vec<String>,
    /// Only names are wanted.
    pub(crate) list: bool,
    /// The folder that the table is written to.
    pub(crate) write_to: Option<PathBuf>,
}

/// How a row went.
enum Cell {
    Kept(Vec<String>),
    Refused(String),
    Failed,
}

/// The rows that ran, with a cell for each column.
pub(crate) struct Table {
    rows: Vec<(Promise, Vec<Cell>)>,
    left_out: usize,
    took: Duration,
}

impl Selection {
    /// Understands what the usual test harness is given.
    pub(crate) fn of(arguments: &[String]) -> Self {
        let mut selection = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => selection.list = true,
                "--reference" => selection.write_to = arguments.next().map(PathBuf::from),
                "--skip" => selection.skipped.extend(arguments.next().cloned()),
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                option if option.starts_with('-') => {}
                word => selection.words.push(word.to_owned()),
            }
        }
        selection
    }

    fn takes(&self, row: &Promise) -> bool {
        let holds = |words: &[String]| words.iter().any(|word| row.says.contains(word.as_str()));
        (self.words.is_empty() || holds(&self.words)) && !holds(&self.skipped)
    }
}

impl Table {
    /// Runs the chosen rows against every column.
    pub(crate) fn run(selection: &Selection) -> Self {
        let started = Instant::now();
        let all = rows::all();
        let (chosen, left_out): (Vec<_>, Vec<_>) = all.into_iter().partition(|row| selection.takes(row));
        let mut rows: Vec<(Promise, Vec<Cell>)> = chosen.into_iter().map(|row| (row, Vec::new())).collect();
        if !rows.is_empty() {
            for column in COLUMNS {
                let cells = run_column(column, &rows.iter().map(|(row, _)| *row).collect::<Vec<_>>());
                for ((_, row), cell) in rows.iter_mut().zip(cells) {
                    row.push(cell);
                }
            }
        }
        Self { rows, left_out: left_out.len(), took: started.elapsed() }
    }

    /// Whether nothing was left out.
    pub(crate) fn is_whole(&self) -> bool {
        self.left_out == 0
    }

    /// The page.
    pub(crate) fn markdown(&self) -> String {
        let mut text = HEAD.to_owned();
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        let _ = writeln!(text, "| about | promise | {} |", names.join(" | "));
        let _ = writeln!(text, "|---|---|{}", "---|".repeat(names.len()));
        for (row, cells) in &self.rows {
            let cells: Vec<_> = cells.iter().map(Cell::shown).collect();
            let _ = writeln!(text, "| {} | {} | {} |", row.about, row.says, cells.join(" | "));
        }
        text
    }

    /// Prints the closing line of a test program; whether no row failed.
    pub(crate) fn verdict(&self) -> bool {
        let cells = || self.rows.iter().flat_map(|(_, cells)| cells);
        let failed = cells().filter(|cell| matches!(cell, Cell::Failed)).count();
        let passed = cells().count() - failed;
        let word = if failed == 0 { "ok" } else { "FAILED" };
        println!(
            "test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
            self.left_out * COLUMNS.len(),
            self.took.as_secs_f64()
        );
        failed == 0
    }

    /// Writes the page into a folder, unless a row failed or is missing.
    pub(crate) fn write(&self, folder: &Path) -> bool {
        let failed = self.rows.iter().flat_map(|(_, cells)| cells).any(|cell| matches!(cell, Cell::Failed));
        if failed || !self.is_whole() {
            eprintln!("nothing is written: not every promise was held");
            return false;
        }
        let name = Path::new(PAGE).file_name().unwrap();
        fs_err::write(folder.join(name), self.markdown()).unwrap();
        true
    }

    /// Whether the committed pages are about this table.
    pub(crate) fn compare(&self) -> bool {
        let there = self.names_only_rows_that_are_there();
        self.is_committed() && there
    }

    /// The list of hostile guests names rows by their beginning.
    fn names_only_rows_that_are_there(&self) -> bool {
        let text = fs_err::read_to_string(checkout(GUESTS)).unwrap();
        let (_, list) = text.split_once("## What hostile guests try").unwrap();
        let tests = list.lines().filter_map(|line| line.split(" | ").nth(2));
        let named = tests.flat_map(|test| test.split('"').skip(1).step_by(2));
        let is_there = |name: &&str| self.rows.iter().any(|(row, _)| row.says.starts_with(name));
        let missing: Vec<_> = named.filter(|name| !is_there(name)).collect();
        if !missing.is_empty() {
            eprintln!("{GUESTS} names rows that are not in the table: {missing:?}");
        }
        missing.is_empty()
    }

    fn is_committed(&self) -> bool {
        let committed = fs_err::read_to_string(checkout(PAGE)).unwrap_or_default();
        let markdown = self.markdown();
        if committed == markdown {
            return true;
        }
        let differs = |(old, new): &(&str, &str)| old != new;
        let first = committed.lines().zip(markdown.lines()).find(differs);
        let (old, new) = first.unwrap_or(("fewer or more lines", "fewer or more lines"));
        eprintln!("{PAGE} is not this table: run `cargo xtask gen`, look at the difference and commit it");
        eprintln!("first difference:\n- {old}\n+ {new}");
        false
    }
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Kept(ends) if ends.is_empty() => "kept".into(),
            Self::Kept(ends) => format!("kept: {}", ends.join(", ")),
            Self::Refused(clause) => format!("refused({clause})"),
            Self::Failed => "**FAILED**".into(),
        }
    }
}

fn run_column(column: &'static Column, rows: &[Promise]) -> Vec<Cell> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("promises-{}", column.name));
    let backend = (column.backend)(&cache).unwrap_or_else(|problem| panic!("{}: {problem:?}", column.name));
    let cells: Vec<Mutex<Option<Cell>>> = rows.iter().map(|_| Mutex::new(None)).collect();
    let (alone, together): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(|&at| rows[at].alone);
    let todo = Mutex::new(VecDeque::from(together));
    let work = |at: usize| {
        *cells[at].lock().unwrap() = Some(run_row(column, &rows[at], backend.clone(), &cache));
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(at) = todo.lock().unwrap().pop_front() else { break };
                    work(at);
                }
            });
        }
    });
    alone.into_iter().for_each(work);
    cells.into_iter().map(|cell| cell.into_inner().unwrap().unwrap()).collect()
}

fn run_row(column: &'static Column, row: &Promise, backend: Arc<dyn Backend>, cache: &Path) -> Cell {
    let house = House::new(column, backend, cache);
    let cell = match catch_unwind(AssertUnwindSafe(|| (row.proof)(&house))) {
        Ok(()) => Cell::Kept(house.ends()),
        Err(payload) => match payload.downcast::<RefusedByBackend>() {
            Ok(refused) => Cell::Refused(refused.0),
            // The hook has printed why.
            Err(_) => Cell::Failed,
        },
    };
    let word = if matches!(cell, Cell::Failed) { "FAILED" } else { "ok" };
    println!("test {}: {} ... {word}", column.name, row.says);
    cell
}
