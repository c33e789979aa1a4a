//! Every attack, behind nothing, behind each wall alone, and behind all.

use glovebox_jail::{Attempt, Layers, syscall_name};

use crate::inmate::{Outcome, run};

const LANDLOCK: &str = "landlock";
const FILTERS: &str = "report,template,cell";
const CELL: &str = "privileges,descriptors,report,template,landlock,limits,cell";
const COMPILER: &str = "privileges,descriptors,landlock,report,compile";

fn attempt(walls: &str, attempt: &Attempt) -> Outcome {
    run(walls, attempt.name(), &[])
}

fn refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(libc::EACCES | libc::EPERM))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What the filters answer to an attack that they forbid.
fn forbidden(attempt: &Attempt) -> Option<Outcome> {
    if attempt.name() == "call-32-bit" {
        return Some(Outcome::Killed(libc::SIGSYS));
    }
    attempt.forbidden_call().map(|call| Outcome::Violation(syscall_name(call).into_owned()))
}

/// Whether this kernel's Landlock refuses it.
fn behind_landlock(attempt: &Attempt) -> bool {
    attempt.landlock_from().is_some_and(|from| Layers::probe().landlock.is_some_and(|abi| abi >= from))
}

#[test]
fn nothing_else_holds_them_back() {
    for row in Attempt::all() {
        let outcome = attempt("", row);
        // What a wall refuses otherwise must be possible, or the wall would be
        // shown by nothing. Others may be missing in this kernel, and the
        // first process may have more privileges than the test.
        let must = row.landlock_from().is_some() && is_root() && row.name() != "read-environment-of-init";
        let possible = outcome == Outcome::Done;
        assert!(possible || !must, "{}: {outcome:?}", row.name());
        assert!(!matches!(outcome, Outcome::Violation(_)), "{}: {outcome:?}", row.name());
    }
}

#[test]
fn landlock_alone() {
    for row in Attempt::all() {
        let outcome = attempt(LANDLOCK, row);
        if behind_landlock(row) {
            assert!(refused(&outcome), "{}: {outcome:?}", row.name());
        } else {
            assert_eq!(outcome, attempt("", row), "{}", row.name());
        }
    }
}

#[test]
fn the_filters_alone() {
    for row in Attempt::all() {
        let outcome = attempt(FILTERS, row);
        match forbidden(row) {
            Some(expected) => assert_eq!(outcome, expected, "{}", row.name()),
            None => assert_eq!(outcome, attempt("", row), "{}", row.name()),
        }
    }
}

/// What waits for orders can do more than a cell, and no more than this.
#[test]
fn a_template_can_do_what_its_work_takes() {
    let work =
        ["watch-parent", "send-descriptor", "receive-descriptor", "replace-reporting", "add-filter", "name-process"];
    for row in Attempt::all() {
        let outcome = attempt("report,template", row);
        match forbidden(row) {
            Some(expected) if !work.contains(&row.name()) => assert_eq!(outcome, expected, "{}", row.name()),
            _ => assert_eq!(outcome, attempt("", row), "{}", row.name()),
        }
    }
}

/// What a cell takes from itself, without the template's list behind it.
#[test]
fn a_cell_gives_up_the_work_of_its_template() {
    let lost = [
        "watch-parent",
        "send-descriptor",
        "receive-descriptor",
        "replace-reporting",
        "add-filter",
        "name-process",
        "fork",
        "limit-parent",
        "signal-thread-of-parent",
    ];
    for name in lost {
        let row = Attempt::named(name).unwrap();
        assert_eq!(Some(attempt("report,cell", row)), forbidden(row), "{name}");
    }
}

#[test]
fn a_whole_cell() {
    for row in Attempt::all() {
        let outcome = attempt(CELL, row);
        match forbidden(row) {
            Some(expected) => assert_eq!(outcome, expected, "{}", row.name()),
            None => assert!(refused(&outcome), "{}: {outcome:?}", row.name()),
        }
    }
}

#[test]
fn a_whole_compiler() {
    for row in Attempt::all() {
        let outcome = attempt(COMPILER, row);
        let expected = match row.name() {
            // Answered as if the kernel did not have it; see the filter.
            "start-thread" => Outcome::Refused(libc::ENOSYS),
            // Threads have names, and nothing follows from them.
            "name-process" => Outcome::Done,
            _ => forbidden(row).unwrap_or(Outcome::Refused(libc::ENOSYS)),
        };
        assert_eq!(outcome, expected, "{}", row.name());
    }
}

#[test]
fn every_attempt_has_its_own_name_and_a_wall() {
    for row in Attempt::all() {
        assert!(std::ptr::eq(Attempt::named(row.name()).unwrap(), row), "{}", row.name());
        let walled = row.landlock_from().is_some() || forbidden(row).is_some();
        assert!(walled, "{}", row.name());
    }
}
