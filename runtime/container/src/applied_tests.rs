use std::collections::HashMap;

use super::*;
use crate::recipe::{Private, Recipe, Shape, Shown};

fn body() -> ContainerCreateBody {
    let shape = Shape {
        image: "sha256:00".into(),
        user: (65532, 65532),
        shown: vec![Shown { host: "/src".into(), guest: "/workspace".into() }],
        live: true,
        private: vec![Private { guest: "/tmp".into(), bytes: 4096, inodes: 10 }],
        memory: 64 << 20,
        pids: Some(10),
        cpu_millis: Some(500),
        timed: false,
        runtime: None,
    };
    let labels = HashMap::from([("a".into(), "b".into())]);
    Recipe { shape: &shape, labels, supervisor: "/state/supervisor".into() }.body()
}

/// What an engine tells of a container that it made as it was asked to.
fn faithful(asked: &ContainerCreateBody) -> Value {
    let mut host = serde_json::to_value(&asked.host_config).unwrap();
    // What engines fill in.
    for (key, value) in [
        ("MaskedPaths", serde_json::json!(["/proc/kcore", "/proc/keys", "/sys/firmware", "/proc/acpi"])),
        ("ReadonlyPaths", serde_json::json!(["/proc/sys", "/proc/sysrq-trigger"])),
        ("ShmSize", serde_json::json!(67_108_864)),
        ("CpuShares", serde_json::json!(0)),
        ("PidMode", serde_json::json!("")),
        ("Runtime", serde_json::json!("runc")),
    ] {
        host[key] = value;
    }
    serde_json::json!({
        "Image": asked.image, "Path": PID_1, "Args": [], "HostConfig": host,
        "Config": {
            "User": asked.user, "Healthcheck": { "Test": ["NONE"] }, "Tty": false, "StdinOnce": true,
            "Labels": { "a": "b", "more": "of the image's" },
        },
    })
}

fn told(made: Value) -> Vec<String> {
    let asked = body();
    differences(&asked, "sha256:00", &serde_json::from_value(made).unwrap())
}

#[test]
fn what_was_made_as_asked_differs_in_nothing() {
    assert_eq!(told(faithful(&body())), Vec::<String>::new());
}

/// Every part that is asked for is missed when it is not applied, and every
/// part that gives more is found when it is added.
#[test]
fn whatever_was_not_applied_or_was_added_is_told() {
    let asked = body();
    let own = serde_json::to_value(&asked.host_config).unwrap();
    for key in own.as_object().unwrap().keys() {
        if nothing(&own[key]) {
            continue;
        }
        let mut made = faithful(&asked);
        made["HostConfig"].as_object_mut().unwrap().remove(key);
        assert!(told(made).iter().any(|line| line.contains(key)), "{key}");
    }
    for (key, value) in [
        ("Privileged", serde_json::json!(true)),
        ("CapAdd", serde_json::json!(["SYS_ADMIN"])),
        ("Binds", serde_json::json!(["/:/host"])),
        ("Devices", serde_json::json!([{ "PathOnHost": "/dev/kvm" }])),
        ("DeviceRequests", serde_json::json!([{ "Driver": "nvidia" }])),
        ("PidMode", serde_json::json!("host")),
        ("UTSMode", serde_json::json!("host")),
        ("UsernsMode", serde_json::json!("host")),
        ("NetworkMode", serde_json::json!("bridge")),
        ("IpcMode", serde_json::json!("host")),
        ("VolumesFrom", serde_json::json!(["other"])),
        ("GroupAdd", serde_json::json!(["docker"])),
        ("Sysctls", serde_json::json!({ "net.ipv4.ip_forward": "1" })),
        ("SecurityOpt", serde_json::json!(["seccomp=unconfined"])),
        ("PortBindings", serde_json::json!({ "80/tcp": [{ "HostPort": "80" }] })),
        ("ReadonlyRootfs", serde_json::json!(false)),
        ("MemorySwap", serde_json::json!(-1)),
        ("MaskedPaths", serde_json::json!([])),
        ("ReadonlyPaths", serde_json::json!(null)),
        ("Tmpfs", serde_json::json!({ "/tmp": "" })),
        ("ExtraHosts", serde_json::json!(["a:1.2.3.4"])),
        ("Links", serde_json::json!(["x:y"])),
    ] {
        let mut made = faithful(&asked);
        made["HostConfig"][key] = value;
        let told = told(made);
        assert!(told.iter().any(|line| line.contains(key)), "{key}: {told:?}");
    }
    for (place, value) in [
        ("/Image", serde_json::json!("sha256:01")),
        ("/Path", serde_json::json!("/bin/sh")),
        ("/Args", serde_json::json!(["x"])),
        ("/Config/User", serde_json::json!("root")),
        ("/Config/Healthcheck/Test", serde_json::json!(["CMD", "x"])),
        ("/Config/Tty", serde_json::json!(true)),
        ("/Config/StdinOnce", serde_json::json!(false)),
        ("/Config/Labels/a", serde_json::json!("c")),
    ] {
        let mut made = faithful(&asked);
        *made.pointer_mut(place).unwrap() = value;
        assert_eq!(told(made).len(), 1, "{place}");
    }
    assert!(!differences(&asked, "sha256:00", &ContainerInspectResponse::default()).is_empty());
}

/// What an image wishes for stands in no configuration, and is mounted all the
/// same.
#[test]
fn what_is_mounted_beside_what_was_asked_is_told() {
    let with = |mount: Value| {
        let mut made = faithful(&body());
        made["Mounts"] = serde_json::json!([mount]);
        told(made)
    };
    let ours = serde_json::json!({ "Type": "bind", "Source": "/src", "Destination": "/workspace", "RW": false });
    assert_eq!(with(ours), Vec::<String>::new());
    for (source, destination, writable) in [
        ("/src", "/workspace", true),
        ("/other", "/workspace", false),
        ("/var/lib/docker/volumes/x/_data", "/data", true),
    ] {
        let other = serde_json::json!({ "Source": source, "Destination": destination, "RW": writable });
        assert_eq!(with(other).len(), 1, "{source} {destination}");
    }
}
