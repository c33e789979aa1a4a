//! What passes between here and a program: a message a line. Whoever writes
//! something else is not listened to any more.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

use super::wire::{Fault, Faults};

/// How much of a line that is no message is shown, in bytes.
const SHOWN: usize = 120;

/// The two pipes of a program.
pub(super) struct Pipe<R, W> {
    read: BufReader<R>,
    /// What came of a line so far: who waits for it may give up at any time.
    line: Vec<u8>,
    /// The longest line, in bytes.
    most: usize,
    write: Arc<Mutex<W>>,
    asked: Asked,
    faults: Faults,
}

/// What was asked and not answered yet.
#[derive(Clone, Default)]
struct Asked(Arc<StdMutex<BTreeSet<String>>>);

impl<R: AsyncRead + Unpin, W> Pipe<R, W> {
    pub(super) fn new(read: R, write: W, most: usize, faults: Faults) -> Self {
        let (read, write) = (BufReader::new(read), Arc::new(Mutex::new(write)));
        Self { read, line: Vec::new(), most, write, asked: Asked::default(), faults }
    }

    /// The next line. `None`: there is no more, or none is wanted. Dropping the
    /// future loses nothing.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let came = match self.read.fill_buf().await {
                Ok(came) if !came.is_empty() => came,
                // It ended, or nobody can be heard: what became of it tells more.
                _ => return None,
            };
            let end = came.iter().position(|byte| *byte == b'\n');
            let piece = &came[..end.unwrap_or(came.len())];
            if self.line.len() + piece.len() > self.most {
                self.faults.note(Fault::TooMuch);
                return None;
            }
            self.line.extend_from_slice(piece);
            let count = piece.len() + usize::from(end.is_some());
            self.read.consume(count);
            if end.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Pipe<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message {
            self.asked.ask(&request.id);
        }
        let write = self.write.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        while self.faults.first().is_none() {
            let line = self.next_line().await?;
            match message(&line) {
                Ok(None) => {}
                Ok(Some(message)) if self.asked.takes(&message) => return Some(message),
                Ok(Some(_)) => self.faults.note(Fault::Wrong("it answers what it was not asked".to_owned())),
                Err(why) => self.faults.note(Fault::Wrong(why)),
            }
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.shutdown().await
    }
}

impl Asked {
    fn ask(&self, id: &RequestId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_string());
    }

    /// Whether a message is no answer, or the one answer to what was asked. Some
    /// servers write our numbers as texts.
    fn takes(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => &response.id,
            // It could not read what it was sent, and so not the id.
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                None => return true,
            },
            _ => return true,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string())
    }
}

/// What is read of a line that is no message that is known.
#[derive(Deserialize)]
struct Envelope {
    jsonrpc: String,
    #[serde(rename = "method")]
    _method: String,
    id: Option<IgnoredAny>,
}

/// A line as a message. `None`: it says nothing that somebody waits for.
fn message(line: &[u8]) -> Result<Option<ServerJsonRpcMessage>, String> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(line) {
        Ok(message) => Ok(Some(message)),
        Err(error) => match serde_json::from_slice::<Envelope>(line) {
            // A notification that nobody knows wants no answer.
            Ok(Envelope { jsonrpc, id: None, .. }) if jsonrpc == "2.0" => Ok(None),
            _ => {
                let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned();
                let more = if line.len() > SHOWN { " …" } else { "" };
                Err(format!("it writes what is no message ({error}): {shown}{more}"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    /// What is heard of a program that writes this, after it was asked `1`.
    async fn heard(said: &[u8], most: usize) -> (usize, Option<Fault>) {
        let (mut theirs, ours) = duplex(16);
        let faults = Faults::default();
        let mut pipe = Pipe::new(ours, tokio::io::sink(), most, faults.clone());
        pipe.asked.ask(&NumberOrString::Number(1));
        let said = said.to_vec();
        let telling = tokio::spawn(async move {
            let _ = theirs.write_all(&said).await;
        });
        let mut count = 0;
        while pipe.receive().await.is_some() {
            count += 1;
        }
        telling.abort();
        (count, faults.first())
    }

    #[tokio::test]
    async fn messages_are_heard_and_nothing_else() {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let note = r#"{"jsonrpc":"2.0","method":"notifications/x","params":7}"#;
        let good = format!("\n{note}\r\n{answer}\n{note}\n");
        assert_eq!(heard(good.as_bytes(), 1 << 10).await, (heard_of(note).await * 2 + 1, None));
        let text = answer.replace(":1,", ":\"1\",");
        assert_eq!(heard(format!("{text}\n").as_bytes(), 1 << 10).await, (1, None));
        // An end in the middle of a line is an end.
        assert_eq!(heard(&answer.as_bytes()[..9], 1 << 10).await, (0, None));
        for wrong in [
            format!("{answer}\n{answer}\n"),
            format!("{}\n", answer.replace(":1,", ":2,")),
            format!("{}\n", answer.replace(":1,\"result\":{}", ":\"x\",\"error\":{\"code\":-1,\"message\":\"m\"}")),
            "Starting up …\n".to_owned(),
            "{\"level\":\"info\"}\n".to_owned(),
            "[]\n".to_owned(),
        ] {
            let (_, fault) = heard(format!("{wrong}{note}\n").as_bytes(), 1 << 10).await;
            assert!(matches!(&fault, Some(Fault::Wrong(_))), "{wrong}: {fault:?}");
        }
        assert_eq!(heard(answer.as_bytes(), answer.len() - 1).await, (0, Some(Fault::TooMuch)));
    }

    async fn heard_of(line: &str) -> usize {
        heard(format!("{line}\n").as_bytes(), 1 << 10).await.0
    }

    /// A line without end costs what a line may have, and no more is read of it.
    #[tokio::test]
    async fn a_line_without_end_is_read_as_far_as_a_line_goes() {
        let (ours, mut theirs) = duplex(1 << 10);
        let faults = Faults::default();
        let mut pipe = Pipe::new(ours, tokio::io::sink(), 1 << 20, faults.clone());
        let telling = tokio::spawn(async move {
            let mut told = 0_usize;
            while told < 64 << 20 && theirs.write_all(&[b'x'; 1 << 10]).await.is_ok() {
                told += 1 << 10;
            }
            told
        });
        assert!(pipe.receive().await.is_none());
        assert_eq!(faults.first(), Some(Fault::TooMuch));
        assert!(pipe.line.capacity() <= 2 << 20);
        drop(pipe);
        let told = telling.await.unwrap();
        assert!(told <= (1 << 20) + (64 << 10), "{told}");
    }

    /// Nobody loses a piece of a line by waiting for something else meanwhile.
    #[tokio::test]
    async fn who_stops_waiting_loses_nothing() {
        let (mut theirs, ours) = duplex(1 << 10);
        let mut pipe = Pipe::new(ours, tokio::io::sink(), 1 << 10, Faults::default());
        theirs.write_all(br#"{"jsonrpc":"2.0","method":"#).await.unwrap();
        let waited = tokio::time::timeout(std::time::Duration::from_millis(50), pipe.receive()).await;
        assert!(waited.is_err());
        theirs.write_all(b"\"ping\",\"id\":4}\n").await.unwrap();
        assert!(matches!(pipe.receive().await, Some(JsonRpcMessage::Request(_))));
        drop(theirs.read(&mut [0]));
    }
}
