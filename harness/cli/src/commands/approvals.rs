//! `glovebox approvals`: what waits for a person, and deciding it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::{Code, Id, Name, Principal, Problem, Scope};
use glovebox_events::{ApprovalState, Reviewed};
use glovebox_identity::Approvers;
use glovebox_plane::{ActionService, Answering, Card, CardOffer, Key, Reply, Settled, Signed};

use super::action::{recover, when};
use super::{asking, files, printed, run};
use crate::args::{AnswerArgs, ApprovalsCommand, ApproveArgs, DeclineArgs, EditArgs, IdArgs};
use crate::config::Config;
use crate::table::Table;
use crate::terminal::{escaped, escaped_line};
use crate::{house, print, who};

pub(crate) fn run(command: ApprovalsCommand, config: &Config) -> Result<ExitCode, Problem> {
    match command {
        ApprovalsCommand::List { all, json } => list(all, json, config),
        ApprovalsCommand::Show(args) => show(&args, config),
        ApprovalsCommand::Approve(args) => approve(&args, config),
        ApprovalsCommand::Decline(args) => decline(&args, config),
        ApprovalsCommand::Edit(args) => edit(&args, config),
    }
}

fn list(all: bool, json: bool, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    recover(&service)?;
    let cards = cards(
        &service,
        &who::requester_of_answers(config),
        if all { Vec::new() } else { vec![ApprovalState::Pending] },
    )?;
    if json {
        return printed(print::json(&serde_json::json!({ "approvals": cards })), 0);
    }
    let mut table = Table::default();
    // What waits for the same thing is one row: one look, one answer each.
    let mut shown = BTreeSet::new();
    for card in &cards {
        let waits = card.state == ApprovalState::Pending;
        if waits && !shown.insert(&card.card) {
            continue;
        }
        let agents = card.requester.chain.iter().chain(&card.requester.agent).map(Name::as_str);
        let agents = agents.collect::<Vec<_>>().join(" > ");
        let asker = if agents.is_empty() { card.requester.user.to_string() } else { agents };
        let until = match card.expires_ms.filter(|_| waits) {
            Some(at) => format!("until {}", when(at)),
            None => when(card.opened_ms),
        };
        let alike = |other: &&Card| waits && other.card == card.card && other.approval != card.approval;
        let also: Vec<String> = cards.iter().filter(alike).map(|other| begins(&other.approval)).collect();
        let also = if also.is_empty() { String::new() } else { format!("alike: {}", also.join(" ")) };
        let (tool, session) = (card.capability.to_string(), card.session.as_str());
        let id = card.approval.as_str();
        table.row([id, card.state.as_str(), &tool, &asker, session, &until, &card.plan, &also]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}

/// As much of an id as names it.
fn begins(id: &Id) -> String {
    id.as_str().chars().take(super::SHORTEST_ID).collect()
}

/// All cards in these states, page by page.
fn cards(service: &ActionService, principal: &Principal, states: Vec<ApprovalState>) -> Result<Vec<Card>, Problem> {
    let (mut cards, mut after) = (Vec::new(), None);
    loop {
        let page = service.approvals(principal, states.clone(), after, 0)?;
        cards.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(cards),
        }
    }
}

fn show(args: &IdArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    recover(&service)?;
    let card = service.approval(
        &who::requester_of_answers(config),
        &whole(&service, &who::requester_of_answers(config), &args.id)?,
    )?;
    if args.json {
        return printed(print::json(&card), 0);
    }
    let mut out = anstream::stdout().lock();
    let mut shown = Ok(());
    for line in card_lines(&card) {
        shown = shown.and_then(|()| writeln!(out, "{line}"));
    }
    for offer in &card.offers {
        let until = lasts(offer);
        shown = shown
            .and_then(|()| writeln!(out, "  offer {:16}  {}{until}", offer.id.to_string(), escaped_line(&offer.does)));
    }
    drop(out);
    printed(shown, 0)
}

/// How long what an offer grants would hold.
pub(super) fn lasts(offer: &CardOffer) -> String {
    let span = |lasts| env_contracts::Span(std::time::Duration::from_millis(lasts));
    offer.lasts_ms.map(|lasts| format!(" (for {})", span(lasts))).unwrap_or_default()
}

/// A card for people: all of what decides, nothing cut.
pub(super) fn card_lines(card: &Card) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, text: &str| {
        // Further lines stand under the first: a text can't pass for ours by
        // breaking the line.
        let text = escaped(text).replace('\n', "\n               │ ");
        lines.push(format!("  {name:11}  {text}"));
    };
    line("approval", &format!("{}  ({})", card.approval, card.state.as_str()));
    line("tool", &format!("{}  plan {}", card.capability, card.plan));
    let agent = card.requester.agent.as_ref().map(|agent| {
        let version = card.requester.agent_version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
        format!("agent {agent}{version} for ")
    });
    line("asks", &format!("{}{}", agent.unwrap_or_default(), card.requester.user));
    if !card.requester.chain.is_empty() {
        let chain: Vec<&str> = card.requester.chain.iter().map(Name::as_str).collect();
        line("on behalf of", &chain.join(" > "));
    }
    line(
        "task",
        &format!(
            "{}{}",
            card.task,
            card.task_stage.as_ref().map(|stage| format!("  (stage {stage})")).unwrap_or_default()
        ),
    );
    if let Some(purpose) = &card.model_purpose {
        line("it says why", &format!("{purpose}  [the model's words: not checked]"));
    }
    match &card.proposal {
        Some(proposal) => proposed(proposal).into_iter().for_each(|(name, text)| line(name, &text)),
        None => line("arguments", card.arguments.as_deref().unwrap_or("erased")),
    }
    if let Some(workspace) = &card.workspace {
        line("workspace", workspace);
    }
    if let Some(scope) = &card.scope {
        line("asks for", &serde_json::json!(scope).to_string());
    }
    if let Some(effects) = card.effects {
        let effects = serde_json::to_value(effects).ok().and_then(|value| value.as_str().map(str::to_owned));
        line("effects", &effects.unwrap_or_default());
    }
    if let Some(who) = &card.uncontained {
        line("CONTAINED", &format!("by {who}"));
    }
    // Of what does not run, limits say nothing.
    for clause in card.clauses.iter().filter(|_| card.asks.runs()) {
        line("may", &format!("{} = {}", clause.clause, clause.value));
    }
    for changed in &card.changed {
        line("CHANGED", changed);
    }
    for reason in &card.reasons {
        line("why asked", reason);
    }
    if card.reasons.is_empty() {
        let why = serde_json::to_value(card.asked_for).ok().and_then(|value| value.as_str().map(str::to_owned));
        line("why asked", &why.unwrap_or_default());
    }
    for (name, text) in previewed(card) {
        line(name, &text);
    }
    for review in &card.reviews {
        let said = match review.verdict {
            Reviewed::Approved => "approves",
            Reviewed::Denied => "denies",
            Reviewed::TimedOut => "did not answer in time",
            Reviewed::Failed => "failed",
        };
        line("reviewed", &format!("`{}` {said}: {}", review.class, review.reasons.join("; ")));
    }
    if card.same > 1 {
        line("alike", &format!("{} wait for the same; an answer counts for this one alone", card.same));
    }
    let classes: Vec<&str> = card.classes.iter().map(Name::as_str).collect();
    line("may answer", &classes.join(" or "));
    if card.state == ApprovalState::Pending {
        let end = card.expires_ms.map_or_else(|| "never".to_owned(), when);
        let why = if card.nobody_reachable { "  (nobody who may answer is known)" } else { "" };
        line("expires", &format!("{end}{why}"));
    }
    if let Some(answer) = &card.answer {
        line(
            "answered",
            &format!("{} by {} ({}) at {}", answer.offer, answer.by, answer.assurance, when(answer.at_ms)),
        );
        if let Some(words) = &answer.words {
            line("said", words);
        }
    }
    lines
}

/// What a preview showed, or why there is none.
fn previewed(card: &Card) -> Vec<(&'static str, String)> {
    let Some(shown) = &card.previewed else { return Vec::new() };
    let by = card.preview_by.as_ref().map_or_else(String::new, |by| format!("`{by}` "));
    let mut lines = Vec::new();
    if let Some(outcome) = &shown.outcome {
        lines.push(("preview", format!("{by}ended as {outcome}")));
    }
    if let Some(reason) = &shown.reason {
        let wanted = if card.preview && !shown.ok { "a rule wants one, and there is none: " } else { "" };
        lines.push(("preview", format!("{by}{wanted}{reason}")));
    }
    lines.extend(shown.version.iter().map(|version| ("version", version.clone())));
    lines.extend(shown.text.iter().map(|text| ("it shows", text.clone())));
    lines.extend(shown.artifacts.iter().map(|artifact| ("it shows", format!("{} ({})", artifact.uri, artifact.name))));
    lines
}

/// A plan, or a result with its condition and what is said for it.
fn proposed(proposal: &serde_json::Value) -> Vec<(&'static str, String)> {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut lines = Vec::new();
    let each = |name: &'static str, key: &str, lines: &mut Vec<(&'static str, String)>| {
        if let Some(value) = proposal.get(key) {
            lines.push((name, text(value)));
        }
    };
    each("for goal", "goal", &mut lines);
    each("plan", "summary", &mut lines);
    let steps = proposal.get("steps").and_then(serde_json::Value::as_array).into_iter().flatten();
    for step in steps {
        let part = |key: &str| step.get(key).map(text);
        let with = part("capability").map_or_else(String::new, |with| format!(", with {with}"));
        let scope = part("scope").map_or_else(String::new, |scope| format!(", under {scope}"));
        let title = part("title").unwrap_or_default();
        lines.push(("step", format!("{title} (effects {}{with}{scope})", part("effects").unwrap_or_default())));
    }
    each("result", "artifact", &mut lines);
    if let Some(condition) = proposal.pointer("/condition/text") {
        lines.push(("condition", text(condition)));
    }
    if proposal.get("artifact").is_some() {
        let evidence = proposal.get("evidence").and_then(serde_json::Value::as_array).cloned().unwrap_or_default();
        if evidence.is_empty() {
            lines.push(("evidence", "none".to_owned()));
        }
        for found in &evidence {
            let part = |key: &str| found.get(key).map(text).unwrap_or_default();
            let holds = if found.get("holds") == Some(&serde_json::Value::Bool(true)) {
                "it holds"
            } else {
                "it does NOT hold"
            };
            lines.push(("evidence", format!("{} by {}: {holds}", part("entry"), part("by"))));
        }
    }
    lines
}

fn approve(args: &ApproveArgs, config: &Config) -> Result<ExitCode, Problem> {
    let narrowed = args.contract.as_deref().map(scope).transpose()?;
    let id = args.offer.clone().unwrap_or_else(|| who::id("once"));
    answer(&args.answer, Answering::Offer { id, narrowed }, config)
}

fn decline(args: &DeclineArgs, config: &Config) -> Result<ExitCode, Problem> {
    let id = who::id(if args.stop_task { "decline-and-stop" } else { "decline" });
    answer(&args.answer, Answering::Offer { id, narrowed: None }, config)
}

fn edit(args: &EditArgs, config: &Config) -> Result<ExitCode, Problem> {
    let arguments = match args.args.as_deref().map(|text| (text, text.strip_prefix('@'))) {
        Some((_, Some(path))) => Some(files::read_text(std::path::Path::new(path))?),
        Some((text, None)) => Some(text.to_owned()),
        None => None,
    };
    let scope = args.contract.as_deref().map(scope).transpose()?;
    answer(&args.answer, Answering::Edit { arguments, scope }, config)
}

fn scope(path: &std::path::Path) -> Result<Scope, Problem> {
    let text = files::read_text(path)?;
    Scope::from_toml(&text).map_err(|error| {
        let problem = Problem::of(&error);
        Problem { message: format!("`{}`: {}", path.display(), problem.message), ..problem }
    })
}

fn answer(args: &AnswerArgs, answer: Answering, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::service(config, run::SLOTS)?;
    let approval = whole(&service, &who::requester_of_answers(config), &args.id)?;
    let key = match &args.approver {
        Some(name) => {
            let approvers = Approvers::load(&house::approvers_path(config)).map_err(|error| Problem::of(&error))?;
            Some(asking::unlock(&approvers, name, args.passphrase_stdin)?)
        }
        None => None,
    };
    let principal = who::requester_of_answers(config);
    let by = Signed { principal: &principal, key: key.as_ref().map(Key::Own), channel: asking::channel("cli") };
    let reply = Reply { approval, seen: args.plan.clone(), answer, words: args.say.clone() };
    let settled = house::tokio_runtime()?.block_on(service.answer(by, reply))?;
    if args.json {
        return printed(print::json(&settled), 0);
    }
    printed(settled_lines(&settled), 0)
}

fn settled_lines(settled: &Settled) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let again = if settled.repeated { " already" } else { "" };
    writeln!(out, "approval {} is{again} {}", settled.approval.id, settled.approval.state.as_str())?;
    if let Some(grant) = &settled.grant {
        writeln!(out, "  grant {} holds until {}", grant.id, when(grant.expires_ms))?;
    }
    let action = &settled.action;
    match (settled.approval.state, action.pending()) {
        (ApprovalState::Approved, _) => {
            let how = format!("by itself if its run waits, else with `glovebox action resume {}`", action.id);
            writeln!(out, "  action {} goes on {}", action.id, print::pasted(&how))
        }
        (ApprovalState::Edited, Some(next)) => {
            writeln!(out, "  the edited plan {} waits for approval {}", next.digest.short(), next.id)
        }
        (ApprovalState::Edited, None) => writeln!(out, "  the edited action {} is {}", action.id, action.state),
        _ => writeln!(out, "  action {} is {}", action.id, action.state),
    }
}

/// The one approval whose id begins so.
fn whole(service: &ActionService, principal: &Principal, id: &Id) -> Result<Id, Problem> {
    if service.approval(principal, id).is_ok() {
        return Ok(id.clone());
    }
    let cards = cards(service, principal, Vec::new())?;
    super::only(id, "approval", Code::ApprovalUnknown, cards.iter().map(|card| &card.approval))
}
