//! What the clauses about keeping, labels and numbers do; each of these fails
//! when the clause is not carried out.

use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::time::Duration;

use env_contracts::{ApprovalNeed, AuditNeed, Ceiling, Code, DerivedEffects, Label, OutcomeKind, SideEffects};
use glovebox_runtime::bind::expire;
use glovebox_runtime::job::{End, Frame};
use glovebox_runtime::{Instant, default_ceiling};

use crate::fake::{COMMAND, TOOL, printed, returned};
use crate::house::House;

/// The tool with something more in its contract.
fn with(clause: &str) -> String {
    TOOL.replace("limits = {", &format!("{clause}\nlimits = {{"))
}

/// A ceiling that allows every label.
fn open_ceiling() -> Ceiling {
    let mut ceiling = default_ceiling();
    ceiling.install.data.label = Label::Restricted;
    ceiling
}

fn write_output(house: &House, name: &'static str) {
    house.on_run(move |bound, _| {
        let outputs = bound.files.mounts.iter().find(|mount| mount.guest == "/outputs").unwrap();
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let file = rustix::fs::openat(outputs.dir.as_fd(), name, flags, rustix::fs::Mode::RUSR).unwrap();
        rustix::io::write(&file, b"bytes").unwrap();
        returned(r#"{"ok":1}"#)
    });
}

#[test]
fn audited_output_is_kept_even_where_all_of_it_is_shown() {
    let plain = House::new(COMMAND);
    plain.on_run(|_, ports| printed(ports, "{}", 0));
    assert!(plain.run("fake.command", "{}").artifacts.is_empty());
    let asked = |submission: &mut glovebox_plane::Submission| submission.request.audit = AuditNeed::Output;
    let seen = plain.submit("fake.command", "{}", asked).unwrap();
    assert_eq!((seen.artifacts.len(), seen.artifacts[0].name.as_str()), (1, "stdout"));

    let house = House::new(&with("audit = { level = \"output\" }"));
    house.on_run(|_, ports| {
        ports.frames.frame(Frame::Log { level: "info", message: "a line" });
        returned(r#"{"ok":1}"#)
    });
    let seen = house.run("fake.tool", "{}");
    assert_eq!(seen.artifacts[0].name, "stderr", "{:?}", seen.artifacts);

    // An operator who wants more audit takes nothing from the tool.
    let mut ceiling = default_ceiling();
    ceiling.install.audit.level = env_contracts::AuditLevel::Output;
    let house = House::with(COMMAND, ceiling);
    house.on_run(|_, ports| printed(ports, "{}", 0));
    assert_eq!(house.run("fake.command", "{}").artifacts.len(), 1);
}

#[test]
fn retention_and_label_of_the_contract_are_those_of_the_artifacts() {
    let house = House::with(&with("audit = { retain = \"1d\" }\ndata = { label = \"confidential\" }"), open_ceiling());
    write_output(&house, "r.txt");
    let seen = house.run("fake.tool", "{}");
    assert_eq!(seen.artifacts[0].label, Label::Confidential);
    let record = house.record(&seen.artifacts[0].uri);
    let day = 86_400_000;
    assert_eq!(record.keep_until_ms.unwrap() - record.created_ms, day);
}

#[test]
fn a_contract_does_not_see_data_above_its_label() {
    let manifest = |label: &str| {
        let mounts = "filesystem = [\n  { guest = \"/inputs\", source = \"input:*\", access = \"read\" },";
        with(&format!("data = {{ label = \"{label}\" }}")).replace("filesystem = [", mounts)
    };
    let house = House::with(&manifest("restricted"), open_ceiling());
    write_output(&house, "secret.txt");
    let secret = house.run("fake.tool", "{}").artifacts[0].uri.clone();
    let bring = |house: &House| {
        house.submit("fake.tool", "{}", |submission| {
            submission.request.inputs.insert("x".parse().unwrap(), secret.clone());
        })
    };
    assert_eq!(bring(&house).unwrap().outcome.code, None);
    let lower = house.again(&manifest("internal"), open_ceiling());
    lower.on_run(|_, _| panic!("it must not see this"));
    let seen = bring(&lower).unwrap();
    assert_eq!(
        (seen.outcome.kind, seen.outcome.which.as_deref()),
        (OutcomeKind::ContractUnsatisfied, Some("data.label"))
    );
}

#[test]
fn scratch_is_kept_where_the_contract_says_so_until_it_is_old() {
    let mut ceiling = default_ceiling();
    ceiling.install.cleanup.scratch = false;
    let house = House::with(&with("cleanup = { scratch = false }"), ceiling);
    write_output(&house, "left.txt");
    let seen = house.run("fake.tool", "{}");
    let kept = house.path("state/kept");
    assert!(kept.join(seen.action_id.as_str()).join("outputs/left.txt").exists(), "{:?}", seen.notices);
    let far = Instant { unix_millis: u64::MAX };
    assert!(expire(&kept, Duration::from_secs(3600), Instant { unix_millis: 0 }, false).unwrap().is_empty());
    assert_eq!(expire(&kept, Duration::from_secs(3600), far, false).unwrap().len(), 1);
    assert!(!kept.join(seen.action_id.as_str()).exists());
}

#[test]
fn no_more_actions_of_a_capability_run_at_once_than_its_contract_says() {
    for limit in [1, 70] {
        let mut ceiling = default_ceiling();
        ceiling.install.limits.concurrency = Some(1000);
        let manifest = TOOL.replace("limits = {", &format!("limits = {{ concurrency = {limit},"));
        let house = House::with(&manifest, ceiling);
        // All places but one are held as another process would hold them.
        let slots = house.path("state/slots");
        fs_err::create_dir_all(&slots).unwrap();
        let hold = |number: u32| {
            let file = fs_err::File::create(slots.join(format!("fake.tool@1.0.0.{number}"))).unwrap();
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
            file
        };
        let mut held: Vec<_> = (0..limit).map(hold).collect();
        assert_eq!(house.run("fake.tool", "{}").outcome.kind, OutcomeKind::Busy, "{limit}");
        held.pop();
        house.on_run(|_, _| returned(r#"{"ok":1}"#));
        assert_eq!(house.run("fake.tool", "{}").outcome.code, None, "{limit}");
        // What this process keeps of a place after a run is no right to it.
        held.push(hold(limit - 1));
        assert_eq!(house.run("fake.tool", "{}").outcome.kind, OutcomeKind::Busy, "{limit}");
        held.pop();
        assert_eq!(house.run("fake.tool", "{}").outcome.code, None, "{limit}");
        // Nor is a place that was cleaned away, and is another's under its name.
        fs_err::remove_file(slots.join(format!("fake.tool@1.0.0.{}", limit - 1))).unwrap();
        held.push(hold(limit - 1));
        assert_eq!(house.run("fake.tool", "{}").outcome.kind, OutcomeKind::Busy, "{limit}");
    }
}

#[test]
fn what_a_request_asks_and_nobody_can_give_is_refused() {
    let house = House::new(TOOL);
    let asked =
        house.submit("fake.tool", "{}", |submission| submission.request.approval = ApprovalNeed::Always).unwrap();
    assert_eq!((asked.outcome.kind, asked.outcome.code), (OutcomeKind::Unattended, Some(Code::Unattended)));
}

/// The backend blocks a thread for ever, as a call of the kernel's can.
#[test]
fn a_stuck_execution_ends_for_the_caller_and_what_it_said_is_kept() {
    let mut ceiling = default_ceiling();
    ceiling.install.filesystem[0].access = env_contracts::Access::Write;
    let manifest =
        TOOL.replace("access = \"read\"", "access = \"write\"").replace("wall = \"10s\"", "wall = \"100ms\"");
    let house = House::with(&manifest, ceiling);
    house.ground.manners.blocks.store(true, SeqCst);
    let (release, stuck) = channel::<()>();
    let stuck = std::sync::Mutex::new(stuck);
    house.on_run(move |_, ports| {
        ports.frames.frame(Frame::Stdout(b"said before"));
        let _ = stuck.lock().unwrap().recv_timeout(Duration::from_secs(60));
        End::Exited { code: 0 }
    });
    let seen = house.run("fake.tool", "{}");
    drop(release);
    assert_eq!((seen.outcome.to_string().as_str(), seen.outcome.code), ("timed-out(wall)", Some(Code::TimedOut)));
    assert_eq!(seen.output.stdout.text.as_deref(), Some("said before"));
    // It may have changed the workspace: doing it again may do it twice.
    assert_eq!((seen.effects.derived, seen.effects.side_effects), (DerivedEffects::External, SideEffects::Possible));
    assert!(!seen.outcome.retryable);
    assert!(seen.notices.iter().any(|notice| notice.kind == "thread-left"), "{:?}", seen.notices);
}

#[test]
fn an_execution_that_panics_is_an_end_like_others() {
    for blocks in [false, true] {
        let house = House::new(TOOL);
        house.ground.manners.blocks.store(blocks, SeqCst);
        house.on_run(|_, _| panic!("of the backend's own"));
        let seen = house.run("fake.tool", "{}");
        assert_eq!(seen.outcome.code, Some(Code::BackendError));
        let message = seen.outcome.message.unwrap();
        assert!(message.contains("panicked") && message.contains("of the backend's own"), "{message}");
        assert_eq!(house.runs_well().run("fake.tool", "{}").outcome.code, None);
    }
}
