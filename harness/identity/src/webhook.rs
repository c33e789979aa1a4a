//! One webhook: who is told of what waits for people, and with which secret.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use data_encoding::BASE64;
use env_contracts::{Code, Name};
use hmac::{Hmac, KeyInit as _, Mac as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2_11::Sha256;
use zeroize::Zeroizing;

use crate::error::IdentityError;
use crate::guarded::Guarded;

/// What the text of a secret begins with, as receivers' libraries know it.
const PREFIX: &str = "whsec_";

/// How many bytes are in a secret, by the Standard Webhooks specification: as
/// many as can't be guessed, and at most as many as the function takes whole.
const SECRET: std::ops::RangeInclusive<usize> = 24..=64;

/// The version tag of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum WebhooksSchema {
    #[default]
    #[serde(rename = "glovebox/webhooks/v1")]
    V1,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    pub(crate) schema: WebhooksSchema,
    #[serde(default, rename = "webhook", skip_serializing_if = "Vec::is_empty")]
    pub(crate) webhooks: Vec<Webhook>,
}

/// Who is told of what waits for people, as stored. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// What it is called.
    pub name: Name,
    /// Whose approvals and questions it is about.
    pub tenant: Name,
    /// Where to.
    pub url: String,
    /// Of what. Empty: of everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<WebhookKind>,
    /// Only approvals that one of these classes may answer, and no questions.
    /// Empty: whatever class may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Name>,
    /// Whether it is told what waits, with arguments and texts, or only that
    /// something does.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub objects: bool,
    /// Whether it may lead to this host and to private networks, and without
    /// TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
    /// When it was added, in milliseconds since 1970.
    pub created_ms: u64,
    /// Where the secret is that signs what is sent.
    pub secret: SecretFrom,
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SecretFrom {
    /// In a file of its owner's alone.
    File(PathBuf),
    /// In a variable of the server's environment.
    Environment(String),
}

/// What a webhook is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WebhookKind {
    /// People are asked whether something may be done.
    #[serde(rename = "approval.opened")]
    ApprovalOpened,
    /// They answered, or need not any more.
    #[serde(rename = "approval.resolved")]
    ApprovalResolved,
    /// A loop wants to know something of a person.
    #[serde(rename = "question.opened")]
    QuestionOpened,
    /// It was told, or need not be any more.
    #[serde(rename = "question.resolved")]
    QuestionResolved,
}

/// A secret, to sign with.
pub struct WebhookSecret(Zeroizing<Vec<u8>>);

const fn yes() -> bool {
    true
}

impl Webhook {
    /// Whether it is told of this; `classes` may answer it.
    pub fn wants(&self, kind: WebhookKind, classes: &[Name]) -> bool {
        let kinds = self.kinds.is_empty() || self.kinds.contains(&kind);
        kinds && (self.classes.is_empty() || classes.iter().any(|class| self.classes.contains(class)))
    }
}

impl WebhookKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::ApprovalOpened, Self::ApprovalResolved, Self::QuestionOpened, Self::QuestionResolved];

    /// Its words in files, on command lines and in the type of what is sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApprovalOpened => "approval.opened",
            Self::ApprovalResolved => "approval.resolved",
            Self::QuestionOpened => "question.opened",
            Self::QuestionResolved => "question.resolved",
        }
    }
}

impl fmt::Display for WebhookKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for WebhookKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is nothing that a webhook is told; there are {all}")
        })
    }
}

impl SecretFrom {
    /// The secret, as it is now.
    ///
    /// # Errors
    /// `webhook-secret`: it is missing or not of its form, or others could
    /// read it; and the host's.
    pub fn read(&self) -> Result<WebhookSecret, IdentityError> {
        match self {
            Self::File(path) => {
                let file = Guarded::alone_with(path, Code::WebhookSecret);
                let text = file.read()?.ok_or_else(|| file.invalid("there is no such file"))?;
                WebhookSecret::parse(&text).map_err(|why| file.invalid(&why))
            }
            Self::Environment(name) => {
                let wrong = |why: &str| IdentityError::Secret(format!("${name} {why}"));
                let text = std::env::var(name).map(Zeroizing::new).map_err(|_| wrong("is not set"))?;
                WebhookSecret::parse(&text).map_err(|why| wrong(&why))
            }
        }
    }
}

impl WebhookSecret {
    /// A secret in the form that receivers' libraries take: `whsec_` and
    /// base64.
    ///
    /// # Errors
    /// Why the text is none; no part of it is told.
    pub fn parse(text: &str) -> Result<Self, String> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or_else(|| format!("does not begin with `{PREFIX}`"))?;
        let bytes = BASE64.decode(encoded.as_bytes()).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| format!("is not base64 behind `{PREFIX}`"))?;
        if !SECRET.contains(&bytes.len()) {
            let (least, most) = (SECRET.start(), SECRET.end());
            return Err(format!("holds {} bytes, and a secret has {least} to {most}", bytes.len()));
        }
        Ok(Self(bytes))
    }

    /// The value of the header `webhook-signature`.
    pub fn sign(&self, id: &str, at_s: u64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!("it takes any length"));
        mac.update(format!("{id}.{at_s}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}
