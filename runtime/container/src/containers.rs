//! The containers of a state folder: the engine, and what this process is to it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use env_contracts::{Code, Digest, Name, Problem};

use crate::engine::{Engine, Socket};
use crate::image::{Image, ImageRecord};
use crate::marks::{Installation, Swept};
use crate::pool::Pool;

/// The containers of a state folder. Making one asks nothing and writes nothing:
/// most commands need none.
pub struct Containers {
    engine: Engine,
    folder: PathBuf,
    installation: OnceLock<Arc<Installation>>,
    // Two at once would each open one.
    opening: std::sync::Mutex<()>,
    pool: Pool,
    /// What was left behind is taken away before the first container.
    swept: tokio::sync::OnceCell<()>,
}

impl Containers {
    /// On the engine behind this socket, with what is kept of containers in a
    /// folder of the state folder.
    pub fn new(socket: Socket, folder: PathBuf) -> Self {
        let (engine, opening) = (Engine::new(socket), std::sync::Mutex::new(()));
        let swept = tokio::sync::OnceCell::new();
        Self { engine, folder, installation: OnceLock::new(), opening, pool: Pool::new(0), swept }
    }

    /// The same for a process that goes on: up to so many containers wait for
    /// their tool, of the shapes that were needed last.
    #[must_use]
    pub fn warm(self, most: u32) -> Self {
        Self { pool: Pool::new(most as usize), ..self }
    }

    /// Takes every container away that waits, and waits for those that are
    /// being taken down. Nothing waits from now on.
    pub async fn drain(&self) {
        self.pool.drain().await;
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// This process as containers know it, marked as alive from now on.
    pub(crate) fn installation(&self) -> Result<&Arc<Installation>, Problem> {
        let _one = self.opening.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(installation) = self.installation.get() {
            return Ok(installation);
        }
        let opened = Arc::new(Installation::open(&self.folder)?);
        Ok(self.installation.get_or_init(|| opened))
    }

    /// Looks an image up that the engine has already: by tag or by id.
    ///
    /// # Errors
    /// `image-unknown`, `image-invalid` for one that can't run here,
    /// `backend-unavailable`.
    pub async fn find_image(&self, reference: &str) -> Result<ImageRecord, Problem> {
        self.engine.find_image(reference).await
    }

    /// Whether an image can be run: the engine has it, and the runtime.
    pub(crate) async fn ready(&self, image: &Digest, runtime: Option<&Name>) -> Result<Image, Problem> {
        if let Some(runtime) = runtime {
            let facts = self.engine.facts().await?;
            if !facts.runtimes.iter().any(|known| known == runtime.as_str()) {
                let message = format!("the container engine has no runtime `{runtime}`");
                let known = facts.runtimes.join(", ");
                return Err(Problem::new(Code::ContractUnsatisfied, message)
                    .with_help(format!("add it to the engine's configuration; it has {known}")));
            }
        }
        let there = self.engine.have_image(image).await?;
        // Whatever comes of it: `gc` tells what could not be taken away.
        self.swept.get_or_init(async || drop(self.sweep(false).await)).await;
        Ok(there)
    }

    /// Takes away what processes of this state folder left that are gone, on the
    /// engine and on disk. `dry_run`: only tells. Where there never was a
    /// container, nobody is asked.
    ///
    /// # Errors
    /// `backend-unavailable` where the engine does not answer.
    pub async fn sweep(&self, dry_run: bool) -> Result<Swept, Problem> {
        if !self.folder.is_dir() {
            return Ok(Swept::default());
        }
        self.installation()?.sweep(&self.engine, dry_run).await
    }
}
