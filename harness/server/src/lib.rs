//! The HTTP door: resources, streams of events and the inbox, over one
//! [`ActionService`](glovebox_plane::ActionService) for each tenant.
//!
//! What it is: a table of routes (`table.rs`), each of which translates a
//! request into one call of the service and its answer into JSON; streams that
//! never miss an event and never hold one for a slow reader; pages where people
//! decide. Who calls is found before a handler sees anything (`auth`).
//!
//! What it is not: it decides nothing, it runs nothing, it knows no engine and
//! no SQL. What it is told about the caller comes from their credential, never
//! from what they send.
//!
//! ```
//! // The document is made from the table of routes that is served.
//! let document = glovebox_server::openapi();
//! let answer = &document["paths"]["/v1/approvals/{approval}/answer"]["post"];
//! assert_eq!(answer["x-roles"], serde_json::json!(["approver", "operator"]));
//! ```

mod auth;
mod body;
mod carry;
mod client;
mod decide;
mod events;
mod extract;
mod inbox;
mod listen;
mod mcp;
mod openapi;
mod problem;
mod push;
mod routes;
mod shapes;
mod state;
mod table;
mod telemetry;
mod tls;
mod upstream;

use std::time::Duration;

use env_contracts::{Code, Problem};
use glovebox_plane::Asking;

pub use client::ask;
pub use listen::{Front, Listeners};
pub use openapi::document as openapi;
pub use push::{FIRST_RETRY, WebhookFailure, WebhookStatus, Webhooks, check_webhook, test_webhook, webhook_status};
pub use state::{Parts, Settings, Tenants, Workspace};
pub use telemetry::{LogForm, LogLevel, Logs};
pub use tls::TlsFiles;
pub use upstream::Ways;

use auth::{Identity, Reached};
use state::App;

/// How often what expired and what crashed is looked at.
const LOOK: Duration = Duration::from_secs(30);

/// A server.
pub struct Server {
    app: App,
}

impl Server {
    /// A server of these parts.
    ///
    /// # Errors
    /// Those of the service of its own tenant.
    pub fn new(parts: Parts) -> Result<Self, Problem> {
        Ok(Self { app: App::new(parts)? })
    }

    /// A code that logs one browser in as whoever runs the server.
    ///
    /// # Errors
    /// `backend-error` if the host gives no random bytes.
    pub fn login_code(&self) -> Result<String, Problem> {
        self.app.login_code(Identity::of(&self.app.own()))
    }

    /// Whether a browser ever logged in, or a credential was ever made.
    ///
    /// # Errors
    /// `credentials-invalid`.
    pub fn is_known_to_anybody(&self) -> Result<bool, Problem> {
        Ok(!self.app.known.now()?.list().is_empty() || !self.app.logins.known.now()?.list().is_empty())
    }

    /// Serves until `ending` comes, then stops: streams end, requests under way
    /// are answered, what runs may end for `grace` and is then interrupted,
    /// what waits for people goes on waiting.
    ///
    /// # Errors
    /// Those of the store, before anything is served.
    pub async fn serve(self, listeners: Listeners, ending: impl Future<Output = ()>) -> Result<(), Problem> {
        let app = self.app;
        let logs = &app.telemetry.logs;
        let port = listeners.address().map_or(0, |address| address.port());
        let reached = Reached::tcp(port, &app.settings.hosts, listeners.secure());
        let url = listeners.url(&app.settings.hosts);
        let feed = tokio::spawn(app.feed.run(app.telemetry.clone())?);
        let pushing = tokio::spawn(push::run(app.clone(), app.webhooks.clone()));
        adopt(&app).await?;
        let looking = tokio::spawn(look(app.clone()));
        let router = table::router(&app);
        let grace = app.settings.grace;
        let stopped = app.ending.clone();
        let serving = listen::serve(listeners, router, reached, app.settings.connections, &stopped, grace, logs);
        logs.started(url.as_deref());
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            () = ending => {
                logs.stopping(app.carried.count(), grace);
                app.ending.cancel();
                serving.await;
            }
        }
        app.carried.let_go(grace).await;
        app.doors.close().await;
        // The next server finds its lock free.
        pushing.abort();
        let _ = pushing.await;
        looking.abort();
        feed.abort();
        app.telemetry.close().await;
        logs.stopped();
        Ok(())
    }
}

/// Goes on with what a server before this one carried.
async fn adopt(app: &App) -> Result<(), Problem> {
    let own = app.service(&app.own().tenant)?;
    own.recover().await?;
    for (principal, id) in own.held(ADOPTED)? {
        let service = app.service(&principal.tenant)?;
        let action = match service.action(&principal, &id) {
            Ok(view) => view.action,
            // It ended meanwhile, or was erased.
            Err(problem) if problem.code == Code::ActionUnknown => continue,
            Err(problem) => return Err(problem),
        };
        app.telemetry.found(&action);
        app.telemetry.logs.adopted(action.id.as_str(), action.capability.name.as_str());
        app.carried.resume(app, service, principal, &action, Asking::Wait);
    }
    Ok(())
}

/// How many actions are gone on with when a server starts: more than people
/// have waiting for them.
const ADOPTED: u32 = 10_000;

/// Looks, now and then, at what nobody else looks at.
async fn look(app: App) {
    loop {
        tokio::time::sleep(LOOK).await;
        app.limits.tidy();
        if let Ok(service) = app.service(&app.own().tenant) {
            // What can't be looked at now is looked at next time.
            let _ = service.recover().await;
            // Snapshots are what `gc` decides on.
            let _ = service.tend_environments(&app.own().tenant, 0, false).await;
        }
    }
}
