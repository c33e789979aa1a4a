//! Whether a policy holds together: with the schema, with its tests, with
//! itself.

use std::collections::BTreeSet;
use std::path::Path;

use cedar_policy::{Schema, ValidationMode, Validator};
use env_contracts::{CapabilityRef, Manifest, Verdict};
use serde::Serialize;

use crate::arguments::{self, Hidden};
use crate::cases::{self, TestReport};
use crate::error::{PolicyError, PolicyProblem, line_at};
use crate::narrower;
use crate::rules::{offset, told};
use crate::sample::Sample;
use crate::source::Sources;
use crate::{Decision, Policy as _, PolicySet, Reason, schema};

/// What is wrong with a policy, and what deserves a look.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CheckReport {
    /// What keeps it from being loaded.
    pub problems: Vec<PolicyProblem>,
    /// What an operator should look at.
    pub warnings: Vec<PolicyProblem>,
    /// The arguments of the tools that no rule can see.
    pub hidden: Vec<HiddenArgument>,
    /// How many rules were read.
    pub rules: usize,
    /// How many tests held.
    pub tests: usize,
}

/// An argument of a tool that no rule can see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HiddenArgument {
    /// The tool.
    pub capability: CapabilityRef,
    /// The argument, and why.
    #[serde(flatten)]
    pub hidden: Hidden,
}

/// Checks the policy of a folder, or the shipped one, with these tools.
///
/// # Errors
/// [`PolicyError::Unreadable`]; all that is wrong inside is in the report.
pub fn check<'a>(
    dir: Option<&Path>,
    tools: impl IntoIterator<Item = &'a Manifest>,
) -> Result<CheckReport, PolicyError> {
    let sources = match Sources::read(dir) {
        Err(PolicyError::Invalid(problems)) => return Ok(CheckReport { problems, ..CheckReport::default() }),
        other => other?,
    };
    let tools: Vec<&Manifest> = tools.into_iter().collect();
    let (set, problems) = PolicySet::parse_all(&sources);
    let rules = set.rules.known.len();
    if problems.is_empty() {
        Ok(report(&set, &tools))
    } else {
        Ok(CheckReport { problems, rules, ..CheckReport::default() })
    }
}

/// Runs the tests beside the policy of a folder, or beside the shipped one.
///
/// # Errors
/// [`PolicyError`] if the policy can't be read.
pub fn run_tests<'a>(
    dir: Option<&Path>,
    tools: impl IntoIterator<Item = &'a Manifest>,
) -> Result<TestReport, PolicyError> {
    let set = PolicySet::parse(&Sources::read(dir)?)?;
    Ok(cases::run(&set, &tools.into_iter().collect::<Vec<_>>()))
}

/// The Cedar schema for these tools: all that a rule can see.
pub fn schema_text<'a>(tools: impl IntoIterator<Item = &'a Manifest>) -> String {
    schema::of(&tools.into_iter().collect::<Vec<_>>())
}

/// The arguments of a tool that no rule can see.
pub fn hidden_arguments(tool: &Manifest) -> Vec<Hidden> {
    arguments::of_schema(&tool.input).hidden
}

/// The whole report of a policy that could be read.
pub(crate) fn report(set: &PolicySet, tools: &[&Manifest]) -> CheckReport {
    let mut report = CheckReport { rules: set.rules.known.len(), ..CheckReport::default() };
    if set.approvers.names().next().is_none() {
        let message = "no classes of approvers: nothing can be asked, so all that needs an approval is denied";
        report.warnings.push(PolicyProblem::new(crate::source::APPROVERS, None, message));
    }
    marks(tools, &mut report);
    reviewers(set, tools, &mut report);
    validate(set, tools, &mut report);
    let tests = cases::run(set, tools);
    report.tests = tests.passed;
    report.problems.extend(tests.failed);
    monotony(set, tools, &mut report);
    for tool in tools {
        let capability = tool.capability();
        let hidden = hidden_arguments(tool);
        blind_rules(set, tool, &hidden, &mut report);
        report
            .hidden
            .extend(hidden.into_iter().map(|hidden| HiddenArgument { capability: capability.clone(), hidden }));
    }
    report
}

fn marks(tools: &[&Manifest], report: &mut CheckReport) {
    for tool in tools {
        for argument in arguments::wrong_marks(&tool.input) {
            let message = format!(
                "argument `{argument}` is not seen as a command line: `{}` is `true`, and stands at a string or a list \
                 of strings",
                arguments::ARGV
            );
            // No problem: whoever registers a tool must not be able to keep the
            // policy from being loaded.
            report.warnings.push(PolicyProblem::new(&tool.capability().to_string(), None, message));
        }
    }
}

/// A reviewer that is not there approves nothing.
fn reviewers(set: &PolicySet, tools: &[&Manifest], report: &mut CheckReport) {
    for reviewer in set.reviewers() {
        if !tools.iter().any(|tool| tool.capability() == reviewer.capability) {
            let message = format!(
                "class `{}`: `{}` is not registered, and so the class approves nothing",
                reviewer.class, reviewer.capability
            );
            report.warnings.push(PolicyProblem::new(crate::source::APPROVERS, None, message));
        }
    }
}

fn validate(set: &PolicySet, tools: &[&Manifest], report: &mut CheckReport) {
    let text = schema::of(tools);
    let schema = match Schema::from_cedarschema_str(&text) {
        Ok((schema, _)) => schema,
        Err(error) => {
            report.problems.push(PolicyProblem::new("schema", None, error.to_string()));
            return;
        }
    };
    let rules = match set.rules.all() {
        Ok(rules) => rules,
        Err(error) => {
            report.problems.push(PolicyProblem::new("*.cedar", None, error));
            return;
        }
    };
    let result = Validator::new(schema).validate(&rules, ValidationMode::Strict);
    let place = |id, offset: Option<usize>| {
        let (file, line) = set.rules.place(id);
        let text = set.files.iter().find(|(name, _)| *name == file).map(|(_, text)| text);
        let exact = offset.zip(text).map(|(offset, text)| line_at(text, offset));
        (file, exact.or(line))
    };
    // The same rule is judged for each action and kind of principal.
    let (mut problems, mut warnings) = (BTreeSet::new(), BTreeSet::new());
    for error in result.validation_errors() {
        let (file, line) = place(error.policy_id(), offset(error));
        problems.insert(PolicyProblem { file, line, message: told(error) });
    }
    for warning in result.validation_warnings() {
        let (file, line) = place(warning.policy_id(), offset(warning));
        warnings.insert(PolicyProblem { file, line, message: told(warning) });
    }
    report.problems.extend(problems);
    report.warnings.extend(warnings);
}

/// Rules that look at what they will never see: calls with it are denied.
fn blind_rules(set: &PolicySet, tool: &Manifest, hidden: &[Hidden], report: &mut CheckReport) {
    let (name, capability) = (tool.name.as_str(), tool.capability().to_string());
    let mut known: Vec<_> = set.rules.known.values().filter(|known| known.concerns(name, &capability)).collect();
    known.sort_by_key(|known| &known.rule);
    for known in known {
        for argument in hidden.iter().filter(|hidden| known.looks.args.iter().any(|look| look.meets(&hidden.path))) {
            let message = format!(
                "rule `{}` looks at `{}` of {capability}, which is not visible to policy ({}): calls with it are denied",
                known.rule.id,
                argument.path.join("."),
                argument.why
            );
            report.warnings.push(PolicyProblem::new(&known.rule.file, Some(known.rule.line), message));
        }
    }
}

/// Warns where less is denied although more is permitted: such a rule teaches
/// those that ask to ask for more.
fn monotony(set: &PolicySet, tools: &[&Manifest], report: &mut CheckReport) {
    let mut unread = Vec::new();
    let mut samples: Vec<(String, Sample)> = cases::read(set, tools, &mut unread)
        .into_iter()
        .map(|case| (format!("test `{}`", case.name), case.sample))
        .collect();
    for (tool, agent) in tools.iter().flat_map(|tool| [(tool, false), (tool, true)]) {
        let who = if agent { "an agent" } else { "a user" };
        samples
            .extend(cases::plain(tool, agent).ok().map(|sample| (format!("{} by {who}", tool.capability()), sample)));
    }
    let mut seen = BTreeSet::new();
    for (name, wide) in samples {
        let more = wide.facts(|facts| set.decide(facts));
        if more.verdict == Verdict::Deny {
            continue;
        }
        for narrower in narrower::of(&wide).into_iter().filter(|narrower| narrower.surely) {
            let less = narrower.sample.facts(|facts| set.decide(facts));
            if rank(less.verdict) >= rank(more.verdict) || less.reason == Reason::EvaluationError {
                continue;
            }
            let ids: Vec<&str> = more.rules.iter().map(|rule| rule.id.as_str()).collect();
            if !seen.insert((ids.join(", "), narrower.change.clone())) {
                continue;
            }
            report.warnings.push(told_apart(&name, &more, &less, &narrower.change));
        }
    }
}

fn told_apart(name: &str, more: &Decision, less: &Decision, change: &str) -> PolicyProblem {
    let ids: Vec<String> = more.rules.iter().map(|rule| format!("`{}`", rule.id)).collect();
    let against: Vec<String> = less.rules.iter().map(|rule| format!("`{}`", rule.id)).collect();
    let against = if against.is_empty() { String::new() } else { format!(" by {}", against.join(", ")) };
    let (file, line) = more.rules.first().map_or((String::new(), None), |rule| (rule.file.clone(), Some(rule.line)));
    let message = format!(
        "not monotonic: {name} is {} by {}, and the same {change} is {}{against}",
        more.verdict,
        ids.join(", "),
        less.verdict
    );
    PolicyProblem { file, line, message }
}

const fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Deny => 0,
        Verdict::Ask => 1,
        Verdict::Allow => 2,
    }
}
