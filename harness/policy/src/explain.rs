//! Why a decision is what it is, and what would be permitted instead.

use env_contracts::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{self, Hidden};
use crate::facets::Facet;
use crate::narrower;
use crate::sample::Sample;
use crate::{Decision, Facts, Policy as _, PolicySet, Rule};

/// Why a decision is what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// The rules that decided, with their texts.
    pub rules: Vec<ExplainedRule>,
    /// The arguments of this tool that no rule can see.
    pub hidden: Vec<Hidden>,
    /// What rules see of the arguments that are command lines.
    pub facets: Vec<ExplainedFacet>,
    /// The first of a few requests for less that would be permitted. `None`
    /// where this one is, and where none would be.
    pub narrower: Option<ExplainedNarrower>,
}

/// A rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExplainedRule {
    /// Which one.
    #[serde(flatten)]
    pub rule: Rule,
    /// Its text.
    pub text: String,
    /// Why it is there, for people.
    pub reason: Option<String>,
}

/// What rules see of an argument that is a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExplainedFacet {
    /// The argument.
    pub argument: String,
    /// What they see.
    #[serde(flatten)]
    pub facet: Facet,
}

/// A request for less that would be permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExplainedNarrower {
    /// What is less, as the end of "the same …".
    pub change: String,
    /// The rules that permit it.
    pub rules: Vec<Rule>,
}

impl Explanation {
    /// Of a decision about which nothing else is known.
    pub(crate) fn of(decision: Decision) -> Self {
        Self { decision, rules: Vec::new(), hidden: Vec::new(), facets: Vec::new(), narrower: None }
    }
}

impl PolicySet {
    /// Why a decision is what it is, and what would be permitted instead.
    pub fn explain(&self, facts: &Facts<'_>) -> Explanation {
        let decision = self.decide(facts);
        let known = |rule: &Rule| self.rules.known.values().find(|known| known.rule == *rule);
        let rules = decision
            .rules
            .iter()
            .filter_map(known)
            .map(|known| ExplainedRule {
                rule: known.rule.clone(),
                text: known.text.clone(),
                reason: known.reason.clone(),
            })
            .collect();
        let mapped = arguments::of_schema(&facts.tool.manifest.input);
        let facets = mapped.argv.iter().filter_map(|argument| {
            let facet = Facet::of(facts.arguments.get(argument)?)?;
            Some(ExplainedFacet { argument: argument.clone(), facet })
        });
        Explanation {
            facets: facets.collect(),
            narrower: (decision.verdict != Verdict::Allow).then(|| self.narrower(facts)).flatten(),
            hidden: mapped.hidden,
            rules,
            decision,
        }
    }

    fn narrower(&self, facts: &Facts<'_>) -> Option<ExplainedNarrower> {
        narrower::of(&Sample::from(facts)).into_iter().find_map(|narrower| {
            let decision = narrower.sample.facts(|facts| self.decide(facts));
            (decision.verdict == Verdict::Allow)
                .then_some(ExplainedNarrower { change: narrower.change, rules: decision.rules })
        })
    }
}
