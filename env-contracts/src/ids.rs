//! Names that can't be wrong: each has one constructor, which checks.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::as_text;

/// The longest capability name: clients of the tool protocols cut names at 64.
pub const MAX_NAME: usize = 64;

/// The longest identifier that comes from outside; longer ones are an attack
/// or an accident, and identifiers end up in file names.
const MAX_ID: usize = 128;

/// Declares a checked text type with its serde, schema and `Display`.
macro_rules! checked_text {
    ($(#[doc = $doc:literal])+ $name:ident, $schema_name:literal, $pattern:literal, $check:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        as_text!($name, $schema_name, $pattern, concat!($($doc),+));
    };
}
pub(crate) use checked_text;

checked_text!(
    /// The name of a capability: lower-case words joined by `.` or `-`, such as `text.count`.
    CapabilityName, "CapabilityName", "^[a-z0-9]+([.-][a-z0-9]+)*$", |text| {
        let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if text.len() > MAX_NAME {
            return Err(format!("a capability name has at most {MAX_NAME} characters, this has {}", text.len()));
        }
        if !text.split(['.', '-']).all(word) {
            return Err(format!("`{}` is not a capability name: write lower-case words joined by `.` or `-`", shown(text)));
        }
        Ok(())
    }
);

impl CapabilityName {
    /// Any text as the words of a name: lower case, joined by `.` or `-`.
    /// `None` where it has no letter and no digit.
    pub fn slug(text: &str) -> Option<String> {
        let mut name = String::new();
        for c in text.to_lowercase().chars() {
            match c {
                'a'..='z' | '0'..='9' => name.push(c),
                // Joined once, and never at the start.
                '.' if !name.is_empty() && !name.ends_with(['.', '-']) => name.push('.'),
                _ if !name.is_empty() && !name.ends_with(['.', '-']) => name.push('-'),
                _ => {}
            }
        }
        name.truncate(name.trim_end_matches(['.', '-']).len());
        (!name.is_empty()).then_some(name)
    }
}

checked_text!(
    /// A version: `major.minor.patch`, optionally `-pre.release`.
    Version, "Version", "^[0-9]+\\.[0-9]+\\.[0-9]+(-[0-9A-Za-z.-]+)?$", |text| {
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let number = |n: &str| !n.is_empty() && n.len() <= 9 && n.bytes().all(|b| b.is_ascii_digit()) && (n == "0" || !n.starts_with('0'));
        let pre_ok = pre.is_none_or(|pre| {
            !pre.is_empty() && pre.len() <= 32 && pre.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
        });
        if core.split('.').count() == 3 && core.split('.').all(number) && pre_ok {
            Ok(())
        } else {
            Err(format!("`{}` is not a version: write `major.minor.patch`", shown(text)))
        }
    }
);

impl Version {
    /// The order in which versions are newer: numbers by value, a pre-release
    /// before its release.
    pub fn precedence(&self) -> impl Ord + use<> {
        let (core, pre) = self.0.split_once('-').map_or((self.0.as_str(), None), |(core, pre)| (core, Some(pre)));
        let core: Vec<u64> = core.split('.').filter_map(|n| n.parse().ok()).collect();
        // Numeric parts sort before words and by value, as in semantic versioning.
        let pre: Vec<(bool, u64, String)> = pre
            .into_iter()
            .flat_map(|pre| pre.split('.'))
            .map(|part| part.parse().map_or_else(|_| (true, 0, part.to_owned()), |n| (false, n, String::new())))
            .collect();
        (core, pre.is_empty(), pre)
    }
}

checked_text!(
    /// An identifier made by Glovebox or a client: of an action, a task, an event.
    Id, "Id", "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$", |text| {
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if first && text.len() <= MAX_ID && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            Ok(())
        } else {
            Err(format!("`{}` is not an identifier: write at most {MAX_ID} letters, digits, `_` or `-`", shown(text)))
        }
    }
);

checked_text!(
    /// A sha256 in lower-case hexadecimal.
    Digest, "Digest", "^[0-9a-f]{64}$", |text| {
        if text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(())
        } else {
            Err(format!("`{}` is not a sha256: write 64 lower-case hexadecimal digits", shown(text)))
        }
    }
);

impl Digest {
    /// How many characters people are shown.
    pub const SHORT: usize = 12;

    /// The digest of these bytes, not domain-separated: for file contents.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self::from_bytes(sha2::Sha256::digest(bytes).into())
    }

    /// The digest with this value.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(64);
        for byte in bytes {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        Self(text)
    }

    /// What people are shown.
    pub fn short(&self) -> &str {
        &self.0[..Self::SHORT]
    }
}

checked_text!(
    /// A folder of the guest: absolute, normalised, without `.` and `..`.
    GuestPath, "GuestPath", "^(/[^/]+)+$", |text| {
        let part = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\0', '\\']);
        match text.strip_prefix('/') {
            Some(rest) if rest.split('/').all(part) && text.len() <= 1024 => Ok(()),
            _ => Err(format!("`{}` is not a guest path: write an absolute path without `.`, `..` and empty parts", shown(text))),
        }
    }
);

checked_text!(
    /// The name of an input, a secret or a label: letters, digits, `_`, `-` and `.`.
    Name, "Name", "^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$", |text| {
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if first && text.len() <= MAX_ID && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')) {
            Ok(())
        } else {
            Err(format!("`{}` is not a name: write letters, digits, `_`, `-` or `.`, a letter or digit first", shown(text)))
        }
    }
);

/// A registered capability: `name@version`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapabilityRef {
    /// Its name.
    pub name: CapabilityName,
    /// Its version.
    pub version: Version,
}

impl fmt::Display for CapabilityRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

impl FromStr for CapabilityRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) =
            text.split_once('@').ok_or_else(|| format!("`{}` lacks a version: write `name@version`", shown(text)))?;
        Ok(Self { name: name.parse()?, version: version.parse()? })
    }
}

as_text!(CapabilityRef, "CapabilityRef", "^[a-z0-9.-]+@[0-9A-Za-z.-]+$", "A registered capability: name@version.");

/// A piece of foreign text, short and escaped, for an error message.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut out: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FromStr>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(text.parse::<T>().is_ok(), "{text} should parse");
        }
        for text in bad {
            assert!(text.parse::<T>().is_err(), "{text} should not parse");
        }
    }

    #[test]
    fn names_are_checked() {
        check::<CapabilityName>(
            &["text.count", "a", "x-1.y"],
            &["", "A", ".a", "a.", "a..b", "a_b", "a/b", "ä", &"a".repeat(65)],
        );
        check::<Version>(
            &["0.1.0", "1.2.3-rc.1"],
            &["1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "v1.2.3", "1.2.3-a..b"],
        );
        check::<GuestPath>(&["/workspace", "/a/b"], &["", "/", "a", "/a/", "/a//b", "/a/../b", "/./a", "/a\0"]);
        check::<Digest>(&[&"a".repeat(64)], &["", &"A".repeat(64), &"a".repeat(63)]);
        check::<Id>(&["a", "01HZ-x_y"], &["", "-a", "a/b", "a.b", "../x"]);
        check::<CapabilityRef>(&["text.count@1.0.0"], &["text.count", "@1.0.0", "a@b@c"]);
    }

    #[test]
    fn newer_versions_come_later() {
        let order = ["0.9.0", "0.10.0-rc.1", "0.10.0-rc.2", "0.10.0-rc.10", "0.10.0", "1.0.0"];
        let parsed: Vec<Version> = order.iter().map(|v| v.parse().unwrap()).collect();
        assert!(parsed.windows(2).all(|pair| pair[0].precedence() < pair[1].precedence()));
    }
}
