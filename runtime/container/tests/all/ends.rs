//! Every way in which a tool can end, and what is kept of what it said.

use std::time::Duration;

use env_contracts::Code;
use futures_util::FutureExt as _;
use glovebox_runtime::job::{End, Limit, Timer};

use crate::ground::{Act, Ground, engine_is_here, until};

macro_rules! on_ground {
    ($(#[$doc:meta])* $name:ident, $ground:ident, $body:block) => {
        $(#[$doc])*
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            if !engine_is_here() {
                return;
            }
            let $ground = Ground::new().await;
            $body
            assert_eq!($ground.containers().await, Vec::<String>::new(), "a container was left");
        }
    };
}
pub(crate) use on_ground;

on_ground!(what_it_says_and_its_code_come_back, ground, {
    let came = ground.act("echo out; echo err >&2; cat; exit 3").stdin("in").run().await.unwrap();
    assert_eq!((came.end, &*came.out, &*came.err), (End::Exited { code: 3 }, "out\nin", "err\n"));
    assert!(came.usage.memory_peak > 0 && came.usage.run > Duration::ZERO, "{:?}", came.usage);
});

on_ground!(bytes_are_bytes, ground, {
    let came = ground.act("printf '\\377\\000\\376x'; head -c 300000 /dev/zero").done().await;
    assert_eq!(came.out.chars().filter(|char| *char == '\0').count(), 300_001);
});

on_ground!(input_that_nobody_reads_holds_nobody_up, ground, {
    let came = ground.act("exit 0").stdin(&"x".repeat(3 << 20)).done().await;
    assert_eq!(came.out, "");
    let came = ground.act("wc -c").stdin(&"x".repeat(3 << 20)).done().await;
    assert_eq!(came.out.trim(), (3 << 20).to_string());
});

on_ground!(what_is_not_in_the_image_is_no_end_of_a_tool, ground, {
    let came = Act::new(&ground, &["no-such-program"]).run().await.unwrap();
    let End::Refused(problem) = came.end else { panic!("{:?}", came.end) };
    assert!(problem.code == Code::ImageCommand && problem.message.contains("no-such-program"), "{problem}");
});

on_ground!(a_signal_is_no_code, ground, {
    let came = ground.act("kill -SEGV $$").run().await.unwrap();
    assert_eq!(came.end, End::Trapped("ended by signal 11".into()));
});

// B1, B2, B5: what it started does not go on.
on_ground!(time_that_is_up_ends_all_that_was_started, ground, {
    let script = "echo before; setsid sh -c 'trap \"\" TERM; while true; do sleep 0.1; done' & \
                  (trap '' TERM HUP; sleep 1000) & trap '' TERM; sleep 1000";
    let limits =
        "[limits]\nwall = \"1s\"\nmemory = \"64MiB\"\npids = 40\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let came = ground.act(script).contract(limits).run().await.unwrap();
    assert_eq!((came.end, &*came.out), (End::TimedOut(Timer::Wall), "before\n"));
});

on_ground!(what_a_tool_leaves_running_ends_with_it, ground, {
    let script =
        "sleep 1000 & setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & (nohup sleep 1000 >/dev/null 2>&1 &); echo done";
    let came = ground.act(script).done().await;
    assert_eq!(came.out, "done\n");
});

on_ground!(silence_is_bounded_where_asked, ground, {
    let limits = "[limits]\nwall = \"20s\"\nidle = \"700ms\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let came =
        ground.act("for i in 1 2 3 4 5; do echo $i; sleep 0.3; done; sleep 1000").contract(limits).run().await.unwrap();
    assert_eq!((came.end, came.out.lines().count()), (End::TimedOut(Timer::Idle), 5));
});

on_ground!(processor_time_is_bounded, ground, {
    let limits = "[limits]\nwall = \"20s\"\ncpu = \"500ms\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let came = ground.act("while true; do :; done & while true; do :; done").contract(limits).run().await.unwrap();
    assert_eq!(came.end, End::TimedOut(Timer::Cpu));
    assert!(came.usage.run < Duration::from_secs(10));
});

on_ground!(memory_is_bounded_and_named, ground, {
    let came = ground.act("echo before; dd if=/dev/zero of=/dev/null bs=200M count=1").run().await.unwrap();
    assert_eq!((came.end, &*came.out), (End::LimitHit(Limit::Memory), "before\n"));
});

on_ground!(output_is_bounded_and_kept_up_to_there, ground, {
    let came = ground.act("yes").run().await.unwrap();
    assert_eq!((came.end, came.out.len()), (End::LimitHit(Limit::Output), 1 << 20));
});

// B23: who goes on talking holds no clock up.
on_ground!(a_flood_ends_in_time, ground, {
    let limits = "[limits]\nwall = \"1s\"\nmemory = \"64MiB\"\noutput = \"64GiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let mut act = ground.act("yes").contract(limits);
    act.keeps = false;
    let heard = act.heard.clone();
    let came = act.run().await.unwrap();
    assert_eq!(came.end, End::TimedOut(Timer::Wall));
    assert!(heard.lock().unwrap().count > 1 << 20 && came.usage.run < Duration::from_secs(10), "{:?}", came.usage);
    // And who never stops being asked ends as well.
    let act = ground.act("yes").contract(&limits.replace("wall = \"1s\"", "wall = \"20s\""));
    let (stop, heard) = (act.stop.clone(), act.heard.clone());
    let (came, ()) = tokio::join!(act.run(), async {
        until("its first word", async || !heard.lock().unwrap().out.is_empty()).await;
        stop.request();
    });
    assert_eq!(came.unwrap().end, End::Interrupted);
});

// B30: where nobody says anything, there are limits all the same.
on_ground!(a_contract_without_limits_is_not_without_limits, ground, {
    let limits = "[limits]\nwall = \"20s\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let came = ground
        .act("cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; true")
        .contract(limits)
        .done()
        .await;
    assert_eq!(came.out.trim(), "1025");
    // Without a limit of memory nothing runs.
    let none = "[limits]\nwall = \"20s\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let came = ground.act("echo ran").contract(none).run().await.unwrap();
    assert!(matches!(came.end, End::Refused(_)) && came.out.is_empty(), "{came:?}");
});

// B32, B34: a full folder is no silence.
on_ground!(a_full_folder_is_named, ground, {
    let came = ground.act("dd if=/dev/zero of=/tmp/x bs=1M count=64").run().await.unwrap();
    assert_eq!(came.end, End::LimitHit(Limit::Storage));
    let came = ground.act("i=0; while touch /tmp/$i; do i=$((i+1)); done; exit 1").run().await.unwrap();
    assert_eq!(came.end, End::LimitHit(Limit::Inodes));
    // None of them is beyond its own limit, all of them together are.
    let came = ground
        .act("dd if=/dev/zero of=/tmp/x bs=1M count=5; dd if=/dev/zero of=/dev/shm/x bs=1M count=5; sleep 5")
        .run()
        .await
        .unwrap();
    assert_eq!(came.end, End::LimitHit(Limit::Storage));
});

on_ground!(more_processes_than_allowed_are_refused_by_the_kernel, ground, {
    let came = ground.act("i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done; echo all").run().await.unwrap();
    assert!(!came.out.contains("all"), "{came:?}");
    // A storm to the limit is ended like anything else.
    let limits =
        "[limits]\nwall = \"2s\"\nmemory = \"64MiB\"\npids = 30\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let came = ground.act("b() { b | b & b; }; b").contract(limits).run().await.unwrap();
    assert!(!matches!(came.end, End::Lost(_) | End::HostFailed(_) | End::Violation(_)), "{came:?}");
});

// B28: nobody's children are collected.
on_ground!(orphans_are_collected, ground, {
    let script = "i=0; while [ $i -lt 200 ]; do (sleep 0 & ) ; i=$((i+1)); done; sleep 0.3; \
                  grep -c Z /proc/[0-9]*/stat 2>/dev/null | grep -c ':1$'; true";
    let came = ground.act(script).done().await;
    assert!(came.out.trim().parse::<u32>().unwrap() <= 1, "{}", came.out);
});

on_ground!(a_stop_ends_it_and_keeps_what_it_said, ground, {
    let act = ground.act("echo before; sleep 1000");
    let (stop, heard) = (act.stop.clone(), act.heard.clone());
    let (came, ()) = tokio::join!(act.run(), async {
        until("its first word", async || !heard.lock().unwrap().out.is_empty()).await;
        stop.request();
    });
    let came = came.unwrap();
    assert_eq!((came.end, &*came.out), (End::Interrupted, "before\n"));
});

on_ground!(whoever_does_not_wait_any_more_leaves_nothing, ground, {
    let act = ground.act("echo before; sleep 1000");
    let heard = act.heard.clone();
    tokio::select! {
        _ = act.run() => panic!("it ended"),
        () = until("its first word", async || !heard.lock().unwrap().out.is_empty()) => {}
    }
    until("its end", async || ground.containers().await.is_empty()).await;
});

// B8: killed from outside.
on_ground!(a_container_that_is_killed_is_lost_and_not_waited_for, ground, {
    let act = ground.act("echo before; sleep 1000");
    let heard = act.heard.clone();
    let (came, ()) = tokio::join!(act.run(), async {
        until("its first word", async || !heard.lock().unwrap().out.is_empty()).await;
        for id in ground.containers().await {
            ground.docker.kill_container(&id, None).await.unwrap();
        }
    });
    let came = came.unwrap();
    assert!(matches!(came.end, End::Lost(_)) && came.out == "before\n", "{came:?}");
});

// A64: many at once, and nothing left.
on_ground!(many_at_once_lose_nothing, ground, {
    let ground = &ground;
    let acts = (0..12).map(|i| async move { (i, repeated(ground, i).await) }.boxed());
    let came = futures_util::future::join_all(acts).await;
    for (i, out) in came {
        assert_eq!(out, format!("{i}\n").repeat(50));
    }
});

async fn repeated(ground: &Ground, i: u32) -> String {
    ground.act(&format!("for x in $(seq 50); do echo {i}; done")).done().await.out
}
