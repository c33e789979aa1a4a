//! Registered, disclosed to this agent, and callable are three facts.

use env_contracts::{CapabilityRef, Code, Principal, Problem, Profiles};
use glovebox_plane::{Builtin, Health, Registry};
use glovebox_runtime::Instant;

use crate::fake::{HEAD, TOOL};

const NOW: Instant = Instant { unix_millis: 1 };

const PROFILES: &str = r#"
schema = "glovebox/profiles/v1"
[default]
discover = ["text.*"]
execute = ["text.*"]
[[agent]]
name = "clerk"
discover = ["text.*", "mail.*"]
execute = ["text.*", "mail.draft"]
max_label = "internal"
"#;

fn profiles() -> Profiles {
    Profiles::from_toml(PROFILES).unwrap()
}

fn asked_by(agent: &str) -> Principal {
    Principal {
        tenant: "local".parse().unwrap(),
        user: "u".parse().unwrap(),
        agent: (!agent.is_empty()).then(|| agent.parse().unwrap()),
        agent_version: None,
        chain: Vec::new(),
    }
}

/// A manifest with this name, title and description.
fn manifest(name: &str, title: &str, description: &str) -> String {
    format!("{HEAD}{TOOL}")
        .replace("name = \"fake.tool\"", &format!("name = \"{name}\""))
        .replace("title = \"t\"", &format!("title = \"{title}\""))
        .replace("description = \"d\"", &format!("description = \"{description}\""))
}

/// `text.count` built in; `mail.draft`, `mail.send` and `bank.transfer`
/// registered.
fn registry(dir: &tempfile::TempDir) -> Registry {
    let builtin: &'static str = manifest("text.count", "Count words", "Counts what is written.").leak();
    let registry = Registry::new(dir.path().join("tools"), vec![Builtin { manifest: builtin, component: b"c" }]);
    for (name, title, description) in [
        ("mail.draft", "Write a letter", "Puts words on paper."),
        ("mail.send", "Send a letter", "Sends what was written."),
        ("bank.transfer", "Transfer money", "Sends money, for letters of credit too."),
    ] {
        registry.add(&manifest(name, title, description), name.as_bytes(), NOW).unwrap();
    }
    registry
}

fn disclosed(registry: &Registry, agent: &str, wanted: &str) -> Result<CapabilityRef, Problem> {
    let tool = registry.disclosed(&wanted.parse().unwrap(), &asked_by(agent), &profiles())?;
    Ok(tool.manifest.capability())
}

#[test]
fn what_is_not_disclosed_is_answered_like_what_does_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    assert_eq!(disclosed(&registry, "clerk", "mail.send").unwrap().to_string(), "mail.send@1.0.0");
    assert_eq!(disclosed(&registry, "", "bank.transfer").unwrap().to_string(), "bank.transfer@1.0.0");
    // One was removed: not even that is told.
    registry.add(&manifest("bank.close", "t", "d"), b"x", NOW).unwrap();
    registry.remove(&"bank.close@1.0.0".parse().unwrap()).unwrap();
    for agent in ["clerk", "stranger"] {
        for (hidden, missing) in [
            ("bank.transfer", "bank.transfix"),
            ("bank.transfer@1.0.0", "bank.transfix@1.0.0"),
            ("bank.transfer@9.0.0", "bank.transfix@9.0.0"),
            ("bank.close", "bank.clone"),
            ("bank.close@1.0.0", "bank.clone@1.0.0"),
        ] {
            let (hidden_name, missing_name) = (hidden.split('@').next().unwrap(), missing.split('@').next().unwrap());
            let (told, unknown) =
                (disclosed(&registry, agent, hidden).unwrap_err(), disclosed(&registry, agent, missing).unwrap_err());
            assert_eq!(told.code, Code::ToolUnknown);
            let renamed = told.message.replace(hidden_name, missing_name);
            assert_eq!(Problem { message: renamed, ..told }, unknown, "{agent} {hidden}");
        }
        // Nothing near is suggested that is not disclosed.
        let near = disclosed(&registry, agent, "bank.transfe").unwrap_err();
        assert!(!near.help.contains("bank"), "{near:?}");
    }
    // What is disclosed is.
    assert!(disclosed(&registry, "clerk", "mail.sent").unwrap_err().help.contains("did you mean `mail.send`?"));
    assert!(!disclosed(&registry, "stranger", "mail.sent").unwrap_err().help.contains("mail"));
    assert!(disclosed(&registry, "", "bank.close").unwrap_err().message.ends_with("it was removed"));
}

#[test]
fn what_may_be_found_may_not_always_be_called() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    let call = |agent: &str, wanted: &str| {
        let tool = registry.callable_by(&wanted.parse().unwrap(), &asked_by(agent), &profiles());
        tool.map(|tool| tool.manifest.name.to_string())
    };
    assert_eq!(call("clerk", "mail.draft").unwrap(), "mail.draft");
    assert_eq!(call("", "bank.transfer").unwrap(), "bank.transfer");
    let refused = call("clerk", "mail.send").unwrap_err();
    assert_eq!(refused.code, Code::PolicyDenied);
    assert!(refused.message.contains("agent `clerk` lets `mail.send@1.0.0` be found, not called"), "{refused}");
    assert_eq!(call("stranger", "mail.send").unwrap_err().code, Code::ToolUnknown);

    // Above the label that the profile goes up to.
    let secret =
        manifest("mail.archive", "t", "d").replace("limits = {", "data = { label = \"confidential\" }\nlimits = {");
    registry.add(&secret, b"s", NOW).unwrap();
    let wide = PROFILES.replace("\"mail.draft\"]", "\"mail.*\"]");
    let call = |profiles: &str| {
        let profiles = Profiles::from_toml(profiles).unwrap();
        registry.callable_by(&"mail.archive".parse().unwrap(), &asked_by("clerk"), &profiles).map(drop)
    };
    let refused = call(&wide).unwrap_err();
    assert_eq!(refused.code, Code::PolicyDenied);
    assert!(refused.message.contains("`confidential` data, the profile of agent `clerk` for `internal`"), "{refused}");
    call(&wide.replace("max_label = \"internal\"", "max_label = \"confidential\"")).unwrap();
}

#[test]
fn what_may_be_called_is_listed_whole_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    let newer = manifest("mail.draft", "t", "d").replace("\"1.0.0\"", "\"1.1.0\"");
    registry.add(&newer, b"newer", NOW).unwrap();
    let secret =
        manifest("text.vault", "t", "d").replace("limits = {", "data = { label = \"restricted\" }\nlimits = {");
    registry.add(&secret, b"s", NOW).unwrap();
    let unmet = manifest("text.unmet", "t", "d").replace("entry =", "requires = [\"a.b@1.0.0\"]\nentry =");
    registry.add(&unmet, b"u", NOW).unwrap();
    let listed = |agent: &str| {
        let tools = registry.callable(&asked_by(agent), &profiles()).unwrap();
        tools.iter().map(|tool| tool.manifest.capability().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed("clerk"), "mail.draft@1.1.0 text.count@1.0.0");
    assert_eq!(listed("stranger"), "text.count@1.0.0 text.vault@1.0.0");
    assert_eq!(
        listed(""),
        "bank.transfer@1.0.0 mail.draft@1.1.0 mail.send@1.0.0 text.count@1.0.0 text.vault@1.0.0",
        "a person is not bound by profiles of agents"
    );
    fs_err::remove_file(dir.path().join("tools/mail.draft/1.1.0/component.wasm")).unwrap();
    assert_eq!(listed("clerk"), "text.count@1.0.0");
}

#[test]
fn what_a_tool_requires_must_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    let with = |name: &str, requires: &str| {
        let text = manifest(name, "t", "d").replace("[input]", &format!("[input]\n#{name}"));
        let text = text.replace("entry =", &format!("requires = {requires}\nentry ="));
        registry.add(&text, name.as_bytes(), NOW).unwrap();
        registry.get(&name.parse().unwrap()).unwrap()
    };
    let call = |name: &str| registry.callable_by(&name.parse().unwrap(), &asked_by(""), &Profiles::default()).map(drop);
    let missing = |capability: &str| Health::UnmetDependency { capability: capability.parse().unwrap() };

    let fine = with("a.fine", r#"["text.count@1.0.0", "mail.send@1.0.0"]"#);
    assert_eq!(registry.health(&fine), Health::Ok);
    call("a.fine").unwrap();

    let other = with("a.other", r#"["text.count@1.0.0", "mail.send@2.0.0"]"#);
    assert_eq!(registry.health(&other), missing("mail.send@2.0.0"));
    let refused = call("a.other").unwrap_err();
    assert_eq!(refused.code, Code::DependencyUnmet);
    assert!(refused.message.contains("`a.other@1.0.0` requires `mail.send@2.0.0`"), "{refused}");

    // Through another, and in a circle.
    let through = with("a.through", r#"["a.other@1.0.0"]"#);
    assert_eq!(registry.health(&through), missing("mail.send@2.0.0"));
    let round = with("a.round", r#"["b.round@1.0.0"]"#);
    assert_eq!(registry.health(&round), missing("b.round@1.0.0"));
    with("b.round", r#"["a.round@1.0.0"]"#);
    assert_eq!(registry.health(&round), Health::Ok);

    // What is gone later is missing at once.
    registry.remove(&"mail.send@1.0.0".parse().unwrap()).unwrap();
    assert_eq!(registry.health(&fine), missing("mail.send@1.0.0"));
    assert_eq!(call("a.fine").unwrap_err().code, Code::DependencyUnmet);

    fs_err::remove_file(dir.path().join("tools/mail.draft/1.0.0/component.wasm")).unwrap();
    let draft = registry.get(&"mail.draft".parse().unwrap()).unwrap();
    assert_eq!(registry.health(&draft), Health::ArtifactMissing);
    let listed = registry.list().unwrap().tools;
    let health = |name: &str| &listed.iter().find(|tool| tool.capability.name.as_str() == name).unwrap().health;
    assert_eq!((health("mail.draft"), health("text.count")), (&Health::ArtifactMissing, &Health::Ok));
}

#[test]
fn search_finds_names_before_titles_before_descriptions() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&dir);
    let found = |agent: &str, text: &str| {
        let found = registry.search(text, &asked_by(agent), &profiles()).unwrap();
        let one =
            |hit: &glovebox_plane::Found| format!("{}{}", hit.capability.name, if hit.executable { "!" } else { "" });
        found.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    for (agent, text, expected) in [
        ("", "mail", "mail.draft! mail.send!"),
        ("", "SEND", "mail.send! bank.transfer!"),
        ("", "letter", "mail.draft! mail.send! bank.transfer!"),
        ("", "words", "text.count! mail.draft!"),
        ("", "send letter", "mail.send! bank.transfer!"),
        ("", "er.tr", ""),
        ("", "nothing", ""),
        ("", "", "bank.transfer! mail.draft! mail.send! text.count!"),
        // Only what is disclosed, and what of it may be called.
        ("clerk", "letter", "mail.draft! mail.send"),
        ("clerk", "", "mail.draft! mail.send text.count!"),
        ("stranger", "written", "text.count!"),
        ("stranger", "mail", ""),
    ] {
        assert_eq!(found(agent, text), expected, "{agent}: {text}");
    }
    // The newest version, once; and not without end.
    let newer = manifest("mail.send", "Send a letter", "d").replace("\"1.0.0\"", "\"1.1.0\"");
    registry.add(&newer, b"newer", NOW).unwrap();
    let hits = registry.search("mail.send", &asked_by(""), &profiles()).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.capability.to_string()).collect::<Vec<_>>(), ["mail.send@1.1.0"]);
    for number in 0..60 {
        registry.add(&manifest(&format!("many.n{number}"), "t", "d"), b"m", NOW).unwrap();
    }
    assert_eq!(registry.search("many", &asked_by(""), &profiles()).unwrap().len(), 50);
}
