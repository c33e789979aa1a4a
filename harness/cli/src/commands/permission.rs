//! `glovebox permission`: asking for more than a tool's contract gives.

use std::process::ExitCode;

use env_contracts::{Code, Problem, Scope, Wanted};
use glovebox_plane::PermissionRequest;

use super::{asking, files, run};
use crate::args::{PermissionArgs, PermissionCommand};
use crate::config::Config;
use crate::{house, who};

pub(crate) fn run(command: PermissionCommand, config: &Config) -> Result<ExitCode, Problem> {
    let PermissionCommand::Request(args) = command;
    request(args, config)
}

fn request(args: PermissionArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::service(config, run::SLOTS)?;
    let capability: Wanted = args.tool.parse().map_err(|error: String| Problem::new(Code::Usage, error))?;
    let scope = Scope::from_toml(&files::read_text(&args.contract)?).map_err(|error| {
        let problem = Problem::of(&error);
        Problem { message: format!("`{}`: {}", args.contract.display(), problem.message), ..problem }
    })?;
    let (asking, here) = asking::mode(config, args.context.ask)?;
    let request = PermissionRequest {
        principal: who::requester(config, &args.context)?,
        context: who::context(config, &args.context),
        capability,
        scope,
        reason: args.reason,
        asking,
    };
    let answer = run::drive(&service, config, here, async |service, watch, stop| {
        service.request_permission(request, watch, &stop).await
    })?;
    answer.print(args.json, false, &service)
}
