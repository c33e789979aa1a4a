//! Whether a result is accepted: of one artifact, against one condition, with
//! evidence that is about just these.

use std::sync::Arc;

use env_contracts::{Code, Digest, Id, OutcomeKind, Problem};
use glovebox_events::{Asks, Told};
use glovebox_plane::{Asking, Made, ResultProposal, Saying, Submitted, Telling, Unwatched};
use glovebox_runtime::Stop;
use serde_json::json;

use crate::fake::{TOOL, WRITE, printed, returned};
use crate::house::{House, Setup, agent, approval, done, id, person, waiting};
use crate::plans::task;

const CONDITION: &str = "every old file is read as before";

fn made() -> Digest {
    Digest::of(b"the patch")
}

fn house() -> House {
    let house = House::of(&Setup::of(&[WRITE, TOOL]));
    house.runs_well();
    task(&house);
    house
}

fn told(house: &House, what: Told) -> Id {
    let telling = Telling { turn: None, parents: Vec::new(), what, content: Some("words".into()) };
    house.block_on(house.service.tell(&agent("u", "coder"), &id("t1"), telling)).unwrap().id
}

fn verified(house: &House, revision: &Digest, condition: &str, holds: bool) -> Id {
    let (revision, condition) = (Some(revision.to_string()), Some(Digest::of(condition.as_bytes())));
    told(house, Told::Verified { holds, revision, condition, goal: 1 })
}

fn submit(house: &House, artifact: Made, evidence: Vec<Id>, asking: Asking) -> Result<Submitted, Problem> {
    let context = house.asked("fake.write", "{}").context;
    let proposal = ResultProposal { artifact, condition: CONDITION.to_owned(), evidence };
    let (watch, stop) = (Arc::new(Unwatched), Stop::default());
    house.block_on(house.service.submit_result(&agent("u", "coder"), context, proposal, asking, watch, &stop))
}

fn content(house: &House, evidence: Vec<Id>) -> Result<Submitted, Problem> {
    submit(house, Made::Content(made()), evidence, Asking::Leave)
}

#[test]
fn a_result_is_shown_with_its_condition_and_evidence_and_accepted_by_a_person() {
    let house = house();
    let yes = verified(&house, &made(), CONDITION, true);
    let no = verified(&house, &made(), CONDITION, false);
    let action = waiting(content(&house, vec![yes.clone(), no.clone()]).unwrap());
    assert_eq!((action.asks, action.capability.to_string()), (Asks::Result, "result.submit@1.0.0".to_owned()));
    let shown = house.card_of(&action).proposal.unwrap();
    assert_eq!(shown["artifact"], json!({ "sha256": made() }));
    assert_eq!(shown["condition"], json!({ "sha256": Digest::of(CONDITION.as_bytes()), "text": CONDITION }));
    assert_eq!(
        shown["evidence"],
        json!([{ "entry": yes, "by": "coder", "holds": true }, { "entry": no, "by": "coder", "holds": false }])
    );
    house.answer(approval(&action), "once", None).unwrap();
    let seen = done(house.resume(&action));
    assert_eq!(seen.data, json!({ "accepted": true, "by": "u", "words": null }));
    assert!(house.ground.runs().is_empty());
    house.audit(&["s1"]);
}

#[test]
fn evidence_counts_only_for_this_revision_and_this_condition() {
    let house = house();
    let stale = |evidence: Id| content(&house, vec![evidence]).unwrap_err();
    let other = verified(&house, &Digest::of(b"the patch before"), CONDITION, true);
    let looser = verified(&house, &made(), "it compiles", true);
    let bare = told(&house, Told::Verified { holds: true, revision: None, condition: None, goal: 1 });
    for (evidence, why) in [
        (other, "another revision"),
        (looser, "another condition"),
        (bare, "another revision"),
        (told(&house, Told::Outcome), "no verifier's"),
        (id("nothing"), "no entry"),
    ] {
        let error = stale(evidence);
        assert_eq!(error.code, Code::EvidenceStale);
        assert!(error.message.contains(why), "{error:?}");
    }
    assert!(house.pending().is_empty() && house.all_of("result.submit").is_empty());
}

#[test]
fn a_stored_artifact_is_what_its_digest_says() {
    let house = house();
    let unknown = submit(&house, Made::Artifact("artifact/none/1".to_owned()), Vec::new(), Asking::Leave);
    assert_eq!(unknown.unwrap_err().code, Code::ArtifactUnknown);
    let nonsense = submit(&house, Made::Artifact("nonsense".to_owned()), Vec::new(), Asking::Leave);
    assert_eq!(nonsense.unwrap_err().code, Code::ArtifactUnknown);
    house.on_run(|_, ports| {
        printed(ports, &"x".repeat(900_000), 0);
        returned(r#"{"ok":1}"#)
    });
    let seen = done(house.send(house.asked("fake.tool", "{}")).unwrap());
    let uri = seen.output.stdout.artifact.unwrap();
    let action = waiting(submit(&house, Made::Artifact(uri.clone()), Vec::new(), Asking::Leave).unwrap());
    let shown = house.card_of(&action).proposal.unwrap();
    assert_eq!(shown["artifact"], json!({ "uri": uri, "sha256": house.record(&uri).sha256 }));
    assert_eq!(shown["evidence"], json!([]));
}

#[test]
fn another_artifact_condition_or_evidence_is_another_decision() {
    let house = house();
    let evidence = verified(&house, &made(), CONDITION, true);
    let first = waiting(content(&house, Vec::new()).unwrap());
    let second = waiting(content(&house, vec![evidence]).unwrap());
    let third = waiting(submit(&house, Made::Content(Digest::of(b"x")), Vec::new(), Asking::Leave).unwrap());
    assert_ne!(first.intent, second.intent);
    assert_ne!(first.intent, third.intent);
    house.answer(approval(&first), "decline", None).unwrap();
    let again = done(content(&house, Vec::new()).unwrap());
    assert_eq!(again.outcome.kind, OutcomeKind::Declined);
    assert_eq!(house.pending().len(), 2);
}

#[test]
fn evidence_of_the_same_revision_and_condition_outlives_a_goal_and_a_pending_acceptance_does_not() {
    let house = house();
    let evidence = verified(&house, &made(), CONDITION, true);
    let pending = waiting(content(&house, vec![evidence.clone()]).unwrap());
    house.block_on(house.service.say(&person("u"), &id("t1"), Saying::Goal("something else"))).unwrap();
    assert_eq!(done(house.resume(&pending)).outcome.code, Some(Code::GoalChanged));
    waiting(content(&house, vec![evidence]).unwrap());
    let unattended = submit(&house, Made::Content(made()), Vec::new(), Asking::Never).unwrap();
    assert_eq!(done(unattended).outcome.kind, OutcomeKind::Unattended);
    house.audit(&["s1"]);
}
