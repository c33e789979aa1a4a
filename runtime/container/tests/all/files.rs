//! Folders: inputs, workspaces, outputs, and what a hostile tool makes of them.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use env_contracts::Code;
use glovebox_runtime::job::End;

use crate::ends::on_ground;
use crate::ground::{Ground, engine_is_here};

on_ground!(inputs_are_the_bytes_that_were_bound, ground, {
    let file = ground.folder.path().join("in put");
    fs_err::write(&file, "given").unwrap();
    let came = ground.act("cat /inputs/a; echo; echo x > /inputs/a; rm /inputs/a; touch /inputs/b; cat /inputs/a");
    let came = came.input("a", &file).done().await;
    assert_eq!(came.out, "given\ngiven");
    assert_eq!(came.err.matches("Read-only file system").count(), 3, "{}", came.err);
});

on_ground!(outputs_come_out_and_nothing_else, ground, {
    let script = "mkdir -p /outputs/deep/er; echo one > /outputs/a; echo two > /outputs/deep/er/b; head -c 2000000 /dev/zero > /outputs/big; \
                  ln -s /etc/passwd /outputs/link; ln -s .. /outputs/up; mkfifo /outputs/pipe; ln /outputs/a /outputs/hard; \
                  echo x > /outputs/closed; chmod 000 /outputs/closed; \
                  touch \"$(printf '/outputs/new\\nline')\"; touch -- '/outputs/-rf $(touch x)'; mkdir /outputs/empty";
    let came = ground.act(script).outputs().done().await;
    let mut names: Vec<String> = fs_err::read_dir(&came.outputs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["-rf $(touch x)", "a", "big", "closed", "deep", "empty", "hard", "new\nline"]);
    assert_eq!(fs_err::read_to_string(came.outputs.join("deep/er/b")).unwrap(), "two\n");
    assert_eq!(fs_err::metadata(came.outputs.join("big")).unwrap().len(), 2_000_000);
    let told: Vec<&str> = came.notices.iter().map(|notice| &*notice.message).collect();
    for word in ["symbolic links", "FIFOs"] {
        assert!(told.iter().any(|message| message.contains(word)), "{word}: {told:?}");
    }
});

on_ground!(outputs_come_out_of_what_failed_and_of_what_was_ended, ground, {
    let came = ground.act("echo part > /outputs/a; exit 1").outputs().run().await.unwrap();
    assert_eq!(fs_err::read_to_string(came.outputs.join("a")).unwrap(), "part\n");
    let limits = "[limits]\nwall = \"1s\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let came = ground.act("echo part > /outputs/a; sleep 100").contract(limits).outputs().run().await.unwrap();
    assert!(matches!(came.end, End::TimedOut(_)), "{came:?}");
    assert_eq!(fs_err::read_to_string(came.outputs.join("a")).unwrap(), "part\n");
});

/// A folder with something of each kind.
fn workspace(ground: &Ground) -> std::path::PathBuf {
    let folder = ground.folder.path().join("workspace");
    fs_err::create_dir_all(folder.join("src/deep")).unwrap();
    fs_err::write(folder.join("a"), "a").unwrap();
    fs_err::write(folder.join("run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    fs_err::set_permissions(folder.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    fs_err::write(folder.join("src/b"), "b").unwrap();
    fs_err::write(folder.join("src/deep/c"), "c").unwrap();
    fs_err::write(folder.join("gone"), "gone").unwrap();
    fs_err::write(folder.join(".env"), "secret").unwrap();
    fs_err::write(ground.folder.path().join("outside"), "outside").unwrap();
    symlink("../outside", folder.join("out")).unwrap();
    symlink("src/b", folder.join("in")).unwrap();
    folder
}

on_ground!(a_folder_that_is_only_read_is_shown_as_it_is, ground, {
    let folder = workspace(&ground);
    let script =
        "cat a; cat src/deep/c; ./run.sh; cat out 2>&1; cat in; echo x > a; rm a; touch new; mkdir d; cat .env";
    let came = ground.act(script).workspace(&folder, "read", "").done().await;
    assert_eq!(came.out, "acran\ncat: can't open 'out': No such file or directory\nbsecret");
    assert_eq!(came.err.matches("Read-only file system").count(), 4, "{}", came.err);
});

// Whatever stands before it in the contract.
on_ground!(every_folder_is_the_one_that_was_named, ground, {
    let folder = workspace(&ground);
    let file = ground.folder.path().join("given");
    fs_err::write(&file, "given").unwrap();
    for access in ["read", "write"] {
        let act = ground.act("cat /inputs/a /workspace/a; echo x > /outputs/o; touch /tmp/t; ls /tmp");
        let act = act.outputs().input("a", &file).workspace(&folder, access, "");
        let came = act
            .contract_first("[[filesystem]]\nguest = \"/tmp\"\nsource = \"scratch\"\naccess = \"write\"\n")
            .done()
            .await;
        assert_eq!(came.out, "givenat\n", "{access}");
        assert!(came.outputs.join("o").exists());
    }
});

on_ground!(what_is_hidden_is_not_there, ground, {
    let folder = workspace(&ground);
    let script = "ls -A; cat .env 2>&1; cat a; echo x > a; cat a 2>&1; true";
    let came = ground.act(script).workspace(&folder, "read", "\".env*\"").done().await;
    assert_eq!(came.out, "a\ngone\nin\nout\nrun.sh\nsrc\ncat: can't open '.env': No such file or directory\naa");
    assert_eq!(fs_err::read_to_string(folder.join("a")).unwrap(), "a");
});

on_ground!(changes_come_out_when_the_tool_ended_by_itself, ground, {
    let folder = workspace(&ground);
    let script = "echo new > a; echo more >> src/deep/c; mkdir made; echo x > made/y; rm gone; chmod +x src/b; echo >> src/b; \
                  rm -r src/deep/none 2>/dev/null; ln -s ../a made/link; ln -s /etc/passwd made/bad; ln -s ../../x made/worse; \
                  ls -A > made/list; echo secret2 > .env; exit 4";
    let before = fs_err::metadata(folder.join("run.sh")).unwrap();
    let came = ground.act(script).workspace(&folder, "write", "\".env*\"").run().await.unwrap();
    // It may not make what it may not see, nor links that lead out.
    assert!(matches!(&came.end, End::Failed(failure) if failure.kind == "conflict"), "{came:?}");
    let refused = came.notices.iter().find(|notice| notice.kind == "change-refused").unwrap();
    assert!([".env", "made/bad", "made/worse"].iter().all(|path| refused.message.contains(path)), "{refused:?}");
    let read = |path: &str| fs_err::read_to_string(folder.join(path)).unwrap();
    assert_eq!([read("a"), read("src/deep/c"), read("made/y"), read(".env")], ["new\n", "cmore\n", "x\n", "secret"]);
    assert!(!folder.join("gone").exists() && !read("made/list").contains(".env"));
    assert_eq!(fs_err::read_link(folder.join("made/link")).unwrap().to_str(), Some("../a"));
    assert!(fs_err::symlink_metadata(folder.join("made/bad")).is_err());
    assert_eq!(fs_err::metadata(folder.join("src/b")).unwrap().mode() & 0o111, 0o111);
    let after = fs_err::metadata(folder.join("run.sh")).unwrap();
    assert_eq!(
        (before.ino(), before.mtime_nsec()),
        (after.ino(), after.mtime_nsec()),
        "what did not change was touched"
    );
    assert_eq!(fs_err::metadata(folder.join("made/y")).unwrap().uid(), rustix::process::geteuid().as_raw());
    assert!(
        fs_err::read_dir(&folder).unwrap().all(|entry| !entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".glovebox-"))
    );
});

on_ground!(what_was_ended_changes_nothing, ground, {
    let folder = workspace(&ground);
    let limits = "[limits]\nwall = \"1s\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let came = ground
        .act("echo new > a; rm gone; sleep 100")
        .contract(limits)
        .workspace(&folder, "write", "")
        .run()
        .await
        .unwrap();
    assert!(matches!(came.end, End::TimedOut(_)), "{came:?}");
    assert!(came.notices.iter().any(|notice| notice.kind == "changes-dropped"), "{came:?}");
    assert_eq!(fs_err::read_to_string(folder.join("a")).unwrap(), "a");
    assert!(folder.join("gone").exists());
});

on_ground!(what_somebody_else_changed_meanwhile_stays_theirs, ground, {
    let folder = workspace(&ground);
    let act = ground.act("echo started; echo tool > a; echo tool > src/b; rm gone; while [ ! -e /tmp/go ]; do sleep 0.1; touch /tmp/go; done; sleep 1");
    let act = act.workspace(&folder, "write", "");
    let heard = act.heard.clone();
    let (came, ()) = tokio::join!(act.run(), async {
        crate::ground::until("its first word", async || !heard.lock().unwrap().out.is_empty()).await;
        fs_err::write(folder.join("a"), "somebody").unwrap();
        fs_err::write(folder.join("gone"), "somebody").unwrap();
    });
    let came = came.unwrap();
    assert!(matches!(&came.end, End::Failed(failure) if failure.kind == "conflict"), "{came:?}");
    let read = |path: &str| fs_err::read_to_string(folder.join(path)).unwrap();
    assert_eq!([read("a"), read("gone"), read("src/b")], ["somebody", "somebody", "tool\n"]);
});

on_ground!(growth_of_a_folder_is_bounded, ground, {
    let folder = workspace(&ground);
    let came = ground.act("dd if=/dev/zero of=big bs=1M count=20").workspace(&folder, "write", "").run().await.unwrap();
    assert!(matches!(came.end, End::LimitHit(_)) && !folder.join("big").exists(), "{came:?}");
});

on_ground!(an_argument_that_names_a_file_means_what_was_bound, ground, {
    let folder = workspace(&ground);
    let act = ground.act("cat a src/b").workspace(&folder, "read", "").path("a");
    // Between the approval and the run somebody changes it.
    let run = act.run_changed(|| fs_err::write(folder.join("a"), "changed").unwrap()).await.unwrap();
    assert_eq!(run.out, "ab", "{run:?}");
});

on_ground!(a_folder_that_took_its_place_is_not_shown, ground, {
    let folder = workspace(&ground);
    let other = ground.folder.path().join("other");
    fs_err::create_dir(&other).unwrap();
    fs_err::write(other.join("a"), "other").unwrap();
    let act = ground.act("cat a").workspace(&folder, "read", "");
    let came = act
        .run_changed(|| {
            fs_err::rename(&folder, ground.folder.path().join("moved")).unwrap();
            fs_err::rename(&other, &folder).unwrap();
        })
        .await
        .unwrap();
    // The descriptor knows where the folder went; whatever is shown is that one.
    match came.end {
        End::Exited { code: 0 } => assert_eq!(came.out, "a"),
        End::Refused(problem) => assert_eq!(problem.code, Code::WorkspaceUnavailable),
        end => panic!("{end:?}"),
    }
});

on_ground!(a_folder_that_is_too_large_to_copy_is_refused, ground, {
    let folder = workspace(&ground);
    fs_err::File::create(folder.join("huge")).unwrap().set_len(1 << 30).unwrap();
    let came = ground.act("true").workspace(&folder, "write", "").run().await.unwrap();
    let End::Refused(problem) = came.end else { panic!("{:?}", came.end) };
    assert!(problem.code == Code::LimitHit && problem.help.contains("limits.memory"), "{problem:?}");
});
