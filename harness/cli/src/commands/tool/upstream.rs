//! `glovebox tool add --mcp-http URL`: what an MCP server elsewhere offers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use env_contracts::{CapabilityName, Code, Contract, Drifted, Manifest, Problem, Version, Wanted};
use glovebox_mcp::upstream::{self, Adopted, Adoption, Server};
use glovebox_plane::{Added, Registry, Tool};
use glovebox_runtime::{ArtifactBytes, Clock as _, SystemClock, algebra};
use glovebox_server::Ways;
use url::Url;

use crate::args::ToolAddArgs;
use crate::config::Config;
use crate::places::Places;
use crate::terminal::{escaped, escaped_line};
use crate::{ceiling, house, who};

/// How often a version is raised that somebody else takes at the same time, or
/// that was removed.
const TRIES: u32 = 1000;

/// Registers what a server at this address offers.
pub(super) fn add(url: &str, args: &ToolAddArgs, config: &Config) -> Result<ExitCode, Problem> {
    // Who names a server says where data may go.
    who::person(config)?;
    let whole =
        |path: &Option<PathBuf>| path.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let server = Server {
        url: url.to_owned(),
        header_file: whole(&args.header_file),
        bearer_file: whole(&args.bearer_file),
        private: args.private,
    };
    let prefix = prefix(args.name.as_deref(), url)?;
    let places = Places::of(config);
    let registry = house::registry(&places);
    places.make()?;
    ours(&registry, &prefix)?;
    let runtime = house::tokio_runtime()?;
    let adoption = runtime.block_on(upstream::look(&server, &prefix, &Ways::of_this_host()))?;
    announce(&registry, &adoption, &format!("at {}", server.host()?))?;
    if let Some(adopted) = adoption.tools.first() {
        hint(&adopted.manifest.contract, config, &mut anstream::stderr().lock())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Registers what a server offers, and says so.
///
/// # Errors
/// `upstream-invalid` where it is nothing, and those of the registry.
pub(super) fn announce(registry: &Registry, adoption: &Adoption, server: &str) -> Result<(), Problem> {
    let mut err = anstream::stderr().lock();
    for left_out in &adoption.left_out {
        let _ = writeln!(err, "left out {left_out}");
    }
    if adoption.tools.is_empty() {
        let message = format!("the MCP server {server} offers nothing that can be registered");
        return Err(Problem::new(Code::UpstreamInvalid, message));
    }
    for adopted in &adoption.tools {
        let (tool, added) = register(registry, adopted)?;
        let said = match added {
            Added::New => "registered",
            Added::Known => "already registered:",
        };
        let _ = writeln!(err, "{said} {}", tool.manifest.capability());
        let _ = writeln!(err, "  {}", escaped(&tool.manifest.description).trim().replace('\n', "\n  "));
    }
    let _ = writeln!(err, "the descriptions are the server's words, and agents read them: look at them");
    Ok(())
}

/// What the names begin with: as it was said, or after the server.
fn prefix(named: Option<&str>, url: &str) -> Result<CapabilityName, Problem> {
    let usage = |error: String| Problem::new(Code::Usage, error);
    if let Some(name) = named {
        return name.parse().map_err(usage);
    }
    let host = Url::parse(url).ok().and_then(|url| url.host_str().and_then(CapabilityName::slug));
    let host =
        host.ok_or_else(|| Problem::new(Code::UpstreamAddress, format!("`{}` is no address", escaped_line(url))))?;
    host.parse().map_err(|error: String| usage(error).with_help("say what the names are to begin with: --name PREFIX"))
}

/// What nobody else's names begin with, beside those of built-in tools: they are
/// read, and profiles name them, as what comes with Glovebox.
const OURS: [&str; 2] = ["glovebox", "native"];

/// Refuses names that would be taken for ours, before anybody is asked.
pub(super) fn ours(registry: &Registry, prefix: &CapabilityName) -> Result<(), Problem> {
    let first = |name: &CapabilityName| name.as_str().split('.').next().unwrap_or_default().to_owned();
    let mine = first(prefix);
    let listing = registry.list()?;
    let builtin = listing.tools.iter().any(|tool| tool.builtin && first(&tool.capability.name) == mine);
    if builtin || OURS.contains(&mine.as_str()) {
        return Err(Problem::new(Code::ToolReserved, format!("names that begin with `{mine}` are Glovebox's own"))
            .with_help("choose what the names begin with: --name PREFIX"));
    }
    Ok(())
}

/// Registers a tool, under a higher version where it is not what it was.
fn register(registry: &Registry, adopted: &Adopted) -> Result<(Tool, Added), Problem> {
    let mut manifest = adopted.manifest.clone();
    let newest = registry.get(&Wanted { name: manifest.name.clone(), version: None });
    let mut major = 1;
    if let Ok(newest) = newest {
        if newest.builtin {
            return Err(Problem::new(Code::ToolReserved, format!("`{}` is a built-in tool", manifest.name))
                .with_help("choose what the names begin with: --name PREFIX"));
        }
        let same = Manifest { version: newest.manifest.version.clone(), ..manifest.clone() };
        if same == newest.manifest && newest.registered.digest == env_contracts::Digest::of(&adopted.pinned) {
            manifest.version = newest.manifest.version.clone();
            return written(registry, &manifest, adopted);
        }
        major = next(&newest.manifest.version);
    }
    for major in major..major.saturating_add(TRIES) {
        manifest.version = format!("{major}.0.0").parse().map_err(|error| Problem::new(Code::Usage, error))?;
        match written(registry, &manifest, adopted) {
            // It was removed, and stays taken.
            Err(problem) if problem.code == Code::ToolConflict => {}
            done => return done,
        }
    }
    Err(Problem::new(Code::ToolConflict, format!("no version of `{}` is free", manifest.name)))
}

fn written(registry: &Registry, manifest: &Manifest, adopted: &Adopted) -> Result<(Tool, Added), Problem> {
    let text = toml::to_string(manifest).map_err(|error| {
        Problem::new(Code::ManifestInvalid, format!("the manifest of `{}` can't be written: {error}", manifest.name))
    })?;
    registry.add(&text, &adopted.pinned, SystemClock.now())
}

/// What changed is not known to be compatible.
fn next(version: &Version) -> u32 {
    let major = version.as_str().split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.unwrap_or_default().saturating_add(1)
}

/// What an operator has to write so that it may be called.
fn hint(contract: &Contract, config: &Config, err: &mut impl std::io::Write) -> Result<(), Problem> {
    let bounds = algebra::effective_bounds(&ceiling::read(config)?, house::TENANT, None);
    if algebra::excess(&algebra::fill(contract, &bounds), &bounds).is_empty() {
        return Ok(());
    }
    let egress = toml::to_string(&contract.network).unwrap_or_default();
    let path = &config.entry("ceiling").0;
    let _ = writeln!(
        err,
        "nothing of it can be called yet: the ceiling has no way out to it. Add this to {path}, where it has another:\n\n\
         {}",
        egress.replace("[[egress]]", "[[install.network.egress]]")
    );
    Ok(())
}

/// Whether the server says of a registered tool what it said then.
///
/// # Errors
/// `drift` with what differs, and those of [`upstream::compare`].
pub(super) fn check(tool: &Tool) -> Result<(), Problem> {
    let runtime = house::tokio_runtime()?;
    let artifact = artifact(tool)?;
    let ways = Ways::of_this_host();
    let compared = upstream::compare(&tool.manifest.entry, &artifact, &tool.registered.digest, &ways);
    differs(runtime.block_on(compared)?)
}

/// What differs, as an error.
pub(super) fn differs(drifted: Option<Drifted>) -> Result<(), Problem> {
    drifted.map_or(Ok(()), |drifted| Err(Problem::new(Code::Drift, drifted.changed.join("\n"))))
}

/// What a server claims of a tool's effects.
pub(super) fn claims(tool: &Tool) -> Result<Vec<String>, Problem> {
    upstream::claims(&artifact(tool)?, &tool.registered.digest)
}

pub(super) fn artifact(tool: &Tool) -> Result<Vec<u8>, Problem> {
    match &tool.registered.bytes {
        ArtifactBytes::Embedded(bytes) => Ok(bytes.to_vec()),
        ArtifactBytes::Memory(bytes) => Ok(bytes.to_vec()),
        ArtifactBytes::File(path) => read(path),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    fs_err::read(path).map_err(|error| Problem::new(Code::StateUnavailable, error.to_string()))
}
