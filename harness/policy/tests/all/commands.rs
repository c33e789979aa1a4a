//! Rules about commands hold, however a command is put.

use std::sync::LazyLock;

use env_contracts::{Manifest, Verdict};
use glovebox_policy::{PolicySet, WRAPPERS};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{World, policy, taking};

fn shell() -> Manifest {
    taking(json!({
        "line": { "type": "string", "x-glovebox-argv": true },
        "argv": { "type": "array", "items": { "type": "string" }, "x-glovebox-argv": true },
    }))
}

/// Permits what reads, and nothing that runs something else.
const READERS: &str = r#"
permit (principal, action in Action::"run", resource)
when {
  context.simple && !context.wrapper && context.facets has line && context.facets.line has path &&
  ["ls", "cat", "grep"].contains(context.facets.line.path)
};"#;

/// Permits everything but what may run `rm`, and what forces a push.
const ALL_BUT: &str = r#"
permit (principal, action in Action::"run", resource) when { true };
@id("no-rm")
forbid (principal, action in Action::"run", resource) when { context.may_run.contains("rm") };
@id("no-force")
forbid (principal, action in Action::"run", resource)
when {
  context.facets has argv && context.facets.argv.may_run.contains("git") &&
  context.facets.argv.args.contains("push") && context.facets.argv.flags.containsAny(["--force", "-f"])
};"#;

fn verdict(set: &PolicySet, arguments: Value) -> Verdict {
    World::new(shell()).with(arguments).decide(set).verdict
}

#[test]
fn a_wrapper_is_no_way_around_a_rule() {
    let (all_but, readers) = (policy(ALL_BUT, &[shell()]), policy(READERS, &[shell()]));
    for wrapper in WRAPPERS {
        for line in
            [format!("{wrapper} rm -rf x"), format!("{wrapper} -c 'rm -rf x'"), format!("{wrapper} sh -c '{{ rm; }}'")]
        {
            assert_eq!(verdict(&all_but, json!({ "line": line })), Verdict::Deny, "{line}");
            assert_eq!(verdict(&readers, json!({ "line": line })), Verdict::Deny, "{line}");
        }
        let argv = json!({ "argv": [wrapper, "--", "/bin/rm", "x"] });
        assert_eq!(verdict(&all_but, argv), Verdict::Deny, "{wrapper}");
    }
    assert_eq!(verdict(&all_but, json!({ "line": "ls rm" })), Verdict::Allow);
}

#[test]
fn the_order_of_flags_is_no_way_around_a_rule() {
    let set = policy(ALL_BUT, &[shell()]);
    for argv in [
        json!(["git", "push", "--force"]),
        json!(["git", "--force", "push"]),
        json!(["git", "push", "origin", "-f"]),
        json!(["git", "push", "-uf", "origin"]),
        json!(["git", "push", "--force=yes"]),
        json!(["env", "git", "push", "-f"]),
    ] {
        assert_eq!(verdict(&set, json!({ "argv": argv })), Verdict::Deny, "{argv}");
    }
    assert_eq!(verdict(&set, json!({ "argv": ["git", "push", "origin"] })), Verdict::Allow);
}

#[test]
fn a_permit_by_path_is_not_met_by_a_file_of_the_same_name() {
    let set = policy(READERS, &[shell()]);
    assert_eq!(verdict(&set, json!({ "line": "ls -l" })), Verdict::Allow);
    for line in ["./ls", "/tmp/ls", "x/../ls"] {
        assert_eq!(verdict(&set, json!({ "line": line })), Verdict::Deny, "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// What is allowed by itself does not carry anything else past a rule.
    #[test]
    fn an_allowed_command_never_carries_another(
        allowed in "(ls|cat|grep)( -?[a-z]{1,4}){0,3}",
        operator in prop::sample::select(&[
            ";", " ; ", "&", "&&", " && ", "||", "|", "|&", "\n", "\r\n", " $(", " `", " <(", " >(", " {", ">", "<", " & ", "\n\n",
            ";;", " \u{b}", "\u{c}", "\u{85}",
        ][..]),
        other in "(rm|curl|sh|\\./x)( [a-z./-]{1,8}){0,2}",
        close in prop::sample::select(&["", ")", "`", "}", ";"][..]),
    ) {
        static SET: LazyLock<PolicySet> = LazyLock::new(|| policy(READERS, &[shell()]));
        let shown = |line: &str| verdict(&SET, json!({ "line": line }));
        prop_assert_eq!(shown(&allowed), Verdict::Allow);
        prop_assert_ne!(shown(&other), Verdict::Allow);
        let both = format!("{allowed}{operator}{other}{close}");
        prop_assert_ne!(shown(&both), Verdict::Allow, "{}", both);
        let before = format!("{other}{operator}{allowed}");
        prop_assert_ne!(shown(&before), Verdict::Allow, "{}", before);
    }
}
