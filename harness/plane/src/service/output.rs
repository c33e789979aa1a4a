//! What an action prints, by its place in the stream: while it runs here, and
//! after it ended.

use data_encoding::BASE64;
use env_contracts::{Code, Id, Name, Principal, Problem, StreamOutput};
use glovebox_artifacts::ArtifactUri;
use glovebox_events::ActionState;
use tokio::sync::watch;

use super::ActionService;
use crate::streams::OutputStream;

/// The most bytes of one answer: a few of them fill a screen many times over,
/// and some hundred readers at once stay in tens of megabytes.
pub const MAX_OUTPUT_CHUNK: usize = 256 << 10;

/// Some bytes of a stream that stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    /// Where in the stream the bytes begin. The next ones are asked for from
    /// here plus their number on.
    pub offset: u64,
    /// The bytes, as the tool printed them. Untrusted.
    pub bytes: Vec<u8>,
    /// How long the stream is by now.
    pub total: u64,
    /// Whether it grows no more. What is behind these bytes may still have to
    /// be read.
    pub ended: bool,
    /// How many bytes from the offset that was asked for are nowhere: there were
    /// more than are kept. The bytes begin behind them.
    pub omitted: u64,
}

impl ActionService {
    /// At most `max` bytes, and at most [`MAX_OUTPUT_CHUNK`], of what an action
    /// prints, from `offset` on. No bytes where there are none yet, or no more.
    ///
    /// # Errors
    /// `action-unknown`, also for those of others; `output-elsewhere` while it
    /// runs in another process; `expired` where it was erased.
    pub async fn output(
        &self,
        principal: &Principal,
        action: &Id,
        stream: OutputStream,
        offset: u64,
        max: usize,
    ) -> Result<OutputChunk, Problem> {
        let max = max.min(MAX_OUTPUT_CHUNK);
        let nothing = |total, ended| OutputChunk { offset, bytes: Vec::new(), total, ended, omitted: 0 };
        // What can change nothing is not written down before it ended, or took
        // a moment: its run knows whose it is.
        let here = self.live.get(&principal.tenant, action);
        let here = here.filter(|running| self.looks_at_action(principal, &running.principal));
        if let Some(running) = here {
            let read = tokio::task::spawn_blocking(move || running.streams.read(stream, offset, max)).await;
            let (piece, total) = read.map_err(|error| Problem::new(Code::BackendError, error.to_string()))?;
            if let Some(piece) = piece {
                let omitted = piece.offset - offset;
                return Ok(OutputChunk { offset: piece.offset, bytes: piece.bytes, total, ended: false, omitted });
            }
            // Its end is being written down.
            match self.parts.store.action(&principal.tenant, action)? {
                Some(known) if known.state.ended() => {}
                _ => return Ok(nothing(total, false)),
            }
        }
        let known = self.visible(principal, action)?;
        if known.state.ended() {
            let output = self.observation(&known)?.output;
            let kept = match stream {
                OutputStream::Stdout => output.stdout,
                OutputStream::Stderr => output.stderr,
            };
            return self.kept(kept, offset, max).await;
        }
        if known.state == ActionState::Running && known.holder.as_ref() != Some(self.parts.holders.me()) {
            let message = format!("action `{action}` runs in another process, which alone knows what it prints");
            return Err(Problem::new(Code::OutputElsewhere, message));
        }
        Ok(nothing(0, false))
    }

    /// Something to wait with for more of what an action prints: whoever
    /// follows it makes one first, then reads until nothing is left, waits, and
    /// reads again. A run that nobody follows pays for a look at an atomic.
    ///
    /// # Errors
    /// `action-unknown`, also for those of others, and those of the store.
    pub fn output_moved(&self, principal: &Principal, action: &Id) -> Result<OutputMoved, Problem> {
        let mut moved = OutputMoved {
            // Listened to before anything is looked at: what happens after
            // that ticks.
            changes: self.parts.store.changes()?,
            began: self.live.began(),
            service: self.clone(),
            tenant: principal.tenant.clone(),
            action: action.clone(),
            here: None,
        };
        let running = self.live.get(&principal.tenant, action);
        if running.is_none_or(|running| !self.looks_at_action(principal, &running.principal)) {
            self.visible(principal, action)?;
        }
        moved.look();
        Ok(moved)
    }

    /// What is kept of a stream that grows no more.
    async fn kept(&self, stream: StreamOutput, offset: u64, max: usize) -> Result<OutputChunk, Problem> {
        let total = stream.total;
        let mut chunk = OutputChunk { offset, bytes: Vec::new(), total, ended: true, omitted: 0 };
        let kept = Kept::of(stream)?;
        while chunk.bytes.len() < max {
            let at = chunk.offset + chunk.bytes.len() as u64;
            let most = max - chunk.bytes.len();
            if at >= total {
                break;
            }
            if let Some(bytes) = kept.at(at) {
                chunk.bytes.extend(bytes.iter().take(most));
                continue;
            }
            if let Some(uri) = &kept.whole {
                // The whole stream, or its first part.
                match self.parts.artifacts.range(uri, at, most).await {
                    Ok(bytes) if !bytes.is_empty() => {
                        chunk.bytes.extend_from_slice(&bytes);
                        continue;
                    }
                    // Retention took it: what the Observation has is all.
                    Ok(_) | Err(glovebox_artifacts::Error::Unknown(_)) => {}
                    Err(error) => return Err(Problem::of(&error)),
                }
            }
            if !chunk.bytes.is_empty() {
                break;
            }
            chunk.offset = kept.tail_at;
            chunk.omitted = kept.tail_at - offset;
        }
        Ok(chunk)
    }
}

/// Waits for more of what an action prints.
pub struct OutputMoved {
    service: ActionService,
    tenant: Name,
    action: Id,
    /// Ticks when the run says something, while it is under way here.
    here: Option<watch::Receiver<u64>>,
    began: watch::Receiver<u64>,
    changes: watch::Receiver<u64>,
}

impl OutputMoved {
    /// Returns once there may be more than before the last call, or the action
    /// ended. It may return for nothing. Dropping it misses nothing.
    pub async fn moved(&mut self) {
        match &mut self.here {
            // It is told once more when its run is over.
            Some(here) => drop(here.changed().await),
            None => {
                // Neither of them ends before the service does.
                tokio::select! {
                    _ = self.began.changed() => {}
                    _ = self.changes.changed() => {}
                }
            }
        }
        self.look();
    }

    /// Listens to the run, where it is under way here.
    fn look(&mut self) {
        match (self.service.live.get(&self.tenant, &self.action), &self.here) {
            (Some(running), None) => self.here = Some(running.streams.moved()),
            (Some(_), Some(_)) => {}
            (None, _) => self.here = None,
        }
    }
}

/// What an Observation has of a stream: its beginning, its end, and where the
/// whole is.
struct Kept {
    bytes: Vec<u8>,
    /// So many of them are the beginning of the stream.
    head: usize,
    /// The others stand from here on.
    tail_at: u64,
    whole: Option<ArtifactUri>,
}

impl Kept {
    fn of(stream: StreamOutput) -> Result<Self, Problem> {
        let damaged = |what: &str| Problem::new(Code::StoreCorrupt, format!("the {what} of a stream can't be read"));
        let bytes = match (stream.text, stream.base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(base64)) => BASE64.decode(base64.as_bytes()).map_err(|_| damaged("base64"))?,
            (None, None) => Vec::new(),
        };
        let head = stream.omitted_at.map_or(Some(bytes.len()), |at| usize::try_from(at).ok());
        let head = head.filter(|head| *head <= bytes.len()).ok_or_else(|| damaged("omission"))?;
        let tail_at = stream.total.saturating_sub((bytes.len() - head) as u64);
        let whole = stream.artifact.map(|uri| uri.parse()).transpose();
        let whole = whole.map_err(|error: glovebox_artifacts::Error| Problem::of(&error))?;
        Ok(Self { bytes, head, tail_at, whole })
    }

    /// What stands together from this place on.
    fn at(&self, at: u64) -> Option<&[u8]> {
        let (head, tail) = self.bytes.split_at(self.head);
        let from = if at < self.head as u64 { Some((head, at)) } else { Some((tail, at.checked_sub(self.tail_at)?)) };
        let (part, from) = from?;
        part.get(usize::try_from(from).ok()?..).filter(|bytes| !bytes.is_empty())
    }
}
