//! The rules of a policy: Cedar, read file by file, with what their
//! annotations say.

use std::collections::HashMap;
use std::str::FromStr;

use cedar_policy::{ActionConstraint, EntityUid, Policy as CedarPolicy, PolicyId, PolicySet as CedarSet};
use miette::Diagnostic;

use crate::decision::{Effect, Rule};
use crate::depth;
use crate::error::{PolicyProblem, line_at};
use crate::groups::{Groups, Scope};
use crate::looks::Looks;
use crate::request::RUN;

/// The most rules that a policy has. Each is looked at for each decision, and
/// the budget of a decision is a millisecond for five hundred.
pub const MAX_RULES: usize = 2_000;

/// The annotations that mean something. Others are refused: whoever wrote one
/// believes that it does something.
const ANNOTATIONS: &[&str] = &["id", "reason", "model", "preview", "diff", "delta"];

/// A file of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Its name below the policy's folder.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A rule with all that is known of it.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) rule: Rule,
    /// Its text, as it stands in the file.
    pub(crate) text: String,
    /// Why, for people: `@reason`.
    pub(crate) reason: Option<String>,
    /// Why, and what else can be done, for the model: `@model`.
    pub(crate) model: Option<String>,
    pub(crate) preview: bool,
    pub(crate) diff: bool,
    /// Clauses that may go beyond the tool's contract by this rule: `@delta`.
    pub(crate) delta: Vec<String>,
    pub(crate) looks: Looks,
    pub(crate) cedar: CedarPolicy,
    /// The actions and groups in its scope.
    pub(crate) actions: Vec<Scope>,
}

/// All rules.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) known: HashMap<PolicyId, Known>,
    /// The same rules, as decisions want them.
    pub(crate) groups: Groups,
}

impl Rules {
    /// Reads the rules; what is wrong goes to `problems`.
    pub(crate) fn read(files: &[File], problems: &mut Vec<PolicyProblem>) -> Self {
        let mut rules = Self::default();
        for file in files {
            rules.read_file(file, problems);
        }
        match Groups::of(&rules.known) {
            Ok(groups) => rules.groups = groups,
            Err(error) => problems.push(PolicyProblem::new("*.cedar", None, error)),
        }
        if rules.known.len() > MAX_RULES {
            let message = format!("{} rules, and at most {MAX_RULES} are looked at", rules.known.len());
            problems.push(PolicyProblem::new("*.cedar", None, message));
        }
        rules
    }

    fn read_file(&mut self, file: &File, problems: &mut Vec<PolicyProblem>) {
        // Before it is read: reading goes as deep as the text.
        if let Some((line, why)) = depth::too_deep(&file.text) {
            problems.push(PolicyProblem::new(&file.name, Some(line), why));
            return;
        }
        let set = match CedarSet::from_str(&file.text) {
            Ok(set) => set,
            Err(errors) => {
                problems.extend(errors.iter().map(|error| {
                    let line = offset(error).map(|offset| line_at(&file.text, offset));
                    PolicyProblem::new(&file.name, line, told(error))
                }));
                return;
            }
        };
        for template in set.templates() {
            let line = template.as_ref().loc().map(|loc| line_at(&file.text, loc.start()));
            let message = "a template with `?principal` or `?resource`: nothing fills it in, so write the rule out";
            problems.push(PolicyProblem::new(&file.name, line, message));
        }
        let mut policies: Vec<(usize, &CedarPolicy)> = set.policies().map(|policy| (start(policy), policy)).collect();
        policies.sort_by_key(|(start, _)| *start);
        // Counted on from rule to rule: a file of many is read once.
        let (mut line, mut counted) = (1, 0);
        for (number, (start, policy)) in policies.into_iter().enumerate() {
            line += line_at(file.text.get(counted..).unwrap_or_default(), start.saturating_sub(counted)) - 1;
            counted = start;
            self.add(file, number, line, policy, problems);
        }
    }

    fn add(
        &mut self,
        file: &File,
        number: usize,
        line: usize,
        policy: &CedarPolicy,
        problems: &mut Vec<PolicyProblem>,
    ) {
        let mut wrong = |message: String| problems.push(PolicyProblem::new(&file.name, Some(line), message));
        for (key, _) in policy.annotations() {
            if !ANNOTATIONS.contains(&key) {
                wrong(format!("`@{key}` means nothing here; there are @{}", ANNOTATIONS.join(", @")));
            }
        }
        let said = |key: &str| policy.annotation(key).map(str::to_owned);
        let effect = match policy.effect() {
            cedar_policy::Effect::Permit => Effect::Permit,
            cedar_policy::Effect::Forbid => Effect::Forbid,
        };
        let delta: Vec<String> = said("delta")
            .map(|list| list.split(',').map(|clause| clause.trim().to_owned()).filter(|c| !c.is_empty()).collect())
            .unwrap_or_default();
        if policy.annotation("delta").is_some() && (effect == Effect::Forbid || delta.is_empty()) {
            wrong("`@delta` stands at a permit and lists clauses, such as `network.egress[api.example.com]`".into());
        }
        let mut switch = |key: &str| match policy.annotation(key) {
            None => false,
            Some("") => true,
            Some(other) => {
                wrong(format!("`@{key}` takes no value, and this says `{other}`"));
                false
            }
        };
        let (preview, diff) = (switch("preview"), switch("diff"));
        let id = said("id").filter(|id| !id.is_empty()).unwrap_or_else(|| {
            let stem = file.name.rsplit('/').next().unwrap_or(&file.name).trim_end_matches(".cedar");
            format!("{stem}#{}", number + 1)
        });
        let text = policy.as_ref().loc().and_then(|loc| loc.snippet()).unwrap_or_default().to_owned();
        let looks = match Looks::of_text(&text) {
            Some(looks) => looks,
            None => match policy.to_json() {
                Ok(json) => Looks::of_json(&json),
                Err(error) => {
                    wrong(error.to_string());
                    return;
                }
            },
        };
        let cedar_id = PolicyId::new(&id);
        if let Some(first) = self.known.get(&cedar_id) {
            wrong(format!("the id `{id}` is taken by {}:{}", first.rule.file, first.rule.line));
            return;
        }
        let actions = match policy.action_constraint() {
            ActionConstraint::Any => vec![Scope::In(RUN.to_owned())],
            ActionConstraint::In(actions) => actions.iter().map(|uid| Scope::In(action_name(uid))).collect(),
            ActionConstraint::Eq(action) => vec![Scope::Is(action_name(&action))],
        };
        let known = Known {
            rule: Rule { id, file: file.name.clone(), line, effect },
            text,
            reason: said("reason"),
            model: said("model"),
            preview,
            diff,
            delta,
            looks,
            actions,
            cedar: policy.new_id(cedar_id.clone()),
        };
        self.known.insert(cedar_id, known);
    }

    /// All rules in one set, as the validator wants them.
    pub(crate) fn all(&self) -> Result<CedarSet, String> {
        CedarSet::from_policies(self.known.values().map(|known| known.cedar.clone())).map_err(|error| error.to_string())
    }

    /// Where a rule stands.
    pub(crate) fn place(&self, id: &PolicyId) -> (String, Option<usize>) {
        self.known
            .get(id)
            .map_or_else(|| (id.to_string(), None), |known| (known.rule.file.clone(), Some(known.rule.line)))
    }
}

/// The name of an action of ours; of another namespace's, one that no action of
/// ours has.
fn action_name(action: &EntityUid) -> String {
    if action.type_name().to_string() == "Action" { action.id().unescaped().to_owned() } else { action.to_string() }
}

/// Where a rule begins in its file.
fn start(policy: &CedarPolicy) -> usize {
    match policy.as_ref().loc() {
        Some(loc) => loc.start(),
        None => 0,
    }
}

/// Where an error points.
pub(crate) fn offset(error: &dyn Diagnostic) -> Option<usize> {
    error.labels()?.next().map(|label| label.offset())
}

/// What an error says, with the word that it has for help.
pub(crate) fn told(error: &dyn Diagnostic) -> String {
    match error.help() {
        Some(help) => format!("{error}: {help}"),
        None => error.to_string(),
    }
}

impl Known {
    /// Whether its scope lets it concern a capability.
    pub(crate) fn concerns(&self, name: &str, capability: &str) -> bool {
        Scope::of(name, capability).iter().any(|scope| self.actions.contains(scope))
    }

    /// Whether `@delta` names a clause: as it is written, or with `[*]` for
    /// whatever stands in the brackets.
    pub(crate) fn names(&self, clause: &str) -> bool {
        let general = clause.split_once('[').and_then(|(head, rest)| {
            let (_, tail) = rest.rsplit_once(']')?;
            Some(format!("{head}[*]{tail}"))
        });
        self.delta.iter().any(|named| named == clause || Some(named) == general.as_ref())
    }
}
