//! A policy: rules and approvers, and how they decide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use cedar_policy::{PolicyId, Request};
use env_contracts::{Assurance, Digest, Manifest, Name, Principal, Verdict};

use crate::approvers::Approvers;
use crate::check;
use crate::context::Attributes;
use crate::error::{PolicyError, PolicyProblem};
use crate::groups::Ready;
use crate::request::{Approval, Prepared};
use crate::rules::{File, Known, Rules};
use crate::scene::Scenes;
use crate::source::Sources;
use crate::stamp::{self, Material};
use crate::{Decision, Effect, Explanation, Facts, GivenScope, Policy, Reason, Reviewer, Rule, Source};

/// A policy that was read, and checked or known to have been checked.
pub struct PolicySet {
    pub(crate) rules: Rules,
    pub(crate) approvers: Approvers,
    /// The texts of the rules' files, by name.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) tests: Vec<File>,
    pub(crate) paths: Vec<PathBuf>,
    revision: Digest,
    scenes: Scenes,
}

impl PolicySet {
    /// Loads the policy of a folder, or the shipped one, and checks it: it
    /// parses, it fits the schema made of these tools, its tests pass.
    ///
    /// `stamps` is a private folder of the caller's. A policy that passed there
    /// before, with the same tools and this version, is not checked again.
    ///
    /// # Errors
    /// [`PolicyError`] with every problem.
    pub fn load<'a>(
        dir: Option<&Path>,
        tools: impl IntoIterator<Item = &'a Manifest>,
        stamps: Option<&Path>,
    ) -> Result<Self, PolicyError> {
        Self::of(&Material::read(dir, tools)?, stamps)
    }

    /// See [`PolicySet::load`].
    pub(crate) fn of(material: &Material<'_>, stamps: Option<&Path>) -> Result<Self, PolicyError> {
        let set = Self::parse(&material.sources)?;
        // What is shipped is checked with every tool that is shipped, by our own
        // tests, and looks at no argument of a tool.
        if material.shipped || stamps.is_some_and(|stamps| stamp::holds(stamps, &material.stamp)) {
            return Ok(set);
        }
        let report = check::report(&set, &material.tools);
        if !report.problems.is_empty() {
            return Err(PolicyError::Invalid(report.problems));
        }
        if let Some(stamps) = stamps {
            stamp::put(stamps, &material.stamp);
        }
        Ok(set)
    }

    /// The shipped policy.
    ///
    /// # Errors
    /// [`PolicyError`] if what is shipped is broken, which a test rules out.
    pub fn shipped() -> Result<Self, PolicyError> {
        Self::load(None, [], None)
    }

    /// Reads without checking against tools and tests.
    pub(crate) fn parse(sources: &Sources) -> Result<Self, PolicyError> {
        let (set, problems) = Self::parse_all(sources);
        if problems.is_empty() { Ok(set) } else { Err(PolicyError::Invalid(problems)) }
    }

    /// Reads as much as can be read, and says what can't.
    pub(crate) fn parse_all(sources: &Sources) -> (Self, Vec<PolicyProblem>) {
        let mut problems = Vec::new();
        let rules = Rules::read(&sources.rules, &mut problems);
        let approvers = match &sources.approvers {
            Some(file) => Approvers::read(file, &mut problems),
            None => Approvers::default(),
        };
        let set = Self {
            rules,
            approvers,
            files: sources.rules.iter().map(|file| (file.name.clone(), file.text.clone())).collect(),
            tests: sources.tests.clone(),
            paths: sources.paths.clone(),
            revision: sources.revision(),
            scenes: Scenes::default(),
        };
        (set, problems)
    }

    /// The files and folders that it was read from: whoever can write them can
    /// change what is allowed. None for the shipped policy.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// What rules say to a request: with an error of any, nothing else counts.
    fn evaluate<'a, 'r>(
        &'a self,
        case: &Case<'_>,
        request: &Request,
        rules: impl Iterator<Item = &'r Ready>,
    ) -> Result<Answer<'a>, Vec<String>> {
        let mut answer = Answer::default();
        let mut errors = Vec::new();
        for rule in rules {
            let held = rule.holds(request, case.prepared.entities());
            match (held, self.rules.known.get(&rule.id)) {
                (Ok(false), Some(_)) => {}
                (Ok(true), Some(known)) if known.rule.effect == Effect::Permit => answer.permits.push(known),
                (Ok(true), Some(known)) => answer.forbids.push(known),
                // A rule that fails is not left out: a forbid that is must not
                // become an allow.
                (Err(error), _) => errors.push(self.failed(&rule.id, &error)),
                (Ok(_), None) => errors.push(self.failed(&rule.id, "it is not among the rules")),
            }
        }
        // In an order of their own, not that in which they were read.
        for known in [&mut answer.permits, &mut answer.forbids] {
            known.sort_unstable_by_key(|known| &known.rule);
            known.dedup_by_key(|known| &known.rule);
        }
        errors.sort();
        errors.dedup();
        if errors.is_empty() { Ok(answer) } else { Err(errors) }
    }

    fn failed(&self, id: &PolicyId, error: &str) -> String {
        let place = match self.rules.place(id) {
            (file, Some(line)) => format!("{file}:{line}"),
            (file, None) => file,
        };
        format!("rule `{id}` ({place}): {error}")
    }

    /// Rules that look where a value is that they can't see.
    fn blind(&self, case: &Case<'_>) -> Vec<String> {
        let unseen = case.prepared.unseen();
        if unseen.is_empty() {
            return Vec::new();
        }
        let mut out: Vec<(&Rule, String)> = Vec::new();
        for known in self.rules.known.values().filter(|known| known.concerns(case.name, &case.capability)) {
            for path in unseen.iter().filter(|path| known.looks.args.iter().any(|look| look.meets(path))) {
                let Rule { id, file, line, .. } = &known.rule;
                let argument = path.join(".");
                let text = format!(
                    "rule `{id}` ({file}:{line}) looks at the argument `{argument}`, whose value here is not visible to policy"
                );
                out.push((&known.rule, text));
            }
        }
        out.sort();
        out.into_iter().map(|(_, text)| text).collect()
    }

    fn broken(&self, errors: Vec<String>) -> Decision {
        Decision {
            for_people: errors.clone(),
            for_model: vec!["the policy could not be evaluated for this action; an operator has to correct it".into()],
            errors,
            ..self.answer(Verdict::Deny, Reason::EvaluationError, &[])
        }
    }

    /// A decision with the rules that made it.
    fn answer(&self, verdict: Verdict, reason: Reason, decided: &[&Known]) -> Decision {
        let said = |pick: fn(&Known) -> Option<&String>| {
            let mut seen = BTreeSet::new();
            decided.iter().filter_map(|known| pick(known).cloned()).filter(|text| seen.insert(text.clone())).collect()
        };
        Decision {
            verdict,
            reason,
            rules: decided.iter().map(|known| known.rule.clone()).collect(),
            for_people: said(|known| known.reason.as_ref()),
            for_model: said(|known| known.model.as_ref()),
            classes: Vec::new(),
            delta: Vec::new(),
            errors: Vec::new(),
            revision: self.revision.clone(),
            preview: decided.iter().any(|known| known.preview),
            diff: decided.iter().any(|known| known.diff),
        }
    }

    /// The approval in the facts, as far as it counts: in classes that the
    /// approver is in by this policy, and not at all where there is none.
    fn counted<'a>(&self, facts: &Facts<'a>) -> Option<Approval<'a>> {
        let given = facts.approval?;
        let of = match given.source {
            // It stands for itself alone, and nobody else for it.
            Source::Reviewer => {
                let classes = self.approvers.reviewers().into_iter().map(|reviewer| reviewer.class);
                classes.filter(|class| class.as_str() == given.approver).collect()
            }
            Source::Person | Source::Grant => self.approvers.of(given.approver, given.assurance, facts.principal),
        };
        let classes: Vec<&str> = given.classes.iter().filter(|name| of.contains(name)).map(Name::as_str).collect();
        let approval = Approval { assurance: given.assurance, classes, source: given.source, scope: given.scope };
        (!approval.classes.is_empty()).then_some(approval)
    }

    fn decided(&self, facts: &Facts<'_>) -> Result<Decision, Vec<String>> {
        let manifest = facts.tool.manifest;
        let (name, capability) = (manifest.name.as_str(), manifest.capability().to_string());
        let groups = self.rules.groups.concerning(name, &capability);
        let wanted = groups.iter().fold(Attributes::default(), |wanted, group| wanted.and(group.wanted));
        let scene = self.scenes.of(facts);
        let prepared = scene.and_then(|scene| Prepared::new(facts, scene, wanted)).map_err(|fault| vec![fault])?;
        let case = Case { prepared, name, capability };
        let blind = self.blind(&case);
        if !blind.is_empty() {
            return Err(blind);
        }
        let approval = self.counted(facts);
        let request = case.request(approval.as_ref())?;
        let fixed = groups.iter().flat_map(|group| &group.fixed).map(AsRef::as_ref);
        let fixed = self.evaluate(&case, &request, fixed)?;
        let asked = groups.iter().flat_map(|group| group.asked(&request, case.prepared.entities()));
        let asked: Vec<&Ready> = asked.collect();
        let first = fixed.and(self.evaluate(&case, &request, asked.iter().copied())?);
        let unnamed = first.unnamed(facts);
        let missing = match approval.as_ref().map(|approval| approval.source) {
            None => facts.always_ask || !unnamed.is_empty(),
            // The requester wants a person, and it is none.
            Some(Source::Reviewer) => facts.always_ask,
            Some(Source::Person | Source::Grant) => false,
        };
        if first.allows() && !missing {
            return Ok(self.answer(Verdict::Allow, Reason::Permitted, first.decided()));
        }
        if !fixed.forbids.is_empty() {
            return Ok(self.denied(&fixed));
        }
        // Would it be permitted if one of the class had approved?
        let (mut classes, mut permits) = (Vec::new(), BTreeMap::new());
        let mut hard: Option<Answer<'_>> = None;
        for (name, class) in self.approvers.reachable(facts.principal) {
            if class.reviews() && facts.always_ask {
                // The requester wants a person.
                continue;
            }
            let approval = Approval {
                assurance: class.assurance(),
                classes: vec![name.as_str()],
                source: class.source(),
                scope: GivenScope::Once,
            };
            let request = case.request(Some(&approval))?;
            let answer = fixed.and(self.evaluate(&case, &request, asked.iter().copied())?);
            if answer.allows() {
                classes.push(name.clone());
                permits.extend(answer.permits.iter().map(|known| (&known.rule, *known)));
            } else {
                hard = Some(hard.map_or_else(|| answer.clone(), |hard| hard.common(&answer)));
            }
        }
        if classes.is_empty() {
            return Ok(self.denied(&hard.unwrap_or(first)));
        }
        let decided: Vec<&Known> = first.forbids.iter().copied().chain(permits.into_values()).collect();
        let mut decision = self.answer(Verdict::Ask, Reason::NeedsApproval, &decided);
        decision
            .for_people
            .extend(unnamed.iter().map(|clause| format!("it asks beyond the tool's contract: {clause}")));
        if facts.always_ask {
            decision.for_people.push("a person has to decide on it, whatever the rules say".into());
        }
        if decision.for_people.is_empty() {
            decision.for_people.push("no rule permits this without an approval".into());
        }
        if decision.for_model.is_empty() {
            decision.for_model.push("this needs an approval".into());
        }
        Ok(Decision { classes, delta: unnamed, ..decision })
    }

    /// Denied, by rules that no approval changes or by having none that permits.
    fn denied(&self, answer: &Answer<'_>) -> Decision {
        let reason = if answer.forbids.is_empty() { Reason::NoRule } else { Reason::Forbidden };
        let mut decision = self.answer(Verdict::Deny, reason, &answer.forbids);
        // Whoever is refused learns something, even where the rules say nothing.
        let (people, model) = match reason {
            Reason::NoRule => ("no rule permits this", "no rule permits this; ask for less"),
            _ => ("a rule forbids this, whoever approves", "a rule forbids this, whoever approves; do not ask again"),
        };
        if decision.for_people.is_empty() {
            decision.for_people.push(people.into());
        }
        if decision.for_model.is_empty() {
            decision.for_model.push(model.into());
        }
        decision
    }
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.known.len();
        f.debug_struct("PolicySet").field("revision", &self.revision).field("rules", &rules).finish_non_exhaustive()
    }
}

impl Policy for PolicySet {
    fn decide(&self, facts: &Facts<'_>) -> Decision {
        self.decided(facts).unwrap_or_else(|errors| self.broken(errors))
    }

    fn explain(&self, facts: &Facts<'_>) -> Explanation {
        Self::explain(self, facts)
    }

    fn classes_of(&self, approver: &str, assurance: Assurance, requester: &Principal) -> Vec<Name> {
        self.approvers.of(approver, assurance, requester)
    }

    fn reviewers(&self) -> Vec<Reviewer> {
        self.approvers.reviewers()
    }

    fn revision(&self) -> Digest {
        self.revision.clone()
    }
}

/// An action that is decided upon.
struct Case<'a> {
    prepared: Prepared,
    name: &'a str,
    capability: String,
}

impl Case<'_> {
    fn request(&self, approval: Option<&Approval<'_>>) -> Result<Request, Vec<String>> {
        self.prepared.request(approval).map_err(|fault| vec![fault])
    }
}

/// What rules say: those that forbid, where any does, or else those that permit.
#[derive(Clone, Default)]
struct Answer<'a> {
    permits: Vec<&'a Known>,
    forbids: Vec<&'a Known>,
}

impl<'a> Answer<'a> {
    fn allows(&self) -> bool {
        self.forbids.is_empty() && !self.permits.is_empty()
    }

    fn decided(&self) -> &[&'a Known] {
        if self.forbids.is_empty() { &self.permits } else { &self.forbids }
    }

    /// What both say together, each rule once and in the order of the files.
    fn and(&self, other: Self) -> Self {
        let sum = |a: &[&'a Known], b: Vec<&'a Known>| {
            let all: BTreeMap<&Rule, &Known> = a.iter().copied().chain(b).map(|known| (&known.rule, known)).collect();
            all.into_values().collect()
        };
        Self { permits: sum(&self.permits, other.permits), forbids: sum(&self.forbids, other.forbids) }
    }

    /// The rules that forbid in both.
    fn common(mut self, other: &Self) -> Self {
        self.forbids.retain(|known| other.forbids.iter().any(|forbid| forbid.rule == known.rule));
        self
    }

    /// The clauses beyond the tool's contract that no deciding permit names:
    /// one has to name them all.
    fn unnamed(&self, facts: &Facts<'_>) -> Vec<String> {
        let clauses = || facts.delta.iter().map(|fact| fact.clause.as_str());
        let named = |known: &&Known| clauses().all(|clause| known.names(clause));
        if self.allows() && self.permits.iter().any(named) {
            return Vec::new();
        }
        clauses().map(str::to_owned).collect()
    }
}
