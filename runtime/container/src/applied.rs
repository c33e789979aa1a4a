//! What the engine made of a request, held against the request.
//!
//! An engine, a plug-in or an operator's default may leave out or add what was
//! never asked for, and say nothing. So all that was asked has to be there, and
//! all that was not asked has to be nothing.

use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use serde_json::Value;

use crate::recipe::PID_1;

/// What an engine fills in by itself, and that gives a container nothing.
const FILLED_IN: &[&str] = &[
    "Annotations",
    "BlkioWeight",
    "Cgroup",
    "CgroupParent",
    "ConsoleSize",
    "Isolation",
    "MaskedPaths",
    "MemoryReservation",
    "MemorySwappiness",
    "OomKillDisable",
    "ReadonlyPaths",
    "Runtime",
    "ShmSize",
    "UsernsMode",
    "VolumeDriver",
];

/// What has to be out of a container's sight at the least.
const MASKED: &[&str] = &["/proc/kcore", "/proc/keys", "/sys/firmware"];
/// What has to be read-only in it at the least.
const READ_ONLY: &[&str] = &["/proc/sys", "/proc/sysrq-trigger"];

/// In what they differ: nothing, if the container is what was asked for.
pub(crate) fn differences(asked: &ContainerCreateBody, image: &str, made: &ContainerInspectResponse) -> Vec<String> {
    let mut out = Vec::new();
    let value = |value: &dyn erased::Value| value.value();
    let (own, got) = (value(&asked.host_config), value(&made.host_config));
    let empty = serde_json::Map::new();
    let (own, got) = (own.as_object().unwrap_or(&empty), got.as_object().unwrap_or(&empty));
    for (key, wanted) in own {
        let there = got.get(key).unwrap_or(&Value::Null);
        if !same(wanted, there) {
            out.push(format!("HostConfig.{key}: asked {wanted}, got {there}"));
        }
    }
    let unasked = got
        .iter()
        .filter(|(key, value)| !own.contains_key(*key) && !FILLED_IN.contains(&key.as_str()) && !nothing(value));
    out.extend(unasked.map(|(key, there)| format!("HostConfig.{key}: not asked for, got {there}")));
    if made.host_config.as_ref().and_then(|host| host.userns_mode.as_deref()) == Some("host") {
        out.push("HostConfig.UsernsMode: not asked for, got host".into());
    }
    let host = made.host_config.as_ref();
    let lists = [
        ("MaskedPaths", host.and_then(|host| host.masked_paths.as_ref()), MASKED),
        ("ReadonlyPaths", host.and_then(|host| host.readonly_paths.as_ref()), READ_ONLY),
    ];
    for (key, there, least) in lists {
        let missing = least.iter().find(|path| !there.is_some_and(|there| there.iter().any(|own| own == **path)));
        out.extend(missing.map(|path| format!("HostConfig.{key}: {path} is missing")));
    }
    // What an image wishes for is mounted beside what was asked, and stands in no
    // configuration.
    let binds: Vec<(&str, &str)> = asked
        .host_config
        .iter()
        .flat_map(|host| host.mounts.iter().flatten())
        .filter_map(|mount| Some((mount.source.as_deref()?, mount.target.as_deref()?)))
        .collect();
    for mount in made.mounts.iter().flatten() {
        let place = (mount.source.as_deref().unwrap_or_default(), mount.destination.as_deref().unwrap_or_default());
        if !binds.contains(&place) || mount.rw != Some(false) {
            out.push(format!("Mounts: not asked for, got {}", value(mount)));
        }
    }
    let config = made.config.clone().unwrap_or_default();
    let mut hold = |what: &str, asked: Value, got: Value| {
        if asked != got {
            out.push(format!("{what}: asked {asked}, got {got}"));
        }
    };
    hold("Image", image.into(), value(&made.image));
    hold("Path", PID_1.into(), value(&made.path));
    hold("Args", Value::Array(Vec::new()), value(&made.args.clone().unwrap_or_default()));
    hold("Config.User", value(&asked.user), value(&config.user));
    hold(
        "Config.Healthcheck",
        value(&asked.healthcheck.as_ref().and_then(|check| check.test.clone())),
        value(&config.healthcheck.and_then(|check| check.test)),
    );
    hold("Config.Tty", false.into(), value(&config.tty.unwrap_or_default()));
    hold("Config.StdinOnce", true.into(), value(&config.stdin_once.unwrap_or_default()));
    let labels = config.labels.unwrap_or_default();
    for (name, wanted) in asked.labels.iter().flatten() {
        hold(
            &format!("Config.Labels.{name}"),
            wanted.as_str().into(),
            labels.get(name).map_or(Value::Null, |got| got.as_str().into()),
        );
    }
    out
}

/// Whether what is there is what was wanted, beside what an engine adds to it.
fn same(wanted: &Value, there: &Value) -> bool {
    match (wanted, there) {
        // Named parts may have more parts, which are nothing.
        (Value::Object(wanted), Value::Object(there)) => {
            wanted.iter().all(|(key, value)| same(value, there.get(key).unwrap_or(&Value::Null)))
                && there.iter().all(|(key, value)| wanted.contains_key(key) || nothing(value))
        }
        (Value::Array(wanted), Value::Array(there)) => {
            wanted.len() == there.len() && wanted.iter().all(|value| there.iter().any(|there| same(value, there)))
        }
        (wanted, there) => wanted == there || (nothing(wanted) && nothing(there)),
    }
}

fn nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(values) => values.values().all(nothing),
        Value::Bool(true) => false,
    }
}

/// Values of the API's models as JSON.
mod erased {
    use serde_json::Value as Json;

    pub(super) trait Value {
        fn value(&self) -> Json;
    }

    impl<T: serde::Serialize> Value for T {
        fn value(&self) -> Json {
            serde_json::to_value(self).unwrap_or_else(|error| unreachable!("models of the API are JSON: {error}"))
        }
    }
}

#[cfg(test)]
#[path = "applied_tests.rs"]
mod tests;
