//! Running the rows, and the table that comes of it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use glovebox_runtime::Backend;

use serde_json::json;

use crate::act::{Lacking, RefusedByBackend, runtime_refusal};
use crate::columns::{COLUMNS, Column};
use crate::engine;
use crate::guests::checkout;
use crate::house::House;
use crate::page::Page;
use crate::rows::{self, Promise};

/// The list of what hostile guests try, with the rows that try it.
const GUESTS: &str = "tests/guests/README.md";

/// Rows at one time: most of them wait for a clock.
const AT_ONCE: usize = 4;

/// What the command line chose.
#[derive(Default)]
pub(crate) struct Selection {
    words: Vec<String>,
    skipped: Vec<String>,
    /// The only column that is wanted.
    column: Option<String>,
    /// Only names are wanted.
    pub(crate) list: bool,
    /// The folder that the table is written to.
    pub(crate) write_to: Option<PathBuf>,
}

/// How a row went.
enum Cell {
    Kept(Vec<String>),
    Refused(String),
    /// It has no meaning for this backend.
    None(&'static str),
    /// It can't be tried on this machine.
    Skipped(String),
    Failed,
}

/// The rows that ran, with a cell for each column.
pub(crate) struct Table {
    rows: Vec<(Promise, Vec<Cell>)>,
    left_out: usize,
    took: Duration,
}

impl Selection {
    /// Understands what the usual test harness is given, and `--column NAME`.
    pub(crate) fn of(arguments: &[String]) -> Self {
        let mut selection = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => selection.list = true,
                "--reference" => selection.write_to = arguments.next().map(PathBuf::from),
                "--column" => selection.column = arguments.next().cloned(),
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
                if selection.column.as_deref().is_some_and(|only| only != column.name) {
                    rows.iter_mut().for_each(|(_, row)| row.push(Cell::Skipped("another column is wanted".into())));
                    continue;
                }
                let cells = run_column(column, &rows.iter().map(|(row, _)| *row).collect::<Vec<_>>());
                for ((_, row), cell) in rows.iter_mut().zip(cells) {
                    row.push(cell);
                }
            }
        }
        let part = usize::from(selection.column.is_some());
        Self { rows, left_out: left_out.len() + part, took: started.elapsed() }
    }

    /// Whether nothing was left out.
    pub(crate) fn is_whole(&self) -> bool {
        self.left_out == 0
    }

    /// The page. What could not be tried here is as it was committed.
    pub(crate) fn markdown(&self) -> String {
        let committed = Page::committed();
        let rows = self.rows.iter().map(|(row, cells)| {
            let shown = |(column, cell): (&Column, &Cell)| match cell {
                Cell::Skipped(_) => committed.cell(row.says, column.name).unwrap_or_else(|| UNKNOWN.to_owned()),
                cell => cell.shown(),
            };
            (row.about, row.says, COLUMNS.iter().zip(cells).map(shown).collect())
        });
        Page::written(&COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>(), rows)
    }

    /// Prints the closing line of a test program; whether no row failed.
    pub(crate) fn verdict(&self) -> bool {
        let count =
            |is: fn(&Cell) -> bool| self.rows.iter().flat_map(|(_, cells)| cells).filter(|cell| is(cell)).count();
        let failed = count(|cell| matches!(cell, Cell::Failed));
        let passed = count(|cell| matches!(cell, Cell::Kept(_) | Cell::Refused(_)));
        let ignored = count(|cell| matches!(cell, Cell::None(_) | Cell::Skipped(_)));
        let word = if failed == 0 { "ok" } else { "FAILED" };
        println!(
            "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
            self.left_out * COLUMNS.len(),
            self.took.as_secs_f64()
        );
        failed == 0
    }

    /// Writes the page into a folder, unless a row failed or is missing.
    pub(crate) fn write(&self, folder: &Path) -> bool {
        let failed = self.rows.iter().flat_map(|(_, cells)| cells).any(|cell| matches!(cell, Cell::Failed));
        let text = self.markdown();
        if failed || !self.is_whole() || text.contains(UNKNOWN) {
            eprintln!("nothing is written: not every promise was held; a new one has to be tried by every backend");
            return false;
        }
        Page::write(folder, &text);
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
        Page::committed().is(&self.markdown())
    }
}

/// What a cell shows that was never tried anywhere.
const UNKNOWN: &str = "**not tried**";

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Kept(ends) if ends.is_empty() => "kept".into(),
            Self::Kept(ends) => format!("kept: {}", ends.join(", ")),
            Self::Refused(clause) => format!("refused({clause})"),
            Self::None(why) => format!("n/a: {why}"),
            Self::Skipped(_) => UNKNOWN.into(),
            Self::Failed => "**FAILED**".into(),
        }
    }

    /// The word for it in the list of a test program.
    fn word(&self) -> String {
        match self {
            Self::Kept(_) | Self::Refused(_) => "ok".into(),
            Self::None(why) => format!("ignored, n/a: {why}"),
            Self::Skipped(why) => format!("ignored, skipped: {why}"),
            Self::Failed => "FAILED".into(),
        }
    }
}

fn run_column(column: &'static Column, rows: &[Promise]) -> Vec<Cell> {
    if let Some(why) = (column.lacks)() {
        return rows.iter().map(|row| told(column, row, Cell::Skipped(why.clone()))).collect();
    }
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
    if let Some((_, why)) = row.only.filter(|(kind, _)| *kind != column.kind) {
        return told(column, row, Cell::None(why));
    }
    let house = House::new(column, backend, cache);
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let refused = column.runtime.and_then(|runtime| refused_runtime(&house, runtime));
        refused.unwrap_or_else(|| {
            (row.proof)(&house);
            Cell::Kept(house.ends())
        })
    }));
    let cell = tried.unwrap_or_else(|payload| match payload.downcast::<RefusedByBackend>() {
        Ok(refused) => Cell::Refused(refused.0),
        Err(payload) => match payload.downcast::<Lacking>() {
            Ok(lacking) => Cell::Skipped(lacking.0.to_owned()),
            // The hook has printed why.
            Err(_) => Cell::Failed,
        },
    });
    told(column, row, cell)
}

fn told(column: &Column, row: &Promise, cell: Cell) -> Cell {
    println!("test {}: {} ... {}", column.name, row.says, cell.word());
    cell
}

/// Whether nothing of a row can be tried with the runtime of a column: the
/// backend refuses it before any tool begins. Where the engine has none of that
/// name, that is what it refuses, and what the runtime lacks is not seen.
fn refused_runtime(house: &House, runtime: &str) -> Option<Cell> {
    let seen = house.command(&json!({ "do": "nothing" })).submit().unwrap_or_else(|problem| panic!("{problem:?}"));
    let reason = runtime_refusal(&seen, runtime)?;
    match engine::lacks_runtime(runtime) {
        Some(why) => {
            assert!(reason.contains(&why), "refused for another reason than that {why}: {reason}");
            Some(Cell::Skipped(format!("{why}; that it is refused was tried")))
        }
        None => Some(Cell::Refused(format!("platform.runtime: {reason}"))),
    }
}
