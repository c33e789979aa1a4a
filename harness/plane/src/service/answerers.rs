//! Who may answer an approval, for whoever shows it.

use env_contracts::{Assurance, Name, Principal, Problem};

use super::ActionService;
use super::halting::is_person;
use crate::cards::Card;

/// Who may answer an approval, as far as it can be said before they do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answerers {
    /// Whether whoever looks may answer as the channel knows them.
    pub as_is: bool,
    /// Those who may by their passphrase.
    pub by_passphrase: Vec<Name>,
}

impl ActionService {
    /// Who may answer this card, when this person looks at it. It is decided
    /// again when an answer comes.
    ///
    /// # Errors
    /// Those of where the people are kept.
    pub fn answerers(&self, principal: &Principal, card: &Card) -> Result<Answerers, Problem> {
        let policy = self.parts.policy.current();
        let may = |name: &Name, assurance: Assurance| {
            let own = policy.classes_of(name.as_str(), assurance, &card.requester);
            own.iter().any(|class| card.classes.contains(class))
        };
        let known = self.parts.people.known()?.into_iter();
        Ok(Answerers {
            as_is: is_person(principal) && may(&principal.user, Assurance::SameUser),
            by_passphrase: known.filter(|(name, assurance)| may(name, *assurance)).map(|(name, _)| name).collect(),
        })
    }
}
