//! Who uses the command, and for whom.

use env_contracts::{Code, Id, Name, Principal, Problem};
use glovebox_plane::TaskContext;

use crate::args::{ContextArgs, WhoArgs};
use crate::config::Config;
use crate::house::TENANT;
use crate::values::{Agent, Word};

/// Who uses this command: the user that the kernel says we run as.
pub(crate) fn principal() -> Principal {
    Principal {
        tenant: name(TENANT.to_owned()),
        user: user(rustix::process::geteuid().as_raw()),
        agent: None,
        agent_version: None,
        chain: Vec::new(),
    }
}

/// What a user of this machine is called.
pub(crate) fn user(uid: u32) -> Name {
    name(format!("uid-{uid}"))
}

/// Who asks: the user, or an agent on their behalf where the caller says so.
///
/// # Errors
/// `usage` for an agent that can't be.
pub(crate) fn requester(config: &Config, args: &ContextArgs) -> Result<Principal, Problem> {
    named(config, args.agent.as_deref(), &args.chain)
}

/// Who does what loops do: the user, or an agent where the caller says so.
///
/// # Errors
/// `usage` for an agent that can't be.
pub(crate) fn actor(config: &Config, args: &WhoArgs) -> Result<Principal, Problem> {
    named(config, args.agent.as_deref(), &args.chain)
}

/// For which agent a program speaks that is no person's hand: there is always
/// one, so that nothing it asks for counts as asked by the user.
///
/// # Errors
/// `usage` for an agent that can't be.
pub(crate) fn speaker(config: &Config, agent: Option<&str>, otherwise: &str) -> Result<Principal, Problem> {
    let asked = named(config, agent, &[])?;
    Ok(match asked.agent {
        Some(_) => asked,
        None => Principal { agent: Some(name(otherwise.to_owned())), ..asked },
    })
}

fn named(config: &Config, agent: Option<&str>, chain: &[Name]) -> Result<Principal, Problem> {
    let agent: Agent = match agent {
        Some(text) => text.parse().map_err(|error: String| Problem::new(Code::Usage, format!("--agent: {error}")))?,
        None => config.get("agent"),
    };
    let (agent, agent_version) = agent.0.map_or((None, None), |(name, version)| (Some(name), version));
    Ok(Principal { agent, agent_version, chain: chain.to_vec(), ..principal() })
}

/// The session and the task that it belongs to. This door has no turns: a
/// session has one task unless the caller names others.
pub(crate) fn context(config: &Config, args: &ContextArgs) -> TaskContext {
    let user = principal().user;
    let session = args.session.clone().or_else(|| config.get::<Word>("session").0);
    let session = session.unwrap_or_else(|| id(&format!("cli-{user}")));
    let task = args.task.clone().or_else(|| config.get::<Word>("task").0).unwrap_or_else(|| session.clone());
    let stage = args.stage.as_ref().map(ToString::to_string);
    TaskContext { session, task, turn: args.turn, purpose: None, stage }
}

/// The context of what is tried here, in a state folder of its own.
pub(crate) fn trial_context() -> TaskContext {
    TaskContext { session: id("trial"), task: id("trial"), turn: None, purpose: None, stage: None }
}

/// Who answers through this door: the user, unless the caller says that it
/// is an agent. An agent that does not say so is the user here: what such an
/// answer is worth, its assurance says.
pub(crate) fn requester_of_answers(config: &Config) -> Principal {
    let agent: Agent = config.get("agent");
    let (agent, agent_version) = agent.0.map_or((None, None), |(name, version)| (Some(name), version));
    Principal { agent, agent_version, ..principal() }
}

/// Refuses an agent what is for people.
///
/// # Errors
/// `not-eligible`.
pub(crate) fn person(config: &Config) -> Result<(), Problem> {
    match requester_of_answers(config).agent {
        None => Ok(()),
        Some(agent) => Err(Problem::new(Code::NotEligible, format!("agent `{agent}` asks, and this is for people"))
            .with_help("a person does it: without $GLOVEBOX_AGENT and the `agent` of the configuration")),
    }
}

fn name(text: String) -> Name {
    text.parse().unwrap_or_else(|error| unreachable!("made of letters and digits: {error}"))
}

pub(crate) fn id(text: &str) -> Id {
    text.parse().unwrap_or_else(|error| unreachable!("made of letters and digits: {error}"))
}
