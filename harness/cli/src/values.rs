//! Values of the configuration that no crate has.

use std::num::NonZeroU32;
use std::str::FromStr;

use env_contracts::{Id, Name, Span, Version};

use crate::args::AskMode;

/// How long, or for ever.
pub(crate) struct Ttl(pub(crate) Option<Span>);

impl FromStr for Ttl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" { Ok(Self(None)) } else { text.parse().map(|span| Self(Some(span))) }
    }
}

/// An agent and its version, or nobody.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agent(pub(crate) Option<(Name, Option<Version>)>);

impl FromStr for Agent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        match text.split_once('@') {
            Some((name, version)) => Ok(Self(Some((name.parse()?, Some(version.parse()?))))),
            None => Ok(Self(Some((text.parse()?, None)))),
        }
    }
}

/// An id, or none.
pub(crate) struct Word(pub(crate) Option<Id>);

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|id| Self(Some(id))) }
    }
}

impl FromStr for AskMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        <Self as clap::ValueEnum>::from_str(text, false)
            .map_err(|_| format!("`{text}` is none of `auto`, `here`, `wait`, `leave` and `never`"))
    }
}

/// Words, separated by commas; none where it is empty.
pub(crate) struct Words(pub(crate) Vec<String>);

impl FromStr for Words {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let odd = |word: &&str| word.chars().any(|c| c.is_whitespace() || c == '/');
        match words.clone().find(odd) {
            Some(word) => Err(format!("`{word}` is no name of a host")),
            None => Ok(Self(words.map(str::to_owned).collect())),
        }
    }
}

/// How many, and not none.
pub(crate) struct Positive(pub(crate) NonZeroU32);

impl FromStr for Positive {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| format!("`{text}` is not a whole number from 1 to {}", u32::MAX))
    }
}
