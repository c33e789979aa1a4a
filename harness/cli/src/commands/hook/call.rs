//! A call that an agent is about to make, and what that is asked for as.
//!
//! Nothing of a call is left out: what is not named here is kept beside it, so
//! that a person sees all of what they decide on, and another call is never
//! taken for the same.

use std::io::Read;

use env_contracts::canon::{Canonical, ParseLimits};
use env_contracts::{Code, Problem};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::answer::Event;
use super::place::{Does, Ground, Located};

/// The longest call, in bytes: the longest file that an agent writes at once,
/// with room for how JSON spells it.
const MAX_CALL: usize = 8 << 20;

/// What separates the parts of the name of an MCP tool.
const MCP: &str = "mcp__";

/// A call as agents hand it over. What is new to us is none of our business.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) session_id: String,
    pub(super) cwd: String,
    #[serde(rename = "hook_event_name")]
    _event: Event,
    pub(super) tool_name: String,
    /// Of a helper that the agent started: which kind it is.
    agent_type: Option<String>,
    tool_input: Map<String, Value>,
}

/// What a call is asked for as.
pub(super) struct Asked {
    pub(super) capability: &'static str,
    pub(super) arguments: Value,
    /// Why, in the model's words.
    pub(super) purpose: Option<String>,
}

impl Call {
    /// Reads one call, strictly: a document that two readers could take for two
    /// different calls is none.
    ///
    /// # Errors
    /// `usage`.
    pub(super) fn read(from: impl Read) -> Result<Self, Problem> {
        let usage = |why: String| {
            Problem::new(Code::Usage, format!("standard input holds no call of a tool: {why}"))
                .with_help("an agent's PreToolUse hook writes one JSON object there")
        };
        let mut text = Vec::new();
        let read = from.take(MAX_CALL as u64 + 1).read_to_end(&mut text);
        read.map_err(|error| usage(error.to_string()))?;
        if text.len() > MAX_CALL {
            return Err(usage(format!("it has more than {MAX_CALL} bytes")));
        }
        let limits = ParseLimits { max_bytes: MAX_CALL, ..ParseLimits::default() };
        let document = Canonical::parse(&text, limits).map_err(|error| usage(error.to_string()))?;
        let call = Self::deserialize(document.value()).map_err(|error| usage(error.to_string()))?;
        if call.tool_name.is_empty() {
            return Err(usage("`tool_name` is empty".to_owned()));
        }
        Ok(call)
    }

    /// Whether it is a tool of an MCP server of this name.
    pub(super) fn is_of(&self, server: &str) -> bool {
        let of = self.tool_name.strip_prefix(MCP).and_then(|rest| rest.strip_prefix(server));
        // More of these would be the end of a longer name of another server's.
        let tool = of.and_then(|rest| rest.strip_prefix("__"));
        tool.is_some_and(|tool| !tool.is_empty() && !tool.contains("__"))
    }

    /// What it is asked for as.
    ///
    /// # Errors
    /// `usage` where a tool that is known here is not called as it is known.
    pub(super) fn asked(&self, ground: &Ground) -> Result<Asked, Problem> {
        let mut fields = Fields { tool: &self.tool_name, left: self.tool_input.clone(), made: Map::new() };
        fields.put("tool", self.tool_name.clone());
        fields.put("workspace", ground.workspace()?);
        // The agent's word, so no requester of its own: a name that somebody
        // wrote into a repository gives no rights. But another's call is another.
        if let Some(subagent) = self.agent_type.as_deref().filter(|kind| !kind.is_empty()) {
            fields.put("subagent", subagent);
        }
        let (capability, purpose) = match self.tool_name.as_str() {
            "Bash" => ("native.shell", self.shell(&mut fields)?),
            "Read" => ("native.read", fields.file(ground, "file_path", Does::Read)?),
            "NotebookRead" => ("native.read", fields.file(ground, "notebook_path", Does::Read)?),
            "LS" => ("native.read", fields.folder(ground, Does::Read)?),
            "Glob" => ("native.read", fields.glob(ground)?),
            "Grep" => ("native.read", fields.pattern(ground, Does::Search)?),
            "Write" => ("native.write", fields.write(ground)?),
            "Edit" | "MultiEdit" => ("native.write", fields.edit(ground, "file_path")?),
            "NotebookEdit" => ("native.write", fields.edit(ground, "notebook_path")?),
            "WebFetch" => ("native.fetch", fields.fetch()?),
            "WebSearch" => ("native.fetch", fields.search()?),
            _ => ("native.tool", fields.any()),
        };
        Ok(Asked { capability, arguments: fields.done(), purpose })
    }

    fn shell(&self, fields: &mut Fields<'_>) -> Result<Option<String>, Problem> {
        let command = fields.text("command")?;
        fields.put("command", command);
        fields.put("cwd", self.cwd.clone());
        let background = fields.flag("run_in_background")?;
        fields.put("background", background);
        let unsandboxed = fields.flag("dangerouslyDisableSandbox")?;
        fields.put("unsandboxed", unsandboxed);
        fields.maybe("description")
    }
}

/// The fields of a call, taken out one by one.
struct Fields<'a> {
    tool: &'a str,
    left: Map<String, Value>,
    made: Map<String, Value>,
}

/// What a call says of its purpose, where it does.
type Purpose = Result<Option<String>, Problem>;

impl Fields<'_> {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.made.insert(name.to_owned(), value.into());
    }

    fn wrong(&self, field: &str, wanted: &str) -> Problem {
        Problem::new(
            Code::Usage,
            format!("`{}` is not called as it is known here: `{field}` is no {wanted}", self.tool),
        )
        .with_help("a newer Glovebox may know it")
    }

    fn maybe(&mut self, field: &str) -> Result<Option<String>, Problem> {
        match self.left.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(field, "text")),
        }
    }

    fn text(&mut self, field: &str) -> Result<String, Problem> {
        let text = self.maybe(field)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| self.wrong(field, "text"))
    }

    fn flag(&mut self, field: &str) -> Result<bool, Problem> {
        match self.left.remove(field) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(yes)) => Ok(yes),
            Some(_) => Err(self.wrong(field, "yes or no")),
        }
    }

    fn located(&mut self, located: Located) {
        let Located { path, place, hidden } = located;
        self.put("path", path);
        self.put("place", place.as_str());
        self.put("hidden", hidden);
    }

    fn file(&mut self, ground: &Ground, name: &str, does: Does) -> Purpose {
        let path = self.text(name)?;
        let located = ground.locate(&path, does)?;
        self.located(located);
        Ok(None)
    }

    /// A folder, or else where the agent stands.
    fn folder(&mut self, ground: &Ground, does: Does) -> Purpose {
        let path = self.maybe("path")?.unwrap_or_else(|| ".".to_owned());
        let located = ground.locate(&path, does)?;
        self.located(located);
        Ok(None)
    }

    fn pattern(&mut self, ground: &Ground, does: Does) -> Purpose {
        let pattern = self.text("pattern")?;
        self.put("pattern", pattern);
        let does = if self.left.contains_key("glob") { Does::Pick } else { does };
        self.folder(ground, does)
    }

    /// Names below a folder. A pattern of its own may lead out of it.
    fn glob(&mut self, ground: &Ground) -> Purpose {
        let pattern = self.text("pattern")?;
        let root = pattern.starts_with('/') || pattern.starts_with('~') || pattern.split('/').any(|part| part == "..");
        if root {
            self.left.insert("path".to_owned(), json!("/"));
        }
        self.put("pattern", pattern);
        self.folder(ground, Does::Read)
    }

    fn write(&mut self, ground: &Ground) -> Purpose {
        let Some(Value::String(content)) = self.left.remove("content") else {
            return Err(self.wrong("content", "text"));
        };
        self.put("content", content);
        self.file(ground, "file_path", Does::Write)
    }

    fn edit(&mut self, ground: &Ground, path: &str) -> Purpose {
        self.file(ground, path, Does::Write)?;
        let edit = std::mem::take(&mut self.left);
        self.put("edit", edit);
        Ok(None)
    }

    fn fetch(&mut self) -> Purpose {
        let url = self.text("url")?;
        // Where it can't be read, rules can't see its host, and none lets it past
        // for that.
        if let Ok(read) = Url::parse(&url) {
            self.put("scheme", read.scheme());
            if let Some(host) = read.host_str() {
                self.put("host", host);
            }
            if let Some(port) = read.port_or_known_default() {
                self.put("port", port);
            }
        }
        self.put("url", url);
        if let Some(ask) = self.maybe("prompt")? {
            self.put("ask", ask);
        }
        Ok(None)
    }

    fn search(&mut self) -> Purpose {
        let query = self.text("query")?;
        self.put("query", query);
        Ok(None)
    }

    fn any(&mut self) -> Option<String> {
        let input = std::mem::take(&mut self.left);
        self.put("input", input);
        None
    }

    /// The arguments, with what nobody took.
    fn done(mut self) -> Value {
        if !self.left.is_empty() {
            let left = std::mem::take(&mut self.left);
            self.put("other", left);
        }
        Value::Object(self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers' names may hold what separates the parts: a tool of a server with
    /// the longer name must not pass for one of the shorter.
    #[test]
    fn a_tool_is_of_one_server() {
        let of = |tool: &str, server: &str| {
            let call = json!({ "session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {} });
            Call::read(call.to_string().as_bytes()).unwrap().is_of(server)
        };
        assert!(of("mcp__glovebox__text-count", "glovebox"));
        for other in [
            "mcp__glovebox__x__run",
            "mcp__glovebox__",
            "mcp__glovebox",
            "mcp__glovebox-x__run",
            "glovebox__run",
            "Bash",
        ] {
            assert!(!of(other, "glovebox"), "{other}");
        }
        assert!(of("mcp__glovebox__x__run", "glovebox__x"));
    }
}
