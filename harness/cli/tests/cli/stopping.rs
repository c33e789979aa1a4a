//! What has to work whatever else is broken, and what agents may not.

use crate::people::{Asked, strs, write};
use crate::support::{House, Ran};

impl House {
    /// A command that the channel says is an agent's.
    fn as_agent(&self, agent: &str, args: &[&str]) -> Ran {
        Ran::of(self.command().env("GLOVEBOX_AGENT", agent).args(args))
    }
}

#[test]
fn everything_can_be_stopped_and_looked_at_while_the_policy_is_broken() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    let policy = house.path("broken");
    fs_err::create_dir(&policy).unwrap();
    fs_err::write(format!("{policy}/x.cedar"), "permit(").unwrap();
    let broken = |args: &[&str]| Ran::of(house.command().env("GLOVEBOX_POLICY", &policy).args(args));
    assert_eq!(broken(&strs(&write("o.txt", &[]))).code, 2, "it ran by no policy");
    for looking in [["approvals", "list"], ["action", "list"], ["grants", "list"], ["stop", "--all"]] {
        let ran = broken(&looking).ok();
        assert!(ran.stderr.contains("policy-invalid"), "{looking:?}: {}", ran.stderr);
    }
    house.refuses(&["approvals", "approve", &asked.approval], 35, "approval-closed", &["withdrawn"]);
    broken(&["stop", "--release"]).ok();
}

#[test]
fn an_agent_stops_nothing_of_everybodys_and_sees_nothing_of_others() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    for everything in [["stop", "--all"], ["stop", "--release"]] {
        assert_eq!(house.as_agent("coder", &everything).code, 36);
    }
    for of_others in [["action", "show"], ["action", "events"], ["action", "cancel"]] {
        assert_eq!(house.as_agent("other", &[&of_others[..], &[asked.action.as_str()]].concat()).code, 2);
    }
    assert_eq!(house.as_agent("other", &["approvals", "show", &asked.approval]).code, 2);
    for (list, of) in [("approvals", "approvals"), ("action", "actions")] {
        let seen = |agent: &str| house.as_agent(agent, &[list, "list", "--json"]).ok().json()[of].clone();
        assert_eq!((seen("other").as_array().unwrap().len(), seen("coder").as_array().unwrap().len()), (0, 1));
    }
    house.as_agent("coder", &["action", "cancel", &asked.action]).ok();
}

#[test]
fn an_edit_takes_nothing_back_that_was_narrowed_and_another_edit_is_another() {
    let house = House::that_may_write();
    let stricter = house.file("stricter.toml", "schema = \"glovebox/contract/v1\"\n[limits]\nwall = \"50s\"\n");
    let folders = "schema = \"glovebox/contract/v1\"\nfilesystem = [{ guest = \"/workspace\", source = \"workspace\", access = \"write\", hide = [\".env*\", \"*.pem\", \"*.key\", \".git/config\", \".npmrc\", \".netrc\", \".aws/\", \"private/\"] }]\n";
    let hides = house.file("hides.toml", folders);
    let asked = Asked::of(&house.writes("n.txt", &["--contract", &hides]));
    // A contract narrows a permission, and nothing else.
    house.refuses(&["approvals", "approve", &asked.approval, "--contract", &stricter], 2, "usage", &["narrowed"]);
    house.refuses(&["approvals", "edit", &asked.approval, "--args", "{bad"], 20, "arguments-invalid", &[]);
    let settled = house.json(&["approvals", "edit", &asked.approval, "--contract", &stricter]);
    assert_eq!(settled["approval"]["state"], "edited");
    let card = &house.pending()[0];
    let clause = |name: &str| {
        let all = card["clauses"].as_array().unwrap();
        all.iter().find(|clause| clause["clause"] == name).unwrap()["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (clause("limits.wall").as_str(), clause("filesystem[/workspace]").as_str()),
        ("≤ 50s", "write workspace")
    );
    let other = house.file("other.toml", "schema = \"glovebox/contract/v1\"\n[limits]\nwall = \"40s\"\n");
    house.refuses(&["approvals", "edit", &asked.approval, "--contract", &other], 35, "approval-closed", &["edited"]);
    assert_eq!(house.json(&["approvals", "edit", &asked.approval, "--contract", &stricter])["repeated"], true);
}
