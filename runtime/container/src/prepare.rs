//! Making a container that is as it was asked for, with everything in its place.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::CreateContainerOptionsBuilder;
use env_contracts::{Code, Limits, Problem};
use glovebox_supervisor::{FrameError, Key, Order, PROTOCOL, Ready, Report};

use crate::drive::{Errand, Prepared, Sandbox};
use crate::engine::{Engine, QUICK, SLOW, within};
use crate::folders::Copied;
use crate::layout::{self, Tree};
use crate::marks::Installation;
use crate::recipe::Recipe;
use crate::session::{Over, Session};
use crate::{applied, supervisor};

/// How long a supervisor may take to say that it is there, or where things lie.
const HELLO: Duration = Duration::from_secs(20);

/// Makes the container, compares it with what was asked for, starts it and lays
/// its files out.
pub(crate) async fn prepare(
    engine: &Engine,
    installation: &Installation,
    errand: &mut Errand,
) -> Result<Prepared, Problem> {
    let client = engine.client().await?.clone();
    let most = errand.limits.memory.unwrap_or_default().0;
    // Files are read on a thread that may wait for them.
    let copied = Arc::new(std::mem::take(&mut errand.folders.copied));
    let looking = copied.clone();
    let looked =
        blocking(move || looking.iter().map(|copied| layout::look(copied, most)).collect::<Result<Vec<_>, _>>());
    let trees = Arc::new(looked.await?);
    let recipe = recipe(installation, errand, &copied, &trees)?;
    let body = recipe.body();
    let options = CreateContainerOptionsBuilder::default().name(&installation.name(&errand.action)).build();
    let made = within("making a container", SLOW, client.create_container(Some(options), body.clone())).await?;
    let sandbox = Sandbox::new(client.clone(), made.id);
    let inspected = within("looking at a container", QUICK, client.inspect_container(&sandbox.id, None)).await?;
    let differences = applied::differences(&body, &errand.image, &inspected);
    if !differences.is_empty() {
        let message = format!("the container engine did not make what was asked for: {}", differences.join("; "));
        return Err(Problem::new(Code::ContractUnsatisfied, message)
            .with_help("look for what changes containers there: plug-ins, the configuration of the daemon"));
    }
    let key = key();
    let mut session = Session::attach(&client, &sandbox.id, &key).await?;
    within("starting a container", SLOW, client.start_container(&sandbox.id, None)).await?;
    let ready = hello(&mut session, &key).await?;
    fits(&ready, &recipe, &errand.limits)?;
    let places: Vec<String> = errand.folders.bare.iter().map(|bare| bare.shown.guest.clone()).collect();
    if !places.is_empty() {
        let seen = ask(&mut session, Order::Look(places), |report| match report {
            Report::Seen(seen) => Some(seen),
            _ => None,
        });
        let seen = seen.await?;
        for (bare, place) in errand.folders.bare.iter().zip(seen) {
            if place.map(|place| place.identity) != Some(bare.identity) {
                let message =
                    format!("`{}` is not the folder that was bound: another took its place", bare.shown.guest);
                return Err(Problem::new(Code::WorkspaceUnavailable, message)
                    .with_help("run it again; if it happens again, the engine's runtime does not show this host's files as they are"));
            }
        }
    }
    lay_out(&mut session, &copied, &trees).await?;
    errand.folders.copied = Arc::try_unwrap(copied).unwrap_or_default();
    Ok(Prepared { sandbox, session, trees: Arc::try_unwrap(trees).unwrap_or_default() })
}

fn recipe(installation: &Installation, errand: &Errand, copied: &[Copied], trees: &[Tree]) -> Result<Recipe, Problem> {
    let (limits, folders) = (&errand.limits, &errand.folders);
    Ok(Recipe {
        image: errand.image.clone(),
        labels: installation.labels(&errand.action),
        supervisor: supervisor::place(installation.folder())?.display().to_string(),
        user: folders.user,
        shown: folders.bare.iter().map(|bare| bare.shown.clone()).collect(),
        private: folders.memory(limits, copied, trees),
        memory: limits.memory.unwrap_or_default().0,
        pids: limits.pids,
        cpu_millis: limits.cpus.map(|cpus| cpus.millis),
        runtime: errand.runtime.clone(),
    })
}

/// The kernel counts memory in pages.
const PAGE: u64 = 4096;

/// What the supervisor found has to be what the contract says.
fn fits(ready: &Ready, recipe: &Recipe, limits: &Limits) -> Result<(), Problem> {
    let runtime = recipe.runtime.as_deref().unwrap_or("the engine's own");
    let refuse = |clause: &str, what: String| {
        Problem::new(Code::ContractUnsatisfied, format!("`{clause}` is not kept by the runtime ({runtime}): {what}"))
            .with_help("let the engine's runtime keep it (cgroups, seccomp), or take another runtime")
    };
    if ready.protocol != PROTOCOL {
        return Err(Problem::new(Code::BackendError, "the container's supervisor speaks another protocol"));
    }
    if (ready.uid, ready.gid) != recipe.user || !ready.confined {
        return Err(refuse("isolation", "its processes have other rights than they were given".into()));
    }
    if !ready.filtered {
        return Err(refuse("isolation", "system calls are not filtered".into()));
    }
    let held = &ready.limits;
    // Runtimes round down to whole pages.
    let memory = recipe.memory / PAGE * PAGE;
    if held.memory.is_none_or(|held| held / PAGE * PAGE != memory) {
        return Err(refuse("limits.memory", format!("asked {memory} bytes, there is {}", shown(held.memory))));
    }
    if let Some(pids) = recipe.pids().filter(|pids| held.pids != Some(*pids)) {
        return Err(refuse("limits.pids", format!("asked {pids}, there is {}", shown(held.pids))));
    }
    if let Some(cpus) = recipe.cpu_millis.filter(|cpus| held.cpu_millis != Some(u64::from(*cpus))) {
        return Err(refuse("limits.cpus", format!("asked {cpus}/1000, there is {}", shown(held.cpu_millis))));
    }
    if limits.cpu.is_some() && !held.cpu_known {
        return Err(refuse("limits.cpu", "the time that was used can't be read".into()));
    }
    Ok(())
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

/// The key of one container: two random numbers of the system's.
fn key() -> Key {
    let mut key = [0; 32];
    key[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    key[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    key
}

async fn hello(session: &mut Session, key: &Key) -> Result<Ready, Problem> {
    ask(session, Order::Key(*key), |report| match report {
        Report::Ready(ready) => Some(ready),
        _ => None,
    })
    .await
}

/// Says something and waits for its answer.
async fn ask<T>(
    session: &mut Session,
    order: Order<'_>,
    mut wanted: impl FnMut(Report<'_>) -> Option<T>,
) -> Result<T, Problem> {
    let orders = session.orders();
    let talk = async {
        if !orders.say(&order).await {
            return Err(Over::Ended);
        }
        let mut answer = None;
        loop {
            session
                .hear(|report| match wanted(report) {
                    Some(found) if answer.is_none() => {
                        answer = Some(found);
                        Ok(())
                    }
                    _ => Err(FrameError("it says what it was not asked")),
                })
                .await?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    };
    match tokio::time::timeout(HELLO, talk).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(over)) => Err(gone(session, &over)),
        Err(_) => Err(gone(session, &Over::Ended)),
    }
}

fn gone(session: &Session, over: &Over) -> Problem {
    let said = session.beside();
    let why = match (over, said.is_empty()) {
        (Over::Broken(error), _) => error.0.to_owned(),
        (Over::Ended, true) => "nothing is heard of it".to_owned(),
        (Over::Ended, false) => said,
    };
    Problem::new(Code::BackendError, format!("the container's supervisor does not work: {why}"))
}

/// Copies folders in, while what the supervisor says goes on being heard.
async fn lay_out(session: &mut Session, copied: &Arc<Vec<Copied>>, trees: &Arc<Vec<Tree>>) -> Result<(), Problem> {
    if copied.is_empty() {
        return Ok(());
    }
    let orders = session.orders();
    let (copied, trees) = (copied.clone(), trees.clone());
    let saying = blocking(move || {
        for (copied, tree) in copied.iter().zip(trees.iter()) {
            layout::lay(copied, tree, |order| orders.say_blocking(&order))?;
        }
        orders.say_blocking(&Order::Placed);
        Ok(())
    });
    let mut placed = None;
    let hearing = async {
        while placed.is_none() {
            let heard = session.hear(|report| match report {
                Report::Placed(failed) => {
                    placed = Some(failed);
                    Ok(())
                }
                _ => Err(FrameError("it says what it was not asked")),
            });
            if heard.await.is_err() {
                break;
            }
        }
    };
    let (said, ()) = tokio::join!(saying, hearing);
    said?;
    match placed {
        Some(None) => Ok(()),
        Some(Some(errno)) => {
            let error = std::io::Error::from_raw_os_error(errno);
            Err(Problem::new(Code::LimitHit, format!("a folder can't be copied into the container: {error}"))
                .with_help("raise `limits.memory`: what is copied in lies in the container's memory"))
        }
        None => Err(gone(session, &Over::Ended)),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Problem::new(Code::BackendError, format!("copying files panicked: {error}"))),
    }
}
