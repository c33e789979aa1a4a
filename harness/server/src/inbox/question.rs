//! A question as a card. Its answer is data, and gives no right to anything.

use env_contracts::text::escaped_line;
use env_contracts::{Digest, Problem};
use glovebox_events::{Origin, QuestionState};
use glovebox_identity::Role;
use glovebox_plane::QuestionView;
use maud::{Markup, html};

use super::card::requester;
use super::layout::{moment, said};
use super::value::text;
use super::visitor::Visitor;

pub(super) fn article(visitor: &Visitor, view: &QuestionView, problem: Option<&Problem>) -> Markup {
    let question = &view.question;
    let waits = question.state == QuestionState::Pending;
    let sees = visitor.caller.sees_objects();
    let label = format!("title-{}", question.id);
    let inside = html! {
        header {
            div .line { h2 id=(label) { "Question" @if sees { ": " (question.topic.as_str()) } } span .badge { "an answer is no permission" } }
            @if sees { p .from { (requester(&question.principal)) } }
        }
        @if sees { (became(view)) (words(view)) }
        dl .facts {
            dt { "Session" } dd { a href=(format!("/sessions/{}", question.session)) { (question.session.as_str()) } }
            dt { "Asked" } dd { (moment(question.opened_ms)) }
            @if let (true, Some(at)) = (waits, question.expires_ms) { dt { "Expires" } dd .expires { (moment(at)) } }
        }
        @if waits && sees && visitor.caller.credential.role != Role::Observer { (form(visitor, view)) }
    };
    let version = Digest::of(inside.0.as_bytes());
    html! {
        article .card .question .(if waits { "waits" } else { "over" }) id=(format!("question-{}", question.id)) tabindex="0"
            aria-labelledby=(label) data-url=(format!("/inbox/questions/{}", question.id)) data-version=(version.short())
            data-expires=[question.expires_ms.filter(|_| waits)] {
            @if let Some(problem) = problem { (said(problem)) }
            (inside)
        }
    }
}

fn words(view: &QuestionView) -> Markup {
    let Some(words) = &view.words else { return html! { p .faint { "Its words were erased." } } };
    html! {
        (text(&words.question))
        @if let Origin::ToolOutput { action } = &view.question.origin {
            p .note { "The output of action " code { (action.as_str()) } " made the loop ask: somebody else may have put the words there." }
        }
        @if !words.affects.is_empty() { p { "It affects " (escaped_line(&words.affects.join(", "))) "." } }
        @if view.question.state != QuestionState::Pending {
            ul .does { @for option in &words.options { li { strong { (escaped_line(&option.label)) } ": " (escaped_line(&option.effect)) } } }
        }
        p .faint { "The loop’s own words." }
    }
}

fn form(visitor: &Visitor, view: &QuestionView) -> Markup {
    let id = &view.question.id;
    let options = view
        .words
        .iter()
        .flat_map(|words| words.options.iter().map(move |option| (option, words.recommended == option.id)));
    html! {
        form .answer method="post" action=(format!("/inbox/questions/{id}")) {
            fieldset {
                legend .hidden { "Your answer" }
                button .hidden type="submit" disabled tabindex="-1" aria-hidden="true" {}
                (visitor.token_field())
                label for=(format!("words-{id}")) { "In words " span .faint { "(besides an option, or instead of one)" } }
                textarea id=(format!("words-{id}")) name="words" rows="1" {}
                ul .does .rows {
                    @for (option, recommended) in options {
                        li {
                            button name="option" value=(option.id.as_str()) { (escaped_line(&option.label)) }
                            span { (escaped_line(&option.effect)) @if recommended { " " em .faint { "(the loop recommends this)" } } }
                        }
                    }
                    li { button name="said" value="yes" { "Only the words" } span { "Answers with what you wrote, and no option." } }
                }
            }
        }
    }
}

/// What became of it.
fn became(view: &QuestionView) -> Markup {
    let question = &view.question;
    let state = match question.state {
        QuestionState::Pending => return html! {},
        QuestionState::Answered => "Answered",
        QuestionState::Expired => "Expired: nobody answered in time",
        QuestionState::Withdrawn => "Withdrawn: it is no longer needed",
        QuestionState::Unsupported => "The front end could not ask it",
        QuestionState::Merged => "Another question stands for it",
    };
    html! {
        div .became role="status" {
            p { strong { (state) } "." }
            @if let Some(answer) = &question.answer {
                p {
                    @if let Some(option) = &answer.option { code { (option.as_str()) } " " }
                    "by " strong { (answer.by.as_str()) } @if answer.agent { " (an agent)" } " at " (moment(answer.at_ms)) "."
                }
                @if let Some(said) = &view.said { (text(said)) }
            }
        }
    }
}
