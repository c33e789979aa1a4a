//! Tests beside the rules: facts in short form, and what is expected of them.

use std::collections::BTreeSet;

use env_contracts::{
    Access, ApprovalNeed, Assurance, ClausePath, Contract, Digest, EffectClass, Egress, HostPattern, Inject, Label,
    Manifest, ManifestEntry, Mount, Name, Principal, Secret, Source as MountSource, Span, Verdict, Version, Wanted,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{PolicyProblem, line_at};
use crate::rules::File;
use crate::sample::{Answered, Sample};
use crate::{BudgetFacts, Decision, DeltaFact, GivenScope, PastFacts, Policy as _, PolicySet, Source};

/// How the tests beside a policy ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestReport {
    /// How many held.
    pub passed: usize,
    /// Those that did not, and those that can't be read.
    pub failed: Vec<PolicyProblem>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    #[serde(default)]
    test: Vec<toml::Spanned<Case>>,
}

/// One test.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,

    // Who asks.
    tenant: Option<Name>,
    user: Option<Name>,
    agent: Option<Name>,
    agent_version: Option<Version>,
    #[serde(default)]
    chain: Vec<Name>,

    // What.
    tool: Option<Wanted>,
    #[serde(default)]
    does: BTreeSet<EffectClass>,
    #[serde(default)]
    builtin: bool,
    #[serde(default)]
    accepted: bool,
    #[serde(default)]
    decision: bool,
    #[serde(default)]
    arguments: toml::Table,

    // With which rights.
    workspace: Option<Access>,
    host: Option<String>,
    #[serde(default)]
    egress: Vec<HostPattern>,
    #[serde(default)]
    secrets: Vec<Name>,
    secrets_last: Option<Span>,
    #[serde(default)]
    delta: Vec<ClausePath>,

    // In which circumstances.
    label: Option<Label>,
    #[serde(default)]
    objects_of: Vec<Name>,
    purpose: Option<String>,
    stage: Option<String>,
    #[serde(default)]
    budget: BudgetFacts,
    #[serde(default)]
    past: PastFacts,
    #[serde(default)]
    unattended: bool,
    #[serde(default)]
    approval: ApprovalNeed,
    backend: Option<String>,
    approved: Option<Approved>,

    // What is expected.
    expect: Verdict,
    approvers: Option<Vec<Name>>,
    rule: Option<String>,
    preview: Option<bool>,
    diff: Option<bool>,
}

/// An approval that a test takes for given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approved {
    class: Name,
    by: Option<String>,
    assurance: Option<Assurance>,
    source: Option<Source>,
    #[serde(default = "once")]
    scope: GivenScope,
}

const fn once() -> GivenScope {
    GivenScope::Once
}

/// The facts of a test, for other checks to vary.
pub(crate) struct Read {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) sample: Sample,
    case: Case,
}

/// Reads every test; what is wrong goes to `problems`.
pub(crate) fn read(set: &PolicySet, tools: &[&Manifest], problems: &mut Vec<PolicyProblem>) -> Vec<Read> {
    let mut out = Vec::new();
    for file in &set.tests {
        let cases: Cases = match toml::from_str(&file.text) {
            Ok(cases) => cases,
            Err(error) => {
                let line = error.span().map(|span| line_at(&file.text, span.start));
                problems.push(PolicyProblem::new(&file.name, line, error.message()));
                continue;
            }
        };
        out.extend(cases.test.into_iter().filter_map(|case| one(set, tools, file, case, problems)));
    }
    out
}

fn one(
    set: &PolicySet,
    tools: &[&Manifest],
    file: &File,
    case: toml::Spanned<Case>,
    problems: &mut Vec<PolicyProblem>,
) -> Option<Read> {
    let line = line_at(&file.text, case.span().start);
    let case = case.into_inner();
    match case.sample(set, tools) {
        Ok(sample) => Some(Read { name: case.name.clone(), file: file.name.clone(), line, sample, case }),
        Err(message) => {
            problems.push(PolicyProblem::new(&file.name, Some(line), format!("test `{}`: {message}", case.name)));
            None
        }
    }
}

impl Read {
    /// What is wrong with a decision, if anything is.
    pub(crate) fn judge(&self, decision: &Decision) -> Option<PolicyProblem> {
        let ids: Vec<&str> = decision.rules.iter().map(|rule| rule.id.as_str()).collect();
        let because =
            format!("{} by {}", decision.verdict, if ids.is_empty() { "no rule".into() } else { ids.join(", ") });
        let case = &self.case;
        let message = if decision.verdict != case.expect {
            let errors = decision.errors.iter().map(|error| format!("; {error}")).collect::<String>();
            format!("expected {}, found {because}{errors}", case.expect)
        } else if let Some(names) = case.approvers.as_ref().filter(|names| !same(names, &decision.classes)) {
            format!("expected that {} may approve, found {}", joined(names), joined(&decision.classes))
        } else if let Some(rule) = case.rule.as_ref().filter(|rule| !ids.contains(&rule.as_str())) {
            format!("expected that `{rule}` decides, found {because}")
        } else if case.preview.is_some_and(|preview| preview != decision.preview) {
            format!("expected preview = {}", !decision.preview)
        } else if case.diff.is_some_and(|diff| diff != decision.diff) {
            format!("expected diff = {}", !decision.diff)
        } else {
            return None;
        };
        Some(PolicyProblem::new(&self.file, Some(self.line), format!("test `{}`: {message}", self.name)))
    }
}

fn same(a: &[Name], b: &[Name]) -> bool {
    a.iter().collect::<BTreeSet<_>>() == b.iter().collect()
}

fn joined(names: &[Name]) -> String {
    match names {
        [] => "nobody".into(),
        names => names.iter().map(Name::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Runs every test.
pub(crate) fn run(set: &PolicySet, tools: &[&Manifest]) -> TestReport {
    let mut failed = Vec::new();
    let cases = read(set, tools, &mut failed);
    let judged = cases.iter().filter_map(|case| case.judge(&case.sample.facts(|facts| set.decide(facts))));
    let unread = failed.len();
    failed.extend(judged);
    TestReport { passed: cases.len() - (failed.len() - unread), failed }
}

impl Case {
    fn sample(&self, set: &PolicySet, tools: &[&Manifest]) -> Result<Sample, String> {
        let manifest = self.manifest(tools)?;
        let mut sample = plain(&manifest, false)?;
        if let Some(tenant) = &self.tenant {
            sample.principal.tenant = tenant.clone();
        }
        if let Some(user) = &self.user {
            sample.principal.user = user.clone();
        }
        sample.principal.agent.clone_from(&self.agent);
        sample.principal.agent_version.clone_from(&self.agent_version);
        sample.principal.chain.clone_from(&self.chain);
        sample.builtin = self.builtin;
        sample.accepted = self.accepted;
        sample.arguments = serde_json::to_value(&self.arguments).map_err(|error| error.to_string())?;
        sample.contract = self.contract(&manifest)?;
        sample.derive();
        let delta = |clause: &ClausePath| DeltaFact { clause: clause.clone(), asked: String::new(), had: None };
        sample.delta = self.delta.iter().map(delta).collect();
        if let Some(backend) = &self.backend {
            sample.backend.clone_from(backend);
        }
        sample.purpose.clone_from(&self.purpose);
        sample.stage.clone_from(&self.stage);
        sample.budget = self.budget;
        sample.past = self.past;
        sample.attended = !self.unattended;
        sample.inputs = self.label.unwrap_or(Label::Public);
        sample.tenants.clone_from(&self.objects_of);
        sample.secrets = self.secrets.iter().map(|reference| (reference.clone(), self.secrets_last)).collect();
        sample.always_ask = self.approval == ApprovalNeed::Always;
        sample.approval = self.approved.as_ref().map(|approved| approved.answered(set)).transpose()?;
        Ok(sample)
    }

    /// The tool of the test: a registered one, or one made up.
    fn manifest(&self, tools: &[&Manifest]) -> Result<Manifest, String> {
        let mut manifest = match &self.tool {
            None => example()?,
            Some(wanted) => {
                let fits = |tool: &&&Manifest| {
                    tool.name == wanted.name && wanted.version.as_ref().is_none_or(|version| *version == tool.version)
                };
                let newest = tools.iter().filter(fits).max_by_key(|tool| tool.version.precedence());
                (*newest.ok_or_else(|| format!("no tool `{wanted}` is registered"))?).clone()
            }
        };
        manifest.effects.classes.extend(self.does.iter().copied());
        if self.decision {
            manifest.entry = ManifestEntry::Decision;
        }
        Ok(manifest)
    }

    fn contract(&self, manifest: &Manifest) -> Result<Contract, String> {
        let mut contract = manifest.contract.clone();
        let mut mount = |guest: &str, source: MountSource, access: Access| -> Result<(), String> {
            contract.filesystem.retain(|mount| mount.source != source);
            contract.filesystem.push(Mount { guest: guest.parse()?, source, access, hide: None });
            Ok(())
        };
        if let Some(access) = self.workspace {
            mount("/workspace", MountSource::Workspace, access)?;
        }
        if let Some(path) = &self.host {
            mount("/host", MountSource::Host(path.clone()), Access::Write)?;
        }
        contract.network.egress.extend(self.egress.iter().map(|host| Egress {
            host: host.clone(),
            ports: vec![443],
            methods: None,
            paths: None,
            max: None,
            connections: None,
            tls: env_contracts::Tls::default(),
        }));
        for reference in &self.secrets {
            let inject = Inject {
                host: HostPattern::Exact("api.example.com".into()),
                method: None,
                path: None,
                header: "authorization".into(),
                format: "{secret}".into(),
            };
            contract.secrets.push(Secret { reference: reference.clone(), inject });
        }
        Ok(contract)
    }
}

impl Approved {
    fn answered(&self, set: &PolicySet) -> Result<Answered, String> {
        let class = set.approvers.get(self.class.as_str()).ok_or_else(|| format!("no class `{}`", self.class))?;
        Ok(Answered {
            approver: self.by.clone().unwrap_or_else(|| {
                // A reviewer is nobody but its class.
                if class.reviews() { self.class.to_string() } else { class.subject().to_owned() }
            }),
            assurance: self.assurance.unwrap_or_else(|| class.assurance()),
            classes: vec![self.class.clone()],
            source: self.source.unwrap_or_else(|| class.source()),
            scope: self.scope,
        })
    }
}

/// A tool that asks for nothing.
pub(crate) fn example() -> Result<Manifest, String> {
    serde_json::from_value(serde_json::json!({
        "schema": "glovebox/tool/v1", "name": "example.tool", "version": "1.0.0", "title": "An example",
        "description": "An example.", "entry": { "kind": "tool" }, "input": { "type": "object" },
        "contract": { "schema": "glovebox/contract/v1" },
    }))
    .map_err(|error| error.to_string())
}

/// Facts of an agent that calls a tool with nothing but what its contract says.
pub(crate) fn plain(manifest: &Manifest, agent: bool) -> Result<Sample, String> {
    let agent = if agent { Some("agent".parse()?) } else { None };
    Ok(Sample {
        principal: Principal {
            tenant: "acme".parse()?,
            user: "ann".parse()?,
            agent,
            agent_version: None,
            chain: vec![],
        },
        manifest: manifest.clone(),
        artifact: Digest::of(manifest.name.as_str().as_bytes()),
        builtin: false,
        accepted: false,
        arguments: Value::Object(serde_json::Map::new()),
        contract: manifest.contract.clone(),
        effects: manifest.effects_under(&manifest.contract),
        delta: vec![],
        backend: if manifest.entry == ManifestEntry::Native { "native" } else { "wasm" }.into(),
        session: "session".parse()?,
        task: "task".parse()?,
        purpose: None,
        stage: None,
        budget: BudgetFacts::default(),
        past: PastFacts::default(),
        attended: true,
        bound: None,
        inputs: Label::Public,
        tenants: vec![],
        secrets: vec![],
        always_ask: false,
        approval: None,
    })
}
