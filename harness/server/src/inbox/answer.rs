//! The form of an approval. Each offer is a button of it, with what it does
//! spelled out.

use env_contracts::text::{escaped, escaped_json};
use env_contracts::{Name, Problem};
use glovebox_events::{ApprovalState, Asks, GrantScope};
use glovebox_identity::Role;
use glovebox_plane::{Answerers, Card, CardOffer};
use maud::{Markup, html};

use super::card::Seen;
use super::layout::lasted;
use super::visitor::Visitor;

/// Whether the form of a card has its arguments as exact JSON: once is enough
/// of what may be long.
pub(super) fn has_exact(card: &Card) -> bool {
    card.state == ApprovalState::Pending && card.asks == Asks::Run
}

pub(super) fn form(visitor: &Visitor, card: &Card, seen: &Seen) -> Result<Markup, Problem> {
    if visitor.caller.credential.role == Role::Observer {
        return Ok(html! {});
    }
    let may = visitor.caller.service.answerers(&visitor.caller.principal, card)?;
    let id = &card.approval;
    let (declines, approves): (Vec<&CardOffer>, Vec<&CardOffer>) =
        card.offers.iter().partition(|offer| offer.id.as_str().starts_with("decline"));
    let (once, more): (Vec<&CardOffer>, Vec<&CardOffer>) =
        approves.into_iter().partition(|offer| offer.scope == GrantScope::Once);
    // Where there is no answer for once, all stand side by side.
    let (first, more) = if once.is_empty() { (more, Vec::new()) } else { (once, more) };
    Ok(html! {
        form .answer method="post" action=(format!("/inbox/approvals/{id}")) autocomplete="off" {
            fieldset {
                legend .hidden { "Your answer" }
                // Enter in a field must not pick an offer: the form has no default.
                button .hidden type="submit" disabled tabindex="-1" aria-hidden="true" {}
                (visitor.token_field())
                input type="hidden" name="seen" value=(card.plan);
                (people(card, &may))
                @if card.asks == Asks::Permission {
                    label for=(format!("scope-{id}")) { "Give less than was asked" }
                    textarea id=(format!("scope-{id}")) name="scope" rows="2" spellcheck="false"
                        placeholder="Sections of a contract, in TOML; empty: as asked" {}
                }
                label for=(format!("words-{id}")) { "Say something with it " span .faint { "(optional; whoever asked is told)" } }
                textarea id=(format!("words-{id}")) name="words" rows="1" {}
                p .fold role="status" hidden {}
                div .buttons {
                    @for offer in &first { (button(offer, true, seen.is_grave())) }
                    @for offer in &declines { (button(offer, false, false)) }
                }
                ul .does {
                    @for offer in first.iter().chain(&declines) { (does(offer)) }
                }
                @if !more.is_empty() {
                    details {
                        summary { "Approve for more than once" }
                        ul .does .rows { @for offer in &more { (row(offer)) } }
                    }
                }
                @if let Some(arguments) = card.arguments.as_ref().filter(|_| has_exact(card)) {
                    details {
                        summary { "As exact JSON, and other arguments in its place" }
                        label for=(format!("arguments-{id}")) { "Arguments, as JSON: a new plan, decided anew" }
                        textarea .code id=(format!("arguments-{id}")) name="arguments" rows="6" spellcheck="false" { "\n" (pretty(arguments)) }
                        button name="edit" value="yes" { "Propose these instead" }
                    }
                }
            }
        }
    })
}

fn pretty(json: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(json).ok();
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    escaped_json(pretty.as_deref().unwrap_or(json))
}

/// Who may answer, and the fields of those who do so by passphrase.
fn people(card: &Card, may: &Answerers) -> Markup {
    let id = &card.approval;
    let classes: Vec<&str> = card.classes.iter().map(Name::as_str).collect();
    let classes = classes.join(" or ");
    if may.by_passphrase.is_empty() {
        return html! {
            @if !may.as_is {
                p .note { "You are none of those who may answer (" (classes) "), and nobody who may is registered: "
                    code { "glovebox approver add NAME" } " registers somebody." }
            }
        };
    }
    let fields = html! {
        div .pair {
            div {
                label for=(format!("approver-{id}")) { "Approver" }
                select id=(format!("approver-{id}")) name="approver" {
                    @if may.as_is || may.by_passphrase.len() > 1 { option value="" { "—" } }
                    @for name in &may.by_passphrase { option value=(name.as_str()) { (name.as_str()) } }
                }
            }
            div {
                label for=(format!("passphrase-{id}")) { "Passphrase" }
                input id=(format!("passphrase-{id}")) name="passphrase" type="password" autocomplete="off";
            }
        }
    };
    if may.as_is {
        html! { details { summary { "Sign with a passphrase" } (fields) } }
    } else {
        html! {
            p .note { "Being logged in is not enough for this: an approver’s passphrase is. May answer: " (classes) "." }
            (fields)
        }
    }
}

fn label(offer: &CardOffer) -> &'static str {
    match offer.id.as_str() {
        "once" => "Approve once",
        "turn" => "Approve in this turn",
        "task" => "Approve in this task",
        "session" => "Approve in this session",
        "rule" => "Approve as a rule",
        "decline" => "Decline",
        "decline-and-stop" => "Decline and stop the task",
        _ => "Answer so",
    }
}

fn button(offer: &CardOffer, approves: bool, grave: bool) -> Markup {
    let class = if grave {
        "grave"
    } else if approves {
        "primary"
    } else {
        ""
    };
    html! {
        button class=(class) name="offer" value=(offer.id.as_str()) data-approves=[approves.then_some("yes")] { (label(offer)) }
    }
}

/// What an offer does, for how much and for how long.
fn does(offer: &CardOffer) -> Markup {
    let span = offer.lasts_ms.map(lasted);
    html! {
        li {
            strong { (label(offer)) } ": "
            @match offer.id.as_str() {
                "once" => "this one action, and nothing after it.",
                "decline" => "it does not happen; whoever asked is told, with your words.",
                _ => { (escaped(&offer.does)) @if let Some(span) = span { ", for " (span) } "." }
            }
        }
    }
}

fn row(offer: &CardOffer) -> Markup {
    let span = offer.lasts_ms.map(lasted);
    html! {
        li {
            button name="offer" value=(offer.id.as_str()) data-approves="yes" { (label(offer)) }
            span { (escaped(&offer.does)) @if let Some(span) = span { ", for " (span) } "." }
        }
    }
}
