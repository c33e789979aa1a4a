//! What a tool did to a folder that it may write, as it comes to this host.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use env_contracts::Code;
use glovebox_runtime::job::{End, Limit};

use crate::ends::on_ground;
use crate::ground::{Came, Ground, engine_is_here, until};

/// A folder with two others in it.
fn folder(ground: &Ground) -> std::path::PathBuf {
    let folder = ground.folder.path().join("workspace");
    for (name, text) in [("a/f", "AAA"), ("b/f", "BBB"), ("b/deep/g", "ggg")] {
        let path = folder.join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    folder
}

fn read(folder: &Path, path: &str) -> String {
    fs_err::read_to_string(folder.join(path)).unwrap_or_else(|error| error.kind().to_string())
}

fn refused(came: &Came) -> &str {
    assert!(matches!(&came.end, End::Failed(failure) if failure.kind == "conflict"), "{came:?}");
    &came.notices.iter().find(|notice| notice.kind == "change-refused").unwrap().message
}

// The times of what is moved don't change.
on_ground!(what_was_moved_comes_out_where_it_is, ground, {
    let folder = folder(&ground);
    ground.act("mv b new; mv new/deep/g g").workspace(&folder, "write", "").done().await;
    assert_eq!([read(&folder, "new/f"), read(&folder, "g")], ["BBB", "ggg"]);
    assert!(!folder.join("b").exists() && !folder.join("new/deep/g").exists());
    ground.act("mv a t; mv new a; mv t new").workspace(&folder, "write", "").done().await;
    assert_eq!([read(&folder, "a/f"), read(&folder, "new/f")], ["BBB", "AAA"]);
    // Nor do those of what is put in the place of something equally old.
    ground.act("mv a/f t; mv new/f a/f; mv t new/f").workspace(&folder, "write", "").done().await;
    assert_eq!([read(&folder, "a/f"), read(&folder, "new/f")], ["AAA", "BBB"]);
    ground.act("ln -s f a/l; chmod +x a/f").workspace(&folder, "write", "").done().await;
    ground.act("rm a/l; ln -s ../g a/l").workspace(&folder, "write", "").done().await;
    assert_eq!(fs_err::read_link(folder.join("a/l")).unwrap(), Path::new("../g"));
    assert_eq!(fs_err::metadata(folder.join("a/f")).unwrap().mode() & 0o111, 0o111);
});

// What was folder, file and link may be another of them.
on_ground!(one_kind_of_thing_takes_the_place_of_another, ground, {
    let folder = folder(&ground);
    symlink("f", folder.join("a/l")).unwrap();
    let script = "rm -r b; echo file > b; rm a/f; mkdir a/f; echo in > a/f/x; rm a/l; mkdir a/l; echo in > a/l/y";
    ground.act(script).workspace(&folder, "write", "").done().await;
    assert_eq!(["b", "a/f/x", "a/l/y"].map(|path| read(&folder, path)), ["file\n", "in\n", "in\n"]);
    let script = "rm -r a/f a/l b; ln -s ../b a/l; ln -s a b; echo f > a/f";
    ground.act(script).workspace(&folder, "write", "").done().await;
    assert_eq!(fs_err::read_link(folder.join("b")).unwrap(), Path::new("a"));
    assert_eq!(
        (read(&folder, "a/f"), fs_err::read_link(folder.join("a/l")).unwrap().as_path()),
        ("f\n".into(), Path::new("../b"))
    );
});

// What builds decides by times, and what is private stays so.
on_ground!(times_and_permissions_are_as_the_tool_sees_and_leaves_them, ground, {
    let folder = folder(&ground);
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs_err::File::options().write(true).open(folder.join("a/f")).unwrap().file().set_modified(old).unwrap();
    let mode = |path: &str, mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs_err::set_permissions(folder.join(path), mode).unwrap();
    };
    mode("a/f", 0o600);
    mode("b/f", 0o640);
    let script = "[ b/f -nt a/f ] && stat -c %Y,%a a/f b/f | tr '\\n' ' '; echo more >> b/f; touch -d @1100000000 old; chmod 604 b/deep/g; \
                  umask 077; echo key > key; mkdir shut";
    let came = ground.act(script).workspace(&folder, "write", "").done().await;
    assert!(came.out.starts_with("1000000000,600 ") && came.out.ends_with(",640 "), "{}", came.out);
    let about = |path: &str| fs_err::metadata(folder.join(path)).unwrap();
    let bits = ["a/f", "b/f", "key", "shut", "b/deep/g"].map(|path| about(path).mode() & 0o777);
    assert_eq!(bits, [0o600, 0o640, 0o600, 0o700, 0o604]);
    assert_eq!((about("old").mtime(), about("a/f").mtime()), (1_100_000_000, 1_000_000_000));
});

on_ground!(what_lies_too_deep_is_refused_and_not_left_out, ground, {
    let folder = folder(&ground);
    fs_err::create_dir_all(folder.join(["d"; 70].join("/"))).unwrap();
    let came = ground.act("true").workspace(&folder, "write", "").run().await.unwrap();
    assert!(matches!(&came.end, End::Refused(problem) if problem.code == Code::LimitHit), "{came:?}");
});

on_ground!(every_name_of_a_file_comes_out_and_what_nobody_may_read_too, ground, {
    let folder = folder(&ground);
    let script = "ln a/f h; echo changed > a/f; echo built > c; ln c d; mkdir shut; echo in > shut/in; chmod 0 shut c; \
                  rm -r b; chmod 0 .";
    ground.act(script).workspace(&folder, "write", "").done().await;
    let names = ["a/f", "h", "c", "d", "shut/in"].map(|name| read(&folder, name));
    assert_eq!(names, ["changed\n", "changed\n", "built\n", "built\n", "in\n"]);
    assert!(!folder.join("b").exists());
});

on_ground!(no_link_leads_out_by_a_detour, ground, {
    let folder = folder(&ground);
    let script =
        "cd b/deep; ln -s ../.. up; ln -s up/../.. out; ln -s up/../../etc/passwd out2; ln -s g/../../../.. out3";
    let came = ground.act(script).workspace(&folder, "write", "").run().await.unwrap();
    let told = refused(&came);
    for (link, comes) in [("up", true), ("out", false), ("out2", false), ("out3", false)] {
        assert_eq!(fs_err::symlink_metadata(folder.join("b/deep").join(link)).is_ok(), comes, "{link}");
        assert_eq!(told.contains(&format!("deep/{link}\"")), !comes, "{link}: {told}");
    }
    // One that was the user's own stays as it was.
    symlink("../../..", folder.join("b/mine")).unwrap();
    ground.act("true").workspace(&folder, "write", "").done().await;
    assert!(fs_err::symlink_metadata(folder.join("b/mine")).is_ok());
});

on_ground!(everything_belongs_to_whose_folder_it_is, ground, {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = folder(&ground);
    let mine = |path: &str, user| std::os::unix::fs::chown(folder.join(path), Some(user), Some(user)).unwrap();
    for path in ["", "a", "b", "b/f"] {
        mine(path, 1000);
    }
    mine("a/f", 1001);
    let script = "echo more >> a/f; echo more >> b/f; echo n > a/n; mkdir d; echo n > d/n; ln -s f a/l";
    ground.act(script).workspace(&folder, "write", "").done().await;
    let owners = ["a/f", "b/f", "a/n", "d", "d/n", "a/l"].map(|path| {
        let about = fs_err::symlink_metadata(folder.join(path)).unwrap();
        (about.uid(), about.gid())
    });
    assert_eq!(owners, [1001, 1000, 1000, 1000, 1000, 1000].map(|user| (user, user)));
});

on_ground!(half_of_a_file_is_no_output, ground, {
    let came = ground.act("truncate -s 1099511627776 /outputs/sparse; echo ok").outputs().run().await.unwrap();
    assert!(matches!(came.end, End::LimitHit(Limit::Storage)), "{came:?}");
    assert!(!came.outputs.join("sparse").exists(), "a part of it was taken for all of it");
});

// A read-only folder keeps nobody from talking to what is at the other end.
on_ground!(a_folder_shows_no_way_to_processes_of_this_host, ground, {
    let folder = folder(&ground);
    let _listens = std::os::unix::net::UnixListener::bind(folder.join("a/socket")).unwrap();
    let script = "cat a/f; ls a; ls b";
    let came = ground.act(script).workspace(&folder, "read", "").done().await;
    assert_eq!(came.out, "AAAf\ndeep\nf\n");
    fs_err::remove_file(folder.join("a/socket")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, folder.join("b/deep/pipe"), rustix::fs::FileType::Fifo, 0o666.into(), 0)
        .unwrap();
    let came = ground.act("ls b/deep").workspace(&folder, "read", "").done().await;
    assert_eq!(came.out, "g\n");
});

// It has the same user as its PID 1, and could otherwise set what that may use.
on_ground!(a_tool_sets_its_own_priority_and_nobody_elses, ground, {
    let script = "renice -n 5 -p 0 && echo own; renice -n 5 -p 1 2>&1 || echo refused; ionice -c 3 -p 1 2>&1 || echo refused; \
                  ulimit -n 100 && echo own";
    let came = ground.act(script).done().await;
    assert_eq!((came.out.matches("own").count(), came.out.matches("refused").count()), (2, 2), "{}", came.out);
});

on_ground!(who_wants_it_stopped_while_things_come_out_does_not_wait, ground, {
    let limits =
        "[limits]\nwall = \"60s\"\nmemory = \"512MiB\"\noutput = \"1MiB\"\nstorage = \"400MiB\"\ninodes = 50\n";
    let act = ground.act("head -c 300000000 /dev/zero > /outputs/big; echo made").contract(limits).outputs();
    let (stop, heard) = (act.stop.clone(), act.heard.clone());
    let (came, ()) = tokio::join!(act.run(), async {
        until("its last word", async || !heard.lock().unwrap().out.is_empty()).await;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        stop.request();
    });
    let came = came.unwrap();
    assert_eq!(came.end, End::Interrupted);
    assert!(came.notices.iter().any(|notice| notice.kind == "outputs-lost"), "{came:?}");
});

on_ground!(as_many_entries_as_may_be_copied_come_out_again, ground, {
    let folder = folder(&ground);
    for number in 0..101_000 {
        fs_err::write(folder.join(format!("a/{number}")), "").unwrap();
    }
    let limits = "[limits]\nwall = \"120s\"\nmemory = \"768MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 50\n";
    let act = ground.act("echo changed > a/1; rm a/2; echo new > new").contract(limits);
    act.workspace(&folder, "write", "").done().await;
    assert_eq!([read(&folder, "a/1"), read(&folder, "new")], ["changed\n", "new\n"]);
    assert!(!folder.join("a/2").exists() && folder.join("a/100999").exists());
});
