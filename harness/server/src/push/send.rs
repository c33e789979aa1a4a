//! Sending: one request, signed, to an address that was checked.

use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Code, Problem};
use glovebox_identity::Webhook;
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use url::Url;

use super::target::{self, Checked, Lookup};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a receiver may take in all: it is to note what it is told and
/// answer, not to work on it.
const ANSWER: Duration = Duration::from_secs(15);

/// What is sent.
pub(super) struct Letter {
    /// The same whenever it is sent again.
    pub(super) id: String,
    pub(super) body: Vec<u8>,
}

/// Where the letters of a webhook go.
pub(super) struct Receiver {
    client: Client,
    url: Url,
}

impl Receiver {
    /// That of a webhook.
    ///
    /// # Errors
    /// `webhook-target`, and `backend-error` where this host has no TLS.
    pub(super) fn of(webhook: &Webhook, lookup: Lookup) -> Result<Self, Problem> {
        let (url, reach) = target::parse(&webhook.url, webhook.allow_private)?;
        let client = Client::builder()
            .dns_resolver(Arc::new(Checked { reach, lookup }))
            // Where it leads on to was never checked.
            .redirect(reqwest::redirect::Policy::none())
            // A proxy would look names up itself.
            .no_proxy()
            // A connection that is kept leads where its name led once.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .referer(false)
            .user_agent(concat!("glovebox/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| Problem::new(Code::BackendError, format!("cannot call out: {error}")))?;
        Ok(Self { client, url })
    }

    /// Sends a letter. What comes back is looked at no further than whether it
    /// was taken.
    ///
    /// # Errors
    /// `webhook-secret`, `webhook-target`, `webhook-failed`.
    pub(super) async fn send(&self, webhook: &Webhook, letter: &Letter, now_ms: u64) -> Result<(), Problem> {
        let secret = webhook.secret.read().map_err(|error| Problem::of(&error))?;
        let at_s = now_ms / 1000;
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/cloudevents+json")
            .header("webhook-id", &letter.id)
            .header("webhook-timestamp", at_s)
            .header("webhook-signature", secret.sign(&letter.id, at_s, &letter.body))
            .body(letter.body.clone());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) if answer.status().is_redirection() => {
                let message = format!("it answered {}: it leads elsewhere, where nothing is sent", answer.status());
                Err(Problem::new(Code::WebhookFailed, message))
            }
            Ok(answer) => Err(Problem::new(Code::WebhookFailed, format!("it answered {}", answer.status()))),
            Err(error) => Err(why(error)),
        }
    }
}

/// Why nothing was sent, in words of the innermost cause.
fn why(error: reqwest::Error) -> Problem {
    let slow = error.is_timeout();
    let error = error.without_url();
    let mut cause: &(dyn std::error::Error + 'static) = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
        if let Some(refused) = cause.downcast_ref::<target::Refused>() {
            return Problem::new(Code::WebhookTarget, format!("its name leads nowhere that may be called: {refused}"));
        }
    }
    let cause = if slow { format!("no answer within {} s", ANSWER.as_secs()) } else { cause.to_string() };
    Problem::new(Code::WebhookFailed, cause)
}
