//! An engine that is not there, or does not answer.

use std::time::{Duration, Instant};

use env_contracts::Code;
use glovebox_container::{Containers, Socket};

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Containers::new(Socket::at(folder.path().join("no.sock")), folder.path().join("c"));
    let problem = engine.engine().facts().await.unwrap_err();
    assert!(problem.code == Code::BackendUnavailable && problem.help.contains("docker"), "{problem:?}");
}

// A68: it accepts and never answers.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_does_not_answer_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mute.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let mute = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    let engine = Containers::new(Socket::at(&path), folder.path().join("c"));
    let began = Instant::now();
    let problem = engine.engine().facts().await.unwrap_err();
    assert!(problem.code == Code::BackendUnavailable && began.elapsed() < Duration::from_secs(20), "{problem:?}");
    // It is asked anew: it may answer by then.
    assert!(engine.engine().facts().await.is_err());
    // Where there never was a container, it is not asked what is left of them.
    assert_eq!(engine.sweep(false).await.unwrap().gone.len(), 0);
    mute.abort();
}
