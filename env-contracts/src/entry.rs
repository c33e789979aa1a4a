//! How a tool is called.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a tool is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ManifestEntry {
    /// Through the `glovebox:tool/tool` interface.
    Tool {
        /// The tool's name inside the component. Absent: the capability's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// As a command.
    Command {
        /// The arguments, program name first. `{FIELD}` is replaced by that
        /// argument's value; an element that is nothing but `{FIELD}` is left
        /// out where the argument is absent.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        argv: Vec<String>,
        /// What stands on standard input.
        #[serde(default)]
        stdin: Stdin,
        /// What standard output is.
        #[serde(default)]
        result: ResultFormat,
        /// The environment, complete.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// Through a function that the component exports with types of its own.
    /// Arguments and result are its WIT types as JSON.
    Export {
        /// The interface that it stands in, as the component exports it, such
        /// as `example:calc/ops@1.0.0`. Absent: the component itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interface: Option<String>,
        /// The function's name.
        function: String,
    },
    /// By a server elsewhere that speaks the Model Context Protocol over HTTP:
    /// nothing of it runs here.
    Mcp {
        /// The server's endpoint.
        url: String,
        /// The tool's name there.
        tool: String,
        /// A file with headers that are sent along, each a line `NAME: VALUE`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        header_file: Option<String>,
        /// A file with the bearer token that is sent along.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bearer_file: Option<String>,
        /// Whether the server's name may lead to an address of this host or of
        /// a private network.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        private: bool,
    },
    /// By a server that speaks the Model Context Protocol over its standard
    /// streams, in a container of the image that the contract names. Each call
    /// has a server of its own.
    McpStdio {
        /// The server: its program and arguments.
        command: Vec<String>,
        /// The tool's name there.
        tool: String,
        /// Its environment, beside the image's.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// Not at all: nothing runs, and a decision is all that is asked for. Only
    /// capabilities that come with Glovebox are called so.
    Decision,
    /// Not here: an agent's own process carries it out, and nothing contains
    /// it. Whether it may is all that is asked. Only capabilities that come with
    /// Glovebox are called so.
    Native,
}

/// What stands on a command's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stdin {
    /// The arguments, as one JSON document.
    #[default]
    Args,
    /// The argument named `stdin`, as the text that it is: a script for an
    /// interpreter. Nothing where it is absent.
    Argument,
    /// Nothing.
    None,
}

impl Stdin {
    /// Its bytes, for these arguments: a text as it stands, anything else as
    /// JSON.
    pub fn bytes(self, arguments: &str) -> Vec<u8> {
        match self {
            Self::Args => arguments.as_bytes().to_vec(),
            Self::None => Vec::new(),
            Self::Argument => {
                let mut arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
                match arguments.get_mut("stdin").map(serde_json::Value::take) {
                    None | Some(serde_json::Value::Null) => Vec::new(),
                    Some(serde_json::Value::String(text)) => text.into_bytes(),
                    Some(other) => other.to_string().into_bytes(),
                }
            }
        }
    }
}

/// What a command's standard output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResultFormat {
    /// One JSON document.
    #[default]
    Json,
    /// Text, which is the result as it stands.
    Text,
}
