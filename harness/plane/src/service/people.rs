//! Whether an answer is the person's whom it names.

use env_contracts::digest::Hasher;
use env_contracts::{Assurance, Code, Digest, Name, OutcomeKind, Principal, Problem, Verdict};
use glovebox_events::{Action, Answer, Answered, Approval, Offer};
use glovebox_identity::{Approver, Signature, Statement, Witness};

use super::ActionService;
use super::flight::Halt;
use super::halting::word;
use super::reviewing::is_reviewer;
use crate::observe::Refusal;

/// Who may approve, and how their answers are told from others'.
pub trait People: Send + Sync {
    /// Who there is, with the most that they can show to be themselves.
    ///
    /// # Errors
    /// Those of where it is kept.
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem>;

    /// Whether this is signed as an answer of this person's has to be that
    /// claims this assurance: by the person, or by the service that vouches
    /// for them.
    ///
    /// # Errors
    /// `signature-invalid`, also for an assurance that nothing here can show,
    /// and those of where it is kept.
    fn verify(
        &self,
        name: &Name,
        assurance: Assurance,
        statement: &Statement,
        signature: &Signature,
    ) -> Result<(), Problem>;
}

/// What signs an answer.
#[derive(Clone, Copy)]
pub enum Key<'a> {
    /// The person's own, unlocked.
    Own(&'a Approver),
    /// The service's, which vouches for a caller whom the kernel tells from
    /// the service's user.
    Witness(&'a Witness<'a>),
}

impl<'a> From<&'a Approver> for Key<'a> {
    fn from(key: &'a Approver) -> Self {
        Self::Own(key)
    }
}

impl<'a> From<&'a Witness<'a>> for Key<'a> {
    fn from(witness: &'a Witness<'a>) -> Self {
        Self::Witness(witness)
    }
}

impl Key<'_> {
    fn name(&self) -> &Name {
        match self {
            Self::Own(key) => key.name(),
            Self::Witness(witness) => witness.person(),
        }
    }

    fn assurance(&self) -> Assurance {
        match self {
            Self::Own(_) => Assurance::ConsoleLogin,
            Self::Witness(_) => Assurance::SeparateUser,
        }
    }

    pub(super) fn sign(&self, statement: &Statement) -> Signature {
        match self {
            Self::Own(key) => key.sign(statement),
            Self::Witness(witness) => witness.sign(statement),
        }
    }
}

/// Who answers, with what shows it.
pub struct Signed<'a> {
    /// The user as the channel knows them; an agent in it means that it is
    /// none who may answer.
    pub principal: &'a Principal,
    /// What signs for them. `None`: only the channel speaks for them.
    pub key: Option<Key<'a>>,
    /// Through which door.
    pub channel: Name,
}

impl Signed<'_> {
    pub(super) fn name(&self) -> Name {
        self.key.as_ref().map_or_else(|| self.principal.user.clone(), |key| key.name().clone())
    }

    pub(super) fn assurance(&self) -> Assurance {
        self.key.as_ref().map_or(Assurance::SameUser, Key::assurance)
    }
}

/// What a person signs for an answer: everything in it that matters, with the
/// offer as it was made.
pub(super) fn statement(action: &Action, approval: &Approval, answer: &Answer) -> Option<Statement> {
    let verdict = match answer.answer {
        Answered::Approve => Verdict::Allow,
        Answered::Decline => Verdict::Deny,
        // Other arguments are approved on their own.
        Answered::Edit => return None,
    };
    let offer = approval.offers.iter().find(|offer| offer.id == answer.offer)?;
    Some(Statement {
        approval: answer.approval.clone(),
        action: action.id.clone(),
        plan: answer.seen.clone(),
        offer: answer.offer.clone(),
        verdict,
        scope: scope_word(answer),
        delta: Some(offered(offer, answer.edit.as_ref())),
        words: answer.words.clone(),
        decided_at_ms: answer.at_ms,
    })
}

fn scope_word(answer: &Answer) -> Name {
    word(match answer.scope {
        glovebox_events::GrantScope::Once => "once",
        glovebox_events::GrantScope::Turn => "turn",
        glovebox_events::GrantScope::Task => "task",
        glovebox_events::GrantScope::Session => "session",
        glovebox_events::GrantScope::Rule => "rule",
    })
}

/// The digest of an offer with all that it would grant, and of what the person
/// left of it.
fn offered(offer: &Offer, narrowed: Option<&Digest>) -> Digest {
    let mut hasher = Hasher::new("glovebox/offer/v1");
    hasher.part("offer", &crate::json(offer));
    hasher.part("narrowed", narrowed.map_or("", Digest::as_str).as_bytes());
    hasher.finish()
}

impl ActionService {
    /// The classes that policy has this answer's person in now, of those that
    /// were asked.
    pub(super) fn classes_of(&self, answer: &Answer, requester: &Principal, asked: &[Name]) -> Vec<Name> {
        if is_reviewer(answer) {
            let own = self.reviewers_of(asked).into_iter().map(|reviewer| reviewer.class);
            return own.filter(|class| *class == answer.by.name).collect();
        }
        let policy = self.parts.policy.current();
        let mut classes = policy.classes_of(answer.by.name.as_str(), answer.by.assurance, requester);
        classes.retain(|class| asked.contains(class));
        classes
    }

    /// Refuses an answer that its signature does not fit: a row in the
    /// database is no decision of a person's.
    pub(super) fn genuine(&self, action: &Action, answer: &Answer) -> Result<(), Halt> {
        let approval = self.that_approval(action, &answer.approval)?;
        let genuine = if is_reviewer(answer) {
            self.reviewed(&approval, answer, &action.principal.tenant)
        } else {
            self.signed(action, &approval, answer)
        };
        genuine.map_err(|problem| {
            let message = format!(
                "the answer to approval `{}` is not `{}`'s: {}",
                answer.approval, answer.by.name, problem.message
            );
            let problem = Problem { message, ..problem };
            Halt::from(Refusal::new(OutcomeKind::Drift, problem).which("answer"))
        })
    }

    /// Whether an answer carries the signature that its assurance needs.
    pub(super) fn signed(&self, action: &Action, approval: &Approval, answer: &Answer) -> Result<(), Problem> {
        let forged = |why: &str| Problem::new(Code::SignatureInvalid, why);
        match answer.by.assurance {
            // It claims nothing that a signature could show.
            Assurance::SameUser => Ok(()),
            assurance @ (Assurance::ConsoleLogin | Assurance::SeparateUser) => {
                let statement = statement(action, approval, answer).ok_or_else(|| forged("it was not offered"))?;
                let signature = answer.signature.as_deref().ok_or_else(|| forged("it is not signed"))?;
                let signature: Signature = signature.parse().map_err(|_| forged("its signature is none"))?;
                self.parts.people.verify(&answer.by.name, assurance, &statement, &signature)
            }
            Assurance::Passkey => Err(forged("nothing here can show that")),
        }
    }
}
