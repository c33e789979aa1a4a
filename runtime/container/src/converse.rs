//! A conversation with a program in a container: what it says and hears passes
//! while it runs, at the pace of whoever is slower.
//!
//! Its container is made, compared, watched and ended as any other. The program
//! has nothing but its image and folders of its own in memory, and it is gone
//! when nobody holds the conversation any more.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env_contracts::{Code, Digest, Id, Limits, Name, Problem};
use glovebox_runtime::job::{End, Frame, FrameSink, JobUsage};
use glovebox_runtime::{RunReport, Stop};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

use crate::backend::environment;
use crate::containers::Containers;
use crate::drive::{self, Errand};
use crate::folders::Folders;
use crate::image;
use crate::streams::Streams;

/// What is on its way in either direction: who is slower is waited for from
/// there on.
const PIPE: usize = 64 << 10;

/// What is kept of the last that it said on standard error, in bytes.
const TAIL: usize = 4 << 10;

/// How long a program that hears the end of its input may take to end by itself.
const LEAVING: Duration = Duration::from_millis(500);

/// A program to converse with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The action that it is for; none: it belongs to none.
    pub action: Option<Id>,
    /// The image.
    pub image: Digest,
    /// The container runtime; none: the engine's own.
    pub runtime: Option<Name>,
    /// What it may use. Time begins with the program.
    pub limits: Limits,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its environment, beside and before the image's.
    pub env: Vec<(String, String)>,
}

/// A program that is spoken to.
pub struct Conversation {
    /// What it says on standard output. Its end is the program's.
    pub said: DuplexStream,
    /// Its standard input. Shutting it down ends that.
    pub told: DuplexStream,
    /// The program itself.
    pub life: Life,
}

/// The life of a program that is spoken to. Dropping it ends the program and
/// takes its container away.
pub struct Life {
    stop: Stop,
    tail: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<RunReport>,
}

impl Containers {
    /// Begins a conversation. It is made in the background: what goes wrong is in
    /// the report of its end. What the program says on standard error goes to
    /// `stderr`, and counts with what it says otherwise.
    ///
    /// It has to be called where tokio runs.
    pub fn converse(self: &Arc<Self>, program: Program, stderr: Box<dyn FrameSink>) -> Conversation {
        let (said, hers) = tokio::io::duplex(PIPE);
        let (told, heard) = tokio::io::duplex(PIPE);
        let (stop, tail) = (Stop::default(), Arc::default());
        let mut ear = Ear { sink: stderr, tail: Arc::clone(&tail) };
        let (containers, stopped) = (self.clone(), stop.clone());
        // Whoever waits for all containers to be gone waits for this one.
        let task = self.pool().spawn(async move {
            let streams = Streams::spoken(heard, hers);
            match errand(&containers, program, streams).await {
                Ok((installation, errand)) => {
                    Box::pin(drive::run(&containers, &installation, errand, &mut ear, &stopped)).await
                }
                Err(problem) => report(End::Refused(problem)),
            }
        });
        Conversation { said, told, life: Life { stop, tail, task } }
    }
}

type Installed = Arc<crate::marks::Installation>;

async fn errand(containers: &Containers, program: Program, streams: Streams) -> Result<(Installed, Errand), Problem> {
    let Program { action, image, runtime, limits, argv, env } = program;
    if argv.is_empty() {
        return Err(Problem::new(Code::ImageCommand, "nothing is named that could be run in the image"));
    }
    let there = containers.ready(&image, runtime.as_ref()).await?;
    let folders = Folders::none();
    let errand = Errand {
        action: action.map_or_else(|| format!("talk-{}", uuid::Uuid::new_v4().simple()), |action| action.to_string()),
        image: image::id(&image),
        runtime: runtime.map(|runtime| runtime.to_string()),
        limits,
        argv,
        env: environment(&there.env, env),
        cwd: there.workdir,
        streams,
        volumes: there.volumes.into_iter().filter(|volume| folders.is_free(volume)).collect(),
        folders,
    };
    Ok((containers.installation()?.clone(), errand))
}

fn report(end: End) -> RunReport {
    RunReport { end, usage: JobUsage::default(), notices: Vec::new() }
}

impl Life {
    /// The last that it said on standard error.
    pub fn last_words(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).trim().to_owned()
    }

    /// Waits until it is over, container and all.
    pub async fn over(mut self) -> RunReport {
        (&mut self.task)
            .await
            .unwrap_or_else(|error| report(End::HostFailed(format!("a conversation failed: {error}"))))
    }

    /// Ends it: a program that heard the end of its input may leave by itself.
    /// Comes back when its container is gone, or on its way out where others
    /// wait.
    pub async fn end(mut self) -> RunReport {
        if let Ok(Ok(report)) = tokio::time::timeout(LEAVING, &mut self.task).await {
            return report;
        }
        self.stop.request();
        self.over().await
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.stop.request();
    }
}

/// Keeps the last that is said on standard error, and passes all of it on.
struct Ear {
    sink: Box<dyn FrameSink>,
    tail: Arc<Mutex<Vec<u8>>>,
}

impl FrameSink for Ear {
    fn frame(&mut self, frame: Frame<'_>) {
        // What else there is has lost its listener.
        let Frame::Stderr(bytes) = frame else { return };
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
        drop(tail);
        self.sink.frame(frame);
    }
}
