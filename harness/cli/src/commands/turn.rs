//! `glovebox turn`: the steps of a loop.

use std::process::ExitCode;

use env_contracts::{Code, Digest, Problem};
use glovebox_events::Told;
use glovebox_plane::{OpenTurn, Telling};

use super::printed;
use crate::args::{TellArgs, TellKind, TurnCommand};
use crate::config::Config;
use crate::{house, print, who};

pub(crate) fn run(command: TurnCommand, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let tokio = house::tokio_runtime()?;
    match command {
        TurnCommand::Open { task, expected, goal_version, key, who } => {
            let principal = who::actor(config, &who)?;
            let open = OpenTurn { task, expected_turn: expected, goal_version, key };
            let start = tokio.block_on(service.open_turn(&principal, open))?;
            printed(print::json(&start), 0)
        }
        TurnCommand::Close { task, turn, who } => {
            let principal = who::actor(config, &who)?;
            let task = tokio.block_on(service.close_turn(&principal, &task, turn))?;
            printed(print::json(&task), 0)
        }
        TurnCommand::Tell(args) => {
            let principal = who::actor(config, &args.who)?;
            let task = args.task.clone();
            let entry = tokio.block_on(service.tell(&principal, &task, telling(*args)?))?;
            printed(print::json(&entry), 0)
        }
    }
}

fn telling(args: TellArgs) -> Result<Telling, Problem> {
    let missing = |what: &str| Problem::new(Code::Usage, format!("{what} is missing"));
    let what = match args.kind {
        TellKind::Text => Told::Text,
        TellKind::Progress => Told::Progress,
        TellKind::Plan => Told::Plan,
        TellKind::Todo => Told::Todo,
        TellKind::Outcome => Told::Outcome,
        TellKind::Feedback => Told::Feedback,
        TellKind::ModelCall => Told::ModelCall {
            model: args.model.ok_or_else(|| missing("--model"))?,
            input_tokens: args.input_tokens,
            output_tokens: args.output_tokens,
            cost_micros: args.cost,
            context: args.context,
        },
        TellKind::Verified => Told::Verified {
            holds: args.holds.ok_or_else(|| missing("--holds"))?,
            revision: args.revision,
            condition: args.condition.map(|condition| Digest::of(condition.as_bytes())),
            goal: args.goal_version,
        },
    };
    Ok(Telling { turn: args.turn, parents: args.parents, what, content: args.text })
}
