//! What a tool can't do, tried from inside.

use env_contracts::Code;
use glovebox_runtime::job::End;

use crate::ends::on_ground;
use crate::ground::{Ground, engine_is_here, forget, import};

on_ground!(it_is_nobody_with_nothing, ground, {
    let script = "id -u; id -g; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status | tr -d '\\t'; pwd; echo $HOME; \
                  touch $HOME/x && echo home; touch /x 2>&1; ls /dev/shm; hostname";
    let came = ground.act(script).done().await;
    let lines: Vec<&str> = came.out.lines().collect();
    assert_eq!(lines[..2], ["65532", "65532"]);
    for line in ["CapBnd:0000000000000000", "CapEff:0000000000000000", "NoNewPrivs:1", "Seccomp:2", "/tmp", "home"] {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    assert!(came.out.contains("Read-only file system"), "{}", came.out);
});

on_ground!(there_is_no_network_and_no_engine, ground, {
    let script = "ls /sys/class/net; wc -l < /proc/net/route; ls /var/run/docker.sock /run/docker.sock 2>&1; true";
    let came = ground.act(script).done().await;
    // The loopback, and no way to anywhere.
    assert!(came.out.starts_with("lo\n1\n"), "{}", came.out);
    assert_eq!(came.out.matches("No such file").count(), 2, "{}", came.out);
});

// A62: nothing of this process's environment.
on_ground!(its_environment_is_its_own, ground, {
    let came = ground.act("env").env("OWN", "a=b c").done().await;
    let mut lines: Vec<&str> =
        came.out.lines().filter(|line| !line.starts_with("PWD=") && !line.starts_with("SHLVL=")).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["HOME=/tmp", "OWN=a=b c", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]);
});

on_ground!(pid_1_can_not_be_read_traced_or_ended, ground, {
    let script = "for what in fd mem environ root cwd maps; do \
                    (cat /proc/1/$what || ls /proc/1/$what/) >/dev/null 2>&1 && echo read $what; done; \
                  ls -l /proc/self/fd | grep -c -E ' [3-9] -> ' ; \
                  for signal in TERM INT SEGV PIPE KILL STOP HUP USR1; do kill -$signal 1; done; sleep 0.3; echo alive";
    let came = ground.act(script).done().await;
    assert!(!came.out.contains("read "), "{}", came.out);
    assert_eq!(came.out.lines().next(), Some("0"), "{}", came.out);
    assert!(came.out.ends_with("alive\n"), "{}", came.out);
});

on_ground!(namespaces_and_mounts_are_refused, ground, {
    let script = "busybox unshare -U true 2>&1; busybox unshare -m true 2>&1; mount -t tmpfs none /tmp 2>&1; \
                  echo 1 > /proc/sys/kernel/panic 2>&1; cat /proc/kcore 2>&1 | head -c 10; cat /proc/keys 2>&1 | head -c 100; true";
    let came = ground.act(script).done().await;
    assert_eq!(
        came.out.matches("Operation not permitted").count() + came.out.matches("permission denied").count(),
        3,
        "{}",
        came.out
    );
    assert!(!came.out.contains("keyring"), "{}", came.out);
});

// Volumes, health checks, users and commands of an image are not obeyed.
on_ground!(what_an_image_wants_of_itself_is_nothing, ground, {
    let changes = [
        "VOLUME /data",
        "HEALTHCHECK CMD touch /tmp/health",
        "USER root",
        "ENTRYPOINT [\"/bin/false\"]",
        "CMD [\"x\"]",
        "ENV A=image",
    ];
    import(&ground.docker, "glovebox-test/wishes:1", &changes).await;
    let image = ground.containers.find_image("glovebox-test/wishes:1").await.unwrap();
    let came = ground
        .act("id -u; echo $A; touch /data/x && echo volume; df /data | grep -c tmpfs; sleep 1; ls /tmp")
        .image(image)
        .run()
        .await
        .unwrap();
    let volumes = ground
        .docker
        .list_volumes(None::<bollard::query_parameters::ListVolumesOptions>)
        .await
        .unwrap()
        .volumes
        .unwrap_or_default();
    forget(&ground.docker, "glovebox-test/wishes:1").await;
    assert_eq!(came.out, "65532\nimage\nvolume\n1\n", "{came:?}");
    assert!(volumes.is_empty(), "{volumes:?}");
});

on_ground!(what_the_engine_lacks_is_refused, ground, {
    let problem = ground.act("true").contract("[limits]\nwall = \"5s\"\nmemory = \"64MiB\"\noutput = \"1MiB\"\nstorage = \"1MiB\"\ninodes = 9\n[isolation]\nwalls = 2\n").run().await.unwrap_err();
    assert!(problem.code == Code::ContractUnsatisfied && problem.message.contains("isolation.walls"), "{problem}");
    let mut gone = ground.image.clone();
    gone.image = "0".repeat(64).parse().unwrap();
    let problem = ground.act("true").image(gone).run().await.unwrap_err();
    assert_eq!(problem.code, Code::ImageUnknown, "{problem}");
    let problem = ground.containers.find_image("no-such-image:1").await.unwrap_err();
    assert_eq!(problem.code, Code::ImageUnknown, "{problem}");
});

on_ground!(a_limit_that_the_kernel_does_not_have_is_refused, ground, {
    // 6 MiB is the least that engines take; a half of a page is not kept.
    let limits = "[limits]\nwall = \"5s\"\nmemory = \"1MiB\"\noutput = \"1MiB\"\nstorage = \"64KiB\"\ninodes = 9\n";
    let came = ground.act("true").contract(limits).run().await.unwrap();
    let End::Refused(problem) = came.end else { panic!("{:?}", came.end) };
    assert!(problem.message.contains("emory"), "{problem}");
});
