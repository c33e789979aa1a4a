//! TLS of our own: one certificate and its key, read again when their files
//! change.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env_contracts::{Code, Problem};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::telemetry::Logs;

/// How long a handshake may take: it holds a connection, and nobody is known
/// yet.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The largest certificate or key file that is read: a chain has a few KiB.
const MAX_PEM: u64 = 1 << 20;

/// What may wait in a connection until it is sent, in bytes: each idle reader
/// has one.
const BUFFER: usize = 16 << 10;

/// A certificate and its key, as files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The chain in PEM form, the server's own first.
    pub certificate: PathBuf,
    /// The private key in PEM form.
    pub key: PathBuf,
}

/// What takes TLS connections.
pub(crate) struct Tls {
    files: TlsFiles,
    now: Mutex<Now>,
}

/// What is in force.
struct Now {
    /// The files as they were last looked at, good or bad.
    looked: Option<[Stamp; 2]>,
    config: Arc<ServerConfig>,
}

/// By what it is seen that a file changed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// `config-invalid` with what is wrong with them.
    pub(crate) fn open(files: TlsFiles) -> Result<Self, Problem> {
        // Looked at before they are read: what changes in between is read again.
        let looked = files.stamps().ok();
        let config = files.read().map_err(|why| files.invalid(&why))?;
        Ok(Self { files, now: Mutex::new(Now { looked, config }) })
    }

    /// The newest that is good. Files that changed and are bad change nothing,
    /// and are told once.
    fn newest(&self, logs: &Logs) -> Arc<ServerConfig> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = self.files.stamps().ok();
        if looked != now.looked {
            now.looked = looked;
            match self.files.read() {
                Ok(config) => {
                    now.config = config;
                    logs.certificate(None);
                }
                Err(why) => logs.certificate(Some(&why.to_string())),
            }
        }
        now.config.clone()
    }

    /// Shakes hands with somebody. `None`: they did not, or took too long.
    pub(crate) async fn accept(&self, stream: TcpStream, logs: &Logs) -> Option<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(self.newest(logs));
        let shaken = acceptor.accept_with(stream, |connection| connection.set_buffer_limit(Some(BUFFER)));
        tokio::time::timeout(HANDSHAKE, shaken).await.ok()?.ok()
    }
}

/// Why files are not taken.
struct Why(String);

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TlsFiles {
    fn stamps(&self) -> std::io::Result<[Stamp; 2]> {
        let stamp = |path: &Path| {
            let meta = fs_err::metadata(path)?;
            Ok(Stamp { inode: meta.ino(), size: meta.size(), changed: (meta.ctime(), meta.ctime_nsec()) })
        };
        stamp(&self.certificate).and_then(|one| Ok([one, stamp(&self.key)?]))
    }

    fn read(&self) -> Result<Arc<ServerConfig>, Why> {
        let text = |path: &Path| {
            let size = fs_err::metadata(path).map_err(|error| Why(error.to_string()))?.len();
            if size > MAX_PEM {
                return Err(Why(format!("`{}` is larger than {MAX_PEM} bytes", path.display())));
            }
            fs_err::read(path).map_err(|error| Why(error.to_string()))
        };
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(&text(&self.certificate)?).collect();
        let chain = chain.map_err(|error| Why(format!("`{}`: {error}", self.certificate.display())))?;
        if chain.is_empty() {
            return Err(Why(format!("there is no certificate in `{}`", self.certificate.display())));
        }
        // The text of a key is in no message.
        let key = PrivateKeyDer::from_pem_slice(&text(&self.key)?)
            .map_err(|_| Why(format!("there is no private key in `{}`", self.key.display())))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let pair = CertifiedKey::from_der(chain, key, &provider)
            .map_err(|error| Why(format!("the certificate and the key do not go together: {error}")))?;
        let pair: Arc<dyn ResolvesServerCert> = Arc::new(SingleCertAndKey::from(pair));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Why(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(pair);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Nothing of a session outlives its connection.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    fn invalid(&self, why: &Why) -> Problem {
        Problem::new(Code::ConfigInvalid, format!("TLS: {why}"))
            .with_help("`serve.tls_cert` names a PEM file with the chain, `serve.tls_key` one with its private key")
    }
}
