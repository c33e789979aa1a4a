//! Where a path of an agent's leads: followed as the kernel would follow it, and
//! compared with what is whose.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use env_contracts::{Code, DEFAULT_HIDE, Problem};
use glovebox_runtime::Hide;

/// The most entries of a folder that are looked at before it counts as one that
/// may hold anything: some tenths of a second.
const MOST_ENTRIES: usize = 50_000;

/// A folder below the one that is searched which searches of agents pass over by
/// themselves, and which each repository has. Who names it is asked as for any
/// other.
const PASSED_OVER: &str = ".git";

/// Folders and files in a workspace that say what an agent, an editor or a
/// version control does by itself.
const SETTINGS: &[&str] = &[
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".git",
    ".github",
    ".husky",
    ".vscode",
    ".mcp.json",
    ".envrc",
    "AGENTS.md",
    "CLAUDE.md",
];

/// Whose a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Workspace,
    Outside,
    Settings,
    Glovebox,
}

impl Place {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Outside => "outside",
            Self::Settings => "settings",
            Self::Glovebox => "glovebox",
        }
    }
}

/// What is done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// One file is read, or the names in a folder.
    Read,
    /// All that lies below it is read, but for what searches pass over.
    Search,
    /// All that lies below it can be read: the call says by itself what is not
    /// passed over.
    Pick,
    Write,
}

/// A path, with what is known of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// Below the workspace, or else from the root.
    pub(super) path: String,
    pub(super) place: Place,
    pub(super) hidden: bool,
}

/// The folders of this call.
pub(super) struct Ground {
    workspace: PathBuf,
    cwd: PathBuf,
    home: Option<PathBuf>,
    /// What Glovebox decides with.
    own: Vec<PathBuf>,
    hide: Hide,
}

impl Ground {
    /// Of a workspace, seen from a folder.
    ///
    /// # Errors
    /// `workspace-unavailable`.
    pub(super) fn new(workspace: &Path, cwd: &Path, home: Option<PathBuf>, own: Vec<PathBuf>) -> Result<Self, Problem> {
        let folder = |error: std::io::Error| Problem::new(Code::WorkspaceUnavailable, error.to_string());
        let workspace = fs_err::canonicalize(workspace).map_err(folder)?;
        let hide = Hide::new(DEFAULT_HIDE).unwrap_or_else(|error| unreachable!("globs of ours: {error}"));
        let own = own.into_iter().map(|path| follow(&path).unwrap_or(path)).collect();
        Ok(Self { cwd: cwd.to_owned(), workspace, home, own, hide })
    }

    /// The workspace, as text.
    ///
    /// # Errors
    /// `workspace-unavailable` where it is none.
    pub(super) fn workspace(&self) -> Result<&str, Problem> {
        let text = self.workspace.to_str();
        text.ok_or_else(|| Problem::new(Code::WorkspaceUnavailable, "the workspace's path is not UTF-8 text"))
    }

    /// Where a path leads.
    ///
    /// # Errors
    /// `usage` where nobody can say.
    pub(super) fn locate(&self, path: &str, does: Does) -> Result<Located, Problem> {
        // Some agents cut such signs off, and others do not: it would be read as
        // two paths.
        if path != path.trim_matches(|sign: char| sign.is_whitespace() || sign.is_control() || sign == '\u{feff}') {
            let message = format!("`{}` begins or ends with a sign that nobody sees", path.escape_debug());
            return Err(Problem::new(Code::Usage, message).with_help("name the file without it"));
        }
        let asked = self.absolute(path);
        let unclear = || {
            let message = format!("`{}`: where that leads can't be said", asked.display());
            Problem::new(Code::Usage, message).with_help("name the file itself, without links and `..`")
        };
        let real = follow(&asked).ok_or_else(unclear)?;
        let inside = real.strip_prefix(&self.workspace).ok();
        let place = if self.own.iter().any(|own| real.starts_with(own)) {
            Place::Glovebox
        } else if inside.is_none() {
            Place::Outside
        } else if does == Does::Write && inside.is_some_and(settings) {
            Place::Settings
        } else {
            Place::Workspace
        };
        let mut hidden = self.hides(&real) || self.hides(&asked);
        if matches!(does, Does::Search | Does::Pick) && !hidden {
            let picks = does == Does::Pick;
            hidden = self.own.iter().any(|own| own.starts_with(&real)) || self.holds_hidden(&real, picks);
        }
        let shown = inside.filter(|path| !path.as_os_str().is_empty()).unwrap_or(&real);
        let shown = if inside.is_some_and(|path| path.as_os_str().is_empty()) { Path::new(".") } else { shown };
        Ok(Located { path: shown.to_str().ok_or_else(unclear)?.to_owned(), place, hidden })
    }

    /// From the root. Agents' tools know the home by its sign.
    fn absolute(&self, path: &str) -> PathBuf {
        let home = self.home.as_ref();
        match (home, path.strip_prefix("~/"), path) {
            (Some(home), Some(rest), _) => home.join(rest),
            (Some(home), None, "~") => home.clone(),
            _ => self.cwd.join(path),
        }
    }

    fn hides(&self, path: &Path) -> bool {
        path.strip_prefix("/").is_ok_and(|path| self.hide.hides(path))
    }

    /// Whether something hidden lies below a folder, as far as that can be seen
    /// soon. Links are not followed: searches don't either.
    fn holds_hidden(&self, folder: &Path, picks: bool) -> bool {
        let Ok(meta) = fs_err::symlink_metadata(folder) else { return false };
        if !meta.is_dir() {
            return false;
        }
        let (mut open, mut seen) = (vec![folder.to_owned()], 0);
        while let Some(dir) = open.pop() {
            // What can't be read by us, its agent can't read either.
            let Ok(entries) = fs_err::read_dir(&dir) else { continue };
            for entry in entries {
                seen += 1;
                let Ok(entry) = entry else { return true };
                if !picks && entry.file_name() == PASSED_OVER {
                    continue;
                }
                if seen > MOST_ENTRIES || self.hides(&entry.path()) {
                    return true;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open.push(entry.path());
                }
            }
        }
        false
    }
}

/// Whether a path inside of a workspace is what something goes by.
fn settings(path: &Path) -> bool {
    path.components().any(|part| SETTINGS.iter().any(|name| part.as_os_str() == *name))
}

/// The path with every link followed, as far as it exists; what does not exist
/// yet is appended. `None`: it leads nowhere that can be told, through a link to
/// nothing or upwards out of what does not exist.
fn follow(path: &Path) -> Option<PathBuf> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut there = path.to_owned();
    loop {
        match fs_err::canonicalize(&there) {
            Ok(real) => {
                let mut real = real;
                real.extend(missing.iter().rev());
                return Some(real);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if fs_err::symlink_metadata(&there).is_ok() {
                    return None;
                }
                match there.components().next_back()? {
                    Component::Normal(name) => missing.push(name.to_owned()),
                    _ => return None,
                }
                there.pop();
            }
            Err(_) => return None,
        }
    }
}
