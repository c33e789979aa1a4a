//! `glovebox tool add --mcp-stdio`: what an MCP server offers that is a program
//! in an image.

use std::collections::BTreeMap;
use std::process::ExitCode;

use env_contracts::{CapabilityName, Code, Contract, Limits, Problem};
use glovebox_mcp::upstream::{self, Program};
use glovebox_plane::Tool;
use glovebox_runtime::algebra;

use super::upstream::{announce, artifact, differs, ours};
use crate::args::ToolAddArgs;
use crate::commands::{arguments, limits};
use crate::config::Config;
use crate::places::Places;
use crate::terminal::escaped_line;
use crate::{backends, ceiling, house, who};

/// Registers what a server offers that is run as this command.
pub(super) fn add(args: &ToolAddArgs, config: &Config) -> Result<ExitCode, Problem> {
    let Some(reference) = &args.image else { return Err(nowhere(&args.command)) };
    // Who names a program has it run.
    who::person(config)?;
    let prefix = prefix(args.name.as_deref(), reference)?;
    let places = Places::of(config);
    let registry = house::registry(&places);
    places.make()?;
    ours(&registry, &prefix)?;
    let mut env = BTreeMap::new();
    for line in &args.env {
        let (name, value) = arguments::pair("--env", line)?;
        env.insert(name.to_owned(), value.to_owned());
    }
    let limits = limits::of(&args.limits)?;
    let filled = filled(&Contract { limits: limits.clone(), ..Contract::default() }, config)?;
    let runtime = house::tokio_runtime()?;
    let adoption = runtime.block_on(async {
        let image = backends::containers(config, &places)?.find_image(reference).await?;
        let command = args.command.clone();
        let program = Program { image: image.image, runtime: None, command, env, limits };
        upstream::look_inside(program, &prefix, &filled, &backends::programs(config, &places)?).await
    })?;
    announce(&registry, &adoption, &format!("`{}`", escaped_line(&args.command.join(" "))))?;
    Ok(ExitCode::SUCCESS)
}

/// Why a program is not run that would not be shut in.
fn nowhere(command: &[String]) -> Problem {
    let program = escaped_line(command.first().map_or("", String::as_str));
    let message =
        format!("`{program}` would run on this host with all that you may do: no image is named to shut it in");
    Problem::new(Code::IsolationUnavailable, message).with_help(
        "name an image that has it: `glovebox tool add --mcp-stdio --image IMAGE -- COMMAND…`; or add a server that \
         offers Streamable HTTP: `--mcp-http URL`",
    )
}

/// What the names begin with: as it was said, or after the image.
fn prefix(named: Option<&str>, image: &str) -> Result<CapabilityName, Problem> {
    let usage = |error: String| Problem::new(Code::Usage, error);
    let repository = image.split(['@', ':']).next().unwrap_or_default();
    let last = repository.rsplit('/').next().and_then(CapabilityName::slug);
    let name = named.map(str::to_owned).or(last);
    let name = name.ok_or_else(|| usage("--name: the image has no name to call its tools after".into()))?;
    name.parse().map_err(|error: String| usage(error).with_help("say what the names are to begin with: --name PREFIX"))
}

/// The limits of a contract as they are in force here.
///
/// # Errors
/// `contract-unsatisfied` for more than the ceiling has.
fn filled(contract: &Contract, config: &Config) -> Result<Limits, Problem> {
    let bounds = algebra::effective_bounds(&ceiling::read(config)?, house::TENANT, None);
    let filled = algebra::fill(contract, &bounds);
    let own = Contract { limits: filled.limits.clone(), ..Contract::default() };
    match algebra::excess(&own, &bounds).first() {
        None => Ok(filled.limits),
        Some(beyond) => {
            let had = beyond.had.as_deref().unwrap_or("nothing");
            let message = format!("`{}` asks {}, the ceiling has {had}", beyond.clause, beyond.asked);
            Err(Problem::new(Code::ContractUnsatisfied, message).with_help("ask for less, or raise the ceiling"))
        }
    }
}

/// Whether the server says of a registered tool what it said then.
///
/// # Errors
/// `drift` with what differs, and those of [`upstream::compare_inside`].
pub(super) fn check(tool: &Tool, config: &Config) -> Result<(), Problem> {
    let mut contract = tool.manifest.contract.clone();
    contract.limits = filled(&contract, config)?;
    let (artifact, programs) = (artifact(tool)?, backends::programs(config, &Places::of(config))?);
    let (entry, digest) = (&tool.manifest.entry, &tool.registered.digest);
    let compared = upstream::compare_inside(entry, &contract, &artifact, digest, &programs);
    differs(house::tokio_runtime()?.block_on(compared)?)
}
