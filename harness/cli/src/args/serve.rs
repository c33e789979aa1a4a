//! The commands of the HTTP door.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The address and port [default: the `serve.listen` of the configuration].
    /// Port 0: one that is free.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// The Unix socket. Who connects there is who the kernel says they are.
    /// Default: `serve.sock` in the state folder.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Let other users of this machine connect to the socket. What each of them
    /// may do, `glovebox token add --peer-uid` says.
    #[arg(long)]
    pub(crate) others: bool,
    /// A proxy speaks TLS for the address, and nobody else reaches it.
    #[arg(long)]
    pub(crate) behind_proxy: bool,
    /// A folder that requests can name as their workspace, to be read only,
    /// unless `:write` follows. May be given several times.
    #[arg(long, value_name = "NAME=DIR[:write]")]
    pub(crate) workspace: Vec<String>,
    /// It was started for agents: it belongs to no terminal, and ends when it is
    /// needed no more. For our own use.
    #[arg(long, hide = true)]
    pub(crate) for_agents: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u32,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
