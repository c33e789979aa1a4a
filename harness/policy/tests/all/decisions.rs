//! Allow, deny, ask: what rules together come to.

use env_contracts::{Label, Verdict};
use glovebox_policy::{DeltaFact, Effect, Facts, LabelFacts, Policy as _, Reason, TaskFacts};
use serde_json::json;

use crate::support::{World, policy, taking, tool};

/// A rule for every action.
fn any(effect: &str, condition: &str) -> String {
    format!("{effect} (principal, action in Action::\"run\", resource) when {{ {condition} }};\n")
}

fn delta(clauses: &[&str]) -> Vec<DeltaFact> {
    let fact = |clause: &&str| DeltaFact { clause: clause.parse().unwrap(), asked: "more".into(), had: None };
    clauses.iter().map(fact).collect()
}

#[test]
fn no_rule_is_a_denial_and_says_so() {
    let decision = World::new(taking(json!({}))).decide(&policy(&any("forbid", "context.attended == false"), &[]));
    assert_eq!((decision.verdict, decision.reason), (Verdict::Deny, Reason::NoRule));
    assert_eq!((decision.rules.len(), decision.classes.len()), (0, 0));
    assert!(!decision.for_people.is_empty() && !decision.for_model.is_empty());
}

#[test]
fn the_same_tool_with_other_arguments_is_another_question() {
    let tool = taking(json!({ "path": { "type": "string" } }));
    let rules = any("permit", "context.args has path && context.args.path like \"src/*\"");
    let set = policy(&rules, std::slice::from_ref(&tool));
    for (path, verdict) in [("src/a.rs", Verdict::Allow), ("etc/a.rs", Verdict::Deny)] {
        assert_eq!(World::new(tool.clone()).with(json!({ "path": path })).decide(&set).verdict, verdict, "{path}");
    }
}

#[test]
fn a_decision_names_its_rules_and_passes_their_reasons_on() {
    let rules = "// one\n// two\n@id(\"no\")\n@reason(\"for people\")\n@model(\"for models\")\n@preview\n".to_owned()
        + &any("forbid", "!(context has approval)")
        + &any("permit", "true");
    let decision = World::new(taking(json!({}))).decide(&policy(&rules, &[]));
    assert_eq!((decision.verdict, decision.reason), (Verdict::Ask, Reason::NeedsApproval));
    let no = &decision.rules[0];
    assert_eq!((no.id.as_str(), no.file.as_str(), no.line, no.effect), ("no", "rules.cedar", 3, Effect::Forbid));
    assert_eq!((decision.rules[1].id.as_str(), decision.rules[1].line), ("rules#2", 8));
    assert_eq!((decision.for_people, decision.for_model), (vec!["for people".into()], vec!["for models".into()]));
    assert!(decision.preview && !decision.diff);
}

/// Cedar leaves out a rule that fails. Where that rule forbids, leaving it out
/// would allow.
#[test]
fn a_rule_that_fails_is_a_denial_that_names_it() {
    let whole = json!({ "n": { "type": "integer" } });
    for failing in [
        any("forbid", "context.args.n + 9223372036854775807 == 0"),
        any("permit", "context.args.n + 9223372036854775807 == 0"),
        // Found only while somebody's approval is tried.
        any("forbid", "context has approval && context.args.n + 9223372036854775807 == 0"),
    ] {
        let manifest = tool(json!({ "type": "object", "properties": whole, "required": ["n"] }), json!({}));
        let rules = format!("@id(\"fails\")\n{failing}{}", any("permit", "context has approval"));
        let set = policy(&rules, std::slice::from_ref(&manifest));
        let decision = World::new(manifest).with(json!({ "n": 1 })).decide(&set);
        assert_eq!((decision.verdict, decision.reason), (Verdict::Deny, Reason::EvaluationError), "{failing}");
        assert!(decision.errors[0].contains("`fails` (rules.cedar:1)"), "{:?}", decision.errors);
    }
}

#[test]
fn a_forbid_that_does_not_speak_of_approvals_stands_whoever_approves() {
    let rules = format!("@id(\"hard\")\n{}{}", any("forbid", "true"), any("permit", "true"));
    let decision = World::new(taking(json!({}))).decide(&policy(&rules, &[]));
    assert_eq!((decision.verdict, decision.reason), (Verdict::Deny, Reason::Forbidden));
    assert_eq!(decision.rules[0].id, "hard");
    assert!(!decision.for_people.is_empty() && !decision.for_model.is_empty());
}

#[test]
fn what_goes_beyond_the_contract_is_allowed_only_by_a_rule_that_names_it() {
    let world = World::new(taking(json!({})));
    let decide = |rules: &str, clauses: &[&str]| {
        let delta = delta(clauses);
        policy(rules, &[]).decide(&Facts { delta: &delta, ..world.facts() })
    };
    let all = any("permit", "true");
    let (memory, egress) = ("limits.memory", "network.egress[api.example.com]");
    let decision = decide(&all, &[memory]);
    assert_eq!((decision.verdict, decision.delta), (Verdict::Ask, vec![memory.to_owned()]));
    assert!(decision.for_people.iter().any(|text| text.contains(memory)), "{:?}", decision.for_people);
    for (named, clauses, verdict) in [
        (memory, &[memory][..], Verdict::Allow),
        (memory, &[memory, egress], Verdict::Ask),
        ("limits.memory, network.egress[*]", &[memory, egress], Verdict::Allow),
        ("network.egress[*]", &["network.ingress[80]"], Verdict::Ask),
        ("network.egress[other.example.com]", &[egress], Verdict::Ask),
    ] {
        let decision = decide(&format!("@delta(\"{named}\")\n{all}"), clauses);
        assert_eq!(decision.verdict, verdict, "{named} {clauses:?}");
    }
    // Two rules that name a part each do not add up to one that names both.
    let halves = format!("@delta(\"{memory}\")\n{all}@delta(\"network.egress[*]\")\n{all}");
    assert_eq!(decide(&halves, &[memory, egress]).verdict, Verdict::Ask);
}

#[test]
fn a_requester_who_wants_a_person_gets_one() {
    let world = World::new(taking(json!({})));
    let set = policy(&any("permit", "true"), &[]);
    assert_eq!(set.decide(&world.facts()).verdict, Verdict::Allow);
    assert_eq!(set.decide(&Facts { always_ask: true, ..world.facts() }).verdict, Verdict::Ask);
}

/// Every fact that policy may want is there under its name.
#[test]
fn rules_see_principal_runtime_task_budget_past_and_data() {
    let mut world = World::new(tool(
        json!({ "type": "object" }),
        json!({
            "network": { "egress": [{ "host": "api.example.com", "ports": [443], "methods": ["GET"] }] },
            "filesystem": [
                { "guest": "/workspace", "source": "workspace", "access": "write" },
                { "guest": "/data", "source": "host:/srv/data", "access": "read" },
            ],
            "identity": { "delegation": "agent" }, "isolation": { "walls": 2 }, "limits": { "wall": "30s" },
        }),
    ));
    world.principal = serde_json::from_value(json!({
        "tenant": "acme", "user": "ann", "agent": "coder", "agent_version": "2.1.0", "chain": ["planner"],
    }))
    .unwrap();
    let other = ["other".parse().unwrap()];
    let task = world.facts().task;
    let facts = Facts {
        task: TaskFacts { purpose: Some("fix the build"), stage: Some("review"), ..task },
        labels: LabelFacts { inputs: Label::Restricted, tenants: &other },
        attended: false,
        ..world.facts()
    };
    for seen in [
        "principal is Agent && principal.name == \"coder\" && principal.version == \"2.1.0\" && principal.user == \"ann\"",
        "principal in User::\"acme/ann\" && principal in Agent::\"acme/planner\" && principal in Tenant::\"acme\"",
        "principal is Agent && principal.chain.contains(\"planner\") && principal.depth == 1",
        "context.backend == \"wasm\" && !context.attended",
        "context.task.purpose == \"fix the build\" && context.task.stage == \"review\"",
        "context.budget.actions == 0 && context.budget.run_ms == 0 && context.budget.cost_micros == 0",
        "context.past.approvals == 0 && context.past.declines == 0 && context.past.grants == 0",
        "context.data.label == 3 && context.data.at_least.contains(\"restricted\") && context.cross_tenant",
        "context.effects == \"external\" && context.reaches_out && context.egress == [\"api.example.com\"]",
        "context.egress_methods == [\"GET\"] && context.workspace == \"write\" && context.writes == [\"workspace\"]",
        "context.hosts == [\"/srv/data\"] && context.delegation == \"agent\" && context.walls == 2",
        "context.limits.wall_ms == 30000",
        "resource.name == \"test.tool\" && resource.version == \"1.0.0\" && !resource.builtin",
    ] {
        // Without a schema: a wrong name would be an error, and so a denial.
        let set = policy(&any("permit", "true"), &[]);
        assert_eq!(set.decide(&facts).verdict, Verdict::Allow);
        let tools = std::slice::from_ref(&world.manifest);
        let guarded = seen
            .replace("principal.version ==", "principal has version && principal.version ==")
            .replace(
                "context.task.purpose ==",
                "context.task has purpose && context.task has stage && context.task.purpose ==",
            )
            .replace("context.limits.wall_ms ==", "context.limits has wall_ms && context.limits.wall_ms ==")
            .replace("&& context.workspace ==", "&& context has workspace && context.workspace ==");
        let set = policy(&any("permit", &guarded), tools);
        let decision = set.decide(&facts);
        assert_eq!(decision.verdict, Verdict::Allow, "{seen}: {:?}", decision.errors);
    }
}

/// Less effect than derived counts only where somebody stands for it.
#[test]
fn what_an_author_claims_counts_once_an_operator_accepted_it() {
    let mut manifest = taking(json!({}));
    (manifest.effects.reversible, manifest.effects.idempotent) = (true, true);
    let world = World::new(manifest);
    let set = policy(&any("permit", "resource.reversible && resource.idempotent"), &[]);
    let decide = |accepted, builtin| {
        let mut facts = world.facts();
        (facts.tool.accepted, facts.tool.builtin) = (accepted, builtin);
        set.decide(&facts).verdict
    };
    assert_eq!(decide(false, false), Verdict::Deny);
    assert_eq!((decide(true, false), decide(false, true)), (Verdict::Allow, Verdict::Allow));
}

/// A rule counts for the actions in its scope, however that names them.
#[test]
fn the_scope_of_a_rule_names_an_action_in_many_ways() {
    let tool = taking(json!({}));
    let mut other = tool.clone();
    other.name = "other".parse().unwrap();
    let tools = [tool.clone(), other];
    for (scope, verdict) in [
        ("action", Verdict::Allow),
        ("action in Action::\"run\"", Verdict::Allow),
        ("action in Action::\"test.tool\"", Verdict::Allow),
        ("action == Action::\"test.tool@1.0.0\"", Verdict::Allow),
        ("action in [Action::\"other\", Action::\"test.tool\"]", Verdict::Allow),
        ("action in Action::\"other\"", Verdict::Deny),
        ("action == Action::\"other@1.0.0\"", Verdict::Deny),
        // A group is no action.
        ("action == Action::\"test.tool\"", Verdict::Deny),
    ] {
        for padding in ["", &format!("forbid (principal, {scope}, resource) when {{ !context.attended }};").repeat(120)]
        {
            let set = policy(&format!("permit (principal, {scope}, resource);{padding}"), &tools);
            assert_eq!(World::new(tool.clone()).decide(&set).verdict, verdict, "{scope}");
        }
    }
}

/// A policy of many rules is prepared for speed; what it says stays the same.
#[test]
fn many_rules_decide_as_few_do() {
    let tool = taking(json!({ "n": { "type": "integer" }, "path": { "type": "string" } }));
    let few = "permit (principal, action in Action::\"run\", resource) when { context has approval };
        permit (principal, action in [Action::\"test.tool\", Action::\"test.tool@1.0.0\"], resource)
        when { context.args has n && context.args.n == 1 };
        @id(\"secret\") forbid (principal, action in Action::\"test.tool\", resource)
        when { context.args has path && context.args.path like \"secret/*\" }
        unless { context has approval && context.approval.classes.contains(\"person\") };
        @id(\"hard\") forbid (principal, action == Action::\"test.tool@1.0.0\", resource)
        unless { context has approval || context.args has n } when { context.args has path && context.args.path == \"hard\" };
        @id(\"fails\") forbid (principal, action, resource)
        when { context.args has n && context.args.n + 9223372036854775800 < 0 } unless { context has approval };
        @id(\"order\") forbid (principal, action in Action::\"run\", resource)
        when { context has approval || context.args has n && context.args.n + 9223372036854775801 < 0 }
        when { context.args has path && context.args.path == \"never\" };
        @id(\"other\") forbid (principal is User, action == Action::\"other@1.0.0\", resource) when { true };";
    let mut other = tool.clone();
    other.name = "other".parse().unwrap();
    let tools = [tool.clone(), other];
    let mut many = few.to_owned();
    for number in 0..240 {
        let scope = if number % 2 == 0 { "action in Action::\"run\"" } else { "action == Action::\"other@1.0.0\"" };
        many += &format!(
            "forbid (principal, {scope}, resource) when {{ context.args has path && context.args.path == \"no-{number}\" }} \
             unless {{ context has approval && context.approval.source == \"person\" }};"
        );
    }
    let (few, many) = (policy(few, &tools), policy(&many, &tools));
    let mut seen = std::collections::BTreeSet::new();
    for n in [None, Some(1), Some(2), Some(-1), Some(1000)] {
        for path in [None, Some("src"), Some("secret/x"), Some("hard")] {
            let mut arguments = serde_json::Map::new();
            arguments.extend(n.map(|n| ("n".to_owned(), json!(n))));
            arguments.extend(path.map(|path| ("path".to_owned(), json!(path))));
            let world = World::new(tool.clone()).with(arguments.into());
            let (mut a, b) = (world.decide(&few), world.decide(&many));
            a.revision = b.revision.clone();
            assert_eq!(a, b, "{n:?} {path:?}");
            seen.insert(format!("{:?} {:?}", a.verdict, a.reason));
        }
    }
    assert!(seen.len() >= 3, "{seen:?}");
    let barred = World::new(tool).with(json!({ "path": "no-4" })).decide(&many);
    assert_eq!((barred.verdict, barred.rules.len()), (Verdict::Ask, 2));
}
