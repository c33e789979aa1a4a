//! Making a container that is as it was asked for, with everything in its place.

use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::CreateContainerOptionsBuilder;
use env_contracts::{Code, Problem};
use glovebox_supervisor::{FrameError, Key, Order, PROTOCOL, Ready, Report};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::containers::Containers;
use crate::drive::{Errand, Prepared, Sandbox, removed};
use crate::engine::{QUICK, SLOW, within};
use crate::error::{is_missing, is_refusal, problem, silent};
use crate::folders::Copied;
use crate::layout::{self, Tree};
use crate::marks::Installation;
use crate::recipe::{Recipe, Shape};
use crate::session::{Over, Session};
use crate::{applied, image, supervisor};

/// How long a supervisor may take to say that it is there, or where things lie.
const HELLO: Duration = Duration::from_secs(20);
/// What is said of that where it goes wrong.
const MAKING: &str = "making a container";
/// How long one that waits may take to say that it is still there.
const SIGN: Duration = Duration::from_secs(1);

/// A container that is as it was asked for, and that nothing was put into yet.
pub(crate) struct Member {
    pub(crate) sandbox: Sandbox,
    pub(crate) session: Session,
}

/// What an errand needs of a container.
pub(crate) fn shape(errand: &Errand) -> Shape {
    let (limits, folders) = (&errand.limits, &errand.folders);
    Shape {
        image: errand.image.clone(),
        user: folders.user,
        shown: folders.bare.iter().map(|bare| bare.shown.clone()).collect(),
        live: folders.live,
        private: folders.memory(limits, &folders.copied),
        memory: limits.memory.unwrap_or_default().0,
        pids: limits.pids,
        cpu_millis: limits.cpus.map(|cpus| cpus.millis),
        timed: limits.cpu.is_some(),
        runtime: errand.runtime.clone(),
    }
}

/// Makes a container, compares it with what was asked for, starts it and hears
/// what it finds itself held to.
pub(crate) async fn stand_up(
    containers: &Containers,
    action: &str,
    shape: &Shape,
    tasks: &TaskTracker,
) -> Result<Member, Problem> {
    let installation = containers.installation()?.clone();
    let client = containers.engine().client().await?.clone();
    let supervisor = supervisor::place(installation.folder())?.display().to_string();
    let body = Recipe { shape, labels: installation.labels(action), supervisor }.body();
    let sandbox = made(client.clone(), action, body.clone(), installation, tasks).await;
    let sandbox = sandbox.inspect_err(|_| containers.engine().forget_image(&shape.image))?;
    let inspected = within("looking at a container", QUICK, client.inspect_container(&sandbox.id, None)).await?;
    let differences = applied::differences(&body, &shape.image, &inspected);
    if !differences.is_empty() {
        let message = format!("the container engine did not make what was asked for: {}", differences.join("; "));
        return Err(Problem::new(Code::ContractUnsatisfied, message)
            .with_help("look for what changes containers there: plug-ins, the configuration of the daemon"));
    }
    let key = key();
    let mut session = Session::attach(&client, &sandbox.id, &key).await?;
    within("starting a container", SLOW, client.start_container(&sandbox.id, None)).await?;
    let ready = hello(&mut session, &key).await?;
    fits(&ready, shape)?;
    Ok(Member { sandbox, session })
}

/// Asks for a container. Once it is asked for, it is waited for, whoever waits
/// for us: only who knows a container can take it away.
async fn made(
    client: Docker,
    action: &str,
    body: ContainerCreateBody,
    installation: Arc<Installation>,
    tasks: &TaskTracker,
) -> Result<Sandbox, Problem> {
    let name = installation.name(action);
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    let (give, given) = oneshot::channel();
    let keeper = tasks.clone();
    tasks.spawn(async move {
        let made = match tokio::time::timeout(SLOW, client.create_container(Some(options), body)).await {
            Ok(Ok(made)) => Ok(Sandbox::new(client, made.id, installation, keeper)),
            // It was there when it was looked up.
            Ok(Err(error)) if is_missing(&error) => Err(image::unknown(problem(MAKING, &error))),
            Ok(Err(error)) if is_refusal(&error) => Err(problem(MAKING, &error)),
            // Whether it makes one all the same is not known: under this name.
            other => {
                let _ = removed(&client, &name, &installation).await;
                Err(match other {
                    Ok(Err(error)) => problem(MAKING, &error),
                    _ => silent(MAKING, Some(SLOW)),
                })
            }
        };
        // Nobody waits for it any more.
        if let Err(Ok(sandbox)) = give.send(made) {
            let _ = sandbox.remove().await;
        }
    });
    given.await.unwrap_or_else(|_| Err(Problem::new(Code::BackendError, format!("{MAKING}: the task ended"))))
}

/// A container for an errand, with everything in its place: one that waits for
/// its tool already, or a new one.
pub(crate) async fn prepare(
    containers: &Containers,
    errand: &mut Errand,
    tasks: &TaskTracker,
) -> Result<Prepared, Problem> {
    let shape = shape(errand);
    let most = errand.limits.memory.unwrap_or_default().0;
    // Files are looked at on a thread that may wait for them, meanwhile.
    let copied = Arc::new(std::mem::take(&mut errand.folders.copied));
    let looking = copied.clone();
    let looked =
        blocking(move || looking.iter().map(|copied| layout::look(copied, most)).collect::<Result<Vec<_>, _>>());
    let standing = async {
        match containers.pool().take(&shape).await {
            Some(member) => Ok(member),
            None => stand_up(containers, &errand.action, &shape, tasks).await,
        }
    };
    let (trees, member) = tokio::try_join!(looked, standing)?;
    let (trees, Member { sandbox, mut session }) = (Arc::new(trees), member);
    look(&mut session, errand).await?;
    lay_out(&mut session, &copied, &trees).await?;
    errand.folders.copied = Arc::try_unwrap(copied).unwrap_or_default();
    Ok(Prepared { sandbox, session, trees: Arc::try_unwrap(trees).unwrap_or_default(), shape })
}

/// Whether every folder that is shown is the one that was bound.
async fn look(session: &mut Session, errand: &Errand) -> Result<(), Problem> {
    let places: Vec<String> = errand.folders.bare.iter().map(|bare| bare.shown.guest.clone()).collect();
    if places.is_empty() {
        return Ok(());
    }
    let seen = ask(session, Order::Look(places), |report| match report {
        Report::Seen(seen) => Some(seen),
        _ => None,
    });
    for (bare, place) in errand.folders.bare.iter().zip(seen.await?) {
        if place.map(|place| place.identity) != Some(bare.identity) {
            let message = format!("`{}` is not the folder that was bound: another took its place", bare.shown.guest);
            return Err(Problem::new(Code::WorkspaceUnavailable, message).with_help(
                "run it again; if it happens again, the engine's runtime does not show this host's files as they are",
            ));
        }
    }
    Ok(())
}

/// Whether a container that waits is still there.
pub(crate) async fn answers(member: &mut Member) -> bool {
    let pong = ask(&mut member.session, Order::Ping(0), |report| matches!(report, Report::Pong(0)).then_some(()));
    tokio::time::timeout(SIGN, pong).await.is_ok_and(|pong| pong.is_ok())
}

/// The kernel counts memory in pages.
const PAGE: u64 = 4096;

/// What the supervisor found has to be what the contract says.
fn fits(ready: &Ready, shape: &Shape) -> Result<(), Problem> {
    let runtime = shape.runtime.as_deref().unwrap_or("the engine's own");
    let refuse = |clause: &str, what: String| {
        Problem::new(Code::ContractUnsatisfied, format!("`{clause}` is not kept by the runtime ({runtime}): {what}"))
            .with_help("let the engine's runtime keep it (cgroups, seccomp), or take another runtime")
    };
    if ready.protocol != PROTOCOL {
        return Err(Problem::new(Code::BackendError, "the container's supervisor speaks another protocol"));
    }
    if (ready.uid, ready.gid) != shape.user || !ready.confined {
        return Err(refuse("isolation", "its processes have other rights than they were given".into()));
    }
    if !ready.filtered {
        return Err(refuse("isolation", "system calls are not filtered".into()));
    }
    let held = &ready.limits;
    // Runtimes round down to whole pages.
    let memory = shape.memory / PAGE * PAGE;
    if held.memory.is_none_or(|held| held / PAGE * PAGE != memory) {
        return Err(refuse("limits.memory", format!("asked {memory} bytes, there is {}", shown(held.memory))));
    }
    if held.pids != Some(shape.pids()) {
        return Err(refuse("limits.pids", format!("asked {}, there is {}", shape.pids(), shown(held.pids))));
    }
    if let Some(cpus) = shape.cpu_millis.filter(|cpus| held.cpu_millis != Some(u64::from(*cpus))) {
        return Err(refuse("limits.cpus", format!("asked {cpus}/1000, there is {}", shown(held.cpu_millis))));
    }
    if shape.timed && !held.cpu_known {
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
