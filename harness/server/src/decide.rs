//! Answers of people, whichever way they came to this door: the API and the
//! inbox give them alike, and the service decides again whatever they say.

use env_contracts::{Code, Name, Problem};
use glovebox_identity::{Approver, Approvers};
use glovebox_plane::{Reply, Settled, Signed};

use crate::auth::Caller;
use crate::state::App;

/// The key of whoever answers by passphrase.
///
/// # Errors
/// `credential-wrong`, `rate-limited` for who guesses, `usage` for half of it.
pub(crate) async fn key(
    app: &App,
    approver: Option<Name>,
    passphrase: Option<String>,
) -> Result<Option<Approver>, Problem> {
    let (name, passphrase) = match (approver, passphrase) {
        (None, None) => return Ok(None),
        (Some(name), Some(passphrase)) => (name, passphrase),
        _ => return Err(Problem::new(Code::Usage, "an approver's name and passphrase come together")),
    };
    app.limits.guess()?;
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
    caller: &Caller,
    key: Option<&Approver>,
    reply: Reply,
    channel: &str,
) -> Result<Settled, Problem> {
    let channel = channel.parse().unwrap_or_else(|error| unreachable!("a word of ours: {error}"));
    caller.service.answer(Signed { principal: &caller.principal, key, channel }, reply).await
}
