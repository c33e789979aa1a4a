//! The registry: which capabilities there are.
//!
//! A registered `name@version` never changes: other bytes under it are a
//! conflict, also after it was removed. The names of built-in tools are
//! reserved.

mod accepted;
mod builtin;
mod cache;
#[cfg(test)]
mod cache_tests;
mod decisions;
mod health;
mod natives;
mod record;
mod store;
mod told;
mod view;

pub use builtin::Builtin;
pub(crate) use decisions::{PLAN, RESULT};
pub use health::Health;
pub use store::Added;
pub use view::Found;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use builtin::Shipped;
use cache::Cache;
use env_contracts::{
    CapabilityName, CapabilityRef, Code, Digest, Manifest, ManifestEntry, Name, Problem, Version, Wanted,
};
use glovebox_runtime::{ArtifactBytes, Registered};

use crate::arguments::{Schema, nearest};

/// Which capabilities there are: the built-in ones, and those in a folder.
#[derive(Debug, Clone)]
pub struct Registry {
    builtins: Arc<[Shipped]>,
    dir: PathBuf,
    cache: Cache,
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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Listed {
    /// Which one.
    pub capability: CapabilityRef,
    /// A few words.
    pub title: String,
    /// Who answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Name>,
    /// The sha256 of its component.
    pub artifact: Digest,
    /// Whether it came with the program.
    pub builtin: bool,
    /// Whether it can be called.
    pub health: Health,
}

/// What is registered.
#[derive(Debug, Default, serde::Serialize, schemars::JsonSchema)]
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
        let ours = match manifest.entry {
            ManifestEntry::Decision => Some("a decision"),
            ManifestEntry::Native => Some("a tool of an agent's own"),
            _ => None,
        };
        if let Some(ours) = ours.filter(|_| !builtin) {
            let message = format!("`entry` of `{}`: {ours} is none that a tool can be called with", manifest.name);
            return Err(Problem::new(Code::ManifestInvalid, message));
        }
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
        let builtins = builtins.into_iter().chain(decisions::DECISIONS).chain(natives::NATIVES);
        Self { builtins: builtins.map(Shipped::new).collect(), dir, cache: Cache::default() }
    }

    /// The tool of this name, its newest version if none is named.
    ///
    /// # Errors
    /// `tool-unknown` with the nearest name, `manifest-invalid` or
    /// `state-unavailable` if what is registered can't be read.
    pub fn get(&self, wanted: &Wanted) -> Result<Arc<Tool>, Problem> {
        self.find(wanted, &|_| true)
    }

    /// The same for somebody who is told of some names alone. The others are
    /// not looked for, and so can't be told from what does not exist.
    fn find(&self, wanted: &Wanted, told: Told<'_>) -> Result<Arc<Tool>, Problem> {
        if !told(&wanted.name) {
            return Err(self.nowhere(wanted, told));
        }
        let version = match &wanted.version {
            Some(version) => Some(version.clone()),
            None => self.newest(&wanted.name)?,
        };
        let found = match version {
            Some(version) => self.exactly(&CapabilityRef { name: wanted.name.clone(), version })?,
            None => None,
        };
        match found {
            Some(tool) => Ok(tool),
            None => Err(self.unknown(wanted, told)),
        }
    }

    /// This very one, if it is registered.
    fn exactly(&self, capability: &CapabilityRef) -> Result<Option<Arc<Tool>>, Problem> {
        if let Some(builtin) = self.builtin(&capability.name) {
            let tool = builtin.tool()?;
            return Ok((tool.manifest.version == capability.version).then_some(tool));
        }
        if let Some(tool) = self.known(capability) {
            return Ok(Some(tool));
        }
        let registered = self.versions(&capability.name)?.contains(&capability.version);
        registered.then(|| self.load(capability)).transpose()
    }

    /// The version that a name alone means.
    fn newest(&self, name: &CapabilityName) -> Result<Option<Version>, Problem> {
        if let Some(builtin) = self.builtin(name) {
            return Ok(Some(builtin.tool()?.manifest.version.clone()));
        }
        let versions = self.versions(name)?;
        // A pre-release is taken only where it is named or all there is.
        let release = versions.iter().rev().find(|version| !version.as_str().contains('-'));
        Ok(release.or(versions.last()).cloned())
    }

    /// Every registered version of every tool, by name and from old to new;
    /// what can't be read is told apart, and hides nothing else.
    ///
    /// # Errors
    /// `state-unavailable` if the folder can't be read.
    pub fn list(&self) -> Result<Listing, Problem> {
        let mut out = Listing::default();
        for builtin in self.builtins.iter().filter(|builtin| !builtin.unlisted()) {
            out.tools.push(self.listed(&*builtin.tool()?));
        }
        for name in self.names()? {
            for version in self.versions(&name)?.iter() {
                let capability = CapabilityRef { name: name.clone(), version: version.clone() };
                match self.load(&capability) {
                    Ok(tool) => out.tools.push(self.listed(&tool)),
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

    /// The manifests of all that is registered, which a policy is checked with,
    /// of the decisions that can be asked for, and of agents' own tools; a tool
    /// that can't be read is none that could run.
    ///
    /// # Errors
    /// `state-unavailable` if the folder can't be read.
    pub fn manifests(&self) -> Result<Vec<Manifest>, Problem> {
        let unlisted = unlisted().filter_map(|name| name.parse::<CapabilityName>().ok());
        let unlisted = unlisted.filter_map(|name| self.get(&Wanted { name, version: None }).ok());
        let unlisted: Vec<Manifest> = unlisted.map(|tool| tool.manifest.clone()).collect();
        let named = self.list()?.tools.into_iter().map(|listed| listed.capability);
        let wanted = named.map(|capability| Wanted { name: capability.name, version: Some(capability.version) });
        let tools = wanted.filter_map(|wanted| Some(self.get(&wanted).ok()?.manifest.clone()));
        Ok(tools.chain(unlisted).collect())
    }

    fn builtin(&self, name: &CapabilityName) -> Option<&Shipped> {
        self.builtins.iter().find(|builtin| builtin.is(name))
    }

    fn listed(&self, tool: &Tool) -> Listed {
        let Tool { manifest, registered, builtin, .. } = tool;
        Listed {
            capability: manifest.capability(),
            title: manifest.title.clone(),
            owner: manifest.owner.clone(),
            artifact: registered.digest.clone(),
            builtin: *builtin,
            health: self.health(tool),
        }
    }

    /// Why there is no such tool, and what was meant.
    fn unknown(&self, wanted: &Wanted, told: Told<'_>) -> Problem {
        let list = |versions: &[Version]| versions.iter().map(Version::as_str).collect::<Vec<_>>().join(", ");
        let versions: Arc<[Version]> = match self.builtin(&wanted.name).map(Shipped::tool) {
            Some(tool) => tool.iter().map(|tool| tool.manifest.version.clone()).collect(),
            None => self.versions(&wanted.name).unwrap_or_default(),
        };
        let mut removed = self.removed(&wanted.name).unwrap_or_default();
        removed.sort_by_key(Version::precedence);
        if versions.is_empty() && removed.is_empty() {
            return self.nowhere(wanted, told);
        }
        let meant = wanted.version.as_ref().map_or(versions.is_empty(), |version| removed.contains(version));
        let was = if meant && !removed.is_empty() { ": it was removed" } else { "" };
        let problem = Problem::new(Code::ToolUnknown, format!("no tool `{wanted}` is registered{was}"));
        let mut help = Vec::new();
        if !versions.is_empty() {
            help.push(format!("registered versions of `{}`: {}", wanted.name, list(&versions)));
        }
        if !removed.is_empty() {
            help.push(format!("removed ones stay taken, for the same bytes alone: {}", list(&removed)));
        }
        problem.with_help(help.join("; "))
    }

    /// There is nothing of this name, for all that is told.
    fn nowhere(&self, wanted: &Wanted, told: Told<'_>) -> Problem {
        let problem = Problem::new(Code::ToolUnknown, format!("no tool `{wanted}` is registered"));
        let names = self.all_names().unwrap_or_default();
        let names = names.iter().filter(|name| told(name)).map(CapabilityName::as_str);
        match nearest(wanted.name.as_str(), names) {
            Some(near) => problem.with_help(format!("did you mean `{near}`? `glovebox tool list` shows all")),
            None => problem,
        }
    }

    /// The names that have a version, in order.
    fn all_names(&self) -> Result<BTreeSet<CapabilityName>, Problem> {
        // Nobody calls the others by their names.
        let tools = self.builtins.iter().filter(|builtin| !builtin.unlisted());
        let builtins = tools.filter_map(|builtin| builtin.name().parse().ok());
        let registered = self.names()?.into_iter();
        let registered = registered.filter(|name| self.versions(name).is_ok_and(|versions| !versions.is_empty()));
        Ok(builtins.chain(registered).collect())
    }
}

/// The names of what comes with the program and is no tool that runs here.
fn unlisted() -> impl Iterator<Item = &'static str> {
    [PLAN, RESULT].into_iter().chain(natives::NAMES)
}

/// Whether somebody is told that there is a capability of this name.
type Told<'a> = &'a dyn Fn(&CapabilityName) -> bool;

fn parse(text: &str) -> Result<Manifest, Problem> {
    Manifest::from_toml(text).map_err(|error| Problem::of(&error))
}
