//! The server of this state folder, for doors that need one: where it is, and
//! starting it where none runs.

use std::io::{Read as _, Seek as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use env_contracts::{Code, Problem};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use glovebox_runtime::{io_problem, read_plain};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, test_kill_process};
use serde::Deserialize;

use crate::config::Config;
use crate::places::Places;
use crate::terminal::escaped_line;

/// The longest address that a server says, in bytes.
const MAX_SERVED: u64 = 4096;

/// How long a server may take to say where it is: the first start of a version
/// opens and checks the store, on a slow disk.
const START: Duration = Duration::from_secs(30);

/// How often it is looked for until then.
const LOOK: Duration = Duration::from_millis(20);

/// How much of what it complains about is repeated, in bytes.
const MAX_SAID: u64 = 2000;

/// What a running server says of itself.
#[derive(Deserialize)]
struct Served {
    url: String,
    pid: i32,
}

/// The address of the server that runs over this state folder, if one does.
pub(crate) fn url(places: &Places) -> Option<String> {
    let text = read_plain(&places.serving(), MAX_SERVED).ok()?;
    let served: Served = serde_json::from_str(&text).ok()?;
    // Another process may have its number by now: then the page is not found,
    // and the command that is named beside it works.
    test_kill_process(Pid::from_raw(served.pid)?).ok()?;
    Some(served.url.trim_end_matches('/').to_owned())
}

/// That an agent is here, for as long as this is kept: a server that was started
/// for agents does not end meanwhile.
pub(crate) struct Here(#[expect(dead_code, reason = "the lock goes with it")] fs_err::File);

impl Here {
    /// Says so.
    ///
    /// # Errors
    /// Those of the state folder.
    pub(crate) fn say(places: &Places) -> Result<Self, Problem> {
        let failed =
            |error: &std::io::Error| io_problem("cannot say that an agent is here", Code::StateUnavailable, error);
        let file = agents(places).map_err(|error| failed(&error))?;
        flock(&file, FlockOperation::LockShared).map_err(|errno| failed(&errno.into()))?;
        Ok(Self(file))
    }

    /// Whether an agent is, anywhere.
    pub(crate) fn anybody(places: &Places) -> bool {
        let free = agents(places).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
        !free
    }
}

fn agents(places: &Places) -> std::io::Result<fs_err::File> {
    fs_err::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(places.agents())
}

/// Finds the server or starts one, beside what this process does, and says once
/// on standard error where people decide; or why nowhere.
pub(crate) fn find_or_start(config: &Config, places: Places) {
    let listen = config.get::<SocketAddr>("serve.listen");
    let started = std::thread::Builder::new().name("server".into()).spawn(move || {
        let line = match found(&places, listen) {
            Ok(url) => {
                format!("glovebox mcp: people decide at {url}; `glovebox inbox` prints a code that lets a browser in")
            }
            Err(why) => format!(
                "glovebox mcp: no server could be started, so people decide with `glovebox approvals`: {}",
                escaped_line(&why)
            ),
        };
        let _ = writeln!(anstream::stderr().lock(), "{}", crate::print::pasted(&line));
    });
    // Without a thread there is no server, and this door works all the same.
    drop(started);
}

fn found(places: &Places, listen: SocketAddr) -> Result<String, String> {
    if let Some(url) = url(places) {
        return Ok(url);
    }
    let mut said = tempfile::tempfile().map_err(|error| error.to_string())?;
    let child = start(places, loopback(listen), &said);
    let mut child = child.map_err(|error| error.to_string())?;
    let mut left = START.as_millis() / LOOK.as_millis();
    loop {
        let ended = child.try_wait().map_err(|error| error.to_string())?;
        // Where two start one, the other's is as good.
        if let Some(url) = url(places) {
            if ended.is_none() {
                let _ = std::thread::Builder::new().name("server".into()).spawn(move || child.wait());
            }
            return Ok(url);
        }
        // The one that was before us may have said nothing yet.
        let others = ended.is_some() && places.socket().exists();
        if (ended.is_some() && !others) || left == 0 {
            let mut complained = String::new();
            let _ = said.rewind().and_then(|()| said.take(MAX_SAID).read_to_string(&mut complained));
            let error = complained.lines().find(|line| line.starts_with("error"));
            return Err(error.unwrap_or("it did not say in time where it is").to_owned());
        }
        left -= 1;
        std::thread::sleep(LOOK);
    }
}

/// Where one that nobody asked for listens: as configured, where that is on the
/// loopback and free.
fn loopback(configured: SocketAddr) -> SocketAddr {
    let free = configured.ip().is_loopback() && TcpListener::bind(configured).is_ok();
    if free { configured } else { SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
}

/// Starts this program as a server that outlives us.
#[expect(clippy::disallowed_methods, reason = "the server is this program once more")]
fn start(places: &Places, listen: SocketAddr, said: &std::fs::File) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("--state").arg(&places.state);
    command.args(["serve", "--for-agents", "--listen"]).arg(listen.to_string());
    // It is the user's, whichever agent this door is for.
    command.env_remove("GLOVEBOX_AGENT");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?).spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_needed_while_any_agent_is_here() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places { state: dir.path().to_owned() };
        assert!(!Here::anybody(&places));
        let (first, second) = (Here::say(&places).unwrap(), Here::say(&places).unwrap());
        assert!(Here::anybody(&places));
        drop(first);
        assert!(Here::anybody(&places));
        drop(second);
        assert!(!Here::anybody(&places));
    }
}
