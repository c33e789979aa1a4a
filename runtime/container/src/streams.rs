//! What a tool hears and says: whole, as most tools do it, or little by little
//! while it runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glovebox_supervisor::{Order, PIECE_MAX};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::session::Orders;

/// A program may be told so much in all: this part of the memory that it may
/// have. What it has not read lies there, because PID 1 takes all at once; so
/// one that does not listen costs its host nothing, and is not killed for what
/// others say.
const TOLD_PART: u64 = 2;

/// The standard streams of one tool.
#[derive(Default)]
pub(crate) struct Streams {
    /// What it hears.
    pub(crate) input: Input,
    /// Who waits for what it says on standard output; none: the sink of its run
    /// takes it.
    outlet: Option<Outlet>,
}

/// What a tool hears.
pub(crate) enum Input {
    /// This, and no more.
    Whole(Vec<u8>),
    /// What is told while it runs.
    Told(DuplexStream),
}

/// Somebody who takes what is said at their own pace.
struct Outlet {
    pipe: DuplexStream,
    /// What they have not taken: what came at once, and no more, because nothing
    /// else is heard before it is gone.
    held: Vec<u8>,
}

impl Default for Input {
    fn default() -> Self {
        Self::Whole(Vec::new())
    }
}

impl Streams {
    /// Of a tool that hears this and whose output nobody answers.
    pub(crate) fn of(input: Vec<u8>) -> Self {
        Self { input: Input::Whole(input), outlet: None }
    }

    /// Of one that is spoken to: what it is told, and who takes what it says.
    pub(crate) fn spoken(told: DuplexStream, said: DuplexStream) -> Self {
        Self { input: Input::Told(told), outlet: Some(Outlet { pipe: said, held: Vec::new() }) }
    }

    /// Keeps what was said for whoever takes it. `false`: nobody does.
    pub(crate) fn hold(&mut self, bytes: &[u8]) -> bool {
        self.outlet.as_mut().map(|outlet| outlet.held.extend_from_slice(bytes)).is_some()
    }

    /// Whether something is held.
    pub(crate) fn holds(&self) -> bool {
        self.outlet.as_ref().is_some_and(|outlet| !outlet.held.is_empty())
    }

    /// Passes on as much of it as is taken. Dropping the future loses nothing.
    pub(crate) async fn pass_on(&mut self) {
        let Some(outlet) = &mut self.outlet else { return };
        match outlet.pipe.write(&outlet.held).await {
            Ok(count) if count > 0 => drop(outlet.held.drain(..count)),
            // They are gone: it speaks to nobody.
            _ => outlet.held.clear(),
        }
    }

    /// Passes nothing on any more; what is said goes to the sink.
    pub(crate) fn close(&mut self) {
        self.outlet = None;
    }
}

impl Input {
    /// Says it to the supervisor, up to its end. `memory` is what the container
    /// may have.
    pub(crate) async fn feed(self, orders: &Orders, quiet: &Quiet, memory: u64) {
        let mut told = match self {
            Self::Whole(bytes) => {
                let _ =
                    (bytes.is_empty() || orders.say(&Order::Stdin(&bytes)).await) && orders.say(&Order::StdinEnd).await;
                return;
            }
            Self::Told(told) => told,
        };
        let (mut piece, mut left) = (vec![0; PIECE_MAX], memory / TOLD_PART);
        loop {
            match told.read(&mut piece).await {
                Ok(count) if count > 0 && count as u64 <= left => {
                    left -= count as u64;
                    quiet.stir();
                    if !orders.say(&Order::Stdin(&piece[..count])).await {
                        return;
                    }
                }
                // That was all, or it is too much: whoever goes on hears so.
                _ => {
                    drop(told);
                    orders.say(&Order::StdinEnd).await;
                    return;
                }
            }
        }
    }
}

/// Since when nothing was said or told. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Quiet(Arc<Mutex<Instant>>);

impl Default for Quiet {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Quiet {
    /// Something was.
    pub(crate) fn stir(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long nothing was.
    pub(crate) fn lasted(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}
