//! An approval as a card: whatever decides is in it, whole.

use std::sync::Arc;

use env_contracts::text::{escaped, escaped_line};
use env_contracts::{CapabilityRef, DerivedEffects, Digest, Principal, Wanted};
use glovebox_events::{ActionState, ApprovalState, AskedFor, Asks, Reviewed};
use glovebox_plane::{Card, CardPreview, Tool};
use maud::{Markup, html};

use super::answer;
use super::layout::{moment, said};
use super::reach;
use super::value::{arguments, json, text};
use super::visitor::Visitor;
use env_contracts::Problem;

/// What is known of the tool of a card.
pub(super) struct Seen {
    tool: Option<Arc<Tool>>,
}

impl Seen {
    pub(super) fn of(visitor: &Visitor, card: &Card) -> Self {
        let wanted = Wanted { name: card.capability.name.clone(), version: Some(card.capability.version.clone()) };
        Self { tool: visitor.caller.service.registry().get(&wanted).ok() }
    }

    /// Whether it can be undone. A stranger's claim that it can does not count.
    fn can_be_undone(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.builtin && tool.manifest.effects.reversible)
    }

    /// Whether it is of a kind that people want to be asked about: what is sent,
    /// published, paid or deleted.
    pub(super) fn is_grave(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| !tool.manifest.effects.classes.is_empty())
    }

    /// Whether what it does stays done.
    pub(super) fn is_final(&self, card: &Card) -> bool {
        card.asks == Asks::Run && card.effects == Some(DerivedEffects::External) && !self.can_be_undone()
    }
}

/// How a card is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// On its own, or the first of those that are alike.
    Whole,
    /// Behind another that waits for the same thing.
    Alike,
}

/// A card. `problem` is what an answer to it came to.
pub(super) fn article(
    visitor: &Visitor,
    card: &Card,
    form: Form,
    problem: Option<&Problem>,
) -> Result<Markup, Problem> {
    if !visitor.caller.sees_objects() {
        return Ok(outline(card));
    }
    let seen = Seen::of(visitor, card);
    let waits = card.state == ApprovalState::Pending;
    let inside = html! {
        (head(card, &seen))
        @if let Some(answered) = answered(card) { (answered) }
        @if form == Form::Alike {
            details .alike { summary { "The same as above: arguments, reach and effects" } (what(card, &seen)) }
        } @else { (what(card, &seen)) }
        (facts(card))
        @if waits { (answer::form(visitor, card, &seen)?) }
    };
    let label = format!("title-{}", card.approval);
    let version = Digest::of(inside.0.as_bytes());
    Ok(html! {
        article .card .(if waits { "waits" } else { "over" }) id=(format!("approval-{}", card.approval)) tabindex="0"
            aria-labelledby=(label) data-url=(format!("/inbox/approvals/{}", card.approval)) data-version=(version.short())
            data-intent=(card.card) data-form=(if form == Form::Alike { "alike" } else { "whole" })
            data-final=[seen.is_final(card).then_some("yes")] data-expires=[card.expires_ms.filter(|_| waits)] {
            @if let Some(problem) = problem { (said(problem)) }
            (inside)
        }
    })
}

/// That something waits, and not what.
fn outline(card: &Card) -> Markup {
    let classes: Vec<&str> = card.classes.iter().map(env_contracts::Name::as_str).collect();
    let label = format!("title-{}", card.approval);
    html! {
        article .card .waits id=(format!("approval-{}", card.approval)) tabindex="0" aria-labelledby=(label)
            data-url=(format!("/inbox/approvals/{}", card.approval)) data-version=(card.state.as_str()) {
            h2 id=(label) { "An approval " @if card.state == ApprovalState::Pending { "waits" } @else { "is " (card.state.as_str()) } }
            dl .facts {
                dt { "Approval" } dd { code { (card.approval.as_str()) } }
                dt { "Session" } dd { a href=(format!("/sessions/{}", card.session)) { (card.session.as_str()) } }
                dt { "May answer" } dd { (classes.join(" or ")) }
                dt { "Since" } dd { (moment(card.opened_ms)) }
                @if let Some(expires) = card.expires_ms { dt { "Until" } dd { (moment(expires)) } }
            }
            p .faint { "What it is about is shown to those who may decide." }
        }
    }
}

fn head(card: &Card, seen: &Seen) -> Markup {
    let asks = match card.asks {
        Asks::Run => "wants to run",
        Asks::Permission => "needs a permission",
        Asks::Plan => "a plan to accept",
        Asks::Result => "a result to accept",
    };
    html! {
        header {
            div .line {
                h2 id=(format!("title-{}", card.approval)) { code { (card.capability.to_string()) } " " span { (asks) } }
                (badge(card, seen))
            }
            p .from { (requester(&card.requester)) }
        }
        @if card.asked_for == AskedFor::Drift || !card.changed.is_empty() {
            section .changed {
                h3 { "Changed since it was approved" }
                ul { @for changed in &card.changed { li { (escaped(changed)) } } }
            }
        }
    }
}

fn badge(card: &Card, seen: &Seen) -> Markup {
    if !card.asks.runs() {
        return html! { span .badge { "nothing runs" } };
    }
    match card.effects {
        _ if seen.is_grave() => html! { span .badge .grave { "can’t be undone" } },
        Some(DerivedEffects::None) => html! { span .badge .calm { "changes nothing" } },
        Some(DerivedEffects::Workspace) => html! { span .badge .calm { "private copy" } },
        _ => html! { span .badge .warm { "changes things" } },
    }
}

/// Who asks, and through whom.
pub(super) fn requester(who: &Principal) -> Markup {
    html! {
        @if let Some(agent) = &who.agent {
            "agent " strong { (agent.as_str()) }
            @if let Some(version) = &who.agent_version { "@" (version.as_str()) }
            " for "
        }
        strong { (who.user.as_str()) }
        @if !who.chain.is_empty() {
            ", handed down by "
            @for (at, link) in who.chain.iter().enumerate() { @if at > 0 { " › " } strong { (link.as_str()) } }
        }
    }
}

/// What would happen, why it is asked, and what if it goes wrong.
fn what(card: &Card, seen: &Seen) -> Markup {
    html! {
        @if let Some(tool) = &seen.tool { p .about { (escaped_line(&tool.manifest.title)) } }
        @if let Some(purpose) = &card.model_purpose {
            section .words { h3 { "The model says why" } (text(purpose)) p .faint { "Its own words; nobody checked them." } }
        }
        @match (&card.proposal, &card.scope) {
            (_, Some(scope)) => section {
                h3 { "What is asked for, beyond its contract" }
                (arguments(&serde_json::json!(scope).to_string(), true))
            },
            (Some(proposal), None) => section { h3 { "What is proposed" } (arguments(&proposal.to_string(), true)) p .faint { "The loop’s own words." } },
            (None, None) => section {
                h3 { "Arguments" }
                @match &card.arguments { Some(json) => (arguments(json, !answer::has_exact(card))), None => p .faint { "They were erased." } }
            },
        }
        @if let Some(shown) = &card.previewed { (preview(card, shown)) }
        section { h3 { "Why you are asked" } (why(card)) }
        @if card.asks.runs() {
            section { h3 { "What it can reach" } (reach::of(card.uncontained.as_deref(), &card.clauses, card.workspace.as_deref())) }
            section { h3 { "What it does, and if it fails" } (effects(card, seen)) }
        }
    }
}

fn preview(card: &Card, shown: &CardPreview) -> Markup {
    html! {
        section {
            h3 { "Preview" @if let Some(by) = &card.preview_by { " by " code { (by.to_string()) } } }
            @if let Some(outcome) = shown.outcome.as_ref().filter(|_| !shown.ok) { p { "It ended as " (escaped_line(&outcome.to_string())) "." } }
            @if let Some(reason) = &shown.reason {
                p { @if card.preview && !shown.ok { strong { "A rule wants one, and there is none: " } } (escaped(reason)) }
            }
            @if let Some(shows) = &shown.text { (text(shows)) }
            @if let Some(version) = &shown.version { p { "It saw version " code { (escaped_line(version)) } ", and what runs is bound to that." } }
            (super::guest::artifacts(&shown.artifacts))
            @if shown.text.is_some() || !shown.artifacts.is_empty() { p .faint { "The tool’s own words: evidence, no promise." } }
        }
    }
}

fn why(card: &Card) -> Markup {
    let asked = match card.asked_for {
        AskedFor::Policy => "A rule of policy wants a person to decide.",
        AskedFor::Requester => "Whoever asks wants a person to decide.",
        AskedFor::Delta => "It goes beyond what the tool’s own contract gives.",
        AskedFor::Drift => "What was approved is not what would run now.",
    };
    html! {
        @if card.reasons.is_empty() { p { (asked) } }
        @for reason in &card.reasons { p { (escaped(reason)) } }
        @for review in &card.reviews {
            @let said = match review.verdict {
                Reviewed::Approved => "approves",
                Reviewed::Denied => "denies",
                Reviewed::TimedOut => "did not answer in time",
                Reviewed::Failed => "failed",
            };
            p { "Reviewer " strong { (review.class.as_str()) } " " (said) @if !review.reasons.is_empty() { ":" } }
            @for reason in &review.reasons { (text(reason)) }
        }
        @if card.preview_by.is_some() && card.previewed.is_none() { p { "Its preview was not looked at." } }
    }
}

fn effects(card: &Card, seen: &Seen) -> Markup {
    let manifest = seen.tool.as_ref().map(|tool| &tool.manifest);
    let named = |what: Option<&CapabilityRef>| what.map(ToString::to_string);
    let outside = card.effects == Some(DerivedEffects::External);
    let does = match card.effects {
        Some(DerivedEffects::None) => "It changes nothing outside of its sandbox.",
        Some(DerivedEffects::Workspace) => "It changes a private copy of the workspace; somebody applies that or not.",
        Some(DerivedEffects::External) => "It can change files of yours or other systems.",
        None => "What it does is not known.",
    };
    let undo = match manifest {
        _ if !outside => None,
        Some(manifest) if manifest.effects.reversible => Some(match named(manifest.compensate.as_ref()) {
            Some(by) => format!("Its author says that it can be undone, by {by}."),
            None => "Its author says that it can be undone.".to_owned(),
        }),
        _ if seen.is_grave() => Some("It can’t be undone.".to_owned()),
        _ => Some("Nothing here undoes it.".to_owned()),
    };
    let fails = match manifest.and_then(|manifest| named(manifest.verify.as_ref())) {
        _ if !outside => "If it fails, nothing is left behind.".to_owned(),
        Some(verify) => format!("If it breaks off, {verify} finds out whether it took effect."),
        None => "If it breaks off, what it did is unknown: nothing can check it.".to_owned(),
    };
    let repair = manifest.and_then(|manifest| named(manifest.repair.as_ref()));
    let classes: Vec<String> = manifest
        .into_iter()
        .flat_map(|manifest| &manifest.effects.classes)
        .map(|class| json(&serde_json::json!(class)))
        .collect();
    html! {
        p { (does) @if let Some(undo) = undo { " " strong { (undo) } } }
        @if !classes.is_empty() { p { "Kind: " (classes.join(", ").replace('"', "")) "." } }
        p { (fails) @if let Some(repair) = repair { " " (repair) " puts right what is left half done." } }
    }
}

fn facts(card: &Card) -> Markup {
    html! {
        dl .facts {
            dt { "Plan" } dd { code .plan { (card.plan) } }
            dt { "Session" } dd { a href=(format!("/sessions/{}", card.session)) { (card.session.as_str()) } }
            dt { "Task" } dd {
                (card.task.as_str())
                @if let Some(stage) = &card.task_stage { ", at " (escaped_line(stage)) }
                @if let Some(purpose) = &card.task_purpose { ": " (escaped_line(purpose)) }
            }
            dt { "Asked" } dd { (moment(card.opened_ms)) }
            @if card.state == ApprovalState::Pending {
                dt { "Expires" } dd .expires {
                    @match card.expires_ms { Some(at) => (moment(at)), None => "never" }
                    @if card.nobody_reachable { " — soon, for nobody who may answer is known" }
                }
            }
        }
    }
}

/// What became of it.
fn answered(card: &Card) -> Option<Markup> {
    let state = match card.state {
        ApprovalState::Pending => return None,
        ApprovalState::Approved => "Approved; it has not run yet",
        ApprovalState::Consumed => "Approved, and used",
        ApprovalState::Declined => "Declined",
        ApprovalState::Edited => "Other arguments were put in its place; they are decided anew",
        ApprovalState::Expired => "Expired: nobody answered in time, or nobody used the answer",
        ApprovalState::Withdrawn => "Withdrawn: it is no longer needed",
        ApprovalState::Drifted => "What it was for changed; the next approval says how",
    };
    let now = match card.action_state {
        ActionState::Running => "It runs now.",
        ActionState::Succeeded => "It ran and succeeded.",
        ActionState::Failed => "It ended without success.",
        ActionState::Cancelled => "It was cancelled.",
        _ => "",
    };
    Some(html! {
        div .became role="status" {
            p { strong { (state) } "." @if !now.is_empty() { " " (now) } }
            @if let Some(answer) = &card.answer {
                p { "Answered " code { (answer.offer.as_str()) } " by " strong { (answer.by.as_str()) } " (" (answer.assurance.to_string()) ") at " (moment(answer.at_ms)) "." }
                @if let Some(words) = &answer.words { p { "They said: " } (text(words)) }
            }
        }
    })
}
