//! The inbox, and the page of one card.

use axum::extract::State;
use axum::http::StatusCode;
use env_contracts::{Id, Problem};
use glovebox_events::{ApprovalState, AskedOf, QuestionState};
use glovebox_plane::{Card, QuestionView};
use glovebox_store::QuestionFilter;
use maud::{Markup, PreEscaped, html};

use super::assets::INBOX;
use super::card::{self, Form};
use super::layout::{Page, Paged, page, status_of};
use super::question;
use super::visitor::{OnPage, Visitor};
use crate::extract::In;
use crate::state::App;

/// How many cards a page has at most. Nobody decides on more in one sitting,
/// and the oldest come first.
const MOST: u32 = 100;

/// Something that waits: a question, or approvals of one intent.
enum Waiting {
    Approvals(Vec<Card>),
    Question(Box<QuestionView>),
}

impl Waiting {
    fn since(&self) -> u64 {
        match self {
            Self::Approvals(alike) => alike.first().map_or(0, |card| card.opened_ms),
            Self::Question(view) => view.question.opened_ms,
        }
    }
}

pub(super) async fn inbox(State(app): State<App>, visitor: Visitor) -> Paged {
    let (service, principal) = (&visitor.caller.service, &visitor.caller.principal);
    let approvals = service.approvals(principal, vec![ApprovalState::Pending], None, MOST)?;
    let filter = QuestionFilter {
        states: vec![QuestionState::Pending],
        to: Some(AskedOf::Person),
        limit: MOST,
        ..QuestionFilter::default()
    };
    let questions = service.questions(principal, &filter)?;
    let more = approvals.next.is_some() || questions.next.is_some();
    let count = approvals.items.len() + questions.items.len();
    let mut waiting: Vec<Waiting> = questions.items.into_iter().map(|view| Waiting::Question(Box::new(view))).collect();
    for card in approvals.items {
        let alike = waiting.iter_mut().find_map(|waiting| match waiting {
            Waiting::Approvals(alike) if alike.first().is_some_and(|first| first.card == card.card) => Some(alike),
            _ => None,
        });
        match alike {
            // Who may not know what waits is not told what is alike.
            Some(alike) if visitor.caller.sees_objects() => alike.push(card),
            _ => waiting.push(Waiting::Approvals(vec![card])),
        }
    }
    waiting.sort_by_key(Waiting::since);
    let cards = waiting.iter().map(|waiting| group(&visitor, waiting)).collect::<Result<Vec<Markup>, Problem>>()?;
    let title = if count == 0 { "Inbox".to_owned() } else { format!("({count}) Inbox") };
    let body = html! {
        main #main data-now=(app.now_ms()) {
            div .title { h1 { "Inbox" } p #state .faint role="status" {} }
            div #cards aria-label="What waits" role="feed" { @for card in &cards { (card) } }
            p #empty hidden[count > 0] { "Nothing waits for you." }
            @if more { p .faint { "More wait than are shown here; the oldest come first." } }
            p #news .bar role="status" aria-live="polite" hidden {}
            p .keys .faint hidden {
                kbd { "j" } " " kbd { "k" } " next and previous card · " kbd { "a" } " approve once · " kbd { "d" } " decline the card that is marked. "
                "What can’t be undone has no key. "
                button #tidy .quiet type="button" hidden { "Clear what is decided" }
            }
        }
    };
    Ok(page(&visitor, &title, &INBOX, body))
}

fn group(visitor: &Visitor, waiting: &Waiting) -> Result<Markup, Problem> {
    match waiting {
        Waiting::Question(view) => Ok(question::article(visitor, view, None)),
        Waiting::Approvals(alike) => {
            let mut inside = String::new();
            for (at, card) in alike.iter().enumerate() {
                let form = if at == 0 { Form::Whole } else { Form::Alike };
                inside.push_str(&card::article(visitor, card, form, None)?.into_string());
            }
            if alike.len() == 1 {
                return Ok(PreEscaped(inside));
            }
            Ok(html! {
                section .group aria-label="The same thing, asked more than once" {
                    p .same { span { (alike.len()) " wait for the same thing. An answer counts for one alone." } }
                    (PreEscaped(inside))
                }
            })
        }
    }
}

pub(super) async fn approval(State(app): State<App>, OnPage(In(id)): OnPage<In<Id>>, visitor: Visitor) -> Paged {
    Ok(approval_page(&app, &visitor, &id, None)?)
}

/// The page of an approval, with what an answer to it came to.
pub(super) fn approval_page(app: &App, visitor: &Visitor, id: &Id, problem: Option<&Problem>) -> Result<Page, Problem> {
    let card = visitor.caller.service.approval(&visitor.caller.principal, id)?;
    Ok(alone(app, visitor, "Approval", card::article(visitor, &card, Form::Whole, problem)?, problem))
}

pub(super) async fn question(State(app): State<App>, OnPage(In(id)): OnPage<In<Id>>, visitor: Visitor) -> Paged {
    Ok(question_page(&app, &visitor, &id, None)?)
}

/// The page of a question, with what an answer to it came to.
pub(super) fn question_page(app: &App, visitor: &Visitor, id: &Id, problem: Option<&Problem>) -> Result<Page, Problem> {
    let view = visitor.caller.service.question_of(&visitor.caller.principal, id)?;
    Ok(alone(app, visitor, "Question", question::article(visitor, &view, problem), problem))
}

fn alone(app: &App, visitor: &Visitor, title: &str, card: Markup, problem: Option<&Problem>) -> Page {
    let body = html! {
        main #main data-now=(app.now_ms()) {
            p { a href="/" { "‹ Inbox" } }
            h1 .hidden { (title) }
            div #cards data-alone="yes" { (card) }
            p #news .bar role="status" aria-live="polite" hidden {}
        }
    };
    let status = problem.map_or(StatusCode::OK, status_of);
    Page { status, ..page(visitor, title, &INBOX, body) }
}
