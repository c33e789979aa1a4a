//! What can be wrong with a schema, and with arguments.

use std::borrow::Cow;

use env_contracts::canon::CanonError;
use env_contracts::{Code, Diagnose};

use super::Violation;

/// A schema that is not accepted. Places are JSON Pointers into the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is too deep or too large to be held as JSON at all.
    #[error("the schema can't be read")]
    Unreadable(#[source] CanonError),
    /// It is longer than a schema may be.
    #[error("the schema is {size} bytes long, the limit is {limit}")]
    TooLarge {
        /// Its length in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// It has more subschemas than a schema may have.
    #[error("the schema has more than {limit} subschemas")]
    TooManyPlaces {
        /// The limit in subschemas.
        limit: usize,
    },
    /// A keyword that is not accepted, or not with that value.
    #[error("`{keyword}` at {at} is not accepted: {why}")]
    Keyword {
        /// The subschema that holds it.
        at: String,
        /// The keyword.
        keyword: &'static str,
        /// Why not, and what to write instead.
        why: Cow<'static, str>,
    },
    /// References lead back to where they started without going into the value.
    #[error("the references at {at} lead back to themselves")]
    Loop {
        /// A subschema on the way.
        at: String,
    },
    /// A pattern that can't be matched in linear time within the size limit.
    #[error("the pattern {pattern} at {at} can't be used")]
    Pattern {
        /// The subschema that holds it.
        at: String,
        /// The start of the pattern, escaped.
        pattern: String,
    },
    /// All patterns together need more memory than they may.
    #[error("the patterns of the schema need more than {limit} bytes when compiled")]
    PatternsTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// It breaks the rules of JSON Schema.
    #[error("the schema is not valid JSON Schema 2020-12 at {at}: {message}")]
    Invalid {
        /// The place that breaks them.
        at: String,
        /// What was expected there.
        message: String,
    },
}

impl Diagnose for SchemaError {
    fn code(&self) -> Code {
        Code::ManifestInvalid
    }

    fn help(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Unreadable(_) | Self::TooLarge { .. } | Self::TooManyPlaces { .. } => {
                "describe the arguments in less detail"
            }
            Self::Keyword { .. } => "change the named keyword",
            Self::Loop { .. } => "let a recursive reference stand below `properties` or `items`",
            Self::Pattern { .. } | Self::PatternsTooLarge { .. } => {
                "use no look-around, no back-references and smaller repeat counts; check the rest in the tool"
            }
            Self::Invalid { .. } => "correct the schema at the named place",
        })
    }
}

/// Arguments that are not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// They are not acceptable JSON.
    #[error(transparent)]
    Unreadable(#[from] CanonError),
    /// They break the schema.
    #[error("{}", join(.0))]
    Rejected(Vec<Violation>),
}

impl Diagnose for ArgumentsError {
    fn code(&self) -> Code {
        match self {
            Self::Unreadable(error) => error.code(),
            Self::Rejected(_) => Code::SchemaRejected,
        }
    }

    fn help(&self) -> Cow<'static, str> {
        match self {
            Self::Unreadable(error) => error.help(),
            Self::Rejected(_) => Cow::Borrowed(Code::SchemaRejected.remedy()),
        }
    }
}

fn join(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
