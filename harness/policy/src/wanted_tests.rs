//! Decisions upon what rules look at, against decisions upon everything.

use std::collections::BTreeSet;

use cedar_policy::{Authorizer, Decision as CedarDecision};
use env_contracts::{Assurance, Label, Name, Verdict};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;

use crate::context::Attributes;
use crate::request::{Approval, Prepared};
use crate::rules::File;
use crate::sample::{Answered, Sample};
use crate::scene::Scene;
use crate::source::{SHIPPED, Sources};
use crate::{DeltaFact, Facts, GivenScope, Policy as _, PolicySet, Source, cases, schema};

/// Conditions over every attribute, in every notation: those that hold, those
/// that don't, and those that fail where something is absent.
const CONDITIONS: &[&str] = &[
    "context.args has n && context.args.n > 1",
    "context.args.line like \"ls*\"",
    "context[\"args\"].deep.a.contains(true)",
    "context.args == context.args",
    "context == context",
    "(if context.simple then context else context).walls >= 0",
    "!context.simple || context.wrapper",
    "context.may_run.contains(\"ls\")",
    "context.facets has line && context.facets.line.words > 0",
    "context[\"effects\"] == \"none\"",
    "context.reaches_out",
    "context.egress.isEmpty() || context.egress_methods.contains(\"*\")",
    "context.ingress.contains(80)",
    "context.writes.containsAny([\"workspace\"])",
    "context has workspace",
    "context.workspace == \"write\"",
    "context.hosts.isEmpty() && context.secrets.isEmpty()",
    "context.long_lived_secrets.isEmpty()",
    "context.delegation == \"none\" && context has limits.memory",
    "context.delta.isEmpty() || context.bypass",
    "context.data.label > 1 || context.data.at_least.contains(\"restricted\")",
    "context.cross_tenant",
    "context.budget.actions < 3 && context.past.declines == 0",
    "context.task.stage == \"s\"",
    "context.attended && context.backend == \"wasm\" && context.walls >= 0",
    "context has bound && context.bound.paths.isEmpty()",
    "context.bound.inputs.isEmpty()",
    "context has approval",
    "context has approval && context.approval.source == \"person\"",
    "context[\"approval\"].scope == \"once\"",
    "principal has chain && principal.chain.contains(\"planner\")",
    "resource.has_preview || resource.builtin",
];

fn rule() -> impl Strategy<Value = String> {
    let scope = prop_oneof![
        Just("action"),
        Just("action in Action::\"run\""),
        Just("action in Action::\"example.tool\""),
        Just("action == Action::\"example.tool@1.0.0\""),
    ];
    let word = prop_oneof![Just("permit"), Just("forbid")];
    let condition = || prop::sample::select(CONDITIONS);
    let joint = prop_oneof![Just("} when {"), Just("} unless {"), Just("||"), Just("&&")];
    (word, scope, condition(), joint, condition()).prop_map(|(word, scope, one, joint, other)| {
        format!("{word} (principal, {scope}, resource) when {{ {one} {joint} {other} }};\n")
    })
}

fn facts() -> impl Strategy<Value = Sample> {
    let toggles = (any::<[bool; 8]>(), prop::sample::select(vec![Label::Public, Label::Restricted]));
    toggles.prop_map(|([full, bound, answered, unseen, delta, foreign, ask, used], label)| {
        let bare = || cases::plain(&cases::example().unwrap(), false).unwrap();
        let mut sample = if full { schema::tests::full() } else { bare() };
        sample.inputs = label;
        sample.always_ask = ask;
        if !bound {
            sample.bound = None;
        }
        if unseen {
            sample.arguments = json!({ "line": 1, "n": 1.5, "more": "x" });
        }
        if !foreign {
            sample.tenants.clear();
        }
        if used {
            (sample.budget.actions, sample.past.declines) = (7, 2);
        }
        if delta {
            let clause = "isolation.walls".parse().unwrap();
            sample.delta = vec![DeltaFact { clause, asked: "1".into(), had: None }];
        }
        sample.approval = answered.then(|| Answered {
            approver: "bob".into(),
            assurance: Assurance::Passkey,
            classes: vec!["owner".parse().unwrap()],
            source: Source::Person,
            scope: GivenScope::Once,
        });
        sample
    })
}

fn set(rules: &str) -> PolicySet {
    let file = |name: &str, text: &str| File { name: name.into(), text: text.into() };
    let approvers = "[classes.owner]\nsubjects = [\"*\"]\nassurance = \"same-user\"\n\
                     [classes.person]\nsubjects = [\"*\"]\nassurance = \"passkey\"\n";
    let (rules, approvers) = (vec![file("rules.cedar", rules)], Some(file("approvers.toml", approvers)));
    PolicySet::parse(&Sources { rules, approvers, ..Sources::default() }).unwrap()
}

/// The same rules, decided upon everything.
fn seeing_all(rules: &str) -> PolicySet {
    let mut set = set(rules);
    set.rules.groups.each(|group| group.wanted = Attributes::ALL);
    set
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// What is left out changes no decision, no reason and no word of an error.
    #[test]
    fn what_no_rule_looks_at_decides_nothing(
        rules in prop::collection::vec(rule(), 1..4), shipped: bool, samples in prop::collection::vec(facts(), 1..4),
    ) {
        let mut rules = rules.concat();
        if shipped {
            rules.push_str(SHIPPED[0].1);
        }
        let (some, all) = (set(&rules), seeing_all(&rules));
        for sample in samples {
            sample.facts(|facts| {
                prop_assert_eq!(some.decide(facts), all.decide(facts));
                prop_assert_eq!(some.explain(facts), all.explain(facts));
                Ok(())
            })?;
        }
    }
}

/// What Cedar's authorizer says of all rules, and what we say of those that
/// concern an action, in groups and without their scopes.
fn held_together(set: &PolicySet, facts: &Facts<'_>) -> Result<(), TestCaseError> {
    let decision = set.decide(facts);
    let prepared = Prepared::new(facts, Scene::new(facts).unwrap().into(), Attributes::ALL).unwrap();
    let given = facts.approval.map(|given| Approval {
        assurance: given.assurance,
        classes: given.classes.iter().map(Name::as_str).collect(),
        source: given.source,
        scope: given.scope,
    });
    let request = prepared.request(given.as_ref()).unwrap();
    let cedar = Authorizer::new().is_authorized(&request, &set.rules.all().unwrap(), prepared.entities());
    let (reasons, errors) = (cedar.diagnostics().reason(), cedar.diagnostics().errors().count());
    let reasons: BTreeSet<String> = reasons.map(ToString::to_string).collect();
    let ours: BTreeSet<String> = decision.rules.iter().map(|rule| rule.id.clone()).collect();
    let (cedar, word) = (cedar.decision(), format!("{request:?} {decision:?}"));
    match (cedar, decision.verdict) {
        _ if errors > 0 => prop_assert!(!decision.errors.is_empty(), "{}", word),
        (CedarDecision::Allow, Verdict::Allow) => prop_assert_eq!(ours, reasons, "{}", word),
        (CedarDecision::Allow, _) => prop_assert!(false, "{}", word),
        (CedarDecision::Deny, Verdict::Allow) => prop_assert!(false, "{}", word),
        // Whom to ask, Cedar does not know.
        (CedarDecision::Deny, _) => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn cedars_authorizer_decides_the_same(
        rules in prop::collection::vec(rule(), 1..5), shipped: bool, samples in prop::collection::vec(facts(), 1..4),
    ) {
        let mut rules = rules.concat();
        if shipped {
            rules.push_str(SHIPPED[0].1);
        }
        let set = set(&rules);
        for mut sample in samples {
            // What only our own code decides.
            (sample.always_ask, sample.delta, sample.arguments) = (false, Vec::new(), json!({}));
            sample.facts(|facts| held_together(&set, facts))?;
        }
    }
}

/// The pool of conditions leaves no attribute out.
#[test]
fn every_attribute_is_looked_at_by_some_condition() {
    for name in crate::context::names() {
        let named = CONDITIONS.iter().any(|condition| {
            condition.contains(&format!("context.{name}"))
                || condition.contains(&format!("context has {name}"))
                || condition.contains(&format!("context[\"{name}\"]"))
        });
        assert!(named, "{name}");
    }
}
