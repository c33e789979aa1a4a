//! Answers of people, whichever way they came to this door: the API and the
//! inbox give them alike, and the service decides again whatever they say.

use env_contracts::{Code, Name, Problem};
use glovebox_identity::{Approver, Approvers, WitnessKey};
use glovebox_plane::{Key, Reply, Settled, Signed};

use crate::auth::Caller;
use crate::state::App;

/// The key of whoever answers by passphrase.
///
/// # Errors
/// `credential-wrong`, `rate-limited` for who guesses, `usage` for half of it.
pub(crate) async fn key(
    app: &App,
    caller: &Caller,
    approver: Option<Name>,
    passphrase: Option<String>,
) -> Result<Option<Approver>, Problem> {
    let (name, passphrase) = match (approver, passphrase) {
        (None, None) => return Ok(None),
        (Some(name), Some(passphrase)) => (name, passphrase),
        _ => return Err(Problem::new(Code::Usage, "an approver's name and passphrase come together")),
    };
    app.limits.unlock(&caller.credential.name)?;
    let _one_of_few = app.unlocks.acquire().await;
    let path = app.approvers.clone();
    let unlocked = tokio::task::spawn_blocking(move || {
        let approvers = Approvers::load(&path).map_err(|error| Problem::of(&error))?;
        approvers.unlock(&name, &passphrase).map_err(|error| Problem::of(&error))
    });
    let unlocked = unlocked.await.map_err(|error| Problem::new(Code::BackendError, error.to_string()))?;
    unlocked.map(Some)
}

/// Records an answer of this person.
///
/// # Errors
/// As of [`glovebox_plane::ActionService::answer`].
pub(crate) async fn answer(
    app: &App,
    caller: &Caller,
    key: Option<&Approver>,
    reply: Reply,
    channel: &str,
) -> Result<Settled, Problem> {
    let channel = caller.channel(channel);
    let witness = match key {
        None if caller.credential.is_separate() => {
            Some(WitnessKey::open(&app.witness).map_err(|error| Problem::of(&error))?)
        }
        _ => None,
    };
    // What the kernel says about a caller, the service vouches for.
    let witness = witness.as_ref().and_then(|witness| witness.of(&caller.credential));
    let key = key.map(Key::Own).or(witness.as_ref().map(Key::Witness));
    caller.service.answer(Signed { principal: &caller.principal, key, channel }, reply).await
}
