//! The clauses of a contract, one by one, so that a backend answers for each.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    AuditLevel, Contract, Cpus, Deterministic, Egress, Identity, Imports, Ingress, Label, Mount, Os, Package,
    Persistence, Secret, Sharing, Snapshot, Walls,
};
use crate::ids::checked_text;
use crate::units::as_text;
use crate::{ByteSize, Digest, Name, Span};

checked_text!(
    /// Which clause, such as `limits.wall`, `filesystem[/workspace]` or `network.egress[api.example.com]`.
    ClausePath, "ClausePath", "^[a-z]+(\\.[a-z]+)?(\\[.+\\])?(\\.[a-z]+)?$", |text| {
        if text.is_empty() || text.len() > 512 || text.chars().any(char::is_control) {
            return Err(format!("`{}` is not a clause", crate::ids::shown(text)));
        }
        Ok(())
    }
);

/// One clause with its value. The match over it is exhaustive on purpose: a
/// new clause makes every backend say whether it enforces it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clause<'a> {
    /// `platform.os`
    Os(Os),
    /// `platform.arch`
    Arch(&'a [String]),
    /// `platform.image`
    Image(&'a Digest),
    /// `platform.runtime`
    Runtime(&'a Name),
    /// `filesystem[GUEST]`
    Mount(&'a Mount),
    /// `filesystem[GUEST].hide`
    Hide(&'a Mount),
    /// `network.egress[HOST]`
    Egress(&'a Egress),
    /// `network.ingress[PORT]`
    Ingress(&'a Ingress),
    /// `secrets[REF]`
    Secret(&'a Secret),
    /// `identity.delegation`
    Delegation(&'a Identity),
    /// `packages[NAME]`
    Package(&'a Package),
    /// `needs.memory`
    NeedMemory(ByteSize),
    /// `needs.cpus`
    NeedCpus(Cpus),
    /// `needs.storage`
    NeedStorage(ByteSize),
    /// `needs.gpu`
    NeedGpu(u32),
    /// `limits.wall`
    Wall(Span),
    /// `limits.idle`
    Idle(Span),
    /// `limits.cpu`
    Cpu(Span),
    /// `limits.cpus`
    Cpus(Cpus),
    /// `limits.memory`
    Memory(ByteSize),
    /// `limits.pids`
    Pids(u32),
    /// `limits.storage`
    Storage(ByteSize),
    /// `limits.inodes`
    Inodes(u64),
    /// `limits.gpu`
    Gpu(u32),
    /// `limits.output`
    Output(ByteSize),
    /// `limits.concurrency`
    Concurrency(u32),
    /// `state.persistence`
    Persistence(Persistence),
    /// `state.snapshot`
    Snapshot(Snapshot),
    /// `isolation.sharing`
    Sharing(Sharing),
    /// `isolation.walls`
    Walls(Walls),
    /// `data.label`
    Label(Label),
    /// `audit.level`
    Audit(AuditLevel),
    /// `audit.retain`
    Retain(Span),
    /// `cleanup.scratch`
    CleanScratch(bool),
    /// `wasm.imports`
    Imports(Imports),
    /// `wasm.deterministic`
    Deterministic(&'a Deterministic),
}

impl Clause<'_> {
    /// Which clause this is.
    pub fn path(&self) -> ClausePath {
        let text = match self {
            Self::Os(_) => "platform.os".into(),
            Self::Arch(_) => "platform.arch".into(),
            Self::Image(_) => "platform.image".into(),
            Self::Runtime(_) => "platform.runtime".into(),
            Self::Mount(mount) => format!("filesystem[{}]", mount.guest),
            Self::Hide(mount) => format!("filesystem[{}].hide", mount.guest),
            Self::Egress(rule) => format!("network.egress[{}]", rule.host),
            Self::Ingress(rule) => format!("network.ingress[{}]", rule.port),
            Self::Secret(secret) => format!("secrets[{}]", secret.reference),
            Self::Delegation(_) => "identity.delegation".into(),
            Self::Package(package) => format!("packages[{}]", package.name),
            Self::NeedMemory(_) => "needs.memory".into(),
            Self::NeedCpus(_) => "needs.cpus".into(),
            Self::NeedStorage(_) => "needs.storage".into(),
            Self::NeedGpu(_) => "needs.gpu".into(),
            Self::Wall(_) => "limits.wall".into(),
            Self::Idle(_) => "limits.idle".into(),
            Self::Cpu(_) => "limits.cpu".into(),
            Self::Cpus(_) => "limits.cpus".into(),
            Self::Memory(_) => "limits.memory".into(),
            Self::Pids(_) => "limits.pids".into(),
            Self::Storage(_) => "limits.storage".into(),
            Self::Inodes(_) => "limits.inodes".into(),
            Self::Gpu(_) => "limits.gpu".into(),
            Self::Output(_) => "limits.output".into(),
            Self::Concurrency(_) => "limits.concurrency".into(),
            Self::Persistence(_) => "state.persistence".into(),
            Self::Snapshot(_) => "state.snapshot".into(),
            Self::Sharing(_) => "isolation.sharing".into(),
            Self::Walls(_) => "isolation.walls".into(),
            Self::Label(_) => "data.label".into(),
            Self::Audit(_) => "audit.level".into(),
            Self::Retain(_) => "audit.retain".into(),
            Self::CleanScratch(_) => "cleanup.scratch".into(),
            Self::Imports(_) => "wasm.imports".into(),
            Self::Deterministic(_) => "wasm.deterministic".into(),
        };
        ClausePath(text)
    }

    /// What it asks for, for people.
    pub fn value(&self) -> String {
        match self {
            Self::Os(os) => format!("{os:?}").to_lowercase(),
            Self::Arch(archs) => archs.join(" or "),
            Self::Image(image) => image.short().to_owned(),
            Self::Runtime(name) => name.to_string(),
            Self::Mount(mount) => format!("{} {}", mount.access, mount.source),
            Self::Hide(mount) => mount.hidden().join(" "),
            Self::Egress(rule) => {
                let ports: Vec<String> = rule.ports.iter().map(u16::to_string).collect();
                let methods = rule.methods.as_ref().map_or("any method".into(), |methods| methods.join(","));
                format!("{methods} on {}", ports.join(","))
            }
            Self::Ingress(rule) => format!("{:?}", rule.protocol).to_lowercase(),
            Self::Secret(secret) => format!("header {} to {}", secret.inject.header, secret.inject.host),
            Self::Delegation(identity) => format!("{:?}", identity.delegation).to_lowercase(),
            Self::Package(package) => package.version.clone().unwrap_or_else(|| "any version".into()),
            Self::NeedMemory(size) | Self::NeedStorage(size) => format!("≥ {size}"),
            Self::NeedCpus(cpus) => format!("≥ {cpus}"),
            Self::NeedGpu(count) => format!("≥ {count}"),
            Self::Wall(span) | Self::Idle(span) | Self::Cpu(span) => format!("≤ {span}"),
            Self::Cpus(cpus) => format!("≤ {cpus}"),
            Self::Memory(size) | Self::Storage(size) | Self::Output(size) => format!("≤ {size}"),
            Self::Pids(count) | Self::Gpu(count) | Self::Concurrency(count) => format!("≤ {count}"),
            Self::Inodes(count) => format!("≤ {count}"),
            Self::Persistence(kept) => format!("{kept:?}").to_lowercase(),
            Self::Snapshot(when) => format!("{when:?}").to_lowercase(),
            Self::Sharing(sharing) => format!("one per {sharing:?}").to_lowercase(),
            Self::Walls(Walls(count)) => format!("≥ {count}"),
            Self::Label(label) => format!("up to {label:?}").to_lowercase(),
            Self::Audit(level) => format!("{level:?}").to_lowercase(),
            Self::Retain(span) => format!("≥ {span}"),
            Self::CleanScratch(on) => if *on { "removed" } else { "kept" }.into(),
            Self::Imports(imports) => format!("{imports:?}").to_lowercase(),
            Self::Deterministic(chosen) => format!("seed {}, from {}", chosen.seed, chosen.time),
        }
    }

    /// Whether the clause grants something, so that leaving it out leaves the
    /// action with less. Only such clauses may degrade.
    pub fn grants(&self) -> bool {
        matches!(
            self,
            Self::Mount(_)
                | Self::Egress(_)
                | Self::Ingress(_)
                | Self::Secret(_)
                | Self::Delegation(_)
                | Self::Persistence(Persistence::Environment)
                | Self::Imports(Imports::Stub)
        )
    }
}

impl Contract {
    /// Every clause that this contract states, in the order of the format.
    /// What isolation, data label and imports are is always stated.
    pub fn clauses(&self) -> Vec<Clause<'_>> {
        let mut out = Vec::new();
        out.extend(self.platform.os.map(Clause::Os));
        out.extend(self.platform.arch.as_deref().map(Clause::Arch));
        out.extend(self.platform.image.as_ref().map(Clause::Image));
        out.extend(self.platform.runtime.as_ref().map(Clause::Runtime));
        for mount in &self.filesystem {
            out.push(Clause::Mount(mount));
            if !mount.hidden().is_empty() {
                out.push(Clause::Hide(mount));
            }
        }
        out.extend(self.network.egress.iter().map(Clause::Egress));
        out.extend(self.network.ingress.iter().map(Clause::Ingress));
        out.extend(self.secrets.iter().map(Clause::Secret));
        if self.identity != Identity::default() {
            out.push(Clause::Delegation(&self.identity));
        }
        out.extend(self.packages.iter().map(Clause::Package));
        out.extend(self.needs.memory.map(Clause::NeedMemory));
        out.extend(self.needs.cpus.map(Clause::NeedCpus));
        out.extend(self.needs.storage.map(Clause::NeedStorage));
        out.extend(self.needs.gpu.map(Clause::NeedGpu));
        out.extend(self.limits.wall.map(Clause::Wall));
        out.extend(self.limits.idle.map(Clause::Idle));
        out.extend(self.limits.cpu.map(Clause::Cpu));
        out.extend(self.limits.cpus.map(Clause::Cpus));
        out.extend(self.limits.memory.map(Clause::Memory));
        out.extend(self.limits.pids.map(Clause::Pids));
        out.extend(self.limits.storage.map(Clause::Storage));
        out.extend(self.limits.inodes.map(Clause::Inodes));
        out.extend(self.limits.gpu.map(Clause::Gpu));
        out.extend(self.limits.output.map(Clause::Output));
        out.extend(self.limits.concurrency.map(Clause::Concurrency));
        if self.state.persistence != Persistence::None {
            out.push(Clause::Persistence(self.state.persistence));
        }
        if self.state.snapshot != Snapshot::Never {
            out.push(Clause::Snapshot(self.state.snapshot));
        }
        out.push(Clause::Sharing(self.isolation.sharing));
        if self.isolation.walls != Walls::default() {
            out.push(Clause::Walls(self.isolation.walls));
        }
        out.push(Clause::Label(self.data.label));
        out.push(Clause::Audit(self.audit.level));
        out.extend(self.audit.retain.map(Clause::Retain));
        out.push(Clause::CleanScratch(self.cleanup.scratch));
        out.push(Clause::Imports(self.wasm.imports));
        out.extend(self.wasm.deterministic.as_ref().map(Clause::Deterministic));
        out
    }
}
