//! What the program says of itself.

use std::collections::BTreeMap;

use env_contracts::Code;

use crate::support::{House, Ran, files};

/// Scripts rely on these: a change breaks them.
const EXITS: &[(u8, &str)] = &[
    (1, "tool-failed tool-trapped tool-bad-result"),
    (
        2,
        "usage config-invalid ceiling-invalid file-unreadable workspace-unavailable tool-unknown tool-conflict tool-reserved manifest-invalid",
    ),
    (
        2,
        "policy-invalid profiles-invalid approvers-invalid approver-conflict approver-unknown passphrase-weak key-invalid",
    ),
    (2, "action-unknown action-conflict approval-unknown grant-unknown"),
    (2, "tool-check-failed component-invalid component-too-large component-imports component-exports compile-failed"),
    (2, "artifact-unknown code-unknown profiles-invalid"),
    (2, "session-unknown session-conflict task-unknown task-conflict question-unknown"),
    (2, "approvers-invalid approver-conflict approver-unknown passphrase-weak key-invalid"),
    (2, "credentials-invalid credential-conflict credential-unknown credential-missing token-unknown role-forbidden"),
    (
        2,
        "origin-refused route-unknown method-unknown body-too-large body-too-slow media-type-unsupported output-elsewhere",
    ),
    (2, "webhook-conflict webhook-failed webhook-secret webhook-target webhook-unknown webhooks-invalid"),
    (2, "upstream-address upstream-header upstream-invalid upstream-program"),
    (2, "image-command image-invalid image-unknown"),
    (2, "environment-unknown snapshot-damaged snapshot-unknown"),
    (10, "partial"),
    (11, "unknown"),
    (12, "verify-failed"),
    (20, "schema-rejected arguments-invalid"),
    (21, "path-outside-mounts contract-unsatisfied contract-invalid dependency-unmet"),
    (22, "policy-denied"),
    (23, "declined"),
    (24, "expired"),
    (25, "unattended"),
    (26, "unsupported"),
    (27, "ask-limited"),
    (28, "credential-wrong"),
    (29, "signature-invalid"),
    (30, "interrupted"),
    (31, "timed-out"),
    (32, "limit-hit"),
    (33, "drift"),
    (34, "sandbox-violation"),
    (35, "approval-closed"),
    (36, "not-eligible"),
    (37, "key-conflict"),
    (38, "approval-pending"),
    (39, "halted"),
    (40, "busy"),
    (41, "worker-lost"),
    (42, "backend-unavailable"),
    (43, "backend-error container-left"),
    (44, "rate-limited upstream-unreachable"),
    (45, "task-closed"),
    (46, "turn-conflict"),
    (47, "goal-changed"),
    (48, "question-closed"),
    (49, "question-refused"),
    (50, "state-unavailable"),
    (51, "disk-full"),
    (52, "cache-corrupt"),
    (53, "platform-unsupported"),
    (54, "artifact-corrupt"),
    (55, "isolation-unavailable"),
    (56, "store-corrupt"),
    (57, "store-newer"),
    (58, "audit-broken"),
    (59, "not-recorded"),
    (60, "action-running"),
    (61, "evidence-stale"),
    (62, "budget-spent"),
    (63, "question-pending"),
];

#[test]
fn every_code_has_the_documented_exit_code() {
    let documented: BTreeMap<&str, u8> =
        EXITS.iter().flat_map(|(exit, codes)| codes.split(' ').map(|code| (code, *exit))).collect();
    let actual: BTreeMap<&str, u8> = Code::ALL.iter().map(|code| (code.as_str(), code.exit_code())).collect();
    assert_eq!(actual, documented);
}

#[test]
fn every_code_is_explained() {
    let house = House::cold();
    let all = house.run(&["explain"]).ok().stdout;
    for code in Code::ALL {
        assert!(all.lines().any(|line| line.starts_with(&format!("{code} "))), "{code}");
    }
    let one = house.run(&["explain", "timed-out"]).ok().stdout;
    for word in ["timed-out", "31", "retry", "limits.wall"] {
        assert!(one.contains(word), "{one}");
    }
    assert_eq!(files(&house.state()), Vec::<String>::new());
}

#[test]
fn the_reference_does_not_depend_on_where_it_is_made() {
    let house = House::cold();
    let make = |name: &str, columns: &str| {
        let mut command = house.command();
        command.args(["__reference", &house.path(name)]).env("COLUMNS", columns).env("CLICOLOR_FORCE", "1");
        Ran::of(&mut command).ok();
        ["cli.md", "errors.md", "config.md", "http.md", "openapi.json"]
            .map(|file| fs_err::read_to_string(house.path(&format!("{name}/{file}"))).unwrap())
    };
    let (one, two) = (make("one", "40"), make("two", "200"));
    assert_eq!(one, two);
    let [cli, errors, config, http, openapi] = one;
    for command in [
        "run",
        "exec",
        "tool add",
        "tool list",
        "tool show",
        "tool check",
        "tool remove",
        "tool accept",
        "action submit",
        "action resume",
        "approvals list",
        "approvals show",
        "approvals approve",
        "approvals decline",
        "approvals edit",
        "grants list",
        "grants revoke",
        "permission request",
        "approver add",
        "token add",
        "token list",
        "token remove",
        "policy check",
        "policy test",
        "policy explain",
        "policy schema",
        "policy init",
        "audit verify",
        "audit export",
        "audit checkpoint",
        "audit key",
        "audit erase",
        "db check",
        "db backup",
        "stop",
        "contract check",
        "artifacts list",
        "artifacts get",
        "config show",
        "gc",
        "doctor",
        "explain",
        "completions",
    ] {
        assert!(cli.contains(&format!("\n## `glovebox {command}`\n")), "{command}");
    }
    assert!(cli.lines().all(|line| line.chars().count() <= 120 && !line.contains('\u{1b}')) && !cli.contains("__"));
    assert!(Code::ALL.iter().all(|code| errors.contains(&format!("| `{code}` |"))));
    let openapi: serde_json::Value = serde_json::from_str(&openapi).unwrap();
    assert_eq!(openapi["openapi"], "3.1.0");
    assert!(http.contains("| `POST /v1/actions` | yes |") && http.contains("| `POST /v1/release` | – | yes | – | – |"));
    assert!(config.contains("GLOVEBOX_ADMISSION_MEMORY") && config.contains("depends on the host"));
}

#[test]
fn what_config_show_prints_is_a_configuration() {
    let house = House::cold();
    let shown = house.run(&["config", "show", "--origin"]).ok().stdout;
    assert!(shown.contains("# $GLOVEBOX_STATE") && shown.contains("# default"), "{shown}");
    house.file("config/glovebox/config.toml", &shown);
    let json = house.run(&["config", "show", "--json"]).ok().json();
    assert_eq!(json["file"]["exists"], true);
    assert!(json["keys"]["admission.wait"]["origin"].as_str().unwrap().ends_with("config.toml"), "{json:#}");
    assert_eq!(
        (&json["keys"]["admission.wait"]["value"], &json["keys"]["state"]["origin"]),
        (&"1m".into(), &"$GLOVEBOX_STATE".into())
    );
}

#[test]
fn what_config_show_prints_of_the_ceiling_is_a_ceiling() {
    let house = House::cold();
    let place = "config/glovebox/ceiling.toml";
    let shown = house.run(&["config", "show"]).ok().stdout;
    assert!(shown.contains("ceiling.toml (there is none: the shipped one holds)"), "{shown}");
    let shipped = house.run(&["config", "show", "--ceiling"]).ok().stdout;
    assert!(shipped.contains("# What tools may be given at most."), "{shipped}");
    let own = shipped.replace("access = \"overlay\"", "access = \"write\"");
    assert_ne!(own, shipped);
    house.file(place, &own);
    assert_eq!(house.run(&["config", "show", "--ceiling"]).ok().stdout, own);
    assert_eq!(house.run(&["config", "show", "--ceiling=shipped"]).ok().stdout, shipped);
    let shown = house.run(&["config", "show"]).ok().stdout;
    assert!(!shown.contains("shipped one"), "{shown}");
    house.file(place, own.replace("wall =", "wal ="));
    house.refuses(&["config", "show", "--ceiling"], 2, "ceiling-invalid", &["wal", "--ceiling=shipped"]);
    // Another place than the default must hold one.
    let mut command = house.command();
    let ran = Ran::of(command.args(["config", "show"]).env("GLOVEBOX_CEILING", house.path("gone.toml"))).ok();
    assert!(ran.stdout.contains("gone.toml (can't be read") && !ran.stdout.contains("shipped one"), "{}", ran.stdout);
    let mut command = house.command();
    let ran = Ran::of(command.args(["config", "show", "--ceiling"]).env("GLOVEBOX_CEILING", house.path("gone.toml")));
    assert!(ran.code == 2 && ran.stderr.contains("error [config-invalid]"), "{}", ran.stderr);
}

/// The one block of TOML on a page that begins so.
fn shown_on(page: &str, begins: &str) -> String {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let page = fs_err::read_to_string(page).unwrap();
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("```").map(|(block, _)| block));
    let found: Vec<_> = blocks.filter(|block| block.starts_with(begins)).collect();
    assert_eq!(found.len(), 1, "{begins}");
    found[0].to_owned()
}

#[test]
fn what_the_pages_tell_people_to_write_is_what_they_say() {
    env_contracts::Manifest::from_toml(&shown_on("tools/README.md", "schema = \"glovebox/tool/")).unwrap();
    // The shipped ceiling, but for the one word that lets tools write.
    let shown = env_contracts::Ceiling::from_toml(&shown_on("README.md", "schema = \"glovebox/ceiling/")).unwrap();
    let mut expected = glovebox_runtime::default_ceiling();
    expected.install.filesystem[0].access = env_contracts::Access::Write;
    assert_eq!(shown, expected);
}

#[test]
fn completions_and_help() {
    let house = House::cold();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = house.run(&["completions", shell]).ok().stdout;
        assert!(script.contains("glovebox") && script.contains("artifacts"), "{shell}");
    }
    for command in [
        &["run"][..],
        &["tool"],
        &["tool", "add"],
        &["contract"],
        &["contract", "check"],
        &["artifacts"],
        &["artifacts", "get"],
        &["config"],
        &["config", "show"],
        &["gc"],
        &["doctor"],
        &["explain"],
    ] {
        let help = house.run(&[command, &["--help"]].concat()).ok().stdout;
        assert!(help.contains("Examples:"), "{command:?}");
    }
    assert!(house.run(&["--version"]).ok().stdout.starts_with("glovebox 0."));
}
