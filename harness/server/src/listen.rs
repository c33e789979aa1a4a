//! Connections: who is at the other end, how many there are, and how they end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, header};
use env_contracts::{Code, Problem};
use futures_util::TryFutureExt as _;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::auth::{Connection, Reached};
use crate::body::Coming;
use crate::telemetry::Logs;
use crate::tls::{Tls, TlsFiles};

/// How long a client takes for the head of a request at most. A slow one must
/// not hold a connection for ever.
const HEAD: Duration = Duration::from_secs(10);

/// The largest head of a request, and with it what an idle connection holds, in
/// bytes.
const BUFFER: usize = 16 << 10;

/// How long is waited after an accept that failed: out of descriptors, it
/// would fail at once again.
const PAUSE: Duration = Duration::from_millis(50);

/// For how long browsers come back by TLS only: a year.
const STRICT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// What is between a server's port and the network.
#[derive(Debug, Clone, Default)]
pub enum Front {
    /// Nothing: for the loopback alone.
    #[default]
    Plain,
    /// TLS of its own.
    Tls(TlsFiles),
    /// A proxy, which speaks TLS for it.
    Proxy,
}

/// Where a server listens.
pub struct Listeners {
    tcp: Option<TcpListener>,
    tls: Option<Tls>,
    proxy: bool,
    unix: Option<(UnixListener, Socket)>,
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
    /// `config-invalid` for an address that others reach and nothing that
    /// protects what goes there, and for bad files; `backend-unavailable` where
    /// the address or the path can't be used.
    pub async fn open(
        address: Option<SocketAddr>,
        socket: Option<&Path>,
        others: bool,
        front: Front,
    ) -> Result<Self, Problem> {
        if let Some(address) = address
            && !address.ip().to_canonical().is_loopback()
            && matches!(front, Front::Plain)
        {
            let message = format!("`{address}` is reached from elsewhere, and tokens would go there unencrypted");
            return Err(Problem::new(Code::ConfigInvalid, message).with_help(
                "name a certificate and its key with `serve.tls_cert` and `serve.tls_key`, or say `--behind-proxy` \
                 where a proxy speaks TLS and nobody else reaches this address",
            ));
        }
        let proxy = matches!(front, Front::Proxy);
        let tls = if let Front::Tls(files) = front { Some(Tls::open(files)?) } else { None };
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
        Ok(Self { tcp, tls, proxy, unix })
    }

    /// Whether what goes to the address is encrypted on the way.
    pub(crate) fn secure(&self) -> bool {
        self.tls.is_some() || self.proxy
    }

    /// Where people find its pages: by the first of the names by which it is
    /// reached, where what goes there is encrypted; else on this machine.
    pub fn url(&self, names: &[String]) -> Option<String> {
        let address = self.address()?;
        let port = address.port();
        let local = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
            _ => address,
        };
        Some(match (names.first(), &self.tls) {
            // Its port is the proxy's, and usually none is named.
            (Some(name), None) if self.proxy => format!("https://{name}"),
            (Some(name), Some(_)) if port == 443 => format!("https://{name}"),
            (Some(name), Some(_)) => format!("https://{name}:{port}"),
            (None, Some(_)) => format!("https://{local}"),
            (_, None) => format!("http://{local}"),
        })
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
    logs: &Logs,
) {
    let Listeners { tcp, tls, proxy: _, unix } = listeners;
    let tls = tls.map(Arc::new);
    let graceful = GracefulShutdown::new();
    // Who fills the port leaves the socket free.
    let [room, room_of_unix] = [most, most].map(|most| Arc::new(Semaphore::new(most)));
    // Waits for room for one more. Who comes meanwhile waits in the kernel.
    let taken = async |connection: Connection, room: &Arc<Semaphore>| Taken {
        router: router.clone(),
        connection,
        watcher: graceful.watcher(),
        room: room.clone().acquire_owned().await.ok(),
    };
    let from_tcp = async {
        let Some(listener) = &tcp else { return std::future::pending().await };
        loop {
            let taken = taken(Connection { reached: reached.clone(), peer: None }, &room).await;
            match listener.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    match &tls {
                        Some(tls) => shake(tls.clone(), stream, taken, ending.clone(), logs.clone()),
                        None => taken.serve(stream, false),
                    }
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    let from_unix = async {
        let Some((listener, _)) = &unix else { return std::future::pending().await };
        loop {
            let mut taken = taken(Connection { reached: Reached::default(), peer: None }, &room_of_unix).await;
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Ok(peer) = stream.peer_cred() else { continue };
                    taken.connection.peer = Some(peer.uid());
                    taken.serve(stream, false);
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    tokio::select! {
        () = from_tcp => {}
        () = from_unix => {}
        () = ending.cancelled() => {}
    }
    drop((tcp, unix));
    let _ = tokio::time::timeout(grace, graceful.shutdown()).await;
}

/// Shakes hands beside those who come next.
fn shake(tls: Arc<Tls>, stream: TcpStream, taken: Taken, ending: CancellationToken, logs: Logs) {
    tokio::spawn(async move {
        let shaken = tokio::select! {
            shaken = tls.accept(stream, &logs) => shaken,
            () = ending.cancelled() => None,
        };
        if let Some(stream) = shaken {
            taken.serve(stream, true);
        }
    });
}

/// A connection that was accepted.
struct Taken {
    router: Router,
    connection: Connection,
    watcher: Watcher,
    room: Option<OwnedSemaphorePermit>,
}

impl Taken {
    /// Serves it; `strict`: its browser is told to come by TLS only.
    fn serve<S>(self, stream: S, strict: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { router, connection, watcher, room } = self;
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = Coming::of(request);
            request.extensions_mut().insert(connection.clone());
            let strict = strict && has_a_name(request.headers());
            router.clone().oneshot(request).map_ok(move |mut response| {
                if strict {
                    response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, STRICT);
                }
                response
            })
        });
        // Not by what comes first: for that the builder would wait for ever.
        let mut builder = Builder::new(TokioExecutor::new()).http1_only();
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(BUFFER);
        let serving = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let serving = watcher.watch(serving);
        tokio::spawn(async move {
            // How a connection ends is its client's affair.
            let _ = serving.await;
            drop(room);
        });
    }
}

/// Whether a request is for a host with a name of its own. Other servers of
/// this machine are reached as `localhost` too, without TLS.
fn has_a_name(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let number = name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok();
    !(number || name.is_empty() || name.eq_ignore_ascii_case("localhost"))
}
