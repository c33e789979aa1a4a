//! What an approver signs.

use env_contracts::{Digest, Id, Name, Verdict};

use crate::framed::Framed;

/// The domain of the bytes: a signature over anything else is none over this.
const DOMAIN: &str = "glovebox/decision/v1";

/// The domain of what a service vouches for: no approver's signature is one of
/// a service's, and none of a service's an approver's.
const WITNESSED: &str = "glovebox/witnessed/v1";

/// What an approver signs, and what a service vouches for: everything that a
/// decision consists of. The name of whose it is is added by who signs, and by
/// who verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The approval that is answered.
    pub approval: Id,
    /// The action that asked.
    pub action: Id,
    /// The digest of the plan that was on the screen.
    pub plan: Digest,
    /// The offer that was picked.
    pub offer: Id,
    /// Allow or deny. Asking decides nothing: it is never accepted.
    pub verdict: Verdict,
    /// How far it reaches, as the log writes it: `once`, `task`, …
    pub scope: Name,
    /// The digest of what is granted beyond the tool's contract, as the
    /// approver narrowed it. Absent: nothing is.
    pub delta: Option<Digest>,
    /// The digest of the approver's words to the agent, if there are any.
    pub words: Option<Digest>,
    /// When, in milliseconds since 1970.
    pub decided_at_ms: u64,
}

impl Statement {
    /// The bytes that this approver signs.
    pub(crate) fn bytes(&self, approver: &Name) -> Vec<u8> {
        self.framed(Framed::new(DOMAIN).part("approver", approver.as_str()))
    }

    /// The bytes that a service signs when this person answered.
    pub(crate) fn witnessed(&self, person: &Name) -> Vec<u8> {
        self.framed(Framed::new(WITNESSED).part("person", person.as_str()))
    }

    fn framed(&self, whose: Framed) -> Vec<u8> {
        let verdict = match self.verdict {
            Verdict::Allow => "allow",
            Verdict::Deny => "deny",
            Verdict::Ask => "ask",
        };
        whose
            .part("approval", self.approval.as_str())
            .part("action", self.action.as_str())
            .part("plan", self.plan.as_str())
            .part("offer", self.offer.as_str())
            .part("verdict", verdict)
            .part("scope", self.scope.as_str())
            .maybe("delta", self.delta.as_ref().map(Digest::as_str))
            .maybe("words", self.words.as_ref().map(Digest::as_str))
            .part("decided-at-ms", self.decided_at_ms.to_be_bytes())
            .finish()
    }
}
