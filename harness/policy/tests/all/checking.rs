//! `check` and `explain`: what an operator is told.

use env_contracts::Verdict;
use glovebox_policy::{Facts, check};
use serde_json::json;

use crate::support::{Folder, World, policy, taking, tool};

fn egress(hosts: &[&str]) -> serde_json::Value {
    let rules: Vec<_> = hosts.iter().map(|host| json!({ "host": host, "ports": [443] })).collect();
    json!({ "network": { "egress": rules } })
}

/// The warnings of a folder with these tools, as text.
fn warnings(rules: &str, tools: &[env_contracts::Manifest]) -> Vec<String> {
    let folder = Folder::new(rules);
    let report = check(Some(folder.0.path()), tools).unwrap();
    assert_eq!(report.problems, []);
    report.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_rule_that_teaches_to_ask_for_more_is_warned_about() {
    let tools = [tool(json!({ "type": "object" }), egress(&["api.example.com"]))];
    let rule = "@id(\"wide\")\npermit (principal, action in Action::\"run\", resource)\n\
         when { context.egress.contains(\"api.example.com\") };";
    let found = warnings(rule, &tools);
    assert_eq!(found.len(), 1, "{found:?}");
    for part in ["rules.cedar:1", "not monotonic", "ALLOW by `wide`", "without network access is DENY"] {
        assert!(found[0].contains(part), "{part}: {found:?}");
    }
    // Its monotonic form: within what is named, nothing included.
    let within = rule.replace(
        "context.egress.contains(\"api.example.com\")",
        "[\"api.example.com\"].containsAll(context.egress) && context.writes.isEmpty()",
    );
    assert_eq!(warnings(&within, &tools), Vec::<String>::new());
}

#[test]
fn a_permit_that_wants_a_write_is_warned_about() {
    let workspace = json!({ "filesystem": [{ "guest": "/workspace", "source": "workspace", "access": "write" }] });
    let tools = [tool(json!({ "type": "object" }), workspace)];
    let rule = "permit (principal, action in Action::\"run\", resource) when { !context.writes.isEmpty() };";
    let found = warnings(rule, &tools);
    assert!(found.iter().any(|text| text.contains("only reading the folders is DENY")), "{found:?}");
}

#[test]
fn an_operator_is_told_what_rules_do_not_see() {
    let tools = [taking(json!({ "price": { "type": "number" }, "name": { "type": "string" } }))];
    let rules = "permit (principal, action in Action::\"run\", resource) when { true };\n\
         @id(\"looks\")\nforbid (principal, action in Action::\"run\", resource) when { context.args has price };";
    let folder = Folder::new(rules);
    let report = check(Some(folder.0.path()), &tools).unwrap();
    assert_eq!((report.hidden.len(), report.rules), (1, 2));
    assert_eq!(report.hidden[0].hidden.path, ["price"]);
    assert!(report.warnings.iter().any(|warning| warning.message.contains("`looks` looks at `price`")), "{report:?}");
}

#[test]
fn a_mark_for_commands_stands_where_a_command_can() {
    let folder = Folder::new("permit (principal, action in Action::\"run\", resource);");
    for (schema, fits) in [
        (json!({ "type": "string", "x-glovebox-argv": true }), true),
        (json!({ "type": "array", "items": { "type": "string" }, "x-glovebox-argv": true }), true),
        (json!({ "type": "integer", "x-glovebox-argv": true }), false),
        (json!({ "type": "array", "items": { "type": "integer" }, "x-glovebox-argv": true }), false),
        (json!({ "x-glovebox-argv": true }), false),
        (json!({ "type": "object", "properties": { "a": { "type": "string", "x-glovebox-argv": true } } }), false),
        (json!({ "type": "array", "items": { "type": "string", "x-glovebox-argv": true } }), false),
        (json!({ "type": "string", "x-glovebox-argv": "yes" }), false),
    ] {
        let report = check(Some(folder.0.path()), &[taking(json!({ "command": schema }))]).unwrap();
        assert_eq!(report.warnings.is_empty(), fits, "{schema}: {:?}", report.warnings);
        assert_eq!(report.problems, []);
    }
}

#[test]
fn a_policy_that_can_ask_nobody_is_warned_about() {
    let folder = Folder::new("permit (principal, action in Action::\"run\", resource) when { context has approval };");
    folder.put("approvers.toml", "");
    let report = check(Some(folder.0.path()), []).unwrap();
    assert!(report.warnings.iter().any(|warning| warning.message.contains("no classes of approvers")), "{report:?}");
}

#[test]
fn a_reviewer_that_is_not_registered_is_warned_about() {
    let folder = Folder::new("permit (principal, action, resource) when { context has approval };");
    let robot = "[classes.robot]\nreviewer = { capability = \"test.tool@1.0.0\", limit = \"9s\" }\n";
    folder.put("approvers.toml", robot);
    let warned = |tools: &[env_contracts::Manifest]| {
        let report = check(Some(folder.0.path()), tools).unwrap();
        report.warnings.iter().any(|warning| warning.message.contains("the class approves nothing"))
    };
    assert!(warned(&[]) && !warned(&[taking(json!({}))]));
}

#[test]
fn a_report_goes_on_after_a_problem_and_is_data() {
    let folder = Folder::new("permit (principal, action, resource) when { context.no }; ");
    folder.put("more.cedar", "permit (");
    let report = check(Some(folder.0.path()), [] as [&env_contracts::Manifest; 0]).unwrap();
    assert!(report.problems.iter().any(|problem| problem.file == "more.cedar"), "{report:?}");
    assert!(serde_json::to_value(&report).unwrap()["problems"].is_array());
}

#[test]
fn an_explanation_shows_rules_texts_facets_and_what_would_be_permitted() {
    let manifest = tool(
        json!({ "type": "object", "properties": {
            "command": { "type": "string", "x-glovebox-argv": true }, "price": { "type": "number" },
        } }),
        egress(&["api.example.com"]),
    );
    let rules = "permit (principal, action in Action::\"run\", resource) when { !context.reaches_out };\n\
         @id(\"no-net\")\n@reason(\"nothing leaves\")\nforbid (principal, action in Action::\"run\", resource)\n\
         when { context.reaches_out };";
    let set = policy(rules, std::slice::from_ref(&manifest));
    let world = World::new(manifest).with(json!({ "command": "env rm -rf x" }));
    let told = set.explain(&world.facts());
    assert_eq!(told.decision.verdict, Verdict::Deny);
    assert_eq!((told.rules[0].rule.id.as_str(), told.rules[0].reason.as_deref()), ("no-net", Some("nothing leaves")));
    assert!(told.rules[0].text.contains("when { context.reaches_out }"), "{told:?}");
    assert_eq!((told.hidden[0].path[0].as_str(), told.facets[0].argument.as_str()), ("price", "command"));
    assert!(told.facets[0].facet.wrapper);
    let narrower = told.narrower.as_ref().unwrap();
    assert_eq!((narrower.change.as_str(), narrower.rules[0].id.as_str()), ("without network access", "rules#1"));
    assert!(serde_json::to_value(&told).unwrap()["narrower"]["change"].is_string());
}

#[test]
fn what_is_permitted_or_never_would_be_has_no_narrower_form() {
    let world = World::new(taking(json!({})));
    let set = policy("permit (principal, action in Action::\"run\", resource) when { context.attended };", &[]);
    assert_eq!(set.explain(&world.facts()).narrower, None);
    assert_eq!(set.explain(&Facts { attended: false, ..world.facts() }).narrower, None);
}
