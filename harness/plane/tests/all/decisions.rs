//! What comes of a request, for every rule, mode, reviewer, answer and
//! assurance there is.

use std::collections::BTreeSet;
use std::time::Duration;

use env_contracts::{ApprovalNeed, Code, OutcomeKind};
use glovebox_plane::{Asking, Key, Submitted};

use crate::fake::WRITE;
use crate::house::{CLASSES, House, Setup, agent, approval, done, name, offered, person};
use crate::people::{mira, noor};

const RULES: &[(&str, &str)] = &[
    ("allow", "permit (principal, action, resource);"),
    ("ask", "permit (principal, action, resource) when { context has approval };"),
    (
        "login",
        "permit (principal, action, resource) \
         when { context has approval && context.approval.at_least.contains(\"console-login\") };",
    ),
    (
        "separate",
        "permit (principal, action, resource) \
         when { context has approval && context.approval.at_least.contains(\"separate-user\") };",
    ),
    (
        "deny",
        "permit (principal, action, resource);\n\
         @id(\"never\") forbid (principal, action, resource) when { context.effects == \"external\" };",
    ),
    ("none", "permit (principal, action, resource) when { context.effects == \"none\" };"),
];

/// Who answers from an account of their own.
const ACCOUNT: &str = "[classes.account]\nsubjects = [\"*\"]\nassurance = \"separate-user\"\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Once,
    OnceWithKey,
    Decline,
    DeclineWithKey,
    OnceAsAnotherUser,
    DeclineAsAnotherUser,
    OnceByAnAgent,
    OnceByAnAgentOfAnotherUser,
}

impl Said {
    /// What it is worth at the least, as rules spell it; nothing at all if an
    /// agent says it.
    fn worth(self, rule: &str) -> bool {
        let assurance = match self {
            Self::Nothing | Self::OnceByAnAgent | Self::OnceByAnAgentOfAnotherUser => return false,
            Self::Once | Self::Decline => 0,
            Self::OnceWithKey | Self::DeclineWithKey => 1,
            Self::OnceAsAnotherUser | Self::DeclineAsAnotherUser => 2,
        };
        let wanted = match rule {
            "ask" => 0,
            "login" => 1,
            _ => 2,
        };
        assurance >= wanted
    }

    fn declines(self) -> bool {
        matches!(self, Self::Decline | Self::DeclineWithKey | Self::DeclineAsAnotherUser)
    }
}

/// What has to come of it, and after how long nobody waits any more.
fn expected(rule: &str, asking: Asking, known: bool, said: Said) -> (OutcomeKind, Option<Duration>) {
    let day = Duration::from_secs(24 * 3600);
    match (rule, asking) {
        ("allow", _) => (OutcomeKind::Completed, None),
        ("deny" | "none", _) => (OutcomeKind::PolicyDenied, None),
        (_, Asking::Never) => (OutcomeKind::Unattended, None),
        _ => {
            let wait = if rule != "ask" && !known { Duration::from_secs(600) } else { day };
            match said {
                _ if !said.worth(rule) => (OutcomeKind::Expired, Some(wait)),
                _ if said.declines() => (OutcomeKind::Declined, Some(wait)),
                _ => (OutcomeKind::Completed, Some(wait)),
            }
        }
    }
}

fn came_of_it(rules: &str, asking: Asking, known: bool, said: Said) -> (OutcomeKind, Option<Duration>) {
    let mut setup = Setup::of(&[WRITE]).rules(rules);
    setup.approvers = format!("{CLASSES}{ACCOUNT}");
    setup.known = if known { vec![name("mira"), name("noor")] } else { Vec::new() };
    let house = House::of(&setup);
    house.runs_well();
    let mut submission = house.asked("fake.write", "{}");
    submission.asking = asking;
    let action = match house.send(submission).unwrap() {
        Submitted::Done(observation) => {
            assert!(house.pending().is_empty());
            house.audit(&["s1"]);
            return (observation.outcome.kind, None);
        }
        Submitted::Waiting(action) => action,
    };
    let asked = action.approval.as_ref().unwrap();
    let wait = Duration::from_millis(asked.expires_ms.unwrap() - asked.opened_ms);
    assert_eq!(asked.nobody_reachable, wait < Duration::from_secs(3600), "the card says why it ends so soon");
    let agents = matches!(said, Said::OnceByAnAgent | Said::OnceByAnAgentOfAnotherUser);
    let by = if agents { agent("u", "helper") } else { person("u") };
    let noor = noor();
    let key: Option<Key<'_>> = match said {
        Said::OnceWithKey | Said::DeclineWithKey => Some(mira().into()),
        Said::OnceAsAnotherUser | Said::DeclineAsAnotherUser | Said::OnceByAnAgentOfAnotherUser => Some((&noor).into()),
        Said::Nothing | Said::Once | Said::Decline | Said::OnceByAnAgent => None,
    };
    let offer = if said.declines() { "decline" } else { "once" };
    if said != Said::Nothing
        && let Err(problem) = house.reply_with(&by, key, offered(&asked.id, offer, None))
    {
        assert_eq!(problem.code, Code::NotEligible, "{problem:?}");
    }
    if house.pending().contains(&asked.id) {
        house.ground.clock.forward(wait - Duration::from_millis(1));
        assert!(matches!(house.resume(&action), Submitted::Waiting(_)), "it ended too soon");
        house.ground.clock.forward(Duration::from_millis(1));
    }
    let seen = done(house.resume(&action));
    let ran = house.ground.ran(&action.id);
    assert_eq!(ran, usize::from(seen.outcome.kind == OutcomeKind::Completed), "{:?}", seen.outcome);
    house.audit(&["s1"]);
    (seen.outcome.kind, Some(wait))
}

#[test]
fn every_rule_mode_reviewer_answer_and_assurance_has_its_own_outcome() {
    let said = [
        Said::Nothing,
        Said::Once,
        Said::OnceWithKey,
        Said::OnceAsAnotherUser,
        Said::Decline,
        Said::DeclineWithKey,
        Said::DeclineAsAnotherUser,
        Said::OnceByAnAgent,
        Said::OnceByAnAgentOfAnotherUser,
    ];
    let (mut wrong, mut kinds) = (Vec::new(), BTreeSet::new());
    for (rule, text) in RULES {
        for asking in [Asking::Leave, Asking::Never] {
            for known in [true, false] {
                for said in said {
                    let want = expected(rule, asking, known, said);
                    let got = came_of_it(text, asking, known, said);
                    kinds.insert(format!("{:?}", got.0));
                    if got != want {
                        wrong.push(format!("{rule} {asking:?} known: {known} {said:?}: {got:?}, not {want:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(kinds.len(), 5, "{kinds:?}");
}

#[test]
fn without_anybody_to_ask_nothing_runs_nothing_is_left_pending_and_nobody_is_blamed() {
    let house = House::of(&Setup::of(&[WRITE]));
    let mut submission = house.asked("fake.write", "{}");
    submission.asking = Asking::Never;
    let seen = done(house.send(submission).unwrap());
    assert_eq!((seen.outcome.kind, seen.outcome.code), (OutcomeKind::Unattended, Some(Code::Unattended)));
    assert!(seen.text.contains("unattended") && !seen.text.contains("declined"), "{}", seen.text);
    assert!(!house.kinds(&seen.action_id).contains(&"approval-opened"));
    assert!(house.pending().is_empty());
}

#[test]
fn who_wants_a_person_to_decide_is_not_let_past_by_a_rule() {
    let house = House::of(&Setup::of(&[WRITE]).rules(RULES[0].1));
    house.runs_well();
    let always = |asking| {
        let mut submission = house.asked("fake.write", "{}");
        submission.request.approval = ApprovalNeed::Always;
        submission.asking = asking;
        house.send(submission).unwrap()
    };
    assert_eq!(done(always(Asking::Never)).outcome.kind, OutcomeKind::Unattended);
    let Submitted::Waiting(action) = always(Asking::Leave) else { panic!("nobody was asked") };
    house.approve(&action);
    assert_eq!(done(house.resume(&action)).outcome.code, None);
}

#[test]
fn neither_the_agent_that_asks_nor_one_of_its_chain_approves_under_any_name() {
    let house = House::of(&Setup::of(&[WRITE]));
    let mut submission = house.asked("fake.write", "{}");
    submission.principal.chain = vec![name("root")];
    let Submitted::Waiting(action) = house.send(submission).unwrap() else { panic!("nobody was asked") };
    let card = house.service.approval(&person("u"), approval(&action)).unwrap();
    assert_eq!(card.requester.chain, [name("root")], "the card shows on whose behalf");
    let reply = || offered(approval(&action), "once", None);
    for by in [agent("u", "coder"), agent("u", "root"), person("coder"), person("root")] {
        assert_eq!(house.reply(&by, None, reply()).unwrap_err().code, Code::NotEligible, "{by:?}");
    }
    house.reply(&person("u"), None, reply()).unwrap();
}

#[test]
fn the_same_tool_with_other_arguments_can_have_another_verdict() {
    let rules =
        "permit (principal, action, resource) when { context.args has text && context.args.text == \"harmless\" };";
    let house = House::of(&Setup::of(&[WRITE]).rules(rules));
    house.runs_well();
    let kind = |args| done(house.send(house.asked("fake.write", args)).unwrap()).outcome.kind;
    assert_eq!(kind(r#"{"text":"harmless"}"#), OutcomeKind::Completed);
    assert_eq!(kind(r#"{"text":"other"}"#), OutcomeKind::PolicyDenied);
    assert_eq!(kind("{}"), OutcomeKind::PolicyDenied);
}
