//! Who calls, as handlers get to know them.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use env_contracts::{Code, Name, Principal, Problem};
use glovebox_identity::{Credential, Role};
use glovebox_plane::ActionService;

use crate::problem::Failure;

/// Somebody whose credential was found good, for a route that their role may
/// use.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Who it is: from the credential, never from the request.
    pub(crate) principal: Principal,
    /// What showed it.
    pub(crate) credential: Credential,
    /// Whether a browser sent it by itself, as it does with cookies.
    pub(crate) by_cookie: bool,
    /// The service of their tenant, with as much reach as the role has.
    pub(crate) service: ActionService,
}

/// How much somebody gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// That something is there, and waits.
    Outlines,
    /// Objects: arguments, texts, contents. Not what people are offered: an agent
    /// answers nothing, and it names folders of the host.
    Objects,
    /// All of it.
    All,
}

impl Caller {
    /// How much they get to see.
    pub(crate) fn sight(&self) -> Sight {
        match self.credential.role {
            Role::Observer => Sight::Outlines,
            Role::Agent | Role::Worker => Sight::Objects,
            Role::Approver | Role::Operator => Sight::All,
        }
    }

    /// Whether they get to see objects.
    pub(crate) fn sees_objects(&self) -> bool {
        self.sight() != Sight::Outlines
    }

    /// The door that an answer came through, and the front end that vouches for
    /// whoever gave it.
    pub(crate) fn channel(&self, door: &str) -> Name {
        let words = match self.credential.on_behalf {
            true => format!("{door}.{}", self.credential.name),
            false => door.to_owned(),
        };
        words.parse().unwrap_or_else(|error| unreachable!("two short names: {error}"))
    }

    /// At which stage the work of this loop is, as its credential says.
    pub(crate) fn stage(&self) -> Option<String> {
        self.credential.stage.as_ref().map(ToString::to_string)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        // The guard of the route put it there.
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Failure(Problem::new(Code::CredentialMissing, "nobody is logged in")))
    }
}
