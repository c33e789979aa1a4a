//! Where a tool's server is: elsewhere, over HTTP, or here, in a container.

use std::path::PathBuf;

use env_contracts::text::escaped_line;
use env_contracts::{
    Access, ByteSize, Code, Contract, Digest, Drifted, Egress, Limits, ManifestEntry, Mount, Network, Os, Problem,
    Source, Tls,
};
use rmcp::model::Tool;

use super::Server;
use super::adopt::{CONNECTIONS, MAX_ANSWER, MAX_PASSING};
use super::pinned::Pinned;
use super::program::Program;

/// Where a tool's server is.
pub(super) enum Place {
    /// Nothing of it runs here.
    Elsewhere(Server),
    /// It runs in a container.
    Here(Program),
}

impl Place {
    /// What tells it from others, for people: what stands after "the MCP server".
    ///
    /// # Errors
    /// `upstream-address`.
    pub(super) fn at(&self) -> Result<String, Problem> {
        Ok(match self {
            Self::Elsewhere(server) => format!("at {}", server.host()?),
            Self::Here(program) => program.at(),
        })
    }

    /// How one of its tools is called.
    pub(super) fn entry(&self, tool: &str) -> ManifestEntry {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        match self {
            Self::Elsewhere(server) => ManifestEntry::Mcp {
                url: server.url.clone(),
                tool: tool.to_owned(),
                header_file: path(&server.header_file),
                bearer_file: path(&server.bearer_file),
                private: server.private,
            },
            Self::Here(program) => ManifestEntry::McpStdio {
                command: program.command.clone(),
                tool: tool.to_owned(),
                env: program.env.clone(),
            },
        }
    }

    /// What one of its tools may do. What it answers with may become artifacts.
    pub(super) fn contract(&self) -> Result<Contract, Problem> {
        let wrong = |why: String| Problem::new(Code::UpstreamAddress, why);
        let guest = "/outputs".parse().map_err(wrong)?;
        let outputs = Mount { guest, source: Source::Outputs, access: Access::Write, hide: None };
        let mut contract = Contract { filesystem: vec![outputs], ..Contract::default() };
        match self {
            // Reach its server.
            Self::Elsewhere(server) => {
                let (host, port) = server.place()?;
                let egress = Egress {
                    host: host.parse().map_err(wrong)?,
                    ports: vec![port],
                    methods: None,
                    paths: None,
                    max: Some(ByteSize(MAX_PASSING)),
                    connections: Some(CONNECTIONS),
                    tls: Tls::Tunnel,
                };
                contract.network = Network { egress: vec![egress], ingress: Vec::new() };
                // What the answer needs in memory; nothing else is run.
                contract.limits = Limits { memory: Some(ByteSize(4 * MAX_ANSWER)), ..Limits::default() };
            }
            // Nothing outside of its image.
            Self::Here(program) => {
                contract.platform.os = Some(Os::Linux);
                contract.platform.image = Some(program.image.clone());
                contract.platform.runtime.clone_from(&program.runtime);
                contract.limits = program.limits.clone();
            }
        }
        Ok(contract)
    }
}

/// How what a server lists differs from what was registered.
pub(super) fn drift(
    place: &Place,
    tool: &str,
    pinned: &Pinned,
    digest: &Digest,
    listed: &[Tool],
) -> Result<Option<Drifted>, Problem> {
    let found = only(place, tool, listed)?;
    let now = Pinned::of(place, found);
    let sha256 = Digest::of(&now.bytes()?);
    if sha256 == *digest {
        return Ok(None);
    }
    let mut changed = pinned.changed(&now);
    if changed.is_empty() {
        changed.push("its server says something else of it than was registered".to_owned());
    }
    Ok(Some(Drifted { sha256, changed }))
}

/// The one tool of that name in a list.
///
/// # Errors
/// `upstream-invalid` where there is none, or more than one.
pub(super) fn only<'a>(place: &Place, tool: &str, listed: &'a [Tool]) -> Result<&'a Tool, Problem> {
    let mut same = listed.iter().filter(|known| known.name == tool);
    match (same.next(), same.next()) {
        (Some(found), None) => Ok(found),
        (found, _) => {
            let times = if found.is_some() { "more than once" } else { "no more" };
            let message = format!("the MCP server {} lists `{}` {times}", place.at()?, escaped_line(tool));
            Err(Problem::new(Code::UpstreamInvalid, message)
                .with_help("add the server again to register what it has now, or remove the tool"))
        }
    }
}
