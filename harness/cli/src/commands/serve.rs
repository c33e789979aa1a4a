//! `glovebox serve` and `glovebox inbox`: the HTTP door.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Code, Name, Problem, Span};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use glovebox_events::ActionState;
use glovebox_plane::TimeOrderedIds;
use glovebox_runtime::SystemClock;
use glovebox_server::{
    FIRST_RETRY, Front, Listeners, Logs, Parts, Server, Settings, Tenants as _, TlsFiles, Webhooks, Workspace,
};
use glovebox_store::ActionFilter;
use serde::{Deserialize, Serialize};

use super::{printed, run, running};
use crate::args::{InboxArgs, ServeArgs};
use crate::config::{Config, Count};
use crate::house::AllTenants;
use crate::places::Places;
use crate::values::{Positive, Words};
use crate::{house, print, who};

/// Where a running server is found, in the state folder.
#[derive(Serialize, Deserialize)]
struct Found {
    /// The address of its pages.
    url: String,
    /// Its socket.
    socket: PathBuf,
    /// Its process.
    pid: u32,
}

pub(crate) fn serve(args: &ServeArgs, config: Config) -> Result<ExitCode, Problem> {
    who::person(&config)?;
    if args.for_agents {
        // What ends the terminal, or the agent's program, does not end it. Where it
        // can't be, it ends with them.
        let _ = rustix::process::setsid();
    }
    let places = Places::of(&config);
    places.make()?;
    let mut settings = settings(args, &config)?;
    settings.logs.everywhere();
    let front = front(args, &config)?;
    let address = args.listen.unwrap_or_else(|| config.get::<SocketAddr>("serve.listen"));
    let socket = args.socket.clone().unwrap_or_else(|| places.socket());
    let slots = config.get::<Count>("admission.actions").0;
    let (credentials, approvers) = (house::credentials_path(&config), house::approvers_path(&config));
    let webhooks = Webhooks { list: house::webhooks_path(&config), state: places.webhooks(), first_retry: FIRST_RETRY };
    let tenants = Arc::new(AllTenants::new(config.clone(), slots)?);
    let mcp_key = super::mcp::key(&places.door_key())?;
    let runtime = house::tokio_runtime()?;
    let served = runtime.block_on(async {
        let ending = ended()?;
        let listeners = Listeners::open(Some(address), Some(&socket), args.others, front).await?;
        let url = listeners.url(&settings.hosts).unwrap_or_default();
        settings.url.clone_from(&url);
        let server = Server::new(Parts {
            tenants: tenants.clone(),
            own: who::principal(),
            credentials,
            logins: places.logins(),
            approvers,
            witness: places.witness(),
            webhooks,
            clock: Arc::new(SystemClock),
            ids: Arc::new(TimeOrderedIds),
            mcp_key,
            settings,
        })?;
        let found = Found { url: url.clone(), socket: socket.clone(), pid: std::process::id() };
        let greeting = greeting(&server, &url, &socket)?;
        // Once nothing can stop it any more: whoever reads this takes it for up.
        let _note = Note::leave(places.serving(), &found)?;
        let _ = anstream::stderr().lock().write_all(greeting.as_bytes());
        tokio::spawn(keep_clean(tenants.containers(), places.runs()));
        let needed = args.for_agents.then(|| tenants.clone());
        let ending = async {
            tokio::select! {
                () = ending => {}
                () = unneeded(needed, Places::of(&config)) => {}
            }
        };
        let served = Box::pin(server.serve(listeners, ending)).await;
        if let Some(containers) = tenants.containers() {
            // The next start sweeps what does not go by then.
            let _ = tokio::time::timeout(DRAIN, containers.drain()).await;
        }
        served
    });
    runtime.shutdown_background();
    served?;
    Ok(ExitCode::SUCCESS)
}

/// How long a server that stops waits for its containers to go.
const DRAIN: Duration = Duration::from_secs(15);
/// How often containers and run folders are looked for that a process left which is
/// gone.
const SWEEP: Duration = Duration::from_secs(30);

/// Takes away what other processes of this state folder left, for as long as
/// this one lives. What can't be now can be the next time; `gc` tells why.
async fn keep_clean(containers: Option<Arc<glovebox_container::Containers>>, runs: PathBuf) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        ticks.tick().await;
        let runs = runs.clone();
        let _ = tokio::task::spawn_blocking(move || glovebox_runtime::bind::sweep(&runs, false)).await;
        if let Some(containers) = &containers {
            let _ = containers.sweep(false).await;
        }
    }
}

/// How the server behaves.
fn settings(args: &ServeArgs, config: &Config) -> Result<Settings, Problem> {
    let mut workspaces = BTreeMap::new();
    for text in &args.workspace {
        let named = text.split_once('=').and_then(|(name, folder)| Some((name.parse::<Name>().ok()?, folder)));
        let (name, folder) = named.ok_or_else(|| {
            Problem::new(Code::Usage, format!("--workspace: `{text}` is not NAME=DIR")).with_help("write `docs=./docs`")
        })?;
        let (folder, access) = run::workspace(folder)?;
        // What it is called must not depend on where we stand.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        if workspaces.insert(name, Workspace { folder, access }).is_some() {
            return Err(Problem::new(Code::Usage, format!("--workspace: `{text}` is named twice")));
        }
    }
    Ok(Settings {
        workspaces,
        url: String::new(),
        hosts: config.get::<Words>("serve.hosts").0,
        rate: config.get::<Positive>("serve.rate").0,
        connections: config.get::<Positive>("serve.connections").0.get() as usize,
        grace: config.get::<Span>("serve.grace").0,
        logs: Logs::to(config.get("serve.log"), config.get("serve.log_level"), std::io::stderr),
        otlp: Some(config.get::<String>("serve.otlp")).filter(|collector| !collector.is_empty()),
    })
}

/// What is between its port and the network.
fn front(args: &ServeArgs, config: &Config) -> Result<Front, Problem> {
    let file = |key| Some(PathBuf::from(config.entry(key).0)).filter(|path| !path.as_os_str().is_empty());
    match (file("serve.tls_cert"), file("serve.tls_key")) {
        (Some(certificate), Some(key)) => Ok(Front::Tls(TlsFiles { certificate, key })),
        (None, None) if args.behind_proxy => Ok(Front::Proxy),
        (None, None) => Ok(Front::Plain),
        _ => Err(Problem::new(Code::ConfigInvalid, "TLS needs both a certificate and its key")
            .with_help("set both `serve.tls_cert` and `serve.tls_key`, or neither")),
    }
}

/// Says where it is, and lets the first person in.
fn greeting(server: &Server, url: &str, socket: &Path) -> Result<String, Problem> {
    let way_in = if server.is_known_to_anybody()? {
        "`glovebox inbox` prints a code that logs a browser in".to_owned()
    } else {
        let code = server.login_code()?;
        format!("log in at {url}/login with the code {code}, once, within ten minutes")
    };
    Ok(format!("serving at {url} and at {}\n{way_in}\n", socket.display()))
}

/// How often a server that was started for agents looks whether it is needed.
const LOOK: Duration = Duration::from_secs(15);

/// How long it goes on when it is not: who restarts an agent, or looks at what
/// became of an answer, finds it there.
const UNNEEDED: Duration = Duration::from_secs(600);

/// Comes when a server that was started for agents is needed no more: no agent
/// is there, nothing runs, and nothing waits for a person.
async fn unneeded(tenants: Option<Arc<AllTenants>>, places: Places) {
    let Some(tenants) = tenants else { return std::future::pending().await };
    let mut idle = Duration::ZERO;
    while idle < UNNEEDED {
        tokio::time::sleep(LOOK).await;
        idle = if running::Here::anybody(&places) || waits(&tenants).unwrap_or(true) {
            Duration::ZERO
        } else {
            idle + LOOK
        };
    }
}

/// Whether anything that was asked for has not ended.
fn waits(tenants: &AllTenants) -> Result<bool, Problem> {
    let service = tenants.service(&house::tenant())?.overseeing();
    let states = vec![ActionState::WaitingApproval, ActionState::Running];
    let open = ActionFilter { states, limit: 1, ..ActionFilter::default() };
    Ok(!service.actions(&who::principal(), open)?.items.is_empty())
}

/// Comes when the process is told to end.
fn ended() -> Result<impl Future<Output = ()>, Problem> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| Problem::new(Code::BackendError, format!("signals: {error}")));
    let (mut int, mut term) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
        }
        let _ = writeln!(anstream::stderr().lock(), "stopping: what runs may end; once more to stop at once");
        tokio::spawn(async move {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
            }
            #[expect(clippy::exit, reason = "asked twice: what was written down stands")]
            std::process::exit(i32::from(Code::Interrupted.exit_code()));
        });
    })
}

/// The note in the state folder that says where the server is. It goes with it.
struct Note(PathBuf);

impl Note {
    fn leave(path: PathBuf, found: &Found) -> Result<Self, Problem> {
        let failed = |error: std::io::Error| {
            glovebox_runtime::io_problem("cannot say where the server is", Code::StateUnavailable, &error)
        };
        let beside = path.with_extension("new");
        let text = serde_json::to_vec(found).unwrap_or_default();
        let opened = fs_err::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
        let written = opened.and_then(|mut file| file.write_all(&text));
        written.and_then(|()| fs_err::rename(&beside, &path)).map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs_err::remove_file(&self.0);
    }
}

/// `glovebox inbox`: where people decide, and a code that lets one in.
pub(crate) fn inbox(args: &InboxArgs, config: &Config) -> Result<ExitCode, Problem> {
    who::person(config)?;
    let places = Places::of(config);
    let none = || {
        Problem::new(Code::BackendUnavailable, "no server runs on this state folder")
            .with_help("start one: `glovebox serve`")
    };
    let text = fs_err::read(places.serving()).map_err(|_| none())?;
    let found: Found = serde_json::from_slice(&text).map_err(|_| none())?;
    let asked = glovebox_server::ask(&found.socket, "POST", "/v1/login-codes", None);
    let answer = house::tokio_runtime()?.block_on(asked)?;
    let code = answer["code"].as_str().unwrap_or_default();
    if args.json {
        return printed(print::json(&serde_json::json!({ "url": found.url, "code": code })), 0);
    }
    let mut out = anstream::stdout().lock();
    printed(writeln!(out, "{}/login  code {code}, once, within ten minutes", found.url), 0)
}
