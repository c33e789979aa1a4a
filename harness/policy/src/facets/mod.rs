//! Facts about arguments that are command lines, since a policy language can't
//! take one apart.
//!
//! What is *exact* (`program`, `path`) is there only where the argument is one
//! simple command and its program runs no other. What is *possible* (`may_run`)
//! is there always and errs on the side of more: a rule that permits looks at
//! `simple`, `wrapper`, `path`; a rule that forbids looks at `may_run`, `args`,
//! `flags`. Everything here takes time linear in the argument's length, but for
//! the sorting of sets.

mod line;
mod wrappers;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use wrappers::{WRAPPERS, WRAPPERS_WITH};

/// What is known of one command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Facet {
    /// Whether it is one command and nothing else: no operator, expansion,
    /// redirection, assignment or open quote.
    pub simple: bool,
    /// Whether its program may run other programs or code that its arguments
    /// or files name.
    pub wrapper: bool,
    /// The last part of the program's path. Only of one simple command.
    pub program: Option<String>,
    /// The program as it is written. Only of one simple command.
    pub path: Option<String>,
    /// The words after the program as they are written, and what follows the
    /// `=` of a flag.
    pub args: BTreeSet<String>,
    /// The flags in one form: `-xv` is `-x` and `-v`, `--depth=1` is `--depth`,
    /// wherever they stand, after `--` too.
    pub flags: BTreeSet<String>,
    /// How many words follow the program.
    pub words: usize,
    /// The program, and every other that might run: for a wrapper and for what
    /// is not simple, the last part of each word.
    pub may_run: BTreeSet<String>,
}

impl Facet {
    /// Of an argument, which is a command line or a list of words. `None` for
    /// any other value.
    pub fn of(argument: &Value) -> Option<Self> {
        match argument {
            Value::String(line) => Some(Self::of_line(line)),
            Value::Array(words) => {
                let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
                words.map(|words| Self::of_words(&words))
            }
            _ => None,
        }
    }

    /// Of a command line as a POSIX shell would read it.
    pub fn of_line(text: &str) -> Self {
        match line::simple(text) {
            Some(words) => Self::of_words(&words.iter().map(String::as_str).collect::<Vec<_>>()),
            None => {
                let words: Vec<&str> = text.split_whitespace().collect();
                let mut facet = Self::described(&words);
                facet.may_run = possible(std::iter::once(text)).collect();
                facet
            }
        }
    }

    /// Of a program and its arguments, which no shell looks at.
    pub fn of_words(words: &[&str]) -> Self {
        let Some((program, rest)) = words.split_first().filter(|(program, _)| !base(program).is_empty()) else {
            let mut facet = Self::described(words);
            facet.may_run = possible(words.iter().copied()).collect();
            return facet;
        };
        let mut facet = Self::described(rest);
        facet.simple = true;
        facet.program = Some(base(program).to_owned());
        facet.path = Some((*program).to_owned());
        facet.wrapper = wrappers::is_wrapper(base(program), &facet.flags, &facet.args);
        facet.may_run.insert(base(program).to_owned());
        if facet.wrapper {
            facet.may_run.extend(words.iter().map(|word| base(word).to_owned()));
            facet.may_run.extend(possible(words.iter().copied()));
        }
        facet
    }

    /// Arguments and flags of these words, and nothing known of a program.
    fn described(words: &[&str]) -> Self {
        let mut facet = Self {
            simple: false,
            wrapper: false,
            program: None,
            path: None,
            args: words.iter().map(|&word| word.to_owned()).collect(),
            flags: BTreeSet::new(),
            words: words.len(),
            may_run: BTreeSet::new(),
        };
        for word in words {
            if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                facet.flags.insert(format!("--{name}"));
                facet.args.extend(value.map(str::to_owned));
            } else if let Some(short) = word.strip_prefix('-').filter(|short| *short != "-") {
                facet.flags.extend(short.chars().map(|letter| format!("-{letter}")));
            }
        }
        facet
    }
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Every word that could name a program, whatever a shell or another program
/// makes of the text: quotes are taken out, operators and `=` end words.
fn possible<'a>(texts: impl Iterator<Item = &'a str>) -> impl Iterator<Item = String> {
    texts.flat_map(|text| {
        let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let words: BTreeSet<String> = bare
            .split(|c: char| c.is_whitespace() || c.is_control() || line::OPERATORS.contains(c) || c == '=' || c == ',')
            .map(|word| base(word).to_owned())
            .filter(|word| !word.is_empty())
            .collect();
        words
    })
}
