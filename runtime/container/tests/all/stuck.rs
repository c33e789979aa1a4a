//! An engine or a container that does not answer any more while a tool runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use env_contracts::Code;
use glovebox_container::{Containers, Socket};
use glovebox_runtime::job::{End, Timer};

use crate::ends::on_ground;
use crate::ground::{Ground, engine_is_here, socket, until};
use crate::proxy::Proxy;

/// Every step of ending a container has its own bound; all of them together have
/// this one.
const BOUND: Duration = Duration::from_secs(60);

// B2, A68: the clock runs outside of what is stuck, and what is left is named,
// and taken away once it can be.
on_ground!(an_engine_that_gets_stuck_ends_nothing_late_and_keeps_nothing, ground, {
    let proxy = Proxy::new(ground.folder.path(), socket().path());
    let folder = ground.folder.path().join("containers");
    let containers = Arc::new(Containers::new(Socket::at(&proxy.socket), folder));
    let limits = "[limits]\nwall = \"3s\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let act = ground.act("echo before; sleep 1000").contract(limits).by(containers.clone());
    let (heard, began) = (act.heard.clone(), Instant::now());
    let (came, ()) = tokio::join!(act.run(), async {
        until("its first word", async || !heard.lock().unwrap().out.is_empty()).await;
        proxy.freeze(true);
    });
    let came = came.unwrap();
    assert_eq!((came.end, &*came.out), (End::TimedOut(Timer::Wall), "before\n"));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert!(came.notices.iter().any(|notice| notice.kind == "container-left"), "{:?}", came.notices);
    // Nothing is written about it that is not so: it is there.
    assert_eq!(ground.containers().await.len(), 1);
    proxy.freeze(false);
    let swept = containers.sweep(false).await.unwrap();
    assert_eq!((swept.gone.len(), swept.left.len()), (1, 0));
});

// A supervisor that stands still can keep nothing from ending.
on_ground!(a_container_that_is_frozen_is_ended_all_the_same, ground, {
    let limits = "[limits]\nwall = \"3s\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let act = ground.act("echo before; sleep 1000").contract(limits).outputs();
    let (heard, began) = (act.heard.clone(), Instant::now());
    let (came, ()) = tokio::join!(act.run(), async {
        until("its first word", async || !heard.lock().unwrap().out.is_empty()).await;
        for id in ground.containers().await {
            ground.docker.pause_container(&id).await.unwrap();
        }
    });
    let came = came.unwrap();
    assert_eq!((came.end, &*came.out), (End::TimedOut(Timer::Wall), "before\n"));
    assert!(
        began.elapsed() < BOUND && came.notices.iter().any(|notice| notice.kind == "outputs-lost"),
        "{:?}",
        came.notices
    );
});

// B37: nobody heard whether it was made; it was, a moment later.
on_ground!(a_container_that_is_made_after_nobody_waits_is_taken_away, ground, {
    let proxy = Proxy::new(ground.folder.path(), socket().path());
    let folder = ground.folder.path().join("containers");
    let containers = Arc::new(Containers::new(Socket::at(&proxy.socket), folder));
    // What is known of the engine and the image is known by then.
    ground.act("true").by(containers.clone()).done().await;
    let act = ground.act("echo ran").by(containers.clone());
    let stop = act.stop.clone();
    proxy.freeze(true);
    let (came, ()) = tokio::join!(act.run(), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.request();
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.freeze(false);
    });
    let came = came.unwrap();
    assert!(matches!(&came.end, End::Refused(problem) if problem.code == Code::Interrupted), "{came:?}");
    assert_eq!(came.out, "");
});
