//! Connections: who is at the other end, how many there are, and how they end.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use env_contracts::{Code, Problem};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::auth::{Connection, Reached};

/// How long a client takes for the head of a request at most. A slow one must
/// not hold a connection for ever.
const HEAD: Duration = Duration::from_secs(10);

/// The largest head of a request, and with it what an idle connection holds, in
/// bytes.
const BUFFER: usize = 16 << 10;

/// How long is waited after an accept that failed: out of descriptors, it
/// would fail at once again.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a server listens.
pub struct Listeners {
    pub(crate) tcp: Option<TcpListener>,
    pub(crate) unix: Option<(UnixListener, Socket)>,
}

/// The file of a Unix socket, which goes with its listener.
pub(crate) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs_err::remove_file(&self.0);
    }
}

impl Listeners {
    /// Opens them. The socket is for its owner alone, unless `others` may
    /// connect: who they are, the kernel says.
    ///
    /// # Errors
    /// `backend-unavailable` where the address or the path can't be used.
    pub async fn open(address: Option<SocketAddr>, socket: Option<&Path>, others: bool) -> Result<Self, Problem> {
        let failed = |what: String, error: std::io::Error| {
            Problem::new(Code::BackendUnavailable, format!("cannot listen at {what}: {error}"))
                .with_help("choose another with --listen ADDRESS:PORT, or stop what uses it")
        };
        let tcp = match address {
            Some(address) => {
                Some(TcpListener::bind(address).await.map_err(|error| failed(format!("`{address}`"), error))?)
            }
            None => None,
        };
        let unix = match socket {
            Some(path) => {
                let what = || format!("`{}`", path.display());
                Some(open_socket(path, others).await.map_err(|error| failed(what(), error))?)
            }
            None => None,
        };
        Ok(Self { tcp, unix })
    }

    /// The address, where there is one; its port may have been chosen here.
    pub fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|tcp| tcp.local_addr().ok())
    }
}

async fn open_socket(path: &Path, others: bool) -> std::io::Result<(UnixListener, Socket)> {
    // One that nobody listens at was left by a crash.
    if path.exists() {
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(std::io::Error::new(std::io::ErrorKind::AddrInUse, "another server listens there"));
        }
        fs_err::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    let mode = if others { 0o666 } else { 0o600 };
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok((listener, Socket(path.to_owned())))
}

/// Serves until `ending`, then lets requests under way end for so long.
pub(crate) async fn serve(
    listeners: Listeners,
    router: Router,
    reached: Reached,
    most: usize,
    ending: &CancellationToken,
    grace: Duration,
) {
    let open = Connections { graceful: GracefulShutdown::new(), router, room: Arc::new(Semaphore::new(most)) };
    let tcp = async {
        let Some(listener) = &listeners.tcp else { return std::future::pending().await };
        loop {
            let room = open.room().await;
            match listener.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    open.take(stream, Connection { reached: reached.clone(), peer: None }, room);
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    let unix = async {
        let Some((listener, _)) = &listeners.unix else { return std::future::pending().await };
        loop {
            let room = open.room().await;
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Ok(peer) = stream.peer_cred() else { continue };
                    open.take(stream, Connection { reached: Reached::default(), peer: Some(peer.uid()) }, room);
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    tokio::select! {
        () = tcp => {}
        () = unix => {}
        () = ending.cancelled() => {}
    }
    drop(listeners);
    let _ = tokio::time::timeout(grace, open.graceful.shutdown()).await;
}

struct Connections {
    graceful: GracefulShutdown,
    router: Router,
    room: Arc<Semaphore>,
}

impl Connections {
    /// Waits for room for one more. Who comes meanwhile waits in the kernel.
    async fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.room.clone().acquire_owned().await.ok()
    }

    fn take<S>(&self, stream: S, connection: Connection, room: Option<OwnedSemaphorePermit>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone();
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(connection.clone());
            router.clone().oneshot(request)
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(BUFFER);
        let serving = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let serving = self.graceful.watch(serving);
        tokio::spawn(async move {
            // How a connection ends is its client's affair.
            let _ = serving.await;
            drop(room);
        });
    }
}
