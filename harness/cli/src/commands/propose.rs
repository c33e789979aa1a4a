//! `glovebox task plan` and `task result`: what a loop wants accepted.

use std::process::ExitCode;

use env_contracts::{Code, Principal, Problem};
use glovebox_plane::{Asking, Made, PlanProposal, ResultProposal, TaskContext};

use super::{asking, files, run};
use crate::args::ProposalArgs;
use crate::config::Config;
use crate::{house, who};

pub(super) fn plan(args: &ProposalArgs, file: &std::path::Path, config: &Config) -> Result<ExitCode, Problem> {
    let proposal: PlanProposal = serde_json::from_str(&files::read_text(file)?)
        .map_err(|error| Problem::new(Code::Usage, format!("the plan: {error}")))?;
    let service = house::overseer(config)?;
    let (principal, context, asking, here) = proposer(args, &service, config)?;
    let answer = run::drive(&service, config, here, async |service, watch, stop| {
        service.submit_plan(&principal, context, proposal, asking, watch, &stop).await
    })?;
    answer.print(args.json, false, &service)
}

pub(super) fn result(
    args: &ProposalArgs,
    artifact: Made,
    condition: String,
    evidence: Vec<env_contracts::Id>,
    config: &Config,
) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let (principal, context, asking, here) = proposer(args, &service, config)?;
    let proposal = ResultProposal { artifact, condition, evidence };
    let answer = run::drive(&service, config, here, async |service, watch, stop| {
        service.submit_result(&principal, context, proposal, asking, watch, &stop).await
    })?;
    answer.print(args.json, false, &service)
}

/// Who proposes it, where, and whether the question is put here.
fn proposer(
    args: &ProposalArgs,
    service: &glovebox_plane::ActionService,
    config: &Config,
) -> Result<(Principal, TaskContext, Asking, bool), Problem> {
    let principal = who::actor(config, &args.who)?;
    let session = service.task(&principal, &args.id)?.task.session;
    let (asking, here) = asking::mode(config, args.ask)?;
    let context = TaskContext { session, task: args.id.clone(), turn: args.turn, purpose: None, stage: None };
    Ok((principal, context, asking, here))
}
