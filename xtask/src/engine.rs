//! A container engine for the tests, on a machine where none runs.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;
use crate::root::Root;

/// How long a daemon may take to be there.
const START: Duration = Duration::from_secs(60);
/// How long it may take to be gone.
const STOP: Duration = Duration::from_secs(30);
/// Where Debian's daemon is.
const DAEMON: &str = "dockerd";

/// A daemon that was started for the tests, and ends with this.
pub(crate) struct Daemon {
    child: Child,
    // Its state: gone with it.
    _folder: tempfile::TempDir,
}

/// Whether an engine answers.
pub(crate) fn answers() -> bool {
    process::succeeds(process::command("docker").args(["version", "--format", "{{.Server.APIVersion}}"]))
}

/// Starts Debian's daemon with a state of its own. `None`: this is not the place
/// for it, and that was said.
///
/// # Errors
/// Where it is there and does not start.
pub(crate) fn start(root: &Root) -> Result<Option<Daemon>> {
    if process::stdout(root.command("id").arg("-u"))?.trim() != "0" {
        println!("no container engine is started: that takes root");
        return Ok(None);
    }
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let log = fs_err::File::create(at("log"))?.into_parts().0;
    println!("starting {DAEMON} for the tests");
    // However we end, it is asked to end too.
    let mut command = root.command("setpriv");
    command
        .args(["--pdeathsig", "TERM", DAEMON])
        .arg("--data-root")
        .arg(at("data"))
        .arg("--exec-root")
        .arg(at("exec"))
        .arg("--pidfile")
        .arg(at("pid"));
    if process::succeeds(process::command("runsc").arg("--version")) {
        // A container of no network, and sockets of this host where they are shown.
        let config = serde_json::json!({ "runtimes": { "runsc": {
            "path": "runsc", "runtimeArgs": ["--network=none", "--host-uds=open"],
        } } });
        fs_err::write(at("daemon.json"), config.to_string())?;
        command.arg("--config-file").arg(at("daemon.json"));
    }
    let child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("can't start {DAEMON}"))?;
    let mut daemon = Daemon { child, _folder: folder };
    let began = Instant::now();
    while !answers() {
        if let Some(status) = daemon.child.try_wait()? {
            bail!("{DAEMON} ended ({status}): {}", last_lines(&daemon._folder.path().join("log")));
        }
        if began.elapsed() > START {
            bail!("{DAEMON} does not answer: {}", last_lines(&daemon._folder.path().join("log")));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(Some(daemon))
}

fn last_lines(log: &Path) -> String {
    let text = fs_err::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It ends its containers and its containerd when it is asked to.
        let _ = process::run(process::command("kill").arg(self.child.id().to_string()));
        let began = Instant::now();
        while began.elapsed() < STOP {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
