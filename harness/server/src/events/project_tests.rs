use env_contracts::Digest;
use glovebox_events::{Event, LogKey};
use serde_json::json;

use super::*;

fn logged(what: Value) -> Logged {
    let what: What = serde_json::from_value(what).unwrap();
    Logged {
        log: LogKey { tenant: "local".parse().unwrap(), session: "s1".parse().unwrap() },
        seq: 7,
        event: Event { at_ms: 1, action: Some("a1".parse().unwrap()), what },
        hash: Digest::of(b""),
    }
}

fn samples() -> Vec<(Value, Kind)> {
    let digest = Digest::of(b"x");
    let told = |what: Value| json!({ "kind": "task", "task": "t1", "event": { "kind": "told", "entry": { "id": "e1", "by": "uma", "what": what } } });
    vec![
        (json!({ "kind": "planned", "revision": 1, "plan": digest, "effects": "none", "backend": "wasm" }), Kind::Tool),
        (json!({ "kind": "claimed", "right": { "kind": "policy" }, "digest": digest, "holder": "h1" }), Kind::Tool),
        (json!({ "kind": "approval-expired", "approval": "ap1" }), Kind::Approval),
        (json!({ "kind": "released", "by": "uma" }), Kind::State),
        (json!({ "kind": "policy-refused", "kept": digest, "problem": "p" }), Kind::Error),
        (told(json!({ "kind": "text" })), Kind::Text),
        (told(json!({ "kind": "progress" })), Kind::Progress),
        (
            told(
                json!({ "kind": "model-call", "model": "m", "input_tokens": 1, "output_tokens": 1, "cost_micros": 1 }),
            ),
            Kind::Usage,
        ),
    ]
}

#[test]
fn each_recorded_event_has_one_image_with_its_number_and_it_is_the_last() {
    for (what, kind) in samples() {
        for sight in [Sight::Outlines, Sight::Objects, Sight::All] {
            let wires = project(&logged(what.clone()), None, sight);
            let last = wires.last().unwrap();
            assert_eq!((last.seq, last.kind), (Some(7), kind), "{what}");
            assert_eq!(wires.iter().filter(|wire| wire.seq.is_some()).count(), 1);
        }
    }
}

#[test]
fn who_sees_no_objects_gets_none() {
    for (what, _) in samples() {
        assert!(project(&logged(what), None, Sight::Outlines).iter().all(|wire| wire.data.is_none()));
    }
}
