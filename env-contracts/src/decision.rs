//! What policy and people say, and how sure one can be that it was they.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What policy says about an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
    /// A person decides.
    Ask,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "ALLOW",
            Self::Deny => "DENY",
            Self::Ask => "ASK",
        })
    }
}

/// How sure one can be that a decision was a person's, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Assurance {
    /// Whoever can run a program as this user: an agent with a shell can.
    SameUser,
    /// Somebody who knows the passphrase, and signed with the key made of it.
    ConsoleLogin,
    /// Another user of the machine, as the kernel says.
    SeparateUser,
    /// Somebody who holds the authenticator.
    Passkey,
}

impl fmt::Display for Assurance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameUser => "same-user",
            Self::ConsoleLogin => "console-login",
            Self::SeparateUser => "separate-user",
            Self::Passkey => "passkey",
        })
    }
}
