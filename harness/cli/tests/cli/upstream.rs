//! MCP servers elsewhere as tools: here, a Glovebox of somebody else's.

use std::os::unix::fs::PermissionsExt as _;

use crate::served::Served;
use crate::support::House;

/// Rules that permit everything.
const EVERYTHING: &str = "@id(\"all\")\npermit (principal, action in Action::\"run\", resource);\n";

/// A server's tools are registered, compared and called, and nothing reaches it
/// before the operator named a way out.
#[test]
fn the_tools_of_another_server_are_called_through_the_ceiling() {
    let (far, near) = (House::new(), House::cold());
    let token = far.token("ci", "agent");
    let served = Served::start(&far, &["--workspace", &format!("docs={}", far.workspace().display())]);
    let url = format!("{}/mcp?workspace=docs", served.url);
    let token = near.file("token", token);
    let add = ["tool", "add", "--mcp-http", url.as_str(), "--name", "far", "--bearer-file", token.as_str()];
    // Anybody could read it.
    near.refuses(&add, 2, "upstream-header", &["token"]);
    fs_err::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let added = near.run(&add).ok();
    assert!(added.stderr.contains("registered far.text.count@1.0.0"), "{}", added.stderr);
    let (_, egress) = added.stderr.split_once("[[install.network.egress]]").unwrap();
    assert!(near.run(&add).ok().stderr.contains("already registered: far.text.count@1.0.0"));

    let shown = near.run(&["tool", "show", "far.text.count"]).ok().stdout;
    assert!(shown.contains("claimed by http://127.0.0.1") && shown.contains("counted for nothing"), "{shown}");

    near.file("config/glovebox/policy/rules.cedar", EVERYTHING);
    near.file(
        "config/glovebox/policy/approvers.toml",
        "[classes.owner]\nsubjects = [\"*\"]\nassurance = \"same-user\"\n",
    );
    let run = ["run", "far.text.count", "--arg", "path=a.txt", "--json"];
    let ran = near.run(&run);
    assert_eq!(ran.json()["outcome"]["code"], "contract-unsatisfied", "{}", ran.stdout);
    let ceiling = near.run(&["config", "show", "--ceiling=shipped"]).ok().stdout;
    near.file("config/glovebox/ceiling.toml", format!("{ceiling}\n[[install.network.egress]]{egress}"));
    let ran = near.run(&run).ok().json();
    assert_eq!(ran["data"]["words"], 3, "{ran}");
    assert_eq!(
        (&ran["effects"]["derived"], &ran["provenance"]["backend"]),
        (&"external".into(), &"mcp-upstream".into())
    );
    let checked = near.run(&["tool", "check", "far.text.count"]).ok().stdout;
    assert!(checked.contains("says of it what was registered"), "{checked}");
    near.is_tidy();
    served.end();
    let ran = near.run(&run);
    assert_eq!(ran.json()["outcome"]["code"], "upstream-unreachable", "{}", ran.stdout);
}

/// What leads nowhere that may be called is refused with a way out.
#[test]
fn what_can_t_be_reached_is_refused() {
    let house = House::cold();
    for url in ["http://mcp.example.com/mcp", "http://169.254.169.254/mcp", "ftp://mcp.example.com"] {
        house.refuses(&["tool", "add", "--mcp-http", url], 2, "upstream-address", &[]);
    }
    // Nobody listens there, and nobody is asked.
    for prefix in ["glovebox", "native.shell", "fs", "text.more"] {
        let add = ["tool", "add", "--mcp-http", "http://127.0.0.1:9/mcp", "--name", prefix];
        house.refuses(&add, 2, "tool-reserved", &["--name"]);
    }
    assert_eq!(house.run(&["tool", "add"]).code, 2);
    assert_eq!(house.run(&["tool", "add", "a.wasm", "--mcp-http", "https://mcp.example.com/mcp"]).code, 2);
}
