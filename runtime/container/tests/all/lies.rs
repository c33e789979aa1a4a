//! An engine, or something before it, that does not do what it was asked.

use std::sync::Arc;

use env_contracts::Code;
use glovebox_container::{Containers, Socket};
use glovebox_runtime::job::End;

use crate::ends::on_ground;
use crate::ground::{Act, Ground, engine_is_here, socket};
use crate::proxy::Proxy;

/// What came of an action on an engine that has other words in the place of
/// some.
async fn refused(ground: &Ground, act: Act<'_>, asked: &[(&str, &str)], answered: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir_in(ground.folder.path()).unwrap();
    let proxy = Proxy::lying(folder.path(), socket().path(), asked, answered);
    let containers = Containers::new(Socket::at(&proxy.socket), ground.folder.path().join("containers"));
    let came = act.by(Arc::new(containers)).run().await.unwrap();
    let End::Refused(problem) = came.end else { panic!("{asked:?}: {came:?}") };
    assert!(matches!(problem.code, Code::ContractUnsatisfied | Code::WorkspaceUnavailable), "{problem}");
    assert_eq!(came.out, "", "something ran");
    problem.message
}

// A33, B49: what was left out of a request is an error before anything runs.
on_ground!(what_an_engine_did_not_apply_is_found_in_what_it_tells, ground, {
    for (from, to, named) in [
        (r#""ReadonlyRootfs":true"#, r#""ReadonlyRootfs":null"#, "ReadonlyRootfs"),
        (r#""CapDrop":["ALL"]"#, r#""CapDrop":[     ]"#, "CapDrop"),
        (r#""NetworkMode":"none""#, r#""NetworkMode":"host""#, "NetworkMode"),
        (r#""PidsLimit":41"#, r#""PidsLimit":99"#, "PidsLimit"),
        (r#""no-new-privileges""#, r#""label=disable    ""#, "SecurityOpt"),
        (r#""User":"65532:65532""#, r#""User":"0:0"        "#, "User"),
        (r#""Privileged":false"#, r#""Privileged":true "#, "Privileged"),
        (r#""StdinOnce":true"#, r#""StdinOnce":null"#, "StdinOnce"),
    ] {
        let told = refused(&ground, ground.act("echo ran"), &[(from, to)], &[]).await;
        assert!(told.contains(named), "{named}: {told}");
    }
});

// B73: and where what it tells is not so either, in what the kernel has.
on_ground!(what_an_engine_only_says_is_found_from_inside, ground, {
    for (asked, other, named) in [
        (r#""Memory":100663296"#, r#""Memory":100000000"#, "limits.memory"),
        (r#""PidsLimit":41"#, r#""PidsLimit":99"#, "limits.pids"),
        (r#""User":"65532:65532""#, r#""User":"65533:65533""#, "isolation"),
        (r#""no-new-privileges""#, r#""label=disable    ""#, "isolation"),
    ] {
        let told = refused(&ground, ground.act("echo ran"), &[(asked, other)], &[(other, asked)]).await;
        assert!(told.contains(named), "{named}: {told}");
    }
});

on_ground!(another_folder_in_the_place_of_the_bound_one_is_found_from_inside, ground, {
    let [bound, other] = ["bound", "other"].map(|name| ground.folder.path().join(name));
    for folder in [&bound, &other] {
        fs_err::create_dir(folder).unwrap();
    }
    let [from, to] = [&bound, &other].map(|path| format!("\"{}\"", path.display()));
    let act = ground.act("echo ran").workspace(&bound, "read", "");
    let told = refused(&ground, act, &[(&from, &to)], &[(&to, &from)]).await;
    assert!(told.contains("not the folder that was bound"), "{told}");
});
