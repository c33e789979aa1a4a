//! What actions have in common: nothing but the host.

use std::sync::Arc;

use env_contracts::OutcomeKind;
use glovebox_plane::Watch;
use glovebox_runtime::Stop;
use glovebox_runtime::job::Frame;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Row, row};
use crate::columns::SLOTS;
use crate::house::{House, TOKIO};

pub(super) const ROWS: &[Row] = &[
    row("no more actions of a capability run at once than `limits.concurrency`", concurrency),
    row("more actions than there are places wait for one, and all are done", more_than_places),
    row("two actions share no state: memory, scratch, outputs", no_state),
    row("actions that share an environment find its folders as the one before left them, whatever its end", kept),
];

/// Tells that the guest speaks.
struct Tell(Arc<Notify>);

impl Watch for Tell {
    fn frame(&self, _: &Frame<'_>) {
        self.0.notify_one();
    }
}

fn concurrency(house: &House) {
    let (spoke, stop) = (Arc::new(Notify::new()), Stop::default());
    let act = |told: Value| house.command(&told).named("guest.shared").limit("concurrency = 1");
    let hang = json!({ "do": "print-then-hang" });
    std::thread::scope(|scope| {
        let first = act(hang.clone()).watched(Tell(spoke.clone())).stopped_by(&stop);
        let first = scope.spawn(|| first.submit().unwrap());
        TOKIO.block_on(spoke.notified());
        let second = act(hang).submit().unwrap();
        stop.request();
        assert_eq!(first.join().unwrap().outcome.kind, OutcomeKind::Interrupted);
        assert_eq!((second.outcome.kind, second.outcome.retryable), (OutcomeKind::Busy, true), "{:?}", second.outcome);
        house.note("busy");
    });
    act(json!({ "do": "nothing" })).run().succeeds();
}

fn more_than_places(house: &House) {
    let told = json!({ "do": "drip", "count": 2, "every_ms": 50 });
    std::thread::scope(|scope| {
        let act = || house.command(&told).text().submit().unwrap();
        let all: Vec<_> = (0..SLOTS * 2).map(|_| scope.spawn(act)).collect();
        for one in all {
            assert_eq!(one.join().unwrap().outcome.code, None);
        }
    });
}

fn no_state(house: &House) {
    for _ in 0..3 {
        if house.has_components() {
            assert_eq!(house.tool(&json!({ "do": "echo" })).run().succeeds().number("calls"), 1);
        }
        let told = json!({ "do": "open", "path": "/outputs/f", "flags": ["create", "exclusive"], "access": ["write"], "text": "x" });
        let seen = house.command(&told).mount("outputs").mount("scratch").run().succeeds();
        assert_eq!(seen.number("written"), 1, "{seen:?}");
        let told = json!({ "do": "open", "path": "/tmp/f", "flags": ["create", "exclusive"], "access": ["write"], "text": "x" });
        let seen = house.command(&told).mount("outputs").mount("scratch").run().succeeds();
        assert_eq!(seen.number("written"), 1, "{seen:?}");
    }
}

fn kept(house: &House) {
    let act = |told: Value, by: &'static str| {
        let keeps = "state = { persistence = \"environment\" }\nisolation = { sharing = \"task\" }";
        let shared = house.command(&told).named("guest.keeps").mount("scratch").limit("wall = \"2s\"").clause(keeps);
        shared.asking(move |submission| submission.context.task = by.parse().unwrap())
    };
    let write = |path: &str| json!({ "do": "write-file", "path": path, "bytes": 5 });
    let there = |by| act(json!({ "do": "read", "path": "/tmp/a" }), by).run().succeeds().text.contains("xxxxx");
    act(write("/tmp/a"), "one").run().succeeds();
    assert!(there("one"));
    assert!(!there("another"), "another task finds it");
    // Ended in the middle: what was written by then is there.
    let told = json!({ "do": "print-then-hang" });
    let seen = act(told, "one").run();
    assert_eq!(seen.outcome.kind, OutcomeKind::TimedOut);
    assert!(there("one"), "what was there is gone with an action that was ended");
}
