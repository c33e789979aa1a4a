//! Which system calls are left.

mod calls;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::error::{JailError, Result};

/// What a filter is for. Filters add up: a process under two of them can do
/// what both allow, and none is ever taken back.
///
/// A forbidden call raises a signal; see
/// [`report_violations`](crate::report_violations). A call in the form of
/// another processor (32 bits) ends the process at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// For a process with one thread that waits for orders and forks: what
    /// such a process needs, what its children need to shut themselves in, and
    /// what a guest's files, timers and memory need. No new executable memory,
    /// so machine code must have been mapped before; no program, no thread, no
    /// socket. Installed once, because its length is what costs; children
    /// inherit it.
    Template,
    /// For a child of such a process, on top, once it has shut itself in:
    /// takes away what served that purpose. Short, because it is installed for
    /// every action.
    Cell,
    /// For a compiler: computes with threads, reads and writes what is open.
    /// Opens nothing.
    Compile,
}

/// One line of a table: these calls, when one of these holds (or always).
struct Rule {
    calls: &'static [libc::c_long],
    when: &'static [Test],
    /// Whether all of them must hold.
    all: bool,
}

/// What is asked of an argument, by its place. Only the lower 32 bits count,
/// as they do for the kernel in every call that is tested.
#[derive(Clone, Copy)]
enum Test {
    Is(u8, u32),
    Not(u8, u32),
    /// Of the bits in the second, exactly those in the third are set.
    Bits(u8, u32, u32),
}

/// A filter that is ready to be installed: building one takes longer than
/// installing it, and can be done before anybody waits.
#[derive(Debug)]
pub struct Prepared(Vec<BpfProgram>);

impl Prepared {
    /// Installs it for this thread and everything that it starts. New
    /// privileges are renounced with it.
    ///
    /// # Errors
    /// When the kernel has no filters or refuses this one.
    pub fn install(&self) -> Result<()> {
        self.0.iter().try_for_each(|program| apply_filter(program).map_err(JailError::Seccomp))
    }
}

/// Prepares and installs a filter.
///
/// # Errors
/// Those of both.
pub fn install(filter: Filter) -> Result<()> {
    prepare(filter)?.install()
}

/// Builds a filter for this process; in another, even a child, it would be the
/// wrong one.
///
/// # Errors
/// When it is not valid, which is a bug.
pub fn prepare(filter: Filter) -> Result<Prepared> {
    // Looks once, and in a way that the filters forbid, for where the kernel
    // keeps its clock and the size of a page; remembered from then on.
    let _ = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let _ = rustix::param::page_size();
    let own = rustix::process::getpid().as_raw_nonzero().get().cast_unsigned();
    let programs = match filter {
        Filter::Template => {
            let lines = lines(&[calls::COMPUTING, calls::FILES, calls::FORKING]);
            vec![program(lines, SeccompAction::Trap, SeccompAction::Allow)]
        }
        Filter::Cell => {
            let mut rules = calls::CELL_LOSES.iter().flat_map(Rule::lines).collect::<Vec<_>>();
            // `abort` signals its own thread; nobody else may be signalled.
            rules.push((libc::SYS_tgkill, vec![Test::Not(0, own)]));
            vec![program(rules, SeccompAction::Allow, SeccompAction::Trap)]
        }
        Filter::Compile => {
            // First what is answered as if the kernel did not have it, then
            // the list that also ends the installing of filters.
            let absent = calls::COMPILE_MISSES.iter().map(|call| (*call, Vec::new())).collect();
            let mut rules = lines(&[calls::COMPUTING, calls::COMPILING]);
            rules.push((libc::SYS_tgkill, vec![Test::Is(0, own)]));
            rules.extend(calls::COMPILE_MISSES.iter().map(|call| (*call, Vec::new())));
            vec![
                program(absent, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS.cast_unsigned())),
                program(rules, SeccompAction::Trap, SeccompAction::Allow),
            ]
        }
    };
    programs.into_iter().collect::<std::result::Result<_, _>>().map(Prepared).map_err(JailError::Filter)
}

/// A call, and what must hold together.
type Line = (libc::c_long, Vec<Test>);

impl Rule {
    const fn always(calls: &'static [libc::c_long]) -> Self {
        Self { calls, when: &[], all: false }
    }

    const fn when(calls: &'static [libc::c_long], when: &'static [Test]) -> Self {
        Self { calls, when, all: false }
    }

    const fn when_all(calls: &'static [libc::c_long], when: &'static [Test]) -> Self {
        Self { calls, when, all: true }
    }

    /// One line for each call and alternative.
    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for call in self.calls {
            if self.when.is_empty() || self.all {
                lines.push((*call, self.when.to_vec()));
                continue;
            }
            lines.extend(self.when.iter().map(|test| (*call, vec![*test])));
        }
        lines
    }
}

fn lines(tables: &[&[Rule]]) -> Vec<Line> {
    tables.iter().flat_map(|table| table.iter()).flat_map(Rule::lines).collect()
}

fn program(
    lines: Vec<Line>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> std::result::Result<BpfProgram, BackendError> {
    let mut rules = std::collections::BTreeMap::<i64, Vec<SeccompRule>>::new();
    for (call, tests) in lines {
        let alternatives = rules.entry(call).or_default();
        if !tests.is_empty() {
            let conditions = tests.iter().map(Test::condition).collect::<std::result::Result<_, _>>()?;
            alternatives.push(SeccompRule::new(conditions)?);
        }
    }
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, otherwise, matched, here)?.try_into()
}

impl Test {
    fn condition(&self) -> std::result::Result<SeccompCondition, BackendError> {
        let (argument, operator, value) = match *self {
            Self::Is(argument, value) => (argument, SeccompCmpOp::Eq, value),
            Self::Not(argument, value) => (argument, SeccompCmpOp::Ne, value),
            Self::Bits(argument, mask, value) => (argument, SeccompCmpOp::MaskedEq(mask.into()), value),
        };
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
    }
}
