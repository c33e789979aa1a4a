//! Who may approve: classes of people, and of capabilities that stand in for
//! them, declared in `approvers.toml`.

use std::collections::BTreeMap;

use env_contracts::{Assurance, CapabilityRef, Name, Principal, Span};
use serde::Deserialize;

use crate::Source;
use crate::error::{PolicyProblem, line_at};
use crate::rules::File;

/// The most classes. A decision is made once for each.
pub const MAX_CLASSES: usize = 16;

/// What stands for every user.
const ANYONE: &str = "*";

/// The classes by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approvers {
    #[serde(default)]
    classes: BTreeMap<Name, Class>,
}

/// The longest that a reviewer may take: whoever asked waits for it.
const MAX_LIMIT: Span = Span::secs(10 * 60);

/// Who is in a class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Class {
    /// Users of the requester's tenant, or `*` for all of them.
    #[serde(default)]
    subjects: Vec<String>,
    /// How sure it must at least be that it is they. A reviewer's is the least
    /// there is.
    #[serde(default)]
    assurance: Option<Assurance>,
    /// Whether the requesting user is not in it.
    #[serde(default)]
    separate: bool,
    /// What answers in place of people.
    #[serde(default)]
    reviewer: Option<Reviews>,
}

/// A capability that answers in place of people.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reviews {
    capability: CapabilityRef,
    limit: Span,
}

/// A class of approvers that is a capability: a rule engine, or a model behind
/// one. It is no person, whatever it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reviewer {
    /// The class.
    pub class: Name,
    /// What is asked.
    pub capability: CapabilityRef,
    /// How long it may take.
    pub limit: Span,
}

impl Approvers {
    pub(crate) fn read(file: &File, problems: &mut Vec<PolicyProblem>) -> Self {
        let read: Self = match toml::from_str(&file.text) {
            Ok(read) => read,
            Err(error) => {
                let line = error.span().map(|span| line_at(&file.text, span.start));
                problems.push(PolicyProblem::new(&file.name, line, error.message()));
                return Self::default();
            }
        };
        let mut wrong = |message: String| problems.push(PolicyProblem::new(&file.name, None, message));
        if read.classes.len() > MAX_CLASSES {
            wrong(format!("{} classes, and at most {MAX_CLASSES} are tried", read.classes.len()));
        }
        for (name, class) in &read.classes {
            if let Some(reviewer) = &class.reviewer {
                if !class.subjects.is_empty() || class.separate {
                    wrong(format!("class `{name}` is a reviewer or has subjects, not both"));
                }
                if class.assurance.is_some_and(|assurance| assurance != Assurance::SameUser) {
                    wrong(format!("class `{name}`: a reviewer is no person, and its assurance is `same-user`"));
                }
                if reviewer.limit.0.is_zero() || reviewer.limit > MAX_LIMIT {
                    wrong(format!("class `{name}`: `limit` is more than nothing and at most {MAX_LIMIT}"));
                }
                continue;
            }
            if class.assurance.is_none() {
                wrong(format!("class `{name}` says no `assurance`"));
            }
            if class.subjects.is_empty() {
                wrong(format!("class `{name}` has no subjects; `\"*\"` is every user of the tenant"));
            }
            for subject in &class.subjects {
                if subject != ANYONE && subject.parse::<Name>().is_err() {
                    wrong(format!("class `{name}`: `{}` is not a user's name", subject.escape_debug()));
                }
            }
        }
        read
    }

    /// The classes of an approver, with this assurance, for this requester.
    pub(crate) fn of(&self, approver: &str, assurance: Assurance, requester: &Principal) -> Vec<Name> {
        self.classes
            .iter()
            .filter(|(_, class)| class.assurance() <= assurance && class.admits(approver, requester))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The classes of which somebody could approve what this requester asks.
    pub(crate) fn reachable(&self, requester: &Principal) -> impl Iterator<Item = (&Name, &Class)> {
        self.classes.iter().filter(move |(_, class)| {
            class.reviews()
                || class.subjects.iter().any(|subject| subject == ANYONE || class.admits(subject, requester))
        })
    }

    /// The classes that are no people.
    pub(crate) fn reviewers(&self) -> Vec<Reviewer> {
        let of = |(name, class): (&Name, &Class)| {
            let Reviews { capability, limit } = class.reviewer.clone()?;
            Some(Reviewer { class: name.clone(), capability, limit })
        };
        self.classes.iter().filter_map(of).collect()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.classes.keys()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Class> {
        self.classes.iter().find(|(key, _)| key.as_str() == name).map(|(_, class)| class)
    }
}

impl Class {
    /// How sure it must at least be who answers.
    pub(crate) fn assurance(&self) -> Assurance {
        self.assurance.unwrap_or(Assurance::SameUser)
    }

    /// Whether it is a capability, and no people.
    pub(crate) fn reviews(&self) -> bool {
        self.reviewer.is_some()
    }

    /// Where an answer of it comes from.
    pub(crate) fn source(&self) -> Source {
        if self.reviews() { Source::Reviewer } else { Source::Person }
    }

    fn admits(&self, approver: &str, requester: &Principal) -> bool {
        // An agent never answers for itself or for those that it works for,
        // under whatever name a channel presents it.
        let party = requester.agent.iter().chain(&requester.chain).any(|agent| agent.as_str() == approver);
        let own = self.separate && requester.user.as_str() == approver;
        !party && !own && self.subjects.iter().any(|subject| subject == ANYONE || subject == approver)
    }

    /// One who could be of this class, for trying.
    pub(crate) fn subject(&self) -> &str {
        self.subjects.first().map_or(ANYONE, String::as_str)
    }
}
