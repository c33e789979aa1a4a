//! The engine: where it is, whether it answers, and what it can do.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};
use env_contracts::{Code, Digest, Problem};
use tokio::sync::OnceCell;

use crate::error::{problem, silent};
use crate::image::Image;

/// How long the engine may take to say that it is there.
const HELLO: Duration = Duration::from_secs(5);
/// How long it may take for what it does at once.
pub(crate) const QUICK: Duration = Duration::from_secs(15);
/// How long it may take to make or to start a container: many at once take
/// their time.
pub(crate) const SLOW: Duration = Duration::from_secs(60);
/// What the client allows for one request, above all of ours.
const REQUEST_SECONDS: u64 = 120;

/// Where an engine listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket(PathBuf);

impl Socket {
    /// This path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The first of the usual places that is there; the system's where none is.
    /// `host` is what `DOCKER_HOST` says, `runtime` what `XDG_RUNTIME_DIR` does.
    ///
    /// # Errors
    /// `config-invalid` for a host that is no Unix socket.
    pub fn find(host: Option<&str>, runtime: Option<&Path>) -> Result<Self, Problem> {
        if let Some(host) = host.filter(|host| !host.is_empty()) {
            let path = host.strip_prefix("unix://").filter(|path| path.starts_with('/'));
            return path.map(Self::at).ok_or_else(|| {
                Problem::new(Code::ConfigInvalid, format!("$DOCKER_HOST is `{host}`: only a Unix socket is spoken to"))
                    .with_help("set `container.socket` to the path of one; a tunnel can bring it here: `ssh -L`")
            });
        }
        let own = runtime.map(|folder| folder.join("docker.sock"));
        let system = PathBuf::from("/var/run/docker.sock");
        Ok(Self(own.filter(|path| path.exists()).unwrap_or(system)))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// What is known of an engine.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Its version.
    pub version: String,
    /// The version of its API that is spoken.
    pub api: String,
    /// The runtimes that it has, and the one that it takes by itself.
    pub runtimes: Vec<String>,
    /// The runtime that it takes by itself.
    pub default_runtime: String,
    /// How many processors it has.
    pub cpus: u32,
    /// Its architecture, as engines call it: `x86_64`.
    pub arch: String,
}

/// An engine, spoken to when it is first needed.
pub struct Engine {
    socket: Socket,
    client: OnceCell<(Docker, Facts)>,
    /// What was looked up already: a digest never means anything else.
    pub(crate) images: Mutex<HashMap<Digest, Image>>,
}

impl Engine {
    /// The engine behind a socket. Nothing is asked yet.
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, client: OnceCell::new(), images: Mutex::default() }
    }

    /// Where it listens.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// What it is. Asked once.
    ///
    /// # Errors
    /// `backend-unavailable`: it is not there, or does not answer in time.
    pub async fn facts(&self) -> Result<&Facts, Problem> {
        self.client.get_or_try_init(|| self.connect()).await.map(|(_, facts)| facts)
    }

    pub(crate) async fn client(&self) -> Result<&Docker, Problem> {
        self.client.get_or_try_init(|| self.connect()).await.map(|(client, _)| client)
    }

    async fn connect(&self) -> Result<(Docker, Facts), Problem> {
        let path = self.socket.path().display();
        let help = "install and start Docker (Debian: `apt-get install docker.io`), or set `container.socket`; \
                    whoever asks has to be allowed to use the socket (group `docker`)";
        let doing = format!("at `{path}`");
        let absent = |error: &Error| {
            Problem::new(Code::BackendUnavailable, format!("no container engine can be reached at `{path}`: {error}"))
                .with_help(help)
        };
        let address = self.socket.path().to_string_lossy().into_owned();
        let client = Docker::connect_with_unix(&address, REQUEST_SECONDS, API_DEFAULT_VERSION)
            .map_err(|error| absent(&error))?;
        let hello = async {
            let client = client.negotiate_version().await.map_err(|error| absent(&error))?;
            let info = client.info().await.map_err(|error| problem(&doing, &error))?;
            let version = client.version().await.map_err(|error| problem(&doing, &error))?;
            let mut runtimes: Vec<String> = info.runtimes.unwrap_or_default().into_keys().collect();
            runtimes.sort();
            let facts = Facts {
                version: version.version.unwrap_or_default(),
                api: client.client_version().to_string(),
                runtimes,
                default_runtime: info.default_runtime.unwrap_or_default(),
                cpus: info.ncpu.and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
                arch: info.architecture.unwrap_or_default(),
            };
            Ok((client, facts))
        };
        match tokio::time::timeout(HELLO, hello).await {
            Ok(result) => result,
            Err(_) => Err(silent(&doing, Some(HELLO))),
        }
    }
}

/// Waits for the engine, but not for ever.
pub(crate) async fn within<T>(
    doing: &str,
    time: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(time, call).await {
        Ok(result) => result.map_err(|error| problem(doing, &error)),
        Err(_) => Err(silent(doing, Some(time))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let system = Socket::at("/var/run/docker.sock");
        assert_eq!(Socket::find(None, Some(folder.path())), Ok(system.clone()));
        assert_eq!(Socket::find(Some(""), None), Ok(system));
        fs_err::write(folder.path().join("docker.sock"), "").unwrap();
        assert_eq!(Socket::find(None, Some(folder.path())), Ok(Socket::at(folder.path().join("docker.sock"))));
        assert_eq!(Socket::find(Some("unix:///a/b"), Some(folder.path())), Ok(Socket::at("/a/b")));
        for host in ["tcp://127.0.0.1:2375", "ssh://me@there", "unix://relative"] {
            assert_eq!(Socket::find(Some(host), None).unwrap_err().code, Code::ConfigInvalid, "{host}");
        }
    }
}
