//! The list of webhooks: who is told of what waits for people.

use std::path::Path;

use env_contracts::{Code, Name};

use crate::approvers::same;
use crate::error::IdentityError;
use crate::guarded::{Guarded, Seen};
use crate::webhook::{Stored, Webhook};

/// What stands at the beginning of the file, for who opens it.
const HEADER: &str = "\
# Whom Glovebox tells of what waits for people; Glovebox writes this file. It
# holds no secret, only where one is; who can write it can have cards sent to them.

";

/// The most webhooks: each reads the log by itself.
pub const MOST_WEBHOOKS: usize = 16;

/// The list of webhooks.
#[derive(Debug)]
pub struct Webhooks {
    file: Guarded,
    seen: Seen,
    stored: Stored,
}

impl Webhooks {
    /// Reads the list. Where there is no file, there are no webhooks.
    ///
    /// # Errors
    /// `webhooks-invalid`: the file is not of its form, or others could read
    /// it or have written it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        Self::read(Guarded::new(path, Code::WebhooksInvalid))
    }

    /// Whether the file is the one that was read.
    pub fn is_current(&self) -> bool {
        self.file.still(&self.seen)
    }

    /// The webhooks, in the order in which they were added.
    pub fn list(&self) -> &[Webhook] {
        &self.stored.webhooks
    }

    /// Adds a webhook.
    ///
    /// # Errors
    /// `webhook-conflict`, `webhooks-invalid`, and the host's.
    pub fn add(&mut self, webhook: Webhook) -> Result<(), IdentityError> {
        self.change(|file, stored| {
            if let Some(taken) = stored.webhooks.iter().find(|other| same(&other.name, &webhook.name)) {
                return Err(IdentityError::WebhookTaken(taken.name.clone()));
            }
            stored.webhooks.push(webhook);
            check(file, stored)
        })
    }

    /// Removes a webhook: nothing is sent to it from then on.
    ///
    /// # Errors
    /// `webhook-unknown`, `webhooks-invalid`, and the host's.
    pub fn remove(&mut self, name: &Name) -> Result<(), IdentityError> {
        self.change(|_, stored| {
            let before = stored.webhooks.len();
            stored.webhooks.retain(|webhook| webhook.name != *name);
            if stored.webhooks.len() < before { Ok(()) } else { Err(IdentityError::NoWebhook(name.clone())) }
        })
    }

    /// Changes the file as it is now, whatever it was when it was loaded.
    fn change(
        &mut self,
        change: impl FnOnce(&Guarded, &mut Stored) -> Result<(), IdentityError>,
    ) -> Result<(), IdentityError> {
        let _lock = self.file.lock()?;
        let mut stored = Self::read(self.file.clone())?.stored;
        change(&self.file, &mut stored)?;
        let text = toml::to_string(&stored).map_err(|error| self.file.invalid(&error.to_string()))?;
        self.file.replace(&format!("{HEADER}{text}"))?;
        *self = Self::read(self.file.clone())?;
        Ok(())
    }

    fn read(file: Guarded) -> Result<Self, IdentityError> {
        let (text, seen) = file.read_seen()?;
        let Some(text) = text else { return Ok(Self { file, seen, stored: Stored::default() }) };
        let stored: Stored = toml::from_str(&text).map_err(|error| file.invalid(error.to_string().trim_end()))?;
        check(&file, &stored)?;
        Ok(Self { file, seen, stored })
    }
}

/// Whether the list can be as it is.
fn check(file: &Guarded, stored: &Stored) -> Result<(), IdentityError> {
    let all = &stored.webhooks;
    if all.len() > MOST_WEBHOOKS {
        return Err(file.invalid(&format!("has {} webhooks, and at most {MOST_WEBHOOKS} are served", all.len())));
    }
    let twice = all.iter().enumerate().find(|(at, one)| all[..*at].iter().any(|other| same(&other.name, &one.name)));
    match twice {
        Some((_, webhook)) => Err(file.invalid(&format!("has `{}` twice", webhook.name))),
        None => Ok(()),
    }
}
