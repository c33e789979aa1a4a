//! Folders of the guest.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::as_text;
use crate::{GuestPath, Name};

/// A folder of the guest, or, for an input or artifact, a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Where the guest sees it.
    pub guest: GuestPath,
    /// What it is.
    pub source: Source,
    /// What the guest may do with it.
    pub access: Access,
    /// Globs of paths that don't exist for the guest. Absent: the default
    /// list for a workspace or host folder, nothing for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hide: Option<Vec<String>>,
}

/// What is hidden in a workspace or host folder unless a contract says
/// otherwise: the usual places of credentials.
pub const DEFAULT_HIDE: &[&str] = &[".env*", "*.pem", "*.key", ".git/config", ".npmrc", ".netrc", ".aws/"];

impl Mount {
    /// The globs in force: the written list, or the default one where the
    /// source is a folder of the user's.
    pub fn hidden(&self) -> Vec<Cow<'_, str>> {
        match (&self.hide, &self.source) {
            (Some(globs), _) => globs.iter().map(|glob| Cow::Borrowed(glob.as_str())).collect(),
            (None, Source::Workspace | Source::Host(_)) => {
                DEFAULT_HIDE.iter().map(|glob| Cow::Borrowed(*glob)).collect()
            }
            (None, _) => Vec::new(),
        }
    }
}

/// What the guest may do with a folder, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Look at it.
    Read,
    /// Change a private layer; the changes become a reviewable changeset.
    Overlay,
    /// Change it.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Overlay => "overlay",
            Self::Write => "write",
        })
    }
}

/// What a mount shows: `workspace`, `input:NAME`, `input:*`, `artifact:URI`,
/// `scratch`, `outputs` or `host:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The folder the request works on.
    Workspace,
    /// A file that the request names; `None` is every such file, each under
    /// its name.
    Input(Option<Name>),
    /// An artifact of an earlier action.
    Artifact(String),
    /// An empty folder that is gone afterwards.
    Scratch,
    /// An empty folder whose files become artifacts.
    Outputs,
    /// A folder of the host; only an operator's ceiling can allow it.
    Host(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str("workspace"),
            Self::Input(None) => f.write_str("input:*"),
            Self::Input(Some(name)) => write!(f, "input:{name}"),
            Self::Artifact(uri) => write!(f, "artifact:{uri}"),
            Self::Scratch => f.write_str("scratch"),
            Self::Outputs => f.write_str("outputs"),
            Self::Host(path) => write!(f, "host:{path}"),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None => match text {
                "workspace" => Ok(Self::Workspace),
                "scratch" => Ok(Self::Scratch),
                "outputs" => Ok(Self::Outputs),
                _ => Err(unknown(text)),
            },
            Some(("input", "*")) => Ok(Self::Input(None)),
            Some(("input", name)) => name.parse().map(|name| Self::Input(Some(name))),
            Some(("artifact", uri)) if uri.starts_with("artifact/") => Ok(Self::Artifact(uri.to_owned())),
            Some(("artifact", _)) => {
                Err("an artifact source names its URI, such as `artifact:artifact/ACTION/1`".to_owned())
            }
            Some(("host", path)) if path.starts_with('/') => Ok(Self::Host(path.to_owned())),
            Some(("host", _)) => Err("a host source names an absolute path, such as `host:/srv/data`".to_owned()),
            Some(_) => Err(unknown(text)),
        }
    }
}

fn unknown(text: &str) -> String {
    format!(
        "`{}` is not a source: write workspace, input:NAME, input:*, artifact:URI, scratch, outputs or host:PATH",
        crate::ids::shown(text)
    )
}

as_text!(
    Source,
    "Source",
    "^(workspace|scratch|outputs|input:.+|artifact:artifact/.+|host:/.*)$",
    "What a mount shows: workspace, input:NAME, input:*, artifact:URI, scratch, outputs or host:PATH."
);
