//! The registry: which capabilities there are.
//!
//! A registered `name@version` never changes: other bytes under it are a
//! conflict, also after it was removed. The names of built-in tools are
//! reserved.

mod record;
mod store;
mod temp;

pub use store::Added;

use std::collections::BTreeSet;
use std::path::PathBuf;

use env_contracts::{CapabilityName, CapabilityRef, Code, Digest, Manifest, Problem, Version, Wanted};
use glovebox_runtime::{ArtifactBytes, Registered};

use crate::arguments::{Schema, nearest};

/// A tool that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Its `tool.toml`.
    pub manifest: &'static str,
    /// Its component.
    pub component: &'static [u8],
}

/// Which capabilities there are: the built-in ones, and those in a folder.
#[derive(Debug, Clone)]
pub struct Registry {
    builtins: Vec<Builtin>,
    dir: PathBuf,
}

/// A registered capability, ready to be planned with.
#[derive(Debug)]
pub struct Tool {
    /// Its manifest.
    pub manifest: Manifest,
    /// What a backend needs to know of its artifact.
    pub registered: Registered,
    /// Whether it came with the program.
    pub builtin: bool,
    /// The schema of its arguments.
    pub input: Schema,
    /// The schema of its result.
    pub output: Option<Schema>,
}

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    /// Which one.
    pub capability: CapabilityRef,
    /// A few words.
    pub title: String,
    /// The sha256 of its component.
    pub artifact: Digest,
    /// Whether it came with the program.
    pub builtin: bool,
}

/// What is registered.
#[derive(Debug, Default, serde::Serialize)]
pub struct Listing {
    /// The tools.
    pub tools: Vec<Listed>,
    /// What is there and can't be read, each with its way out.
    pub unreadable: Vec<Problem>,
}

impl Tool {
    /// Compiles the schemas of a manifest and ties it to its artifact.
    ///
    /// # Errors
    /// `manifest-invalid` with the place in the schema.
    pub fn new(manifest: Manifest, digest: Digest, bytes: ArtifactBytes, builtin: bool) -> Result<Self, Problem> {
        let compile = |key: &str, schema| {
            Schema::compile(schema).map_err(|error| {
                let problem = Problem::of(&error);
                Problem { message: format!("`{key}` of `{}`: {}", manifest.name, problem.message), ..problem }
            })
        };
        let input = compile("input", &manifest.input)?;
        let output =
            manifest.output.as_ref().map(|schema| compile("output", schema)).transpose()?.map(Schema::for_result);
        let registered = Registered { digest, bytes, entry: manifest.entry.clone(), name: manifest.name.to_string() };
        Ok(Self { manifest, registered, builtin, input, output })
    }
}

impl Registry {
    /// The built-in tools and those registered in `dir`, which may not exist
    /// yet.
    pub fn new(dir: PathBuf, builtins: Vec<Builtin>) -> Self {
        Self { builtins, dir }
    }

    /// The tool of this name, its newest version if none is named.
    ///
    /// # Errors
    /// `tool-unknown` with the nearest name, `manifest-invalid` or
    /// `state-unavailable` if what is registered can't be read.
    pub fn get(&self, wanted: &Wanted) -> Result<Tool, Problem> {
        if let Some((builtin, manifest)) = self.builtin(&wanted.name)? {
            if wanted.version.as_ref().is_none_or(|version| *version == manifest.version) {
                return Tool::new(
                    manifest,
                    Digest::of(builtin.component),
                    ArtifactBytes::Embedded(builtin.component),
                    true,
                );
            }
            return Err(self.unknown(wanted, &[manifest.version]));
        }
        let mut versions = self.versions(&wanted.name)?;
        versions.sort_by_key(Version::precedence);
        let version = match &wanted.version {
            Some(version) => versions.iter().find(|known| *known == version),
            // A pre-release is taken only where it is named or all there is.
            None => versions.iter().rev().find(|version| !version.as_str().contains('-')).or(versions.last()),
        };
        let Some(version) = version else { return Err(self.unknown(wanted, &versions)) };
        self.load(&CapabilityRef { name: wanted.name.clone(), version: version.clone() })
    }

    /// Every registered version of every tool, by name and from old to new;
    /// what can't be read is told apart, and hides nothing else.
    ///
    /// # Errors
    /// `state-unavailable` if the folder can't be read.
    pub fn list(&self) -> Result<Listing, Problem> {
        let mut out = Listing::default();
        for builtin in &self.builtins {
            let manifest = parse(builtin.manifest)?;
            let artifact = Digest::of(builtin.component);
            out.tools.push(Listed {
                capability: manifest.capability(),
                title: manifest.title,
                artifact,
                builtin: true,
            });
        }
        for name in self.names()? {
            for version in self.versions(&name)? {
                let capability = CapabilityRef { name: name.clone(), version };
                match self.load(&capability) {
                    Ok(tool) => {
                        let (title, artifact) = (tool.manifest.title, tool.registered.digest);
                        out.tools.push(Listed { capability, title, artifact, builtin: false });
                    }
                    Err(problem) => out.unreadable.push(problem),
                }
            }
        }
        out.tools.sort_by(|a, b| {
            let key = |tool: &Listed| (tool.capability.name.clone(), tool.capability.version.precedence());
            key(a).cmp(&key(b))
        });
        Ok(out)
    }

    fn builtin(&self, name: &CapabilityName) -> Result<Option<(&Builtin, Manifest)>, Problem> {
        for builtin in &self.builtins {
            // The name stands in the first lines; parsing a manifest costs
            // more than the rest of a look-up.
            if builtin.manifest.contains(&format!("name = \"{name}\"")) {
                let manifest = parse(builtin.manifest)?;
                if manifest.name == *name {
                    return Ok(Some((builtin, manifest)));
                }
            }
        }
        Ok(None)
    }

    fn unknown(&self, wanted: &Wanted, versions: &[Version]) -> Problem {
        let list = |mut versions: Vec<Version>| {
            versions.sort_by_key(Version::precedence);
            versions.iter().map(Version::as_str).collect::<Vec<_>>().join(", ")
        };
        let removed = self.removed(&wanted.name).unwrap_or_default();
        let meant = wanted.version.as_ref().map_or(versions.is_empty(), |version| removed.contains(version));
        let was = if meant && !removed.is_empty() { ": it was removed" } else { "" };
        let problem = Problem::new(Code::ToolUnknown, format!("no tool `{wanted}` is registered{was}"));
        let mut help = Vec::new();
        if !versions.is_empty() {
            help.push(format!("registered versions of `{}`: {}", wanted.name, list(versions.to_vec())));
        }
        if !removed.is_empty() {
            help.push(format!("removed ones stay taken, for the same bytes alone: {}", list(removed)));
        }
        if !help.is_empty() {
            return problem.with_help(help.join("; "));
        }
        match nearest(wanted.name.as_str(), self.callable().iter().map(String::as_str)) {
            Some(near) => problem.with_help(format!("did you mean `{near}`? `glovebox tool list` shows all")),
            None => problem,
        }
    }

    /// The names that have a version, in order.
    fn callable(&self) -> BTreeSet<String> {
        let builtins = self.builtins.iter().filter_map(|builtin| Some(parse(builtin.manifest).ok()?.name.to_string()));
        let names = self.names().unwrap_or_default().into_iter();
        let registered = names.filter(|name| self.versions(name).is_ok_and(|versions| !versions.is_empty()));
        builtins.chain(registered.map(|name| name.to_string())).collect()
    }
}

fn parse(text: &str) -> Result<Manifest, Problem> {
    Manifest::from_toml(text).map_err(|error| Problem::of(&error))
}
