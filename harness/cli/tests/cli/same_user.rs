//! What another process of the same user can do to decisions, and what not:
//! SECURITY.md says the same for each mode.

use env_contracts::Name;
use glovebox_events::{Action, ActionState, ApprovalState, Halt, LogKey};
use glovebox_store::{Commit, GrantFilter, Options, Record, Sqlite, Store as _};

use crate::people::{Asked, PASSPHRASE, ended};
use crate::support::{House, files, talker};

fn tenant() -> Name {
    "local".parse().unwrap()
}

impl House {
    /// A house where what can't be undone needs `mira`'s passphrase.
    fn with_mira() -> Self {
        let house = Self::new();
        house.has_a_tool_that_deletes();
        house.has_an_approver();
        house
    }

    /// Writes into the database what nobody decided, as any program of the
    /// user can: the state of an action and of its approval, and no event.
    fn forges(&self, asked: &Asked, forge: impl FnOnce(&mut Action)) {
        let mut action = self.action(&asked.action);
        forge(&mut action);
        let session = action.session.to_string();
        self.writes_rows(&session, vec![Record::Action(Box::new(action))]);
    }

    /// Rows without an event that made them.
    fn writes_rows(&self, session: &str, records: Vec<Record>) {
        let store = Sqlite::open(&self.state(), &Options { create: false }).unwrap();
        let mut commit = Commit::new(LogKey { tenant: tenant(), session: session.parse().unwrap() });
        commit.records = records;
        tokio::runtime::Runtime::new().unwrap().block_on(store.commit(commit)).unwrap();
    }

    /// What `audit verify` finds of the state.
    fn state_faults(&self) -> Vec<String> {
        let report = self.run(&["audit", "verify", "--json"]);
        let findings = report.json()["state"]["findings"].as_array().unwrap().clone();
        assert_eq!(report.code, if findings.is_empty() { 0 } else { 58 }, "{}", report.stdout);
        findings.iter().map(|finding| finding.as_str().unwrap().to_owned()).collect()
    }

    fn action(&self, id: &str) -> Action {
        let store = Sqlite::open(&self.state(), &Options { create: false }).unwrap();
        store.action(&tenant(), &id.parse().unwrap()).unwrap().unwrap()
    }

    /// An action that `mira` approved and that ran.
    fn that_mira_approved(&self) -> Action {
        let asked = Asked::of(&self.run(&["run", "x.delete", "--agent", "coder", "--json", "--task", "genuine"]));
        let settled = self.mira_approves(&asked.approval, PASSPHRASE).ok().json();
        assert_eq!(settled["approval"]["answer"]["by"]["assurance"], "console-login");
        self.resumes(&asked.action).ok();
        self.action(&asked.action)
    }
}

#[test]
fn what_can_not_be_undone_is_approved_by_passphrase_alone() {
    let house = House::with_mira();
    let asked = house.asks_to_delete();
    let card = house.json(&["approvals", "show", &asked.approval]);
    assert_eq!(card["classes"], serde_json::json!(["person"]));
    let offers: Vec<&str> =
        card["offers"].as_array().unwrap().iter().map(|offer| offer["id"].as_str().unwrap()).collect();
    assert_eq!(offers, ["once", "decline", "decline-and-stop"], "a grant is not enough for it");
    house.refuses(&["approvals", "approve", &asked.approval], 36, "not-eligible", &["same-user", "person"]);
    let wrong = house.mira_approves(&asked.approval, "another four words");
    assert_eq!((wrong.code, &wrong.json()["problem"]["code"]), (28, &"credential-wrong".into()));
    assert_eq!(house.resumes(&asked.action).code, 38);
    house.mira_approves(&asked.approval, PASSPHRASE).ok();
    house.resumes(&asked.action).ok();
}

#[test]
fn nothing_that_approves_lies_in_a_file() {
    let house = House::with_mira();
    house.that_mira_approved();
    let home = house.path("");
    let list = fs_err::read_to_string(house.path("config/glovebox/approvers.toml")).unwrap();
    assert!(list.contains("mira") && !list.contains("secret"), "{list}");
    for name in files(home.as_ref()) {
        let Ok(bytes) = fs_err::read(house.path(&name)) else { continue };
        let holds = bytes.windows(PASSPHRASE.len()).any(|window| window == PASSPHRASE.as_bytes());
        assert!(!holds, "the passphrase is in {name}");
    }
}

#[test]
fn a_row_that_says_approved_is_no_approval() {
    let house = House::with_mira();
    let genuine = house.that_mira_approved().approval.unwrap().answer.unwrap();
    for (what, signature) in [("without a signature", None), ("with that of another", genuine.signature.clone())] {
        let asked = Asked::of(&house.run(&[
            "run",
            "x.delete",
            "--agent",
            "coder",
            "--json",
            "--task",
            &what.replace(' ', "-"),
        ]));
        let (answer, signature) = (genuine.clone(), signature);
        house.forges(&asked, |action| {
            let approval = action.approval.as_mut().unwrap();
            let mut answer = answer;
            (answer.approval, answer.seen) = (approval.id.clone(), approval.digest.clone());
            answer.signature = signature;
            (approval.state, approval.answer) = (ApprovalState::Approved, Some(answer));
            (action.state, action.version) = (ActionState::Authorized, action.version + 1);
        });
        let (exit, code, message) = ended(&house.resumes(&asked.action));
        assert_eq!((exit, code.as_str()), (29, "signature-invalid"), "{what}: {message}");
        assert!(message.contains("is not `mira`'s"), "{what}: {message}");
    }
    // And whoever looks at the log sees that no event says so.
    let report = house.run(&["audit", "verify", "--json"]);
    assert_eq!((report.code, &report.json()["state"]["faults"]), (58, &2.into()), "{}", report.stdout);
}

#[test]
fn a_row_can_not_lower_what_an_answer_has_to_show() {
    let house = House::with_mira();
    let genuine = house.that_mira_approved().approval.unwrap().answer.unwrap();
    let asked = house.asks_to_delete();
    house.forges(&asked, |action| {
        let approval = action.approval.as_mut().unwrap();
        let mut answer = genuine;
        (answer.approval, answer.seen, answer.signature) = (approval.id.clone(), approval.digest.clone(), None);
        // An assurance that needs no signature: policy is asked what it is worth.
        answer.by.assurance = env_contracts::Assurance::SameUser;
        (approval.state, approval.answer) = (ApprovalState::Approved, Some(answer));
        (action.state, action.version) = (ActionState::Authorized, action.version + 1);
    });
    let ran = house.resumes(&asked.action);
    assert_eq!(ran.code, 38, "it ran: {}", ran.stdout);
    assert_ne!(Asked::of(&ran).approval, asked.approval, "it is asked anew");
}

/// Who can write the database makes nobody another user of the machine.
#[test]
fn a_row_that_says_that_another_user_answered_counts_for_nothing() {
    let house = House::with_mira();
    let genuine = house.that_mira_approved().approval.unwrap().answer.unwrap();
    let forged = |exit: i32, code: &str| {
        let asked = house.asks_to_delete();
        let mut answer = genuine.clone();
        house.forges(&asked, |action| {
            let approval = action.approval.as_mut().unwrap();
            (answer.approval, answer.seen) = (approval.id.clone(), approval.digest.clone());
            answer.by.assurance = env_contracts::Assurance::SeparateUser;
            (approval.state, approval.answer) = (ApprovalState::Approved, Some(answer));
            (action.state, action.version) = (ActionState::Authorized, action.version + 1);
        });
        let ended = ended(&house.resumes(&asked.action));
        assert_eq!((ended.0, ended.1.as_str()), (exit, code), "{}", ended.2);
    };
    // Where no service ever vouched for anybody, where nobody is another user,
    // and where somebody is whom it did not vouch for.
    forged(2, "key-invalid");
    glovebox_identity::WitnessKey::open(&house.state().join("witness-key.toml")).unwrap();
    forged(2, "credential-unknown");
    house.run(&["token", "add", "mira", "--role", "approver", "--user", "mira", "--peer-uid", "4000000011"]).ok();
    forged(29, "signature-invalid");
}

#[test]
fn a_tool_can_not_be_replaced_under_its_name() {
    let house = House::with_mira();
    let asked = house.asks_to_delete();
    let other = house.file("other.wasm", talker(2));
    let manifest = house.path("deleter.toml");
    house.refuses(&["tool", "add", &other, "--manifest", &manifest], 2, "tool-conflict", &["x.delete@1.0.0"]);
    // Nor behind the registry's back.
    house.mira_approves(&asked.approval, PASSPHRASE).ok();
    let file =
        files(&house.state()).into_iter().find(|name| name.starts_with("tools/x.delete/") && name.ends_with(".wasm"));
    fs_err::copy(&other, house.state().join(file.unwrap())).unwrap();
    let ran = house.resumes(&asked.action);
    let said = ran.json()["output"]["stdout"]["total"].as_u64();
    assert!(said == Some(4096) || ran.code != 0, "another component ran: {said:?}");
}

#[test]
fn whoever_can_write_the_policy_decides_and_the_log_says_by_which() {
    let house = House::with_mira();
    let asked = house.asks_to_delete();
    let dir = house.path("config/glovebox/policy");
    house.run(&["policy", "init", &dir]).ok();
    let rules = fs_err::read_to_string(house.path("config/glovebox/policy/default.cedar")).unwrap();
    let tests = house.path("config/glovebox/policy/tests/risks.toml");
    fs_err::remove_file(tests).unwrap();
    let start = rules.find("@id(\"irreversible\")").unwrap();
    house.file(
        "config/glovebox/policy/default.cedar",
        format!("{}permit (principal, action, resource);\n", &rules[..start]),
    );
    // What waits still waits: for those who were asked.
    house.refuses(&["approvals", "approve", &asked.approval], 36, "not-eligible", &["person"]);
    // What is asked anew is decided by the new rules: this mode does not protect from it.
    house.run(&["run", "x.delete", "--agent", "coder"]).ok();
    let policies: std::collections::BTreeSet<String> = house
        .run(&["audit", "export"])
        .ok()
        .stdout
        .lines()
        .filter_map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            event["event"]["what"]["policy"].as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(policies.len(), 2, "the log names both policies");
}

#[test]
fn whoever_can_write_the_list_of_approvers_can_approve_and_doctor_says_so() {
    let house = House::with_mira();
    let line = |what: &str| {
        let doctor = house.run(&["doctor", "--json"]).ok().json();
        let lines = doctor["lines"].as_array().unwrap().clone();
        lines.iter().find(|line| line["what"] == what).unwrap()["found"].as_str().unwrap().to_owned()
    };
    assert!(line("approvers").contains("one answers by passphrase"));
    assert!(line("approvers").contains("any program that runs as you can add to it"));
    assert!(
        line("assurance").contains("console-login") && line("assurance").contains("register an approver of its own")
    );
    let asked = house.asks_to_delete();
    house.run_with(&["approver", "add", "own", "--passphrase-stdin"], b"what i made up myself\n".to_vec()).ok();
    let args = ["approvals", "approve", &asked.approval, "--as", "own", "--passphrase-stdin"];
    house.run_with(&args, b"what i made up myself\n".to_vec()).ok();
    // Whoever is removed before it is used approved nothing.
    house.run(&["approver", "remove", "own"]).ok();
    assert_eq!(ended(&house.resumes(&asked.action)).0, 2);
    house.run(&["approver", "remove", "mira"]).ok();
    assert!(line("assurance").starts_with("same-user: an agent that has a shell as your user can"));
}

#[test]
fn a_forged_answer_runs_what_can_be_undone_and_the_log_shows_it() {
    let house = House::that_may_write();
    let genuine = house.asks_to_write("genuine.txt");
    house.run(&["approvals", "approve", &genuine.approval]).ok();
    let genuine = house.action(&genuine.action).approval.unwrap().answer.unwrap();
    let asked = house.asks_to_write("forged.txt");
    house.forges(&asked, |action| {
        let approval = action.approval.as_mut().unwrap();
        let mut answer = genuine;
        (answer.approval, answer.seen) = (approval.id.clone(), approval.digest.clone());
        (approval.state, approval.answer) = (ApprovalState::Approved, Some(answer));
        (action.state, action.version) = (ActionState::Authorized, action.version + 1);
    });
    let seen = house.state_faults();
    assert!(seen.len() == 1 && seen[0].contains("the log says `waiting_approval`"), "{seen:?}");
    // It claims no more than any program of this user may say anyway.
    house.resumes(&asked.action).ok();
    assert!(house.has("forged.txt"));
    let seen = house.state_faults();
    assert!(seen.len() == 1 && seen[0].contains("can't follow in state"), "{seen:?}");
}

#[test]
fn rows_that_no_event_made_are_found() {
    let house = House::that_may_write();
    let asked = house.asks_to_write("n.txt");
    house.run(&["approvals", "approve", &asked.approval, "--offer", "session"]).ok();
    assert_eq!(house.state_faults(), Vec::<String>::new());
    let store = Sqlite::open(&house.state(), &Options { create: false }).unwrap();
    let mut grant = store.grants(&tenant(), &GrantFilter::default()).unwrap().remove(0);
    drop(store);

    // A grant that lasts longer, another that nobody gave, and a stop.
    grant.expires_ms += 1;
    let lasts = grant.id.to_string();
    house.writes_rows("cli", vec![Record::Grant(Box::new(grant.clone()))]);
    grant.id = "0123456789abcdef".parse().unwrap();
    house.writes_rows("cli", vec![Record::Grant(Box::new(grant))]);
    let seen = house.state_faults();
    assert!(seen.len() == 2 && seen.iter().any(|fault| fault.contains(&lasts)), "{seen:?}");
    assert!(seen.iter().any(|fault| fault.contains("0123456789abcdef")), "{seen:?}");
    let halt = Halt { by: "nobody".parse().unwrap(), at_ms: 1, reason: None };
    house.writes_rows("cli", vec![Record::Halt(Some(halt))]);
    assert!(house.state_faults().iter().any(|fault| fault.contains("everything is stopped")));

    // An action that nobody asked for.
    let mut action = house.action(&asked.action);
    action.id = "fedcba9876543210".parse().unwrap();
    action.approval = None;
    let session = action.session.to_string();
    house.writes_rows(&session, vec![Record::Action(Box::new(action))]);
    let seen = house.state_faults();
    assert!(seen.iter().any(|fault| fault.contains("`fedcba9876543210` is in no log")), "{seen:?}");
}
