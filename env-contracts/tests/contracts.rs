//! Contracts and manifests as people write them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use env_contracts::{Ceiling, Code, Contract, Diagnose as _, Manifest, Scope};

/// The message of a contract that must not parse.
fn refused(text: &str) -> String {
    let error = Contract::from_toml(&format!("schema = \"glovebox/contract/v1\"\n{text}")).unwrap_err();
    assert_eq!(error.code(), Code::ContractInvalid);
    error.to_string()
}

#[test]
fn the_example_shows_every_clause_and_survives_json() {
    let contract = Contract::from_toml(include_str!("../example.toml")).unwrap();
    let stated: Vec<String> = contract
        .clauses()
        .iter()
        .map(|clause| clause.path().to_string().split('[').next().unwrap().to_owned())
        .collect();
    for clause in [
        "platform.os",
        "platform.arch",
        "platform.image",
        "platform.runtime",
        "filesystem",
        "network.egress",
        "network.ingress",
        "secrets",
        "identity.delegation",
        "packages",
        "needs.memory",
        "needs.cpus",
        "needs.storage",
        "needs.gpu",
        "limits.wall",
        "limits.idle",
        "limits.cpu",
        "limits.cpus",
        "limits.memory",
        "limits.pids",
        "limits.storage",
        "limits.inodes",
        "limits.gpu",
        "limits.output",
        "limits.concurrency",
        "state.persistence",
        "state.snapshot",
        "isolation.sharing",
        "data.label",
        "audit.level",
        "audit.retain",
        "cleanup.scratch",
        "wasm.imports",
        "wasm.deterministic",
    ] {
        assert!(stated.iter().any(|path| path == clause), "example.toml lacks {clause}");
    }
    let json = serde_json::to_string(&contract).unwrap();
    assert_eq!(serde_json::from_str::<Contract>(&json).unwrap(), contract);
}

#[test]
fn errors_name_the_key_and_show_the_line() {
    let error = Contract::from_toml("schema = \"glovebox/contract/v1\"\n\n[limits]\nwal = \"30s\"\n").unwrap_err();
    assert!(error.to_string().contains("line 4") && error.to_string().contains("wal"), "{error}");
    assert!(
        matches!(error, env_contracts::ContractError::Shape { position: Some(at), .. } if at.line == 4 && at.column == 1)
    );
    for (text, named) in [
        ("[limits]\nmemory = \"12 parsecs\"\n", "12 parsecs"),
        ("[wasm]\ndeterministic = { seed = 7, time = \"noon\" }\n", "noon"),
        ("[limits]\nmemory = \"99999999999TiB\"\n", "99999999999TiB"),
        ("[limits]\nmemory = \"1B\"\n", "limits.memory"),
        ("[limits]\nwall = \"0s\"\n", "limits.wall"),
        ("[needs]\nmemory = \"2GiB\"\n[limits]\nmemory = \"1GiB\"\n", "needs.memory"),
        ("[[filesystem]]\nguest = \"/a/../b\"\nsource = \"workspace\"\naccess = \"read\"\n", "/a/../b"),
        ("[[filesystem]]\nguest = \"/a\"\nsource = \"everything\"\naccess = \"read\"\n", "everything"),
        ("[[filesystem]]\nguest = \"/a\"\nsource = \"scratch\"\naccess = \"read\"\n", "filesystem[/a]"),
        ("[[filesystem]]\nguest = \"/inputs/y\"\nsource = \"input:x\"\naccess = \"read\"\n", "filesystem[/inputs/y]"),
        (
            "[[filesystem]]\nguest = \"/a\"\nsource = \"scratch\"\naccess = \"write\"\n[[filesystem]]\nguest = \"/a/b\"\nsource = \"scratch\"\naccess = \"write\"\n",
            "filesystem[/a/b]",
        ),
        ("[network]\negress = [{ host = \"https://a.com\", ports = [443] }]\n", "https://a.com"),
        ("[network]\negress = [{ host = \"a.com\", ports = [] }]\n", "network.egress[a.com]"),
        (
            "[[secrets]]\nref = \"t\"\ninject = { host = \"a.com\", header = \"x\", format = \"{secret}\" }\n",
            "secrets[t]",
        ),
        ("[degrade]\n\"limits.wall\" = \"allow\"\n", "degrade.limits.wall"),
        ("[limits]\nwall = \"1s\"\n[degrade]\n\"limits.wall\" = \"allow\"\n", "protect less"),
    ] {
        let message = refused(text);
        assert!(message.contains(named), "{text}: {message}");
    }
}

#[test]
fn a_scope_is_a_contract_of_which_only_the_present_sections_count() {
    let scope = Scope::from_toml("schema = \"glovebox/contract/v1\"\n[limits]\nwall = \"5s\"\n").unwrap();
    assert!(scope.filesystem.is_none() && scope.limits.is_some());
    assert!(Scope::from_toml("[limit]\n").is_err());
}

#[test]
fn a_ceiling_leaves_nothing_unlimited() {
    let error = Ceiling::from_toml("schema = \"glovebox/ceiling/v1\"\n[install.limits]\nwall = \"60s\"\n").unwrap_err();
    assert!(error.to_string().contains("install.limits.memory"), "{error}");
}

/// A manifest with one line changed.
fn manifest(change: &str) -> Result<Manifest, env_contracts::ManifestError> {
    Manifest::from_toml(&format!(
        "schema = \"glovebox/tool/v1\"\nname = \"a.tool\"\nversion = \"1.0.0\"\ntitle = \"t\"\ndescription = \"d\"\n{change}\n[contract]\nschema = \"glovebox/contract/v1\"\n"
    ))
}

#[test]
fn manifests_say_what_is_wrong_with_them() {
    let entry = "entry = { kind = \"tool\" }\ninput = { type = \"object\" }";
    assert!(manifest(entry).is_ok());
    for (change, named) in [
        ("entry = { kind = \"tool\" }\ninput = { type = \"array\" }", "input"),
        ("entry = { kind = \"tol\" }\ninput = { type = \"object\" }", "tol"),
        ("entry = { kind = \"command\", argv = [\"p\", \"{nope}\"] }\ninput = { type = \"object\" }", "{nope}"),
        (&format!("{entry}\n[[examples]]\nname = \"x\"\nargs = {{}}"), "examples[x]"),
        (&format!("{entry}\nnonsense = 1"), "nonsense"),
    ] {
        let message = manifest(change).unwrap_err().to_string();
        assert!(message.contains(named), "{change}: {message}");
    }
}
