//! What a hook says, in the protocol's words, and how much of it is believed.

use serde::{Deserialize, Serialize};

/// The longest reason, in characters: it is for a model to read.
const MAX_REASON: usize = 4000;

/// The longest answer of the inner process, in bytes. Ours are shorter.
const MAX_ANSWER: usize = 64 << 10;

/// The answer to one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// Absent: it is not decided here.
    #[serde(rename = "hookSpecificOutput", skip_serializing_if = "Option::is_none")]
    decided: Option<Decided>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    #[serde(rename = "hookEventName")]
    event: Event,
    #[serde(rename = "permissionDecision")]
    decision: Decision,
    #[serde(rename = "permissionDecisionReason")]
    reason: String,
}

/// The one event that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Event {
    PreToolUse,
}

/// There is a third, `ask`: it would be asked of whoever sits before the agent,
/// and people decide elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Deny,
}

impl Answer {
    pub(super) fn allow(reason: &str) -> Self {
        Self::of(Decision::Allow, reason)
    }

    pub(super) fn deny(reason: &str) -> Self {
        Self::of(Decision::Deny, reason)
    }

    /// It is decided on elsewhere, and the agent's own rules stand until then.
    pub(super) fn elsewhere() -> Self {
        Self { decided: None }
    }

    fn of(decision: Decision, reason: &str) -> Self {
        let reason = reason.trim().chars().take(MAX_REASON).collect();
        Self { decided: Some(Decided { event: Event::PreToolUse, decision, reason }) }
    }

    /// As one line.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| unreachable!("our own types always serialise: {error}"))
    }

    /// What the inner process said, if that is one answer and nothing else.
    pub(super) fn read(said: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(said).ok().filter(|text| text.len() <= MAX_ANSWER)?;
        let line = text.strip_suffix('\n')?;
        serde_json::from_str::<Self>(line).ok().filter(|answer| answer.line() == line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_in_the_words_of_the_protocol() {
        let said: serde_json::Value = serde_json::from_str(&Answer::deny(" not here ").line()).unwrap();
        let specific = serde_json::json!({
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not here",
        });
        assert_eq!(said, serde_json::json!({ "hookSpecificOutput": specific }));
        assert_eq!(Answer::elsewhere().line(), "{}");
    }

    #[test]
    fn only_one_whole_answer_is_believed() {
        let allow = Answer::allow("by a rule");
        assert_eq!(Answer::read(format!("{}\n", allow.line()).as_bytes()), Some(allow.clone()));
        let line = allow.line();
        for said in [
            String::new(),
            "\n".to_owned(),
            line.clone(),
            format!("{}\n", &line[..line.len() - 1]),
            format!("noise\n{line}\n"),
            format!("{line}\n{line}\n"),
            format!("{line}\n").replace("allow", "ask"),
            format!("{line}\n").replace("PreToolUse", "PostToolUse"),
            format!("{line}\n").replace("{\"hook", "{\"continue\":true,\"hook"),
            format!("{line}\n").replace("\"permissionDecision\":", "\"decision\":"),
            "null\n".to_owned(),
            "[]\n".to_owned(),
            format!("{}\n", " ".repeat(MAX_ANSWER)),
        ] {
            assert_eq!(Answer::read(said.as_bytes()), None, "{said:?}");
        }
        assert_eq!(Answer::read(b"\xff\n"), None);
    }
}
