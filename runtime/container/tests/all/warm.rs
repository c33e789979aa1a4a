//! Containers that stand and wait for their tool.

use std::sync::Arc;

use glovebox_container::{Containers, Socket};
use glovebox_runtime::job::End;

use crate::ground::{Ground, engine_is_here, socket, until};
use crate::proxy::Proxy;

/// Those of a ground's containers that were made to wait.
async fn waiting(ground: &Ground) -> Vec<String> {
    let mut waiting = Vec::new();
    for id in ground.containers().await {
        let Ok(seen) = ground.docker.inspect_container(&id, None).await else { continue };
        let running = seen.state.is_some_and(|state| state.running == Some(true));
        if running && seen.name.is_some_and(|name| name.contains("-warm-")) {
            waiting.push(id);
        }
    }
    waiting
}

async fn two_wait(ground: &Ground) -> Vec<String> {
    until("two wait", async || waiting(ground).await.len() == 2).await;
    waiting(ground).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_serves_one_action_and_is_gone() {
    if !engine_is_here() {
        return;
    }
    let ground = Ground::warm(2).await;
    let script = "cat /tmp/mark /dev/shm/mark 2>/dev/null; echo x > /tmp/mark; echo x > /dev/shm/mark";
    let (mut before, mut served) = (Vec::new(), 0);
    for _ in 0..6 {
        let came = ground.act(script).done().await;
        assert_eq!(came.out, "", "something of the one before");
        let after = two_wait(&ground).await;
        // Whatever served it is gone.
        served += before.iter().filter(|id| !after.contains(id)).count();
        before = after;
    }
    assert!(served >= 1, "{served}: those that wait are not taken");
    // Another shape is another container, and takes the place of the first.
    let limits = "[limits]\nwall = \"20s\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    ground.act("true").contract(limits).done().await;
    until("the others went", async || waiting(&ground).await.iter().all(|id| !before.contains(id))).await;
    let folder = ground.folder.path().join("workspace");
    fs_err::create_dir(&folder).unwrap();
    fs_err::write(folder.join("a"), "a").unwrap();
    for _ in 0..2 {
        ground.act("cat a; echo b >> a").workspace(&folder, "write", "").done().await;
    }
    assert_eq!(fs_err::read_to_string(folder.join("a")).unwrap(), "ab\nb\n");
    ground.containers.drain().await;
    assert_eq!(ground.containers().await, Vec::<String>::new());
}

// B44: nobody gets what another got.
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_get_one_each() {
    if !engine_is_here() {
        return;
    }
    let ground = Ground::warm(4).await;
    ground.act("true").done().await;
    two_wait(&ground).await;
    let ground = &ground;
    let acts =
        (0..10).map(|i| ground.act(&format!("cat /tmp/mark 2>/dev/null; echo {i} > /tmp/mark; echo {i} >&2")).done());
    let came = futures_util::future::join_all(acts.map(Box::pin)).await;
    assert!(came.iter().enumerate().all(|(i, came)| came.out.is_empty() && came.err == format!("{i}\n")));
    ground.containers.drain().await;
    assert_eq!(ground.containers().await, Vec::<String>::new());
}

// B46: one that died while it waited is nobody's end.
#[tokio::test(flavor = "multi_thread")]
async fn what_died_while_it_waited_is_not_given_out() {
    if !engine_is_here() {
        return;
    }
    let ground = Ground::warm(2).await;
    ground.act("true").done().await;
    two_wait(&ground).await;
    for id in ground.containers().await {
        let _ = ground.docker.kill_container(&id, None).await;
    }
    let came = ground.act("echo fine").done().await;
    assert_eq!(came.out, "fine\n");
    // A tool that ends badly ends the same way there.
    let came = ground.act("kill -SEGV $$").run().await.unwrap();
    assert_eq!(came.end, End::Trapped("ended by signal 11".into()));
    ground.containers.drain().await;
    // A process that is over keeps nothing.
    assert_eq!(ground.act("echo cold").done().await.out, "cold\n");
    assert_eq!(ground.containers().await, Vec::<String>::new());
}

// A container that ends otherwise than it reported: those that wait are given up,
// and what comes after is compared before anybody hears of it.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_ends_otherwise_ends_the_waiting_and_nothing_else() {
    if !engine_is_here() {
        return;
    }
    let ground = Ground::warm(2).await;
    let proxy = Proxy::lying(ground.folder.path(), socket().path(), &[], &[(r#""ExitCode":0"#, r#""ExitCode":7"#)]);
    let folder = ground.folder.path().join("containers");
    let containers = Arc::new(Containers::new(Socket::at(&proxy.socket), folder).warm(2));
    let came = ground.act("echo first").by(containers.clone()).done().await;
    assert_eq!(came.out, "first\n");
    let stopped = async || {
        let came = ground.act("exit 5").by(containers.clone()).run().await.unwrap();
        came.notices.iter().any(|notice| notice.kind == "warm-stopped")
    };
    until("nothing waits any more", stopped).await;
    // What it reported and how it ended are one again: it goes on.
    let came = ground.act("exit 5").by(containers.clone()).run().await.unwrap();
    assert_eq!(came.end, End::Exited { code: 5 });
    // And where they are not, that is its end.
    let came = ground.act("true").by(containers.clone()).run().await.unwrap();
    assert!(matches!(&came.end, End::Violation(why) if why.contains("ended with 7")), "{came:?}");
    containers.drain().await;
}
