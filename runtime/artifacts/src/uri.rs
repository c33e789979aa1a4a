//! What an artifact is asked for by.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The longest identifier of a tenant or an action: they become folder names,
/// which file systems cut at 255 bytes.
const MAX_ID: usize = 128;

/// `artifact/ACTION/N`: the N-th artifact of an action, counted from 1.
///
/// It names the action, not the content: who may see the action may ask for
/// it, and nobody can probe for bytes by their hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactUri {
    action: String,
    number: u64,
}

impl ArtifactUri {
    /// The name of an action's `number`-th artifact; `action` is checked.
    pub(crate) fn new(action: &str, number: u64) -> Self {
        Self { action: action.to_owned(), number }
    }

    /// The action it belongs to.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Its number within the action, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl fmt::Display for ArtifactUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "artifact/{}/{}", self.action, self.number)
    }
}

impl FromStr for ArtifactUri {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = || {
            let (action, digits) = text.strip_prefix("artifact/")?.split_once('/')?;
            let number: u64 = digits.parse().ok()?;
            // One spelling only: no sign, no leading zeros.
            (is_id(action) && number > 0 && number.to_string() == digits).then(|| Self::new(action, number))
        };
        parse().ok_or_else(|| Error::BadUri(shown(text)))
    }
}

impl TryFrom<String> for ArtifactUri {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ArtifactUri> for String {
    fn from(uri: ArtifactUri) -> Self {
        uri.to_string()
    }
}

/// Checks an identifier that becomes a folder name.
pub(crate) fn checked_id(text: &str) -> Result<String, Error> {
    if is_id(text) { Ok(text.to_owned()) } else { Err(Error::BadId(shown(text))) }
}

fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.len() <= MAX_ID
        && text.bytes().all(plain)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

/// Foreign text for a message: short, and with nothing a terminal obeys.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 120;
    let mut out: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_for_each_name() {
        for good in ["artifact/a/1", "artifact/01HZ-x_y/18446744073709551615"] {
            assert_eq!(good.parse::<ArtifactUri>().unwrap().to_string(), good);
        }
        let long = format!("artifact/{}/1", "a".repeat(129));
        for bad in [
            "",
            "artifact",
            "artifact/a",
            "artifact/a/",
            "artifact/a/0",
            "artifact/a/01",
            "artifact/a/+1",
            "artifact/a/-1",
            "artifact//1",
            "artifact/../1",
            "artifact/a/../1",
            "artifact/a/b/1",
            "artifact/-a/1",
            "artifact/a.b/1",
            "/artifact/a/1",
            "artifact/a/18446744073709551616",
            "artifact/a\n/1",
            "artifact/%2e%2e/1",
            &long,
        ] {
            assert!(bad.parse::<ArtifactUri>().is_err(), "{bad:?} should not parse");
        }
        assert_eq!(shown("a\u{202e}b\x1b[2J"), "a\\u{202e}b\\u{1b}[2J");
    }
}
