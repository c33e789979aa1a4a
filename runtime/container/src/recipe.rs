//! What a container is asked to be.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, Mount,
    MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits, RestartPolicy,
    RestartPolicyNameEnum,
};

use crate::seccomp;

/// Where our PID 1 lies in every container.
pub(crate) const PID_1: &str = "/.glovebox-supervisor";
/// Who a tool is where it has no folder of somebody's: nobody on this host.
pub(crate) const NOBODY: u32 = 65532;
/// Open files of one process. Programs that need more are servers.
const FILES: (i64, i64) = (1024, 4096);
/// The kernel ends what is in a container before it ends anything else.
const OOM_SCORE: i64 = 500;
/// Processes where a contract and its ceiling say nothing: no container may take
/// all that the host has.
const PIDS: u32 = 1024;
/// Our own PID 1 is a process too.
const OURS: u32 = 1;

/// A folder in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Private {
    /// Where.
    pub(crate) guest: String,
    /// How many bytes it may hold.
    pub(crate) bytes: u64,
    /// How many entries.
    pub(crate) inodes: u64,
}

/// A folder or file of this host, to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shown {
    /// Where it lies here.
    pub(crate) host: String,
    /// Where it is seen.
    pub(crate) guest: String,
}

/// What differs from container to container; the rest is the same for all. Two
/// of one shape can stand for each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) image: String,
    pub(crate) user: (u32, u32),
    pub(crate) shown: Vec<Shown>,
    /// Whether something of the user's is shown as it lies on this host.
    pub(crate) live: bool,
    pub(crate) private: Vec<Private>,
    pub(crate) memory: u64,
    pub(crate) pids: Option<u32>,
    pub(crate) cpu_millis: Option<u32>,
    /// Whether the processor time that is used has to be known.
    pub(crate) timed: bool,
    pub(crate) runtime: Option<String>,
}

impl Shape {
    /// How many processes the kernel is told to allow.
    pub(crate) fn pids(&self) -> u64 {
        u64::from(self.pids.unwrap_or(PIDS).saturating_add(OURS))
    }
}

/// A container to be.
#[derive(Debug, Clone)]
pub(crate) struct Recipe<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) labels: HashMap<String, String>,
    /// The program that is PID 1, on this host.
    pub(crate) supervisor: String,
}

impl Recipe<'_> {
    /// The container, as the engine is asked for it.
    pub(crate) fn body(&self) -> ContainerCreateBody {
        let shape = self.shape;
        let (uid, gid) = shape.user;
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let limit =
            |name: &str, soft, hard| ResourcesUlimits { name: Some(name.into()), soft: Some(soft), hard: Some(hard) };
        let bind = |host: &str, guest: &str| Mount {
            typ: Some(MountType::BIND),
            source: Some(host.into()),
            target: Some(guest.into()),
            read_only: Some(true),
            bind_options: Some(MountBindOptions {
                propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                // What is mounted below is no part of it; it would not be
                // read-only either.
                non_recursive: Some(true),
                ..MountBindOptions::default()
            }),
            ..Mount::default()
        };
        let mut mounts = vec![bind(&self.supervisor, PID_1)];
        mounts.extend(shape.shown.iter().map(|shown| bind(&shown.host, &shown.guest)));
        let tmpfs = shape.private.iter().map(|folder| {
            let Private { guest, bytes, inodes } = folder;
            // One entry is the folder itself.
            let entries = inodes.saturating_add(1);
            let options =
                format!("rw,exec,nosuid,nodev,size={bytes},nr_inodes={entries},mode=0700,uid={uid},gid={gid}");
            (guest.clone(), options)
        });
        let host = HostConfig {
            mounts: Some(mounts),
            tmpfs: Some(tmpfs.collect()),
            memory: Some(number(shape.memory)),
            memory_swap: Some(number(shape.memory)),
            nano_cpus: shape.cpu_millis.map(|millis| i64::from(millis) * 1_000_000),
            pids_limit: Some(number(shape.pids())),
            ulimits: Some(vec![limit("nofile", FILES.0, FILES.1), limit("core", 0, 0)]),
            oom_score_adj: Some(OOM_SCORE),
            network_mode: Some("none".into()),
            // No shared memory but what is a private folder.
            ipc_mode: Some("none".into()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            cap_drop: Some(vec!["ALL".into()]),
            security_opt: Some(vec!["no-new-privileges".into(), format!("seccomp={}", seccomp::profile(shape.live))]),
            readonly_rootfs: Some(true),
            privileged: Some(false),
            init: Some(false),
            auto_remove: Some(false),
            runtime: shape.runtime.clone(),
            // What a tool says goes through us; the engine keeps nothing.
            log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
            restart_policy: Some(RestartPolicy { name: Some(RestartPolicyNameEnum::NO), maximum_retry_count: None }),
            ..HostConfig::default()
        };
        ContainerCreateBody {
            image: Some(shape.image.clone()),
            hostname: Some("glovebox".into()),
            user: Some(format!("{uid}:{gid}")),
            entrypoint: Some(vec![PID_1.into()]),
            working_dir: Some("/".into()),
            // The image's own would start processes that nobody asked for.
            healthcheck: Some(HealthConfig { test: Some(vec!["NONE".into()]), ..HealthConfig::default() }),
            labels: Some(self.labels.clone()),
            tty: Some(false),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(true),
            // Its input ends with us.
            stdin_once: Some(true),
            stop_signal: Some("SIGKILL".into()),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        }
    }
}
