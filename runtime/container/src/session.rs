//! The conversation with one supervisor.

use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::query_parameters::AttachContainerOptionsBuilder;
use bollard::{Docker, container::AttachContainerResults};
use env_contracts::Problem;
use futures_util::{Stream, StreamExt as _};
use glovebox_supervisor::{Decoder, FrameError, Key, Order, Report, Sealer};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use crate::engine::{QUICK, within};

/// Pieces of orders that wait to be taken by the engine.
const QUEUE: usize = 64;
/// What is kept of what comes beside the frames: why a supervisor gave up.
const BESIDE_MAX: usize = 4 << 10;
/// How long the engine may take to pass an order on, when it is to stop.
const LAST_WORD: Duration = Duration::from_millis(500);

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// Why a conversation is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    /// The other side is gone.
    Ended,
    /// What it said was not sealed as it should be, or no report.
    Broken(FrameError),
}

/// Speaks to a supervisor. Cloning shares the way.
#[derive(Clone)]
pub(crate) struct Orders(mpsc::Sender<Vec<u8>>);

impl Orders {
    /// Says something; waits where the engine is slow. `false`: nobody listens
    /// any more.
    pub(crate) async fn say(&self, order: &Order<'_>) -> bool {
        self.0.send(bytes(order)).await.is_ok()
    }

    /// The same from a thread that may block.
    pub(crate) fn say_blocking(&self, order: &Order<'_>) -> bool {
        self.0.blocking_send(bytes(order)).is_ok()
    }

    /// Says something, but waits for nobody.
    pub(crate) async fn say_at_once(&self, order: &Order<'_>) -> bool {
        tokio::time::timeout(LAST_WORD, self.say(order)).await.unwrap_or(false)
    }
}

fn bytes(order: &Order<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    order.write(&mut Sealer::open(), &mut bytes);
    bytes
}

/// Hears a supervisor.
pub(crate) struct Session {
    output: Output,
    orders: Option<Orders>,
    decoder: Decoder,
    beside: Vec<u8>,
}

impl Session {
    /// Attaches to a container that does not run yet.
    pub(crate) async fn attach(client: &Docker, id: &str, key: &Key) -> Result<Self, Problem> {
        let options =
            AttachContainerOptionsBuilder::default().stdin(true).stdout(true).stderr(true).stream(true).build();
        let attach = client.attach_container(id, Some(options));
        let AttachContainerResults { output, mut input } = within("attaching to a container", QUICK, attach).await?;
        let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(QUEUE);
        // A task of its own: whoever speaks goes on hearing.
        tokio::spawn(async move {
            while let Some(bytes) = receiver.recv().await {
                if input.write_all(&bytes).await.is_err() || input.flush().await.is_err() {
                    return;
                }
            }
            // Nothing more is said: its input ends.
            let _ = input.shutdown().await;
        });
        Ok(Self { output, orders: Some(Orders(sender)), decoder: Decoder::new(key), beside: Vec::new() })
    }

    /// The way to speak.
    pub(crate) fn orders(&self) -> Orders {
        // Only `hang_up` takes it, and it takes the session's last word.
        self.orders.clone().unwrap_or_else(|| Orders(mpsc::channel(1).0))
    }

    /// Says that nothing more will be said: a supervisor ends then.
    pub(crate) fn hang_up(&mut self) {
        self.orders = None;
    }

    /// Waits for something to be said, and hands it on. Dropping the future
    /// loses nothing.
    pub(crate) async fn hear(&mut self, each: impl FnMut(Report<'_>) -> Result<(), FrameError>) -> Result<(), Over> {
        match self.output.next().await {
            Some(Ok(LogOutput::StdOut { message })) => {
                Report::read(&mut self.decoder, &message, each).map_err(Over::Broken)
            }
            Some(Ok(LogOutput::StdErr { message })) => {
                let room = BESIDE_MAX.saturating_sub(self.beside.len());
                self.beside.extend_from_slice(&message[..message.len().min(room)]);
                Ok(())
            }
            Some(Ok(_)) => Ok(()),
            Some(Err(_)) | None => Err(Over::Ended),
        }
    }

    /// What came beside the frames.
    pub(crate) fn beside(&self) -> String {
        String::from_utf8_lossy(&self.beside).trim().to_owned()
    }
}
