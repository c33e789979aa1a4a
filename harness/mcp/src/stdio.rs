//! One connection over a pair of pipes: a message a line.
//!
//! It keeps the arguments of calls as they came, and stops what runs as soon as
//! the client is gone.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::{Mutex, mpsc};

use crate::call::Received;
use crate::door::Door;
use crate::drive::Traffic;

/// The longest message, in bytes: a call with all the arguments that any tool
/// takes. A client that never ends its line must not fill the memory.
const MAX_LINE: u64 = 16 << 20;

/// How many messages are read ahead.
const AHEAD: usize = 16;

impl Door {
    /// Serves one client over a pair of pipes, until it is gone. What runs then
    /// is stopped; what waits for a person goes on waiting.
    ///
    /// # Errors
    /// What the transport says where the client does not speak the protocol.
    pub async fn serve(
        &self,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> std::io::Result<()> {
        let pipes = Pipes::new(read, write, self.traffic.clone());
        let served = Box::pin(serve_server(self.clone(), pipes)).await;
        let ended = match served {
            Ok(running) => running.waiting().await.map(drop).map_err(std::io::Error::other),
            // Nobody said anything: that is no mistake.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(std::io::Error::other(error)),
        };
        self.close().await;
        ended
    }
}

/// The two pipes.
struct Pipes<W> {
    lines: mpsc::Receiver<Line>,
    write: Arc<Mutex<W>>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Pipes<W> {
    fn new(read: impl AsyncRead + Send + Unpin + 'static, write: W, traffic: Arc<Traffic>) -> Self {
        let (sender, lines) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            let mut read = BufReader::new(read);
            while let Some(line) = next_line(&mut read).await {
                if sender.send(line).await.is_err() {
                    break;
                }
            }
            // Before anything else: what is still running is for nobody.
            traffic.stop();
        });
        Self { lines, write: Arc::new(Mutex::new(write)) }
    }
}

/// A line of the client's.
enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// It was too long, and is gone.
    TooLong,
}

/// The next line. `None`: there is no more.
async fn next_line(read: &mut (impl AsyncBufRead + Unpin)) -> Option<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let count = read.take(MAX_LINE).read_until(b'\n', &mut line).await.ok()?;
        match (count, line.last() == Some(&b'\n')) {
            (0, _) => return None,
            (_, true) if too_long => return Some(Line::TooLong),
            (_, true) => return Some(Line::Whole(line)),
            (_, false) => too_long = true,
        }
        line.clear();
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Pipes<W> {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = self.write.clone();
        async move { send(&write, &message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let read = match self.lines.recv().await? {
                Line::Whole(line) => message(&line),
                Line::TooLong => Err(Refusal::of(None, too_long())),
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => {
                    // Not here: whoever waits for this may give up at any time.
                    let Refusal { id, error } = *refusal;
                    let (write, refusal) = (self.write.clone(), ServerJsonRpcMessage::error(error, id));
                    tokio::spawn(async move { send(&write, &refusal).await });
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.shutdown().await
    }
}

async fn send<W: AsyncWrite + Unpin>(write: &Mutex<W>, message: &ServerJsonRpcMessage) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut write = write.lock().await;
    write.write_all(&line).await?;
    write.flush().await
}

fn too_long() -> ErrorData {
    ErrorData::invalid_request(format!("a message has at most {MAX_LINE} bytes"), None)
}

/// What is read of every message.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default, borrow)]
    params: Option<Parameters<'a>>,
}

#[derive(Deserialize)]
struct Parameters<'a> {
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

/// Why a line is no message, for whoever sent it.
struct Refusal {
    id: Option<RequestId>,
    error: ErrorData,
}

impl Refusal {
    fn of(id: Option<RequestId>, error: ErrorData) -> Box<Self> {
        Box::new(Self { id, error })
    }
}

/// A line as a message. `None`: it is none that is meant for a server.
fn message(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<Refusal>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let envelope = serde_json::from_slice::<Envelope<'_>>(line);
    let mut message: ClientJsonRpcMessage = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => {
            let id = envelope.ok().and_then(|envelope| envelope.id);
            return match (id, error.is_data()) {
                // A notification that nobody knows wants no answer.
                (None, true) => Ok(None),
                (Some(id), _) => Err(Refusal::of(Some(id), ErrorData::invalid_request(error.to_string(), None))),
                (None, false) => Err(Refusal::of(None, ErrorData::parse_error(error.to_string(), None))),
            };
        }
    };
    if let JsonRpcMessage::Request(request) = &mut message {
        // Such as parameters that stand there twice.
        let envelope = envelope.map_err(|error| {
            Refusal::of(Some(request.id.clone()), ErrorData::invalid_request(error.to_string(), None))
        })?;
        let arguments = envelope.params.and_then(|parameters| parameters.arguments);
        if let (ClientRequest::CallToolRequest(call), Some(arguments)) = (&mut request.request, arguments) {
            call.extensions.insert(Received(arguments.get().to_owned()));
        }
    }
    Ok(Some(message))
}
