//! Without the right permit nothing runs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use env_contracts::{Clause, Code, Contract, DerivedEffects, Digest, ManifestEntry, Plan, Principal, Problem};
use glovebox_runtime::bind::{Binding, RunDir, bind};
use glovebox_runtime::job::{End, Frame, FrameSink, JobUsage};
use glovebox_runtime::{
    ArtifactBytes, Backend, Bound, BoxFuture, Cleared, Enforcement, Ports, Prepared, Registered, RunReport, Runtime,
    Stop,
};

/// A backend that counts how often it was let loose.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Backend for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn enforce(&self, _: &Clause<'_>) -> Enforcement {
        Enforcement::By("counting")
    }

    fn prepare<'a>(
        &'a self,
        _: &'a Registered,
        _: &'a Contract,
        _: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>> {
        Box::pin(async { Ok(Box::new(()) as Prepared) })
    }

    fn run(&self, _: Cleared, _: Ports) -> BoxFuture<'_, RunReport> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { RunReport { end: End::Exited { code: 0 }, usage: JobUsage::default(), notices: Vec::new() } })
    }
}

struct Deaf;

impl FrameSink for Deaf {
    fn frame(&mut self, _: Frame<'_>) {}
}

fn bound(run_dir: &RunDir, action: &str, backend: &str) -> Bound {
    let plan = Plan {
        action_id: action.parse().unwrap(),
        revision: 1,
        capability: "a.tool@1.0.0".parse().unwrap(),
        artifact: Digest::of(b"component"),
        arguments: "{}".into(),
        contract: Contract::default(),
        effects: DerivedEffects::None,
        principal: Principal {
            tenant: "t".parse().unwrap(),
            user: "u".parse().unwrap(),
            agent: None,
            agent_version: None,
            chain: Vec::new(),
        },
        backend: backend.into(),
    };
    let files = bind(Binding {
        plan: &plan,
        workspace: None,
        inputs: Vec::new(),
        artifacts: BTreeMap::new(),
        path_arguments: &[],
        run_dir,
        environment: None,
        protect: &[],
        max_sealed: 0,
    });
    let registered = Registered {
        digest: plan.artifact.clone(),
        bytes: ArtifactBytes::Embedded(b"component"),
        entry: ManifestEntry::Tool { name: None },
        name: "a.tool".into(),
    };
    Bound::new(plan, registered, Box::new(()), files.unwrap())
}

#[test]
fn a_permit_is_for_one_plan_of_one_runtime() {
    let dir = tempfile::tempdir().unwrap();
    let run_dir = RunDir::new(dir.path(), "run");
    let backend = Arc::new(Counting::default());
    let (runtime, authority) = Runtime::new(vec![backend.clone()]);
    let (_, foreign) = Runtime::new(Vec::new());
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = |bound: Bound, permit| {
        let ports = Ports { frames: Box::new(Deaf), stop: Stop::default() };
        tokio.block_on(runtime.run(bound, permit, ports)).map(drop)
    };

    let a = bound(&run_dir, "a", "counting");
    let b = bound(&run_dir, "b", "counting");
    assert_eq!(a.intent, b.intent, "the same thing");
    assert_ne!(a.digest, b.digest, "but each of them once");

    let for_b = authority.permit(&b.digest);
    assert_eq!(run(bound(&run_dir, "a", "counting"), for_b).unwrap_err().code, Code::Drift);
    let by_another = foreign.permit(&a.digest);
    assert_eq!(run(bound(&run_dir, "a", "counting"), by_another).unwrap_err().code, Code::Drift);
    assert_eq!(backend.0.load(Ordering::SeqCst), 0, "a permit for something else ran it");

    let elsewhere = bound(&run_dir, "a", "missing");
    let permit = authority.permit(&elsewhere.digest);
    assert_eq!(run(elsewhere, permit).unwrap_err().code, Code::BackendUnavailable);

    let permit = authority.permit(&a.digest);
    assert!(run(a, permit).is_ok());
    assert_eq!(backend.0.load(Ordering::SeqCst), 1);
}
