//! What of the registry an agent is told, and may call.

use std::sync::Arc;

use env_contracts::{CapabilityName, CapabilityRef, Code, Label, Principal, Problem, Profiles, Wanted};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Health, Registry, Tool};

/// The most hits of a search: a list for a model or a person to choose from.
const MOST_FOUND: usize = 50;

/// The most words of a search; more are a sentence, and each is looked for in
/// every text.
const MOST_WORDS: usize = 8;

/// What a search found, best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Found {
    /// Which one, in the version that its name alone means.
    pub capability: CapabilityRef,
    /// A few words.
    pub title: String,
    /// Whether the profile of who asks lets it be called.
    pub executable: bool,
    /// Whether it can be called at all.
    pub health: Health,
}

/// Where a word of a search stands: the better, the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    BeginsName,
    InName,
    InTitle,
    InDescription,
}

impl Registry {
    /// A tool for somebody who asks. What is not disclosed to them is answered
    /// like what does not exist.
    ///
    /// # Errors
    /// Those of [`Registry::get`].
    pub fn disclosed(&self, wanted: &Wanted, principal: &Principal, profiles: &Profiles) -> Result<Arc<Tool>, Problem> {
        let allowed = profiles.of(principal);
        self.find(wanted, &|name| allowed.discovers(name))
    }

    /// A tool that somebody wants to call: it is disclosed to them, their
    /// profile lets it be called and goes up to its data label, and what it
    /// requires is there. Whether this call may be made is another question.
    ///
    /// # Errors
    /// Those of [`Registry::get`]; `policy-denied` where it may be found and
    /// not called, `dependency-unmet`.
    pub fn callable_by(
        &self,
        wanted: &Wanted,
        principal: &Principal,
        profiles: &Profiles,
    ) -> Result<Arc<Tool>, Problem> {
        let tool = self.disclosed(wanted, principal, profiles)?;
        let capability = tool.manifest.capability();
        if !profiles.executable(principal, &capability) {
            let message = format!("the profile of {} lets `{capability}` be found, not called", who(principal));
            return Err(Problem::new(Code::PolicyDenied, message)
                .with_help("the operator can add it to the profile's `execute`"));
        }
        let label = tool.manifest.contract.data.label;
        if let Some(most) = profiles.of(principal).max_label.filter(|most| label > *most) {
            let shown = |label: Label| format!("{label:?}").to_lowercase();
            let (label, most) = (shown(label), shown(most));
            let message =
                format!("`{capability}` is for `{label}` data, the profile of {} for `{most}`", who(principal));
            return Err(
                Problem::new(Code::PolicyDenied, message).with_help("the operator can raise the profile's `max_label`")
            );
        }
        self.complete(&tool)?;
        Ok(tool)
    }

    /// The capabilities whose name, title or description hold every word of a
    /// text, best first: names before titles before descriptions.
    ///
    /// # Errors
    /// `state-unavailable` if the folder can't be read. A tool that can't be
    /// read is not found.
    pub fn search(&self, text: &str, principal: &Principal, profiles: &Profiles) -> Result<Vec<Found>, Problem> {
        let allowed = profiles.of(principal);
        let words: Vec<String> = text.split_whitespace().take(MOST_WORDS).map(str::to_lowercase).collect();
        let mut hits: Vec<(Vec<Place>, CapabilityName, Arc<Tool>)> = Vec::new();
        for name in self.all_names()?.into_iter().filter(|name| allowed.discovers(name)) {
            let Ok(tool) = self.get(&Wanted { name: name.clone(), version: None }) else { continue };
            if let Some(mut places) = places(&tool, &words) {
                places.sort_unstable();
                hits.push((places, name, tool));
            }
        }
        hits.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        hits.truncate(MOST_FOUND);
        let found = |(_, name, tool): (_, CapabilityName, Arc<Tool>)| Found {
            capability: tool.manifest.capability(),
            title: tool.manifest.title.clone(),
            executable: allowed.executes(&name),
            health: self.health(&tool),
        };
        Ok(hits.into_iter().map(found).collect())
    }
}

/// Who asks, in a message.
fn who(principal: &Principal) -> String {
    match (&principal.agent, &principal.agent_version) {
        (Some(agent), Some(version)) => format!("agent `{agent}@{version}`"),
        (Some(agent), None) => format!("agent `{agent}`"),
        (None, _) => format!("`{}`", principal.user),
    }
}

/// Where each word stands; `None` if one stands nowhere.
fn places(tool: &Tool, words: &[String]) -> Option<Vec<Place>> {
    let name = tool.manifest.name.as_str();
    let (title, description) = (tool.manifest.title.to_lowercase(), tool.manifest.description.to_lowercase());
    let place = |word: &String| {
        if name.starts_with(word) {
            Some(Place::BeginsName)
        } else if name.contains(word) {
            Some(Place::InName)
        } else if title.contains(word) {
            Some(Place::InTitle)
        } else {
            description.contains(word).then_some(Place::InDescription)
        }
    };
    words.iter().map(place).collect()
}
