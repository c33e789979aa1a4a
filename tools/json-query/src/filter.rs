//! Filters: what is in the language here, and where a faulty one is faulty.

use glovebox_guest::{Failure, json};
use jaq_core::data::JustLut;
use jaq_core::load::{Arena, Error, File, Loader, lex, parse};
use jaq_core::{Compiler, Ctx, Vars};
use jaq_json::Val;

/// How deep a filter may nest: each level is a call of the parser.
const MOST_DEPTH: usize = 64;

/// What stands between the code and its result and has no place in a sandbox:
/// the environment, the clock and the zone of the machine, its log, its end.
/// The same filter on the same value gives the same results.
const ABSENT: [&str; 8] =
    ["env", "now", "localtime", "strflocaltime", "debug_empty", "stderr_empty", "halt", "halt_error"];

/// Definitions that need those.
const ABSENT_DEFINITIONS: [&str; 4] = ["debug", "stderr", "halt", "halt_error"];

/// A compiled filter.
pub struct Filter(jaq_core::Filter<JustLut<Val>>);

impl Filter {
    /// Compiles a filter.
    pub fn new(code: &str) -> Result<Self, Failure> {
        if depth(code) > MOST_DEPTH {
            return Err(Failure::invalid(format!("the filter nests deeper than {MOST_DEPTH} brackets")));
        }
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let loader = Loader::new(defs.filter(|def| !ABSENT_DEFINITIONS.contains(&def.name)));
        let arena = Arena::default();
        let modules = loader.load(&arena, File { code, path: () }).map_err(|errors| {
            let first = errors.into_iter().next();
            first.map_or_else(|| fault(code, code, "is no filter"), |(file, error)| loading(code, file.code, &error))
        })?;
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let funs = funs.filter(|(name, ..)| !ABSENT.contains(name));
        let filter = Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
            match errors.into_iter().flat_map(|(_, errors)| errors).next() {
                Some((at, what)) => fault(code, at, &format!("`{}` is no {} here", excerpt(at), what.as_str())),
                None => fault(code, code, "is no filter"),
            }
        })?;
        Ok(Self(filter))
    }

    /// The results for one value, as they are asked for.
    pub fn run(&self, value: Val) -> impl Iterator<Item = Result<Val, jaq_json::Error>> {
        let ctx = Ctx::<JustLut<Val>>::new(&self.0.lut, Vars::new([]));
        self.0.id.run((ctx, value)).map(|result| {
            result.map_err(|exception| {
                exception.get_err().unwrap_or_else(|_| jaq_json::Error::str("left a label that is not around it"))
            })
        })
    }
}

/// How deep brackets nest. Those in strings count too: that is coarse, and
/// never too low.
fn depth(code: &str) -> usize {
    let (mut now, mut most) = (0usize, 0);
    for byte in code.bytes() {
        match byte {
            b'(' | b'[' | b'{' => now += 1,
            b')' | b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fn loading(code: &str, of: &str, error: &Error<&str>) -> Failure {
    match error {
        Error::Io(all) => {
            let at = all.first().map_or(of, |(at, _)| *at);
            fault(code, at, "modules can't be imported: there are none")
        }
        Error::Lex(all) => match all.first() {
            Some((expected, at)) => lexed(code, expected, at),
            None => fault(code, of, "is no filter"),
        },
        Error::Parse(all) => match all.first() {
            Some((expected, at)) => parsed(code, expected, at),
            None => fault(code, of, "is no filter"),
        },
    }
}

fn lexed(code: &str, expected: &lex::Expect<&str>, at: &str) -> Failure {
    fault(code, at, &format!("expected {}{}", expected.as_str(), found(at)))
}

fn parsed(code: &str, expected: &parse::Expect<&str>, at: &str) -> Failure {
    fault(code, at, &format!("expected {}{}", expected.as_str(), found(at)))
}

fn found(at: &str) -> String {
    if at.is_empty() { ", but the filter ends".to_owned() } else { format!(", not `{}`", excerpt(at)) }
}

/// The beginning of a part of the filter, for messages.
fn excerpt(part: &str) -> String {
    const MOST_CHARS: usize = 24;
    let mut short: String = part.chars().take(MOST_CHARS).collect();
    if short.len() < part.len() {
        short.push('…');
    }
    short
}

/// The failure for a fault at a part of the code.
fn fault(code: &str, at: &str, what: &str) -> Failure {
    // Parts are slices of the code; an empty one that is not stands for its end.
    let start = (at.as_ptr() as usize).checked_sub(code.as_ptr() as usize).filter(|start| *start <= code.len());
    let offset = start.filter(|start| code.is_char_boundary(*start)).unwrap_or(code.len());
    let before = &code[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let message = format!("the filter is wrong at line {line}, column {column}: {what}");
    Failure::invalid(message).with_details(json!({ "line": line, "column": column, "byte_offset": offset }))
}
