//! What a webhook is told: which recorded events are worth telling, and what is
//! said of them.

use env_contracts::{Code, Id, Name, Principal, Problem};
use glovebox_events::{AskedOf, QuestionEvent, QuestionState, What};
use glovebox_identity::{Webhook, WebhookKind};
use glovebox_plane::{ActionService, QuestionView};
use glovebox_store::{CloudEvent, Recorded};
use serde::Serialize;

use super::kept::Notice;
use super::send::Letter;
use crate::routes::Outline;

/// The notice that an event is, for webhooks of its tenant.
pub(super) fn of(recorded: &Recorded) -> Option<Notice> {
    use WebhookKind::{ApprovalOpened, ApprovalResolved, QuestionOpened, QuestionResolved};
    let event = &recorded.logged.event;
    let (kind, of, unless_answered) = match &event.what {
        What::ApprovalOpened { approval } => (ApprovalOpened, &approval.id, false),
        What::ApprovalAnswered { answer } => (ApprovalResolved, &answer.approval, false),
        // An answer that nobody used in time expires too: that was told.
        What::ApprovalExpired { approval } | What::ApprovalWithdrawn { approval, .. } => {
            (ApprovalResolved, approval, true)
        }
        What::Question { question, event, .. } => match event {
            // Others are for the agent of the root session.
            QuestionEvent::Opened { asked } if asked.to != AskedOf::Person => return None,
            QuestionEvent::Opened { .. } | QuestionEvent::PassedOn { .. } => (QuestionOpened, question, false),
            QuestionEvent::Answered { .. }
            | QuestionEvent::Expired
            | QuestionEvent::Withdrawn { .. }
            | QuestionEvent::Unsupported { .. }
            | QuestionEvent::Merged { .. } => (QuestionResolved, question, false),
            QuestionEvent::Told { .. } => return None,
        },
        _ => return None,
    };
    Some(Notice { kind, of: of.clone(), at_ms: event.at_ms, rank: recorded.rank, unless_answered })
}

/// That a question waits, or what became of it.
#[derive(Serialize)]
struct QuestionOutline<'a> {
    question: &'a Id,
    session: &'a Id,
    task: &'a Id,
    state: QuestionState,
    opened_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
}

impl<'a> QuestionOutline<'a> {
    fn of(view: &'a QuestionView) -> Self {
        let asked = &view.question;
        Self {
            question: &asked.id,
            session: &asked.session,
            task: &asked.task,
            state: asked.state,
            opened_ms: asked.opened_ms,
            expires_ms: asked.expires_ms,
        }
    }
}

/// Who reads for webhooks, and in whose name.
pub(super) struct Desk {
    /// Looks over all of the tenant.
    pub(super) service: ActionService,
    /// A person of the tenant.
    pub(super) principal: Principal,
    /// The id of the database.
    pub(super) database: Id,
}

impl Desk {
    /// What is sent of a notice: the card as it is now. `None`: the webhook is
    /// not told of this one, or there is nothing to tell any more.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) fn letter(&self, webhook: &Webhook, notice: &Notice) -> Result<Option<Letter>, Problem> {
        match notice.kind {
            WebhookKind::ApprovalOpened | WebhookKind::ApprovalResolved => self.approval(webhook, notice),
            WebhookKind::QuestionOpened | WebhookKind::QuestionResolved => self.question(webhook, notice),
        }
    }

    fn approval(&self, webhook: &Webhook, notice: &Notice) -> Result<Option<Letter>, Problem> {
        let card = match self.service.approval(&self.principal, &notice.of) {
            Ok(card) => card,
            Err(problem) if problem.code == Code::ApprovalUnknown => return Ok(None),
            Err(problem) => return Err(problem),
        };
        let told = notice.unless_answered && card.answer.is_some();
        if told || !webhook.wants(notice.kind, &card.classes) {
            return Ok(None);
        }
        if webhook.objects {
            return Ok(Some(self.written(notice, "approval", &card)));
        }
        Ok(Some(self.written(notice, "approval", Outline::of(card))))
    }

    fn question(&self, webhook: &Webhook, notice: &Notice) -> Result<Option<Letter>, Problem> {
        let view = match self.service.question_of(&self.principal, &notice.of) {
            Ok(view) => view,
            Err(problem) if problem.code == Code::QuestionUnknown => return Ok(None),
            Err(problem) => return Err(problem),
        };
        if view.question.to != AskedOf::Person || !webhook.wants(notice.kind, &[]) {
            return Ok(None);
        }
        if webhook.objects {
            return Ok(Some(self.written(notice, "question", &view)));
        }
        Ok(Some(self.written(notice, "question", QuestionOutline::of(&view))))
    }

    fn written(&self, notice: &Notice, what: &str, data: impl Serialize) -> Letter {
        let change = notice.kind.as_str().rsplit('.').next().unwrap_or_default();
        let id = format!("{}/{what}/{}/{change}", self.principal.tenant, notice.of);
        let event =
            CloudEvent::new(&self.database, notice.kind.as_str(), id.clone(), Some(&notice.of), notice.at_ms, data);
        Letter { id, body: serde_json::to_vec(&event).unwrap_or_default() }
    }
}

/// What is sent to see whether a receiver takes it.
pub(super) fn trial(database: &Id, webhook: &Name, at_ms: u64) -> Letter {
    let id = format!("test/{webhook}/{at_ms}");
    let data = serde_json::json!({ "webhook": webhook });
    let event = CloudEvent::new(database, "webhook.test", id.clone(), None, at_ms, data);
    Letter { id, body: serde_json::to_vec(&event).unwrap_or_default() }
}
