//! What an answer is made of: who may give it, what it picks or puts in
//! place, and the grant that comes of it.

use env_contracts::{Assurance, Code, Digest, Id, Name, Problem, Scope};
use glovebox_events::{
    Action, Answer, Answered, Approval, Approver, Asks, Control, Grant, GrantScope, Matcher, Offer, PayloadRole,
};

use super::answering::{Answering, Reply};
use super::flight::Flight;
use super::halting::{is_person, word};
use super::people::{Signed, statement};
use super::submission::{Edit, EditSchema};
use super::{ActionService, granting, permission, reviewing};

impl ActionService {
    /// Whether this person may answer. No agent may, least of all the one
    /// that asks.
    pub(super) fn eligible(&self, by: &Signed<'_>, action: &Action, approval: &Approval) -> Result<(), Problem> {
        if !is_person(by.principal) {
            return Err(Problem::new(Code::NotEligible, "an agent approves nothing"));
        }
        let (name, assurance) = (by.name(), by.assurance());
        let policy = self.parts.policy.current();
        let own = policy.classes_of(name.as_str(), assurance, &action.principal);
        if own.iter().any(|class| approval.classes.contains(class)) {
            return Ok(());
        }
        let classes: Vec<&str> = approval.classes.iter().map(Name::as_str).collect();
        let message = format!(
            "`{name}` ({assurance}) is none of those who may answer: {}",
            if classes.is_empty() { "nobody is".to_owned() } else { classes.join(", ") }
        );
        Err(Problem::new(Code::NotEligible, message).with_help(self.who_may(action, approval)?))
    }

    /// Who of those that are known may answer, and how.
    fn who_may(&self, action: &Action, approval: &Approval) -> Result<String, Problem> {
        let policy = self.parts.policy.current();
        let id = &approval.id;
        let may = |(name, assurance): &(Name, Assurance)| {
            let own = policy.classes_of(name.as_str(), *assurance, &action.principal);
            own.iter().any(|class| approval.classes.contains(class))
        };
        let known = self.parts.people.known()?;
        let (login, others): (Vec<_>, Vec<_>) =
            known.iter().filter(|known| may(known)).partition(|(_, assurance)| *assurance == Assurance::ConsoleLogin);
        let names = |known: Vec<&(Name, Assurance)>| {
            let names: Vec<String> = known.iter().map(|(name, _)| format!("`{name}`")).collect();
            names.join(" or ")
        };
        let mut ways = Vec::new();
        if let Some((first, _)) = login.first() {
            let command = format!("`glovebox approvals approve {id} --as {first}`");
            ways.push(format!("{} may, by passphrase: {command}", names(login)));
        }
        if !others.is_empty() {
            ways.push(format!(
                "{} may, as the user of this machine that they are, through `glovebox serve`",
                names(others)
            ));
        }
        if ways.is_empty() {
            return Ok(
                "nobody who may is registered: `glovebox approver add NAME` registers somebody, and the policy's \
                       `approvers.toml` says in which class they are"
                    .to_owned(),
            );
        }
        Ok(ways.join("; "))
    }

    pub(super) fn answer_of(
        &self,
        by: &Signed<'_>,
        reply: &Reply,
        approval: &Approval,
        flight: &mut Flight,
        now: u64,
        words: Option<Digest>,
    ) -> Result<(Answer, Option<Offer>), Problem> {
        let approver = Approver { name: by.name(), assurance: by.assurance(), channel: by.channel.clone() };
        let blank = |offer: Id, answer, scope, control, edit| Answer {
            approval: approval.id.clone(),
            offer,
            answer,
            scope,
            control,
            seen: approval.digest.clone(),
            words: words.clone(),
            edit,
            by: approver.clone(),
            signature: None,
            at_ms: now,
        };
        match &reply.answer {
            Answering::Offer { id, narrowed } => {
                let Some(offer) = approval.offers.iter().find(|offer| offer.id == *id) else {
                    let all: Vec<&str> = approval.offers.iter().map(|offer| offer.id.as_str()).collect();
                    let message = format!("`{id}` is not offered");
                    return Err(
                        Problem::new(Code::Usage, message).with_help(format!("offered are: {}", all.join(", ")))
                    );
                };
                if reviewing::denied(approval) && offer.answer == Answered::Approve && offer.scope != GrantScope::Once {
                    let message = "a reviewer denied it: this one action can be approved, and no more";
                    return Err(Problem::new(Code::Usage, message).with_help("answer `once`"));
                }
                let permission = matches!(offer.matcher, Some(Matcher::Permission { .. }));
                if narrowed.is_some() && !permission {
                    return Err(Problem::new(Code::Usage, "only a permission is narrowed with an answer")
                        .with_help("put another contract in its place: `glovebox approvals edit ID --contract FILE`"));
                }
                let edit = narrowed.clone().map(|scope| {
                    let edit = Edit { schema: EditSchema::V1, arguments: None, scope: Some(scope), filled: false };
                    flight.journal.payload(PayloadRole::Edit, &edit)
                });
                let mut answer = blank(offer.id.clone(), offer.answer, offer.scope, offer.control, edit);
                if let Some(key) = &by.key {
                    let signed = statement(flight.action(), approval, &answer).map(|statement| key.sign(&statement));
                    answer.signature = signed.map(|signature| signature.to_string());
                }
                Ok((answer, Some(offer.clone())))
            }
            Answering::Edit { .. } if matches!(flight.action().asks, Asks::Plan | Asks::Result) => {
                Err(Problem::new(Code::Usage, "it is accepted as it is, or not at all")
                    .with_help("decline it, and say what has to change"))
            }
            Answering::Edit { arguments, scope } => {
                let before = flight.kept.clone();
                let edit = Edit {
                    schema: EditSchema::V1,
                    arguments: arguments.clone().or(before.received),
                    scope: over(before.request.scope, scope.clone()),
                    filled: false,
                };
                // A slip in it must not cost the request.
                self.possible(flight, &edit)?;
                let payload = flight.journal.payload(PayloadRole::Edit, &edit);
                let id = word("edit").as_str().parse().unwrap_or_else(|error| unreachable!("a word of ours: {error}"));
                Ok((blank(id, Answered::Edit, GrantScope::Once, Control::Continue, Some(payload)), None))
            }
        }
    }

    /// The grant that an answer makes.
    pub(super) fn grant_of(
        &self,
        by: &Signed<'_>,
        flight: &Flight,
        approval: &Approval,
        answer: &Answer,
        offer: Option<&Offer>,
        reply: &Reply,
    ) -> Result<Option<Grant>, Problem> {
        let Some((matcher, lasts)) = offer.and_then(|offer| Some((offer.matcher.clone()?, offer.lasts_ms?))) else {
            return Ok(None);
        };
        let matcher = match &reply.answer {
            Answering::Offer { narrowed: Some(scope), .. } => {
                permission::narrowed(&matcher, scope, &flight.tool()?.manifest.contract)?
            }
            _ => matcher,
        };
        let action = flight.action();
        let (session, task, turn) = granting::place(answer.scope, action);
        let policy = self.parts.policy.current();
        Ok(Some(Grant {
            id: self.parts.ids.random(),
            principal: action.principal.clone(),
            session,
            task,
            turn,
            scope: answer.scope,
            matcher,
            approval: approval.id.clone(),
            action: action.id.clone(),
            by: answer.by.clone(),
            classes: policy.classes_of(by.name().as_str(), by.assurance(), &action.principal),
            made_ms: answer.at_ms,
            expires_ms: answer.at_ms.saturating_add(lasts),
            revoked: None,
        }))
    }
}

/// The sections that a person gives in place of those that were asked; the
/// others stay as they were asked.
pub(super) fn over(asked: Option<Scope>, given: Option<Scope>) -> Option<Scope> {
    let (asked, given) = match (asked, given) {
        (Some(asked), Some(given)) => (asked, given),
        (asked, given) => return given.or(asked),
    };
    Some(Scope {
        schema: given.schema,
        filesystem: given.filesystem.or(asked.filesystem),
        network: given.network.or(asked.network),
        secrets: given.secrets.or(asked.secrets),
        identity: given.identity.or(asked.identity),
        limits: given.limits.or(asked.limits),
        state: given.state.or(asked.state),
        isolation: given.isolation.or(asked.isolation),
        data: given.data.or(asked.data),
        audit: given.audit.or(asked.audit),
        cleanup: given.cleanup.or(asked.cleanup),
        wasm: given.wasm.or(asked.wasm),
    })
}
