//! What comes out of a container when its tool has ended.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use env_contracts::Notice;
use glovebox_supervisor::{FrameError, Order, Report};
use rustix::fs::{Mode, OFlags};

use crate::changes::{self, Applied};
use crate::drive::Errand;
use crate::folders::Copied;
use crate::haul::{Haul, HaulError};
use crate::layout::Tree;
use crate::marks::Installation;
use crate::session::{Over, Session};

/// How long copying out may stand still.
const STANDSTILL: Duration = Duration::from_secs(30);

/// What came out.
#[derive(Default)]
pub(crate) struct Taken {
    /// What is to be known of it.
    pub(crate) notices: Vec<Notice>,
    /// Bytes that were written to folders of the user's.
    pub(crate) bytes: u64,
    /// Why not all changes were brought out, if they were not.
    pub(crate) conflict: Option<String>,
    /// Whether there were more outputs than may be.
    pub(crate) too_much: bool,
    /// Whether the supervisor was not heard out: it may be speaking still.
    pub(crate) cut: bool,
}

impl Taken {
    /// Somebody wanted it to stop before all was out.
    pub(crate) fn given_up() -> Self {
        let message = "not all outputs and changes came out: the action was interrupted meanwhile";
        Self { notices: vec![Notice::new("outputs-lost", message)], cut: true, ..Self::default() }
    }
}

/// Brings out what the tool made: its outputs whatever its end was, its changes
/// of folders if that was its own.
pub(crate) async fn take_out(
    installation: &Installation,
    errand: &Errand,
    trees: &[Tree],
    session: &mut Session,
    own_end: bool,
) -> Taken {
    let mut taken = Taken::default();
    let most = errand.limits.storage.unwrap_or_default().0;
    if let Some((guest, outputs)) = &errand.folders.outputs {
        match outputs_into(guest, outputs, session, most).await {
            Ok(haul) => taken.notices.extend(haul.notices("output-skipped")),
            Err(why) => {
                taken.cut = true;
                taken.too_much = why == HaulError::TooMuch.to_string();
                taken.notices.push(Notice::new("outputs-lost", format!("not all outputs came out: {why}")));
            }
        }
    }
    for (copied, tree) in errand.folders.copied.iter().zip(trees).filter(|(copied, _)| copied.writable) {
        let guest = &copied.guest;
        // Whoever finds an environment again finds it as it was left.
        if !own_end && !copied.kept {
            let message = format!("`{guest}` is as it was: the tool did not come to its own end");
            taken.notices.push(Notice::new("changes-dropped", message));
            continue;
        }
        let most = most.saturating_add(tree.bytes);
        let why = match bring(installation, errand, copied, tree, session, most).await {
            Ok(applied) => {
                taken.bytes += applied.bytes;
                taken.notices.extend(applied.notices);
                let refused = "somebody else changed them meanwhile, or a tool may not make them";
                (!applied.refused.is_empty()).then(|| refused.to_owned())
            }
            Err(why) => {
                taken.cut = true;
                Some(why)
            }
        };
        if let Some(why) = why {
            taken.conflict = Some(format!("changes of `{guest}` were not all brought out: {why}"));
        }
    }
    taken
}

async fn outputs_into(guest: &str, outputs: &OwnedFd, session: &mut Session, most: u64) -> Result<Haul, String> {
    let root = outputs.try_clone().map_err(|error| error.to_string())?;
    haul(session, Order::Collect(guest.to_owned()), Haul::new(root, most)).await
}

/// Everything comes out before anything is touched.
async fn bring(
    installation: &Installation,
    errand: &Errand,
    copied: &Copied,
    tree: &Tree,
    session: &mut Session,
    most: u64,
) -> Result<Applied, String> {
    let scratch = installation.scratch(&errand.action).map_err(|error| error.to_string())?;
    let stage = scratch.path().join("staged");
    glovebox_runtime::private_dir(&stage).map_err(|error| error.to_string())?;
    let staged = open(&stage)?;
    let into = Haul::new(open(&stage)?, most);
    let haul = haul(session, Order::CollectChanges(copied.guest.clone()), into).await?;
    changes::apply(copied, tree, &haul, staged.as_fd(), &scratch).map_err(|error| error.to_string())
}

fn open(folder: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::empty()).map_err(|errno| errno.to_string())
}

/// Hears a folder out.
async fn haul(session: &mut Session, order: Order<'_>, mut haul: Haul) -> Result<Haul, String> {
    if !session.orders().say_at_once(&order).await {
        return Err("the container's supervisor does not listen".into());
    }
    let heard = Box::pin(hear_out(session, &mut haul)).await;
    if heard.is_err() {
        haul.give_up();
    }
    heard.map(|()| haul)
}

async fn hear_out(session: &mut Session, haul: &mut Haul) -> Result<(), String> {
    let mut failed: Option<HaulError> = None;
    while !haul.is_done() {
        let heard = session.hear(|report| match report {
            // Answers to what was asked before.
            Report::Pong(_) => Ok(()),
            report => haul.take(report).map_err(|error| {
                failed = Some(error);
                FrameError("what comes out can't be taken")
            }),
        });
        match tokio::time::timeout(STANDSTILL, heard).await {
            Ok(Ok(())) => {}
            Ok(Err(over)) => {
                return Err(match (failed, over) {
                    (Some(error), _) => error.to_string(),
                    (None, Over::Broken(error)) => error.to_string(),
                    (None, Over::Ended) => "the container ended".into(),
                });
            }
            Err(_) => return Err("it stands still".into()),
        }
    }
    Ok(())
}
