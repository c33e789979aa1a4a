//! What all requests share.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Access, Code, Name, Principal, Problem};
use glovebox_identity::Credential;
use glovebox_plane::{ActionService, IdSource};
use glovebox_runtime::Clock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::auth::{Identity, Known, Limits, Logins, UNLOCKS, operator};
use crate::carry::Carried;
use crate::events::Feed;
use crate::inbox::Handles;
use crate::mcp::Doors;
use crate::push::Webhooks;
use crate::telemetry::{Logs, Telemetry};

/// The services behind this door, one for each tenant.
pub trait Tenants: Send + Sync {
    /// That of a tenant.
    ///
    /// # Errors
    /// Those of its parts.
    fn service(&self, tenant: &Name) -> Result<ActionService, Problem>;
}

/// A folder that requests can name as their workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The folder on this host.
    pub folder: PathBuf,
    /// The most that may be done with it.
    pub access: Access,
}

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folders that requests can name. Other paths of this host they can't.
    pub workspaces: BTreeMap<Name, Workspace>,
    /// Where people find its pages: `http://127.0.0.1:7410`.
    pub url: String,
    /// Names, besides those of the loopback, by which it is reached.
    pub hosts: Vec<String>,
    /// How many requests one credential may send each second.
    pub rate: NonZeroU32,
    /// How many connections are open at one time.
    pub connections: usize,
    /// How long what runs may go on when the server stops.
    pub grace: Duration,
    /// Where it writes what happens.
    pub logs: Logs,
    /// The address of an OpenTelemetry collector. Absent: no spans are made.
    pub otlp: Option<String>,
}

/// Everything that a server is made of.
pub struct Parts {
    /// The services.
    pub tenants: Arc<dyn Tenants>,
    /// Who runs this server: the operator, when they come through its socket.
    pub own: Principal,
    /// The operator's file of credentials.
    pub credentials: PathBuf,
    /// The file of browsers that logged in. Ours.
    pub logins: PathBuf,
    /// The file of those who approve by passphrase.
    pub approvers: PathBuf,
    /// The key with which the service vouches for whom the kernel names.
    pub witness: PathBuf,
    /// Who is told of what waits for people.
    pub webhooks: Webhooks,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn IdSource>,
    /// What seals the rounds of MCP clients.
    pub mcp_key: [u8; 32],
    /// How it behaves.
    pub settings: Settings,
}

/// What all requests share. Cloning shares it.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// See [`App`].
pub(crate) struct Shared {
    tenants: Arc<dyn Tenants>,
    own: Principal,
    pub(crate) known: Known,
    pub(crate) logins: Logins,
    pub(crate) approvers: PathBuf,
    pub(crate) witness: PathBuf,
    /// How many passphrases are tried at one time.
    pub(crate) unlocks: Semaphore,
    pub(crate) webhooks: Webhooks,
    pub(crate) doors: Doors,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
    pub(crate) carried: Carried,
    pub(crate) feed: Feed,
    pub(crate) telemetry: Arc<Telemetry>,
    /// Guest bytes that somebody is about to look at.
    pub(crate) handles: Handles,
    /// Cancelled when the server stops: streams end.
    pub(crate) ending: CancellationToken,
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub(crate) fn new(parts: Parts) -> Result<Self, Problem> {
        let feed = Feed::new(&parts.tenants.service(&parts.own.tenant)?)?;
        let telemetry = Telemetry::new(parts.settings.logs.clone(), parts.settings.otlp.as_deref())?;
        Ok(Self(Arc::new(Shared {
            known: Known::at(parts.credentials),
            logins: Logins::at(parts.logins),
            approvers: parts.approvers,
            witness: parts.witness,
            unlocks: Semaphore::new(UNLOCKS),
            tenants: parts.tenants,
            own: parts.own,
            webhooks: parts.webhooks,
            clock: parts.clock,
            ids: parts.ids,
            limits: Limits::new(parts.settings.rate),
            settings: parts.settings,
            carried: Carried::default(),
            doors: Doors::new(parts.mcp_key),
            feed,
            telemetry: Arc::new(telemetry),
            handles: Handles::default(),
            ending: CancellationToken::new(),
        })))
    }

    /// The service of a tenant.
    pub(crate) fn service(&self, tenant: &Name) -> Result<ActionService, Problem> {
        self.tenants.service(tenant)
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now().unix_millis
    }

    /// A code that logs one browser in.
    ///
    /// # Errors
    /// `backend-error` if the host gives no random bytes.
    pub(crate) fn login_code(&self, who: Identity) -> Result<String, Problem> {
        let mut random = [0_u8; 8];
        let got = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        if got != Ok(random.len()) {
            return Err(Problem::new(Code::BackendError, "the host gives no random bytes"));
        }
        Ok(self.logins.code(who, random, self.now_ms()))
    }

    /// Whether the store can be read.
    pub(crate) fn store_answers(&self) -> bool {
        self.service(&self.own.tenant).is_ok_and(|service| service.last_recorded().is_ok())
    }

    /// Whoever runs this server, as the operator of it.
    pub(crate) fn own(&self) -> Credential {
        let uid = rustix::process::geteuid().as_raw();
        operator(&self.own, self.own.user.clone(), self.now_ms(), uid)
    }
}
