//! Clocks: none can be outlived, in code or in a host call.

use std::time::{Duration, Instant};

use glovebox_runtime::job::{End, Limit, Timer};
use serde_json::json;

use crate::harness::{Act, Came, hostile, load, still_usable, text, told, wat};

/// Long enough for a busy machine, much shorter than the guests would take.
const SOON: Duration = Duration::from_secs(10);

fn ends_soon(act: Act) -> Came {
    let start = Instant::now();
    let came = act.run(hostile());
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    still_usable();
    came
}

#[test]
fn wall_time_ends_loops_and_waits_and_keeps_what_was_said() {
    for how in ["loop", "sleep"] {
        let came = ends_soon(
            told(json!({ "do": "print-then-hang", "how": how, "text": "so far", "seconds": 30 }))
                .limit(|limits| limits.wall = Duration::from_millis(100)),
        );
        assert_eq!(came.end, End::TimedOut(Timer::Wall), "{how}");
        assert_eq!(came.heard.out(), "so far\n", "{how}");
        assert!(came.report.usage.run >= Duration::from_millis(50));
    }
}

#[test]
fn wall_time_ends_a_start_function() {
    let came = Act::command("").limit(|limits| limits.wall = Duration::from_millis(100)).run(&load(&wat("start-loop")));
    assert_eq!(came.end, End::TimedOut(Timer::Wall));
}

#[test]
fn wall_time_ends_bulk_instructions() {
    let came = Act::command("")
        .limit(|limits| {
            limits.wall = Duration::from_millis(100);
            limits.memory = 128 << 20;
        })
        .run(&load(&wat("bulk")));
    assert_eq!(came.end, End::TimedOut(Timer::Wall));
    still_usable();
}

#[test]
fn processor_time_is_not_wall_time() {
    let came = ends_soon(told(json!({ "do": "loop" })).limit(|limits| limits.cpu = Some(Duration::from_millis(100))));
    assert_eq!(came.end, End::TimedOut(Timer::Cpu));
    assert!(came.report.usage.cpu >= Duration::from_millis(100));
    // Waiting costs none.
    let came = told(json!({ "do": "drip", "count": 2, "every_ms": 200 }))
        .limit(|limits| limits.cpu = Some(Duration::from_millis(200)))
        .run(hostile());
    assert_eq!(came.end, End::Exited { code: 0 });
}

#[test]
fn silence_ends_and_speech_does_not() {
    let silent = Some(Duration::from_millis(1_500));
    let came =
        told(json!({ "do": "drip", "count": 10, "every_ms": 200 })).limit(|limits| limits.idle = silent).run(hostile());
    assert_eq!(came.end, End::Exited { code: 0 });
    for how in ["loop", "sleep"] {
        let came = ends_soon(
            told(json!({ "do": "print-then-hang", "how": how, "seconds": 30 }))
                .limit(|limits| limits.idle = Some(Duration::from_millis(100))),
        );
        assert_eq!(came.end, End::TimedOut(Timer::Idle), "{how}");
    }
}

#[test]
fn who_asks_for_the_end_gets_it() {
    for how in ["loop", "sleep"] {
        let start = Instant::now();
        let stop = async { tokio::time::sleep(Duration::from_millis(100)).await };
        let came = told(json!({ "do": "print-then-hang", "how": how, "text": "half", "seconds": 30 }))
            .run_until(hostile(), stop);
        assert_eq!(came.end, End::Interrupted, "{how}");
        assert_eq!(came.heard.out(), "half\n");
        assert!(start.elapsed() < SOON);
        still_usable();
    }
    let came = told(json!({ "do": "nothing" })).run_until(hostile(), std::future::ready(()));
    assert_eq!(came.end, End::Interrupted);
    assert!(came.heard.stdout.is_empty());
}

#[test]
fn a_full_pool_makes_others_wait() {
    // Eight slots, sixteen callers.
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| told(json!({ "do": "drip", "count": 2, "every_ms": 50 })).run(hostile())))
            .collect();
        for caller in callers {
            assert_eq!(caller.join().unwrap().end, End::Exited { code: 0 });
        }
    });
}

#[test]
fn a_panicking_sink_ends_one_execution_only() {
    struct Bad;
    impl glovebox_runtime::job::FrameSink for Bad {
        fn frame(&mut self, _frame: glovebox_runtime::job::Frame<'_>) {
            panic!("the sink is broken");
        }
    }
    let mut job = told(json!({ "do": "print-then-hang" })).job;
    job.component = hostile().component().into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let run = crate::harness::executor().run(hostile(), &job, vec![], Box::new(Bad), std::future::pending());
    let report = runtime.block_on(run);
    assert!(matches!(&report.end, End::HostFailed(text) if text.contains("the sink is broken")), "{report:?}");
    still_usable();
}

#[test]
fn a_dropped_call_leaves_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for _ in 0..20 {
        let mut act = told(json!({ "do": "sleep" }));
        act.job.component = hostile().component().into();
        struct Deaf;
        impl glovebox_runtime::job::FrameSink for Deaf {
            fn frame(&mut self, _frame: glovebox_runtime::job::Frame<'_>) {}
        }
        runtime.block_on(async {
            let run =
                crate::harness::executor().run(hostile(), &act.job, vec![], Box::new(Deaf), std::future::pending());
            assert!(tokio::time::timeout(Duration::from_millis(5), run).await.is_err());
        });
    }
    still_usable();
}

#[test]
fn ends_are_told_apart() {
    let cases = [
        (json!({ "do": "exit", "code": 7 }), End::Exited { code: 7 }),
        (json!({ "do": "exit", "plain": true, "code": 9 }), End::Exited { code: 1 }),
    ];
    for (what, end) in cases {
        assert_eq!(told(what.clone()).run(hostile()).end, end, "{what}");
    }
    let deep = text(
        r#"(component
          (core module $m (func $deeper (export "run") (result i32) (i32.add (call $deeper) (i32.const 1))))
          (core instance $i (instantiate $m))
          (func $f (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#,
    );
    assert_eq!(Act::command("").run(&deep).end, End::LimitHit(Limit::Stack));
    // Compiled languages keep a stack of their own in memory, and run off its end.
    let came = told(json!({ "do": "stack-overflow" })).run(hostile());
    assert!(matches!(&came.end, End::Trapped(text) if text.contains("out of bounds")), "{came:?}");
    let came = told(json!({ "do": "unreachable" })).run(hostile());
    assert!(matches!(&came.end, End::Trapped(text) if text.contains("unreachable")), "{came:?}");
    assert_eq!(Act::command("").run(&load(&wat("fails"))).end, End::Exited { code: 1 });
    still_usable();
}
