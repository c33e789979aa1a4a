//! Who may do what through this door.
//!
//! A request passes, in this order: is it meant for us and does it come from
//! us (`origin.rs`), who is it, may their role use this route, do they ask too
//! often. Only then its body is read, and a handler sees it, with a [`Caller`] and no way to get
//! another.

mod caller;
mod known;
mod limits;
mod origin;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use env_contracts::{Code, Name, Principal, Problem};
use glovebox_identity::{By, Credential, Role};

pub(crate) use caller::{Caller, Sight};
pub(crate) use known::{CODE_MS, Identity, Known, LOGIN_MS, Logins};
pub(crate) use limits::{Limits, UNLOCKS};
pub(crate) use origin::Reached;

use crate::problem::Failure;
use crate::state::App;
use crate::table::Route;
use crate::telemetry::Asker;
use crate::{body, inbox};

/// The cookie of a browser that logged in.
pub(crate) const COOKIE: &str = "glovebox_login";

/// The header in which a front end says for which of its users it asks.
const ON_BEHALF_OF: &str = "glovebox-on-behalf-of";

/// The other end of a connection, as the listener knows it.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// How we are reached here.
    pub(crate) reached: Reached,
    /// The user at the other end of a Unix socket.
    pub(crate) peer: Option<u32>,
}

/// What stands before a handler.
pub(crate) async fn guard(
    State((app, route)): State<(App, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    match admitted(&app, route, &request) {
        Ok(caller) => {
            let most = if caller.is_some() { body::MAX_BODY } else { body::MAX_OF_STRANGERS };
            request = match body::whole(request, most, &app.ending).await {
                Ok(request) => request,
                Err(problem) => return refused(route, problem),
            };
            request.extensions_mut().insert(route);
            let Some(caller) = caller else { return next.run(request).await };
            let (credential, tenant) = (caller.credential.name.clone(), caller.principal.tenant.clone());
            request.extensions_mut().insert(caller);
            let mut response = next.run(request).await;
            response.extensions_mut().insert(Asker { credential, tenant });
            response
        }
        // A person at a page is shown where to log in, not an error.
        Err(problem) if route.page && problem.code == Code::CredentialMissing => {
            axum::response::Redirect::to("/login").into_response()
        }
        Err(problem) => refused(route, problem),
    }
}

fn refused(route: &Route, problem: Problem) -> Response {
    if route.page { inbox::refusal(&problem) } else { Failure(problem).into_response() }
}

fn admitted(app: &App, route: &'static Route, request: &Request) -> Result<Option<Caller>, Problem> {
    let connection = request
        .extensions()
        .get::<Connection>()
        .ok_or_else(|| Problem::new(Code::BackendError, "a connection without a listener"))?;
    let headers = request.headers();
    connection.reached.check_host(headers, request.uri())?;
    let cookie = cookie(headers);
    connection.reached.check_origin(request.method(), headers, cookie.is_some())?;
    if route.who.is_empty() {
        return Ok(None);
    }
    let (credential, by_cookie) = found(app, connection, headers, cookie)?;
    if !route.who.contains(&credential.role) {
        let roles: Vec<&str> = route.who.iter().map(|role| role.as_str()).collect();
        let message =
            format!("`{}` has the role {}, and this is for: {}", credential.name, credential.role, roles.join(", "));
        return Err(Problem::new(Code::RoleForbidden, message));
    }
    app.limits.call(&credential.name)?;
    let principal = speaks_for(&credential, request)?;
    let service = app.service(&principal.tenant)?;
    // Agents see their own; people look over all of their tenant.
    let service = if credential.role == Role::Agent { service } else { service.overseeing() };
    Ok(Some(Caller { principal, credential, by_cookie, service }))
}

/// Whom a request speaks for: whoever its credential names, or the user whom a
/// front end says that it asks for. They are of the credential's tenant, and
/// never an agent. A front end by itself looks; what it does, it does for
/// somebody.
fn speaks_for(credential: &Credential, request: &Request) -> Result<Principal, Problem> {
    let mut named = request.headers().get_all(ON_BEHALF_OF).iter();
    let Some(name) = named.next() else {
        if credential.on_behalf && !request.method().is_safe() {
            let message =
                format!("`{}` is a front end's, and the request names no user that it acts for", credential.name);
            return Err(Problem::new(Code::NotEligible, message)
                .with_help(format!("name the user who is logged in there in `{ON_BEHALF_OF}`")));
        }
        return Ok(credential.principal());
    };
    if !credential.on_behalf {
        let message = format!("`{}` speaks for `{}` alone", credential.name, credential.user);
        return Err(Problem::new(Code::NotEligible, message)
            .with_help(format!("leave `{ON_BEHALF_OF}` out, or make a token with `--on-behalf`")));
    }
    let one = name.to_str().ok().filter(|_| named.next().is_none());
    let user = one.and_then(|name| name.parse::<Name>().ok()).ok_or_else(|| {
        Problem::new(Code::Usage, format!("`{ON_BEHALF_OF}` names no user"))
            .with_help("name one: letters, digits, `_`, `-` and `.`, a letter or digit first")
    })?;
    Ok(Principal { user, ..credential.principal() })
}

/// The credential of a request.
fn found(
    app: &App,
    connection: &Connection,
    headers: &HeaderMap,
    cookie: Option<String>,
) -> Result<(Credential, bool), Problem> {
    let now = app.now_ms();
    if let Some(given) = headers.get(header::AUTHORIZATION) {
        let token = given.to_str().ok().and_then(|given| {
            let (scheme, token) = given.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        let known = app.known.now()?;
        return match token.and_then(|token| known.by_token(token, now)) {
            Some(credential) => Ok((credential.clone(), false)),
            None => {
                app.limits.guess()?;
                Err(Problem::new(Code::TokenUnknown, "the token is not known here, or it expired"))
            }
        };
    }
    if let Some(cookie) = cookie {
        return match app.logins.known.now()?.by_token(&cookie, now) {
            Some(credential) => Ok((credential.clone(), true)),
            // A browser whose login ended is shown where to log in again.
            None => Err(Problem::new(Code::CredentialMissing, "the login ended")),
        };
    }
    if let Some(uid) = connection.peer {
        if let Some(credential) = app.known.now()?.by_peer(uid, now) {
            return Ok((credential.clone(), false));
        }
        if uid == rustix::process::geteuid().as_raw() {
            return Ok((app.own(), false));
        }
    }
    Err(Problem::new(Code::CredentialMissing, "nobody is logged in"))
}

/// Whether the credential of somebody who came in a while ago is still good: it
/// was not taken back, and its time is not over.
pub(crate) fn still(app: &App, caller: &Caller) -> bool {
    let credential = &caller.credential;
    let known = if caller.by_cookie { &app.logins.known } else { &app.known };
    let now = app.now_ms();
    let alike = |one: &Credential| one.name == credential.name && one.created_ms == credential.created_ms;
    match known.now() {
        // A file that can't be read lets nobody in, and puts nobody out.
        Err(_) => true,
        Ok(all) => match all.list().iter().find(|one| alike(one)) {
            Some(one) => one.expires_ms.is_none_or(|expires| expires > now),
            // Whoever runs this server is in no file.
            None => matches!(credential.by, By::Peer { uid } if uid == rustix::process::geteuid().as_raw()),
        },
    }
}

/// The value of our cookie.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<String> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value.to_owned())
}

/// Whoever runs this server, before any credential was made: the operator.
pub(crate) fn operator(principal: &Principal, name: Name, now_ms: u64, uid: u32) -> Credential {
    Credential {
        name,
        role: Role::Operator,
        tenant: principal.tenant.clone(),
        user: principal.user.clone(),
        agent: None,
        agent_version: None,
        stage: None,
        on_behalf: false,
        created_ms: now_ms,
        expires_ms: None,
        by: By::Peer { uid },
    }
}
