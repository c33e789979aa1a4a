//! `glovebox mcp`: the door for agents that speak MCP, on standard input and
//! output.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use env_contracts::{Code, Id, Problem};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use glovebox_mcp::{Door, DoorParts, InboxUrl, Party, StateKey, WAIT, Workspace};
use glovebox_plane::{ActionService, Asking, IdSource as _, TaskContext, TimeOrderedIds};
use glovebox_runtime::{SystemClock, io_problem};
use rustix::fs::OFlags;

use super::{run, running};
use crate::args::{AskMode, McpArgs};
use crate::config::Config;
use crate::places::Places;
use crate::terminal::escaped_line;
use crate::{house, who};

/// How many actions one client has under way: agents call some tools at once.
const SLOTS: u32 = 16;

pub(crate) fn run(args: &McpArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::service(config, SLOTS)?;
    let places = Places::of(config);
    let party = party(args, config)?;
    let key = StateKey::new(key(&places.door_key())?);
    introduce(&party);
    let _here = running::Here::say(&places)?;
    if !args.no_serve {
        running::find_or_start(config, Places::of(config));
    }
    let door = Door::new(DoorParts {
        service: service.clone(),
        clock: Arc::new(SystemClock),
        key,
        inbox_url: inbox(places),
        wait: WAIT,
    })
    .of(party);
    let runtime = house::tokio_runtime()?;
    let served = runtime.block_on(serve(&service, &door));
    // Nobody may be left to write to standard input.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(service: &ActionService, door: &Door) -> Result<(), Problem> {
    // What a crash left is looked at by whoever comes next.
    Box::pin(service.recover()).await?;
    let served = tokio::select! {
        served = door.serve(tokio::io::stdin(), tokio::io::stdout()) => served,
        () = told_to_end() => Ok(()),
    };
    door.close().await;
    served.map_err(|error| {
        Problem::new(Code::Usage, format!("the client does not speak MCP: {error}"))
            .with_help("an MCP client starts this command and writes to its standard input, a message a line")
    })
}

/// Until somebody wants this process to end.
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    let (Ok(mut int), Ok(mut term), Ok(mut hup)) = kinds else { return std::future::pending().await };
    tokio::select! {
        _ = int.recv() => {}
        _ = term.recv() => {}
        _ = hup.recv() => {}
    }
}

/// On whose behalf the client at the other end asks.
fn party(args: &McpArgs, config: &Config) -> Result<Party, Problem> {
    let principal = who::speaker(config, args.agent.as_deref(), "mcp")?;
    let (dir, access) = run::workspace(&args.workspace)?;
    let dir = fs_err::canonicalize(&dir)
        .map_err(|error| io_problem("cannot find the workspace", Code::WorkspaceUnavailable, &error))?;
    let session = args.session.clone().unwrap_or_else(|| who::id(&format!("mcp-{}", TimeOrderedIds.random())));
    let context =
        TaskContext { task: session.clone(), session, turn: None, purpose: args.purpose.clone(), stage: None };
    let asking = match config.get("approvals.ask") {
        AskMode::Never => Asking::Never,
        AskMode::Auto | AskMode::Here | AskMode::Wait | AskMode::Leave => Asking::Leave,
    };
    Ok(Party::new(principal, context, Some(Workspace { dir, access }), asking))
}

/// Says on standard error for whom this is: standard output is the protocol's.
fn introduce(party: &Party) {
    let principal = &party.principal;
    let agent = principal.agent.as_ref().map_or("nobody", env_contracts::Name::as_str);
    let version = principal.agent_version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
    let workspace = party.workspace.as_ref();
    let workspace =
        workspace.map(|workspace| format!(", workspace {} ({})", workspace.dir.display(), workspace.access));
    let line = format!(
        "glovebox mcp: for agent `{agent}{version}` of `{}`, session {}{}",
        principal.user,
        party.context.session,
        workspace.unwrap_or_default()
    );
    let _ = writeln!(anstream::stderr().lock(), "{}", escaped_line(&line));
}

/// Where a person decides: the inbox of the server that runs over this state
/// folder, if one does.
pub(super) fn inbox(places: Places) -> InboxUrl {
    Arc::new(move |approval: &Id| running::url(&places).map(|url| format!("{url}/inbox/approvals/{approval}")))
}

/// The key of this state folder, made when it is first needed.
///
/// # Errors
/// `key-invalid` where others could read it or it is none; the host's.
pub(super) fn key(path: &Path) -> Result<[u8; 32], Problem> {
    let failed = |error: &std::io::Error| io_problem("cannot use the key of the MCP door", Code::KeyInvalid, error);
    loop {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = fs_err::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
        let mut key = [0; 32];
        match opened {
            Ok(mut file) => {
                let meta = file.metadata().map_err(|error| failed(&error))?;
                let own = meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0;
                if !meta.is_file() || meta.len() != 32 || !own {
                    let message = format!("`{}` is no key, or others could read it", path.display());
                    return Err(Problem::new(Code::KeyInvalid, message)
                        .with_help("remove it: a new one is made, and clients that wait in a round ask anew"));
                }
                file.read_exact(&mut key).map_err(|error| failed(&error))?;
                return Ok(key);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&error)),
        }
        // So few bytes come whole.
        rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty()))
            .map_err(|errno| failed(&errno.into()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
        file.write_all(&key).and_then(|()| file.as_file().sync_all()).map_err(|error| failed(&error))?;
        match file.persist_noclobber(path) {
            // Whoever was first made the one that counts.
            Ok(_) => {}
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&error.error)),
        }
    }
}
