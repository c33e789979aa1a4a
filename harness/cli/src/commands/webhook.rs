//! `glovebox webhook`: who is told of what waits for people.

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::{Code, Name, Problem};
use glovebox_identity::{SecretFrom, Webhook, Webhooks};
use glovebox_runtime::{Clock as _, SystemClock};
use glovebox_server::{WebhookStatus, check_webhook, test_webhook, webhook_status};
use serde_json::json;

use super::action::when;
use super::printed;
use crate::args::{WebhookAddArgs, WebhookCommand};
use crate::config::Config;
use crate::places::Places;
use crate::table::Table;
use crate::{house, print, who};

pub(crate) fn run(command: WebhookCommand, config: &Config) -> Result<ExitCode, Problem> {
    who::person(config)?;
    let mut webhooks = Webhooks::load(&house::webhooks_path(config)).map_err(|error| Problem::of(&error))?;
    match command {
        WebhookCommand::Add(args) => add(&mut webhooks, args),
        WebhookCommand::List { json } => list(&webhooks, config, json),
        WebhookCommand::Remove { name, json } => {
            webhooks.remove(&name).map_err(|error| Problem::of(&error))?;
            said(json, &json!({ "removed": name }), &format!("`{name}` is told nothing any more"))
        }
        WebhookCommand::Test { name, json } => {
            test(&webhooks, config, &name)?;
            said(json, &json!({ "taken": true }), &format!("`{name}` took it"))
        }
    }
}

fn said(json: bool, value: &serde_json::Value, words: &str) -> Result<ExitCode, Problem> {
    if json {
        return printed(print::json(value), 0);
    }
    printed(writeln!(anstream::stdout().lock(), "{words}"), 0)
}

fn add(webhooks: &mut Webhooks, args: WebhookAddArgs) -> Result<ExitCode, Problem> {
    check_webhook(&args.url, args.allow_private)?;
    let secret = match (args.secret_file, args.secret_env) {
        // A server stands elsewhere than whoever types this.
        (Some(file), _) => {
            let secret = SecretFrom::File(std::path::absolute(&file).unwrap_or(file));
            secret.read().map_err(|error| Problem::of(&error))?;
            secret
        }
        // The server's environment is not ours.
        (None, Some(name)) => SecretFrom::Environment(name),
        (None, None) => return Err(Problem::new(Code::Usage, "a webhook has a secret that signs what is sent")),
    };
    let webhook = Webhook {
        name: args.name,
        tenant: args.tenant,
        url: args.url,
        kinds: args.kind,
        classes: args.class,
        objects: !args.outline,
        allow_private: args.allow_private,
        created_ms: SystemClock.now().unix_millis,
        secret,
    };
    webhooks.add(webhook.clone()).map_err(|error| Problem::of(&error))?;
    said(args.json, &json!({ "webhook": webhook }), &format!("`{}`: {}", webhook.name, described(&webhook)))
}

fn list(webhooks: &Webhooks, config: &Config, json: bool) -> Result<ExitCode, Problem> {
    let folder = Places::of(config).webhooks();
    let mut all: Vec<(&Webhook, WebhookStatus)> = Vec::new();
    for webhook in webhooks.list() {
        all.push((webhook, webhook_status(&folder, webhook)?));
    }
    if json {
        let all: Vec<_> = all.iter().map(|(webhook, status)| json!({ "webhook": webhook, "status": status })).collect();
        return printed(print::json(&json!({ "webhooks": all })), 0);
    }
    let mut table = Table::default();
    for (webhook, status) in &all {
        let fares = match check_webhook(&webhook.url, webhook.allow_private) {
            Ok(()) => fares(status),
            Err(problem) => problem.to_string(),
        };
        table.row([webhook.name.as_str(), &described(webhook), &fares]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}

/// How a webhook fares, in a line.
fn fares(status: &WebhookStatus) -> String {
    let mut words = Vec::new();
    match status.sent_ms {
        Some(at) => words.push(format!("last taken {}", when(at))),
        None => words.push("nothing taken yet".to_owned()),
    }
    if status.pending > 0 {
        let next = status.next_try_ms.map_or_else(String::new, |at| format!(", next try {}", when(at)));
        words.push(format!("{} wait{next}", status.pending));
    }
    if status.given_up > 0 {
        words.push(format!("{} given up", status.given_up));
    }
    if let Some(failure) = &status.failure {
        words.push(format!("{}: {}", when(failure.at_ms), failure.message));
    }
    words.join("; ")
}

fn described(webhook: &Webhook) -> String {
    let Webhook { tenant, url, kinds, classes, objects, allow_private, .. } = webhook;
    let joined = |words: Vec<&str>| words.join(", ");
    let kinds =
        if kinds.is_empty() { "all".to_owned() } else { joined(kinds.iter().map(|kind| kind.as_str()).collect()) };
    let classes = match classes.as_slice() {
        [] => String::new(),
        some => format!(" for {}", joined(some.iter().map(Name::as_str).collect())),
    };
    let objects = if *objects { "" } else { ", outlines only" };
    let private = if *allow_private { ", private addresses allowed" } else { "" };
    format!("{url} of {tenant}: {kinds}{classes}{objects}{private}")
}

fn test(webhooks: &Webhooks, config: &Config, name: &Name) -> Result<(), Problem> {
    let webhook = webhooks.list().iter().find(|webhook| webhook.name == *name);
    let webhook = webhook.ok_or_else(|| Problem::new(Code::WebhookUnknown, format!("there is no webhook `{name}`")))?;
    let database = house::overseer(config)?.database()?;
    house::tokio_runtime()?.block_on(test_webhook(webhook, &database, SystemClock.now().unix_millis))
}
