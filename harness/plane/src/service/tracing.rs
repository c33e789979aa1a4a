//! The story of a task: what happened, and what it happened because of.

use std::collections::BTreeMap;

use env_contracts::{Digest, Id, Name, Principal, Problem, Verdict};
use glovebox_events::{Answered, DecidedAt, Entry, Logged, Origin, QuestionEvent, Right, Task, TaskEvent, Told, What};
use glovebox_store::{EventFilter, EventsOf, SessionFilter, TaskFilter};
use schemars::JsonSchema;
use serde::Serialize;

use super::task_view::BudgetView;
use super::tasks::words;
use super::{ActionService, MAX_DEPTH};

/// The most events of a task that are read for its story: some minutes of
/// reading, for whoever reads it.
const MAX_EVENTS: usize = 50_000;

/// The story of a task.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Trace {
    /// The task as it is now.
    pub task: Task,
    /// What it may use, has used and has left.
    pub budget: BudgetView,
    /// What happened, in the order in which it began. A parent comes before
    /// what happened because of it.
    pub nodes: Vec<TraceNode>,
    /// The stories of what agents did that this one called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Trace>,
    /// Whether it was too long to be read whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceNode {
    /// Its id: of the turn, entry, remark, question or action.
    pub id: String,
    /// What it happened because of, the closest first. Absent: nobody said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// In which turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// When it began, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who did it.
    pub by: Name,
    /// What it is: `turn`, `text`, `steer`, `question`, a capability …
    pub what: String,
    /// Its words. They may be a model's or a stranger's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What became of it, in the order in which it did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
}

impl ActionService {
    /// The story of a task, with those of the agents that it called.
    ///
    /// # Errors
    /// `task-unknown`, also for those of others.
    pub fn trace(&self, principal: &Principal, id: &Id) -> Result<Trace, Problem> {
        let task = self.known_task(principal, id)?;
        self.trace_below(principal, task, MAX_DEPTH)
    }

    fn trace_below(&self, principal: &Principal, task: Task, depth: usize) -> Result<Trace, Problem> {
        let store = &self.parts.store;
        let tenant = task.principal.tenant.clone();
        let mut story = Story { service: self, task: &task, nodes: Vec::new(), at: BTreeMap::new(), turn: None };
        let mut filter = EventFilter { of: EventsOf::Task(task.id.clone()), after: 0, limit: 0 };
        let (mut read, mut cut) = (0, false);
        loop {
            let events = store.events(&tenant, &filter)?;
            let Some(last) = events.last() else { break };
            filter.after = last.seq;
            read += events.len();
            for logged in &events {
                story.add(logged)?;
            }
            if read >= MAX_EVENTS {
                cut = true;
                break;
            }
        }
        let nodes = story.nodes;
        let mut below = Vec::new();
        if depth > 0 {
            let filter = SessionFilter { root: Some(self.root_of(&task)?), ..SessionFilter::default() };
            for session in store.sessions(&tenant, &filter)?.items {
                if session.parent.as_ref() != Some(&task.session) {
                    continue;
                }
                let filter = TaskFilter { session: Some(session.id), ..TaskFilter::default() };
                let mut tasks = self.tasks(principal, &filter)?.items;
                tasks.reverse();
                for task in tasks {
                    below.push(self.trace_below(principal, task, depth - 1)?);
                }
            }
        }
        let used = store.task(&tenant, &task.id)?.used;
        Ok(Trace { budget: BudgetView::of(task.budget, &used, task.spent), nodes, below, cut, task })
    }

    fn root_of(&self, task: &Task) -> Result<Id, Problem> {
        let session = self.parts.store.session(&task.principal.tenant, &task.session)?;
        Ok(session.map_or_else(|| task.session.clone(), |session| session.root))
    }
}

/// A story while it is read.
struct Story<'a> {
    service: &'a ActionService,
    task: &'a Task,
    nodes: Vec<TraceNode>,
    /// Where each node stands.
    at: BTreeMap<String, usize>,
    /// The turn that is open.
    turn: Option<u64>,
}

impl Story<'_> {
    fn add(&mut self, logged: &Logged) -> Result<(), Problem> {
        let at_ms = logged.event.at_ms;
        match (&logged.event.what, &logged.event.action) {
            (What::Task { event, .. }, _) => self.of_task(at_ms, event),
            (What::Question { question, event, .. }, _) => self.of_question(at_ms, question, event),
            (what, Some(action)) => self.of_action(at_ms, action, what),
            _ => Ok(()),
        }
    }

    fn words(&self, sha256: &Digest) -> Result<Option<String>, Problem> {
        words(&self.service.parts, self.task, sha256)
    }

    fn turn_node(turn: u64) -> String {
        format!("turn-{turn}")
    }

    /// Adds a node below what caused it, or else below the turn that is open.
    fn node(&mut self, at_ms: u64, id: String, parents: &[Id], by: &Name, what: &str, text: Option<String>) {
        let mut parents: Vec<String> = parents.iter().map(ToString::to_string).collect();
        if parents.is_empty() {
            parents.extend(self.turn.map(Self::turn_node));
        }
        self.at.insert(id.clone(), self.nodes.len());
        let (turn, by, what) = (self.turn, by.clone(), what.to_owned());
        self.nodes.push(TraceNode { id, parents, turn, at_ms, by, what, text, then: Vec::new() });
    }

    fn then(&mut self, id: &str, what: impl Into<String>) {
        if let Some(at) = self.at.get(id) {
            self.nodes[*at].then.push(what.into());
        }
    }

    fn of_task(&mut self, at_ms: u64, event: &TaskEvent) -> Result<(), Problem> {
        let task = self.task.id.to_string();
        match event {
            TaskEvent::Opened { principal, goal, .. } => {
                let text = self.words(goal)?;
                let by = principal.agent.as_ref().unwrap_or(&principal.user);
                self.node(at_ms, task, &[], by, "task", text);
            }
            TaskEvent::TurnOpened { turn, .. } => {
                self.turn = None;
                let (by, id) = (self.task.principal.agent.as_ref().unwrap_or(&self.task.principal.user), &self.task.id);
                let text = format!("for goal {}", turn.goal);
                self.node(at_ms, Self::turn_node(turn.number), std::slice::from_ref(id), by, "turn", Some(text));
                self.turn = Some(turn.number);
            }
            TaskEvent::TurnClosed { turn, why } => {
                self.then(&Self::turn_node(*turn), format!("closed: {why}"));
                self.turn = None;
            }
            TaskEvent::Steered { steer: said } | TaskEvent::Constrained { constraint: said } => {
                let what = if matches!(event, TaskEvent::Steered { .. }) { "steer" } else { "constraint" };
                let text = self.words(&said.text)?;
                self.node(at_ms, said.id.to_string(), &[], &said.by, what, text);
            }
            TaskEvent::GoalChanged { goal } => {
                let text = self.words(&goal.text)?;
                self.node(at_ms, format!("goal-{}", goal.version), &[], &goal.by, "goal", text);
            }
            TaskEvent::StageSet { stage } => {
                self.then(&task, format!("stage: {}", stage.as_deref().unwrap_or("none")));
            }
            TaskEvent::Told { entry } => self.entry(at_ms, entry)?,
            TaskEvent::Noticed { action, steers } => {
                for steer in steers {
                    self.then(steer.as_str(), format!("told with action {action}"));
                }
            }
            TaskEvent::Interrupted { interrupt } => {
                let text = interrupt.reason.as_ref().map(|reason| self.words(reason)).transpose()?.flatten();
                self.node(at_ms, interrupt.id.to_string(), &[], &interrupt.by, "interrupt", text);
            }
            TaskEvent::Stopped { interrupt } => self.then(interrupt.as_str(), "nothing runs any more"),
            TaskEvent::Ended { end } => {
                let why = end.why.as_ref().map(|why| self.words(why)).transpose()?.flatten();
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                self.then(&task, format!("{} by {}{why}", end.state.as_str(), end.by));
            }
            TaskEvent::Erased { by } => self.then(&task, format!("its words were erased by {by}")),
        }
        Ok(())
    }

    fn entry(&mut self, at_ms: u64, entry: &Entry) -> Result<(), Problem> {
        let text = entry.content.as_ref().map(|content| self.words(content)).transpose()?.flatten();
        self.node(at_ms, entry.id.to_string(), &entry.parents, &entry.by, entry.what.name(), text);
        match &entry.what {
            Told::ModelCall { model, input_tokens, output_tokens, cost_micros, .. } => self.then(
                entry.id.as_str(),
                format!("{model}: {input_tokens} tokens in, {output_tokens} out, cost {cost_micros} millionths"),
            ),
            Told::Verified { holds, revision, .. } => {
                let revision = revision.as_deref().unwrap_or("no revision named");
                self.then(
                    entry.id.as_str(),
                    format!("{} ({revision})", if *holds { "holds" } else { "does not hold" }),
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn of_question(&mut self, at_ms: u64, id: &Id, event: &QuestionEvent) -> Result<(), Problem> {
        let said = match event {
            QuestionEvent::Opened { asked } => {
                let words: Option<super::QuestionText> =
                    self.words(&asked.text)?.map(|text| super::looking::decode(text.as_bytes())).transpose()?;
                let by = asked.principal.agent.as_ref().unwrap_or(&asked.principal.user);
                let parents = match &asked.origin {
                    Origin::ToolOutput { action } => std::slice::from_ref(action),
                    Origin::Loop => &[],
                };
                self.node(at_ms, id.to_string(), parents, by, "question", words.map(|words| words.question));
                return Ok(());
            }
            QuestionEvent::Answered { answer } => {
                let text = answer.text.as_ref().map(|text| self.words(text)).transpose()?.flatten();
                let option = answer.option.as_ref().map(ToString::to_string);
                let said: Vec<String> = option.into_iter().chain(text).collect();
                format!("answered by {}: {}", answer.by, said.join(", "))
            }
            QuestionEvent::Expired => "nobody answered in time".to_owned(),
            QuestionEvent::Withdrawn { why } => format!("withdrawn: {why}"),
            QuestionEvent::Unsupported { channel } => format!("`{channel}` can't ask"),
            QuestionEvent::PassedOn { by } => format!("passed on to a person by {by}"),
            QuestionEvent::Merged { into, by } => format!("{by} lets question {into} stand for it"),
            QuestionEvent::Told { turn } => format!("told in turn {turn}"),
        };
        self.then(id.as_str(), said);
        Ok(())
    }

    fn of_action(&mut self, at_ms: u64, id: &Id, what: &What) -> Result<(), Problem> {
        let said = match what {
            What::Requested { principal, capability, parents, .. } => {
                let by = principal.agent.as_ref().unwrap_or(&principal.user);
                self.node(at_ms, id.to_string(), parents, by, &capability.to_string(), None);
                return Ok(());
            }
            What::Planned { revision, effects, .. } if *revision > 1 => {
                format!("plan {revision}, effects {}", name(effects))
            }
            What::Decided { at, verdict, rules, .. } => {
                let rules = if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") };
                match (at, verdict) {
                    (DecidedAt::Claim, Verdict::Allow) => return Ok(()),
                    _ => format!("{verdict} ({rules})"),
                }
            }
            What::ApprovalOpened { approval } => format!("asked: {} may answer", join(&approval.classes)),
            What::ApprovalAnswered { answer } => {
                let verb = match answer.answer {
                    Answered::Approve => "approved",
                    Answered::Decline => "declined",
                    Answered::Edit => "changed",
                };
                format!("{verb} by {} ({}), {}", answer.by.name, answer.by.assurance, name(&answer.scope))
            }
            What::ApprovalExpired { .. } => "the approval expired".to_owned(),
            What::ApprovalWithdrawn { why, .. } => format!("the approval was withdrawn: {why}"),
            What::Drifted { changed, .. } => format!("drifted: {}", changed.join("; ")),
            What::Reaffirmed { goal, .. } => format!("still wanted for goal {goal}"),
            What::Previewed { preview, .. } => match (&preview.action, &preview.reason) {
                (Some(action), None) => format!("previewed by action {action}"),
                (_, reason) => format!("no preview: {}", reason.as_deref().unwrap_or("none ended well")),
            },
            What::Reviewed { review } => format!("reviewed by {}: {}", review.class, name(&review.verdict)),
            What::Claimed { right, .. } => match right {
                Right::Policy => "ran, by a rule".to_owned(),
                Right::Approval { .. } => "ran, by that approval".to_owned(),
                Right::Grant { grant } => format!("ran, by grant {grant}"),
            },
            What::StopAsked { stop } => format!("{} wants it stopped: {}", stop.by, stop.why),
            What::HolderLost { .. } => "its process is gone".to_owned(),
            What::Ended { end } => {
                let which = end.which.as_ref().map_or_else(String::new, |which| format!(" ({which})"));
                format!("{}{which}, ran {} ms, waited {} ms", name(&end.kind), end.run_us / 1000, end.waiting_us / 1000)
            }
            _ => return Ok(()),
        };
        self.then(id.as_str(), said);
        Ok(())
    }
}

fn join(names: &[Name]) -> String {
    if names.is_empty() {
        return "nobody".to_owned();
    }
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

/// A word of ours as it is stored.
fn name(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
