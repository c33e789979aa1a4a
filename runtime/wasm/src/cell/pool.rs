//! The host's side: which templates there are, and their idle cells.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use env_contracts::{Code, Problem};
use glovebox_jail::Layers;
use glovebox_runtime::job::UngrantedImports;
use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::oneshot;

use super::Helper;
use super::held::{Cell, Template, Waiting};
use super::keeper::Keeper;
use crate::cache::CompileCache;
use crate::compile;
use crate::component::Artefact;
use crate::error::WasmError;

/// How long a process of the second wall may take to answer before it counts
/// as broken. Loading the largest components takes some tens of milliseconds.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Uses of a component after which it pays that idle cells warm up.
const WARM_AFTER: u64 = 8;

/// The component that idle cells warm up with, from `warm.wat`, and its
/// digest; a test compares all three.
const WARM: &[u8] = include_bytes!("warm.wasm");
const WARM_DIGEST: &str = "02d5a5065d91f1c1d3d33d450cd9d0e8c0c17f6990ee1f6c69f4029b617f1118";

/// Makes cells and hands them out. The processes live as long as this does.
pub struct Cells {
    shared: Arc<Shared>,
    helper: Helper,
    /// Taken when it is first of use.
    warmer: Option<Arc<CompileCache>>,
    warming: AtomicBool,
    keeper: OnceLock<()>,
}

/// What the host's threads share with the one that keeps the processes.
pub(super) struct Shared {
    pub(super) templates: Mutex<Vec<Arc<Template>>>,
    commands: Mutex<Vec<Command>>,
    wake: OwnedFd,
    gone: AtomicBool,
}

/// What the keeper is asked for.
pub(super) enum Command {
    /// A template of this component.
    Make { artefact: Arc<Artefact>, imports: UngrantedImports, answer: Answer },
    /// More cells for some template.
    Refill,
    /// No more cells of the templates that there are.
    Retire,
    /// From now on, idle cells warm up with this.
    Warm(Arc<Artefact>),
}

/// Where the answer to a request for a template goes.
pub(super) type Answer = oneshot::Sender<Result<Arc<Template>, Problem>>;

impl Cells {
    /// Starts nothing yet: that happens with the first component.
    ///
    /// # Errors
    /// [`WasmError::Jail`] where this host can't shut processes in,
    /// [`WasmError::Cells`] where this process is itself one that was started
    /// to be shut in.
    pub fn new(helper: Helper) -> Result<Self, WasmError> {
        if super::is_inside() {
            return Err(WasmError::Cells(
                "this program was started to become a cell, and did not: its `main` has to begin with `maybe_enter_cell`".into(),
            ));
        }
        compile::walls(Layers::probe())?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| WasmError::Cells(format!("no descriptors: {errno}")))?;
        let shared =
            Shared { templates: Mutex::default(), commands: Mutex::default(), wake, gone: AtomicBool::new(false) };
        Ok(Self {
            shared: Arc::new(shared),
            helper,
            warmer: None,
            warming: AtomicBool::new(false),
            keeper: OnceLock::new(),
        })
    }

    /// Has idle cells run a small component of our own before their claim, from
    /// when on a component is used again and again: they are faster then.
    #[must_use]
    pub fn warmed_by(mut self, cache: Arc<CompileCache>) -> Self {
        self.warmer = Some(cache);
        self
    }

    /// The artefact of a component that has a template already.
    pub(crate) fn known(&self, component: &str, imports: UngrantedImports) -> Option<Arc<Artefact>> {
        Some(Arc::clone(&self.shared.find(component, imports)?.artefact))
    }

    /// Makes the template of a component, if there is none.
    ///
    /// # Errors
    /// What the template says of the component, or why there is no template.
    pub(crate) async fn warm(&self, artefact: &Arc<Artefact>, imports: UngrantedImports) -> Result<(), Problem> {
        self.template(artefact, imports).await.map(drop)
    }

    /// The template of a component, made if there is none.
    ///
    /// # Errors
    /// What the template says of the component, or why there is no template.
    pub(super) async fn template(
        &self,
        artefact: &Arc<Artefact>,
        imports: UngrantedImports,
    ) -> Result<Arc<Template>, Problem> {
        if let Some(template) = self.shared.find(artefact.component(), imports) {
            return Ok(template);
        }
        self.keeper.get_or_init(|| Keeper::start(self.helper.clone(), Arc::clone(&self.shared)));
        let (answer, answered) = oneshot::channel();
        self.shared.command(Command::Make { artefact: Arc::clone(artefact), imports, answer });
        match tokio::time::timeout(ANSWER_MAX, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(unavailable("the thread that keeps them could not be started")),
            Err(_) => Err(unavailable(format!("nothing answered within {ANSWER_MAX:?}"))),
        }
    }

    /// An idle cell of a template, or the next one that it makes.
    ///
    /// # Errors
    /// `backend-unavailable` if none comes.
    pub(super) async fn claim(&self, template: &Template) -> Result<Cell, Problem> {
        if template.uses.fetch_add(1, Ordering::Relaxed) == WARM_AFTER {
            self.warm_up();
        }
        let _waiting = Waiting::new(&template.waiting);
        let first = async {
            loop {
                let arrived = template.arrived.notified();
                tokio::pin!(arrived);
                // Registered before the look, so that none is missed.
                arrived.as_mut().enable();
                if let Some(cell) = template.idle().pop_front() {
                    return Ok(cell);
                }
                if template.is_over() {
                    return Err(unavailable("the process that makes them ended"));
                }
                if let Some(why) = template.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    return Err(unavailable(why));
                }
                self.shared.command(Command::Refill);
                arrived.await;
            }
        };
        match tokio::time::timeout(ANSWER_MAX, first).await {
            Ok(claimed) => claimed,
            Err(_) => Err(unavailable(format!("no cell came within {ANSWER_MAX:?}"))),
        }
    }

    /// Fetches what warms, once, while everything goes on without it.
    fn warm_up(&self) {
        let Some(cache) = self.warmer.clone().filter(|_| !self.warming.swap(true, Ordering::SeqCst)) else { return };
        let shared = Arc::clone(&self.shared);
        // Without it cells are slower, and nothing else.
        tokio::task::spawn_blocking(move || {
            if let Ok(artefact) = cache.get_or_compile(WARM_DIGEST, || Ok(WARM.to_vec()), &mut |_| {}) {
                shared.command(Command::Warm(Arc::new(artefact)));
            }
        });
    }

    /// Gives up all templates and idle cells; what runs goes on. The next
    /// cells are of a fresh template.
    pub fn retire(&self) {
        self.shared.command(Command::Retire);
    }

    /// A cell was used: has the next one made, if it will be wanted.
    pub(super) fn refill(&self, template: &Template) {
        if template.idle().len() < template.wanted() {
            self.shared.command(Command::Refill);
        }
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        // The keeper, and with it all its processes, end with this.
        self.shared.gone.store(true, Ordering::SeqCst);
        self.shared.wake();
    }
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cells").field("helper", &self.helper).finish_non_exhaustive()
    }
}

pub(super) fn unavailable(why: impl std::fmt::Display) -> Problem {
    Problem::new(Code::BackendUnavailable, format!("there is no cell to run it in: {why}"))
}

impl Shared {
    /// The template that was used last comes first.
    fn find(&self, component: &str, imports: UngrantedImports) -> Option<Arc<Template>> {
        let mut templates = self.templates();
        let place =
            templates.iter().position(|known| known.artefact.component() == component && known.imports == imports)?;
        templates[..=place].rotate_right(1);
        templates.first().cloned()
    }

    pub(super) fn templates(&self) -> MutexGuard<'_, Vec<Arc<Template>>> {
        self.templates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        self.wake();
    }

    fn wake(&self) {
        // Full means that it will wake anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    pub(super) fn waker(&self) -> &OwnedFd {
        &self.wake
    }

    pub(super) fn take_commands(&self) -> Vec<Command> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8][..]);
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_warms_is_what_its_source_says() {
        let module = wat::parse_str(include_str!("warm.wat")).unwrap();
        let component = crate::adapt(&module, &crate::inspect(&module, 1 << 20).unwrap()).unwrap();
        if let Some(path) = std::env::var_os("GLOVEBOX_TEST_WRITE_WARM") {
            fs_err::write(path, &*component).unwrap();
        }
        assert!(*component == *WARM, "write it anew with GLOVEBOX_TEST_WRITE_WARM=PATH");
        assert_eq!(env_contracts::Digest::of(WARM).as_str(), WARM_DIGEST);
    }
}
