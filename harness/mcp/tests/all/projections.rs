//! Each state of an action has one image for clients without tasks, and one for
//! clients with them.

use env_contracts::{CapabilityRef, Code, Digest, Outcome, OutcomeKind, Problem};
use glovebox_events::{Action, ActionState, Asks, End};
use glovebox_mcp::{Plain, TaskImage, project};
use proptest::prelude::*;

use crate::house::{agent, id};

const KINDS: [OutcomeKind; 20] = [
    OutcomeKind::Completed,
    OutcomeKind::Partial,
    OutcomeKind::Unknown,
    OutcomeKind::SchemaRejected,
    OutcomeKind::ContractUnsatisfied,
    OutcomeKind::PolicyDenied,
    OutcomeKind::Declined,
    OutcomeKind::Expired,
    OutcomeKind::Unattended,
    OutcomeKind::Unsupported,
    OutcomeKind::AskLimited,
    OutcomeKind::Interrupted,
    OutcomeKind::TimedOut,
    OutcomeKind::LimitHit,
    OutcomeKind::Drift,
    OutcomeKind::SandboxViolation,
    OutcomeKind::Busy,
    OutcomeKind::WorkerLost,
    OutcomeKind::BackendUnavailable,
    OutcomeKind::BackendError,
];

const OPEN: [ActionState; 5] = [
    ActionState::Requested,
    ActionState::Validated,
    ActionState::WaitingApproval,
    ActionState::Authorized,
    ActionState::Running,
];

fn action(state: ActionState, end: Option<End>) -> Action {
    Action {
        id: id("a1"),
        session: id("s1"),
        task: id("t1"),
        turn: None,
        goal: None,
        principal: agent("u", "coder"),
        capability: "fake.tool@1.0.0".parse::<CapabilityRef>().unwrap(),
        held: false,
        asks: Asks::Run,
        revision: 1,
        state,
        version: 1,
        submission: Digest::of(b""),
        edit: None,
        parents: Vec::new(),
        key: None,
        plan: None,
        effects: None,
        decided: None,
        intent: None,
        digest: None,
        approval: None,
        preview: None,
        right: None,
        holder: None,
        stop: None,
        end,
        requested_ms: 1,
        changed_ms: 1,
    }
}

/// Any state that an action can be in.
fn any_action() -> impl Strategy<Value = Action> {
    let open = proptest::sample::select(&OPEN[..]).prop_map(|state| action(state, None));
    let code = proptest::option::of(proptest::sample::select(Code::ALL));
    let ended = (proptest::sample::select(&KINDS[..]), code).prop_map(|(kind, code)| {
        let outcome = match code {
            None => Outcome { kind, ..Outcome::succeeded(None) },
            Some(code) => Outcome::failed(kind, Problem::new(code, "why")),
        };
        let end = End::of(&outcome, Digest::of(b"o"), 1);
        action(end.state(), Some(end))
    });
    prop_oneof![1 => open, 4 => ended]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The table of the protocol's column by column, said once more and from the
    /// other side.
    #[test]
    fn both_columns_tell_the_same_story(action in any_action()) {
        let image = project(&action);
        let (state, end) = (action.state, action.end.as_ref());
        let ours = |end: &End| {
            matches!(end.kind, OutcomeKind::BackendError | OutcomeKind::BackendUnavailable)
                && end.code.is_some_and(|code| code.http_status() >= 500)
        };

        prop_assert_eq!(image.task == TaskImage::Asked, state == ActionState::WaitingApproval);
        prop_assert_eq!(image.plain == Plain::Asked, state == ActionState::WaitingApproval);
        let over = !matches!(image.task, TaskImage::Working | TaskImage::Asked);
        prop_assert_eq!(over, state.ended());
        prop_assert_eq!(matches!(image.plain, Plain::Open | Plain::Asked), !over);
        prop_assert_eq!(image.task == TaskImage::Cancelled, state == ActionState::Cancelled);
        prop_assert_eq!(image.task == TaskImage::Failed, image.plain == Plain::Broke);
        prop_assert_eq!(image.plain == Plain::Broke, end.is_some_and(ours));
        let well = state == ActionState::Succeeded;
        prop_assert_eq!(image.task == TaskImage::Completed { error: false }, well);
        prop_assert_eq!(image.plain == Plain::Answered { error: false }, well);
    }
}
