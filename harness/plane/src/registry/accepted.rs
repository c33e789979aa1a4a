//! What an operator accepted of a tool's claims: that it can be done twice, or
//! taken back. It is said of bytes, and of no others under the same name.

use std::io::ErrorKind;
use std::path::PathBuf;

use env_contracts::{CapabilityRef, Code, Digest, Problem};
use glovebox_runtime::{Instant, io_problem, private_dir, read_plain};
use serde::{Deserialize, Serialize};

use super::{Registry, Tool};

/// The folder of the records.
const FOLDER: &str = "@accepted";

/// The longest record that is read, in bytes: they have some hundred.
const MAX_RECORD: u64 = 4096;

/// That the claims of a tool were accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    schema: AcceptedSchema,
    capability: CapabilityRef,
    /// The sha256 of the component.
    artifact: Digest,
    /// When, in milliseconds since 1970.
    accepted_ms: u64,
}

/// The version tag of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum AcceptedSchema {
    #[serde(rename = "glovebox/accepted-effects/v1")]
    V1,
}

impl Registry {
    /// Whether the claims of a tool count: those of a built-in one, and those
    /// that an operator accepted for these bytes. Read anew each time, so that
    /// what was taken back counts no more; what can't be read counts for nothing.
    pub fn accepted(&self, tool: &Tool) -> bool {
        let capability = tool.manifest.capability();
        let read = || {
            let text = read_plain(&self.acceptance(&capability), MAX_RECORD).ok()?;
            serde_json::from_str::<Accepted>(&text).ok()
        };
        let accepts = |record: Accepted| record.capability == capability && record.artifact == tool.registered.digest;
        tool.builtin || read().is_some_and(accepts)
    }

    /// Accepts the claims of a registered tool, for its bytes.
    ///
    /// # Errors
    /// `tool-reserved` for a built-in one, those of the host.
    pub fn accept(&self, tool: &Tool, now: Instant) -> Result<(), Problem> {
        let record = Accepted {
            schema: AcceptedSchema::V1,
            capability: self.own(tool)?,
            artifact: tool.registered.digest.clone(),
            accepted_ms: now.unix_millis,
        };
        let path = self.acceptance(&record.capability);
        let bytes = serde_json::to_vec_pretty(&record).unwrap_or_default();
        let draft = path.with_extension(uuid::Uuid::now_v7().simple().to_string());
        private_dir(&self.dir.join(FOLDER))
            .and_then(|()| super::store::durable(&draft, &bytes))
            .and_then(|()| fs_err::rename(&draft, &path))
            .map_err(|error| io_problem("cannot record what was accepted", Code::StateUnavailable, &error))
    }

    /// Takes that back.
    ///
    /// # Errors
    /// As of [`Registry::accept`].
    pub fn accept_no_more(&self, tool: &Tool) -> Result<(), Problem> {
        match fs_err::remove_file(self.acceptance(&self.own(tool)?)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(io_problem("cannot take back what was accepted", Code::StateUnavailable, &error))
            }
            _ => Ok(()),
        }
    }

    fn own(&self, tool: &Tool) -> Result<CapabilityRef, Problem> {
        let capability = tool.manifest.capability();
        if tool.builtin {
            return Err(Problem::new(Code::ToolReserved, format!("`{}` is a built-in tool", capability.name))
                .with_help("what comes with Glovebox needs no acceptance"));
        }
        Ok(capability)
    }

    fn acceptance(&self, capability: &CapabilityRef) -> PathBuf {
        self.dir.join(FOLDER).join(format!("{capability}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form ever stored is still read, and written as it was.
    #[test]
    fn stored_forms() {
        let v1 = include_str!("../../golden/accepted.v1.json");
        let record: Accepted = serde_json::from_str(v1).unwrap();
        assert_eq!(record.capability.to_string(), "my.tool@1.2.0");
        assert_eq!(serde_json::to_string_pretty(&record).unwrap(), v1.trim_end());
    }
}
