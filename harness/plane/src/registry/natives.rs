//! Capabilities of agents' own tools: what an agent would do in its own process,
//! asked about before it does it. Nothing of it runs here, and nothing contains
//! it.

use super::Builtin;

/// The names of these capabilities.
pub(crate) const NAMES: [&str; 5] = ["native.fetch", "native.read", "native.shell", "native.tool", "native.write"];

/// All of them.
pub(super) const NATIVES: [Builtin; 5] = [
    Builtin { manifest: include_str!("natives/fetch.toml"), component: b"" },
    Builtin { manifest: include_str!("natives/read.toml"), component: b"" },
    Builtin { manifest: include_str!("natives/shell.toml"), component: b"" },
    Builtin { manifest: include_str!("natives/tool.toml"), component: b"" },
    Builtin { manifest: include_str!("natives/write.toml"), component: b"" },
];
