//! Servers of others as capabilities: what an MCP server elsewhere offers is
//! registered here, pinned to what the server said of it, and called like any
//! other tool: planned, decided on, asked about, recorded.
//!
//! What it is: [`look`], which lists a server's tools and makes manifests of
//! them, and [`UpstreamBackend`], which calls one. What it is not: no sandbox.
//! Nothing of a server runs here, and what it does where it runs nobody here
//! sees: every such tool has external effects, and what it answers is a
//! stranger's word.
//!
//! A server that speaks over its standard streams runs here, but not by this
//! crate: somebody who has containers brings [`Programs`]. [`look_inside`] and
//! [`ProgramBackend`] are the same for these.

mod adopt;
mod answer;
mod backend;
mod calling;
mod connection;
mod enforce;
mod headers;
mod inside;
mod pinned;
mod pipe;
mod place;
mod program;
mod wire;

pub use adopt::{Adopted, Adoption};
pub use backend::UpstreamBackend;
pub use inside::ProgramBackend;
pub use program::{Life, Program, Programs, Running, compare as compare_inside, look as look_inside};

use std::path::{Path, PathBuf};

use env_contracts::text::escaped_line;
use env_contracts::{CapabilityName, Code, Digest, Drifted, ManifestEntry, Problem};
use url::{Host, Url};
use zeroize::Zeroizing;

use connection::Connection;
use pinned::Pinned;
use place::{Place, drift};

/// A server, as an operator names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// Its endpoint.
    pub url: String,
    /// The file with the headers that are sent along.
    pub header_file: Option<PathBuf>,
    /// The file with the bearer token that is sent along.
    pub bearer_file: Option<PathBuf>,
    /// Whether its name may lead to an address of this host or of a private
    /// network.
    pub private: bool,
}

/// How servers are reached, and where it is read what is sent along.
pub trait Outside: Send + Sync {
    /// A client for one server: it follows nothing elsewhere, goes through no
    /// proxy, and connects to addresses alone that were checked.
    ///
    /// # Errors
    /// `upstream-address`, and `backend-error` where this host has no TLS.
    fn client(&self, url: &str, private: bool) -> Result<reqwest::Client, Problem>;

    /// What a file holds that is nobody else's to read.
    ///
    /// # Errors
    /// `upstream-header`.
    fn secret(&self, path: &Path) -> Result<Zeroizing<String>, Problem>;
}

impl Server {
    /// The server that a registered tool is at, and the tool's name there.
    fn of(entry: &ManifestEntry) -> Option<(Self, &str)> {
        let ManifestEntry::Mcp { url, tool, header_file, bearer_file, private } = entry else { return None };
        let path = |path: &Option<String>| path.as_ref().map(PathBuf::from);
        let (header_file, bearer_file) = (path(header_file), path(bearer_file));
        Some((Self { url: url.clone(), header_file, bearer_file, private: *private }, tool))
    }

    fn parsed(&self) -> Result<Url, Problem> {
        Url::parse(&self.url).map_err(|error| {
            let message = format!("`{}` is no address: {error}", escaped_line(&self.url));
            Problem::new(Code::UpstreamAddress, message)
        })
    }

    /// Its name, for people.
    ///
    /// # Errors
    /// `upstream-address`.
    pub fn host(&self) -> Result<String, Problem> {
        Ok(self.place()?.0)
    }

    /// The name or address, and the port.
    fn place(&self) -> Result<(String, u16), Problem> {
        let url = self.parsed()?;
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(Problem::new(Code::UpstreamAddress, format!("`{}` names no host", self.url))),
        };
        Ok((host, url.port_or_known_default().unwrap_or(443)))
    }
}

/// Lists a server's tools, and makes manifests of them under names that begin
/// with `prefix`. Nothing is registered by that.
///
/// # Errors
/// `upstream-address`, `upstream-header`, `upstream-unreachable`,
/// `upstream-invalid`.
pub async fn look(server: &Server, prefix: &CapabilityName, outside: &dyn Outside) -> Result<Adoption, Problem> {
    let connection = Connection::open(server, adopt::MAX_ANSWER, adopt::MAX_PASSING, outside).await?;
    let listed = connection.tools().await;
    connection.close().await;
    Adoption::of(&Place::Elsewhere(server.clone()), prefix, &listed?)
}

/// Whether a server says of a registered tool what it said then; `None` where
/// it does.
///
/// # Errors
/// As of [`look`]; `state-unavailable` where what was registered is not what it
/// was.
pub async fn compare(
    entry: &ManifestEntry,
    artifact: &[u8],
    digest: &Digest,
    outside: &dyn Outside,
) -> Result<Option<Drifted>, Problem> {
    let Some((server, tool)) = Server::of(entry) else { return Ok(None) };
    let pinned = Pinned::read(artifact, digest)?;
    let connection = Connection::open(&server, adopt::MAX_ANSWER, adopt::MAX_PASSING, outside).await?;
    let listed = connection.tools().await;
    connection.close().await;
    drift(&Place::Elsewhere(server), tool, &pinned, digest, &listed?)
}

/// What a server claims of the effects of a registered tool, escaped. It
/// counts for nothing.
///
/// # Errors
/// `state-unavailable` where what was registered is not what it was.
pub fn claims(artifact: &[u8], digest: &Digest) -> Result<Vec<String>, Problem> {
    Ok(Pinned::read(artifact, digest)?.claims())
}
