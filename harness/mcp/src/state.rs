//! `requestState`: what a client carries from one round of a request to the
//! next. It comes back from a stranger, so it is sealed, and bound to who
//! asked, for what, with which arguments and until when.
//!
//! It is a name, not a right: whoever brings it may see no more than without.

use env_contracts::canon::{Canonical, ParseLimits};
use env_contracts::digest::Hasher;
use env_contracts::{Digest, Id, Name, Principal};
use rmcp::ErrorData;
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long a state counts, in milliseconds. Each round seals a new one, so it
/// has to last for one round alone: until a person found the page.
const LASTS_MS: u64 = 3_600_000;

/// The key that states are sealed with. A door that is opened again with the
/// same key goes on with what it asked before.
#[derive(Clone)]
pub struct StateKey(RequestStateCodec);

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey")
    }
}

impl StateKey {
    /// The key with these random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        let codec = RequestStateCodec::try_new(bytes);
        Self(codec.unwrap_or_else(|error| unreachable!("32 bytes are enough: {error}")))
    }

    pub(crate) fn seal(&self, round: &Round, call: &Call<'_>) -> Result<String, ErrorData> {
        let bound = call.digest();
        let options = SealOptions::new().associated_data(bound.as_str().as_bytes());
        let sealed = self.0.seal_json_with(round, &options);
        sealed.map_err(|error| ErrorData::internal_error(format!("cannot seal the state of a request: {error}"), None))
    }

    /// What a state says, if it is ours, for this call, and not too old.
    pub(crate) fn open(&self, sealed: &str, call: &Call<'_>, now_ms: u64) -> Result<Round, ErrorData> {
        let bound = call.digest();
        let opened: Result<Round, _> = self.0.open_json_with(sealed, bound.as_str().as_bytes());
        let refused = |why: &str| {
            let help =
                "call `glovebox.result` with the id of the action; to do something else, leave `requestState` out";
            ErrorData::invalid_params(format!("`requestState` {why}"), Some(serde_json::json!({ "help": help })))
        };
        let round = opened.map_err(|_| refused("is not one that this door gave for this very call"))?;
        if now_ms >= round.expires_ms {
            return Err(refused("is too old"));
        }
        Ok(round)
    }
}

/// What is carried from one round to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Round {
    /// The action that waits.
    pub(crate) action: Id,
    /// The approval that the client was told of.
    pub(crate) approval: Id,
    /// Until when it counts, in milliseconds since 1970.
    pub(crate) expires_ms: u64,
}

impl Round {
    pub(crate) fn new(action: &Id, approval: &Id, now_ms: u64) -> Self {
        let expires_ms = now_ms.saturating_add(LASTS_MS);
        Self { action: action.clone(), approval: approval.clone(), expires_ms }
    }
}

/// What a state is bound to.
pub(crate) struct Call<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) tool: &'a str,
    /// As they came, where the transport kept them.
    pub(crate) received: Option<&'a str>,
    pub(crate) arguments: &'a Value,
}

impl Call<'_> {
    fn digest(&self) -> Digest {
        let Principal { tenant, user, agent, agent_version, chain } = self.principal;
        let chain = chain.iter().map(Name::as_str).collect::<Vec<_>>().join("\n");
        let mut hasher = Hasher::new("glovebox/mcp-request-state/v1");
        hasher
            .part("tenant", tenant.as_str().as_bytes())
            .part("user", user.as_str().as_bytes())
            .part("agent", agent.as_ref().map_or("", Name::as_str).as_bytes())
            .part("agent-version", agent_version.as_ref().map_or("", env_contracts::Version::as_str).as_bytes())
            .part("chain", chain.as_bytes())
            .part("method", b"tools/call")
            .part("tool", self.tool.as_bytes())
            .part("arguments", self.canonical().as_bytes());
        hasher.finish()
    }

    /// The arguments, however they are spelled. What can't be read is refused
    /// before anybody is asked, so it may stand for itself.
    fn canonical(&self) -> String {
        let canonical = match self.received {
            Some(text) => Canonical::parse(text.as_bytes(), ParseLimits::default()),
            None => Canonical::from_value(self.arguments),
        };
        canonical.map_or_else(|_| self.arguments.to_string(), |canonical| canonical.as_str().to_owned())
    }
}
