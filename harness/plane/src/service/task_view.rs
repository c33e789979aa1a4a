//! A task as people and loops read it: the log has digests where they want
//! words.

use env_contracts::{Id, Name, Principal, Problem};
use glovebox_events::{Budget, Spent, Task};
use glovebox_store::{Page, TaskFilter, TaskUse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ActionService;
use super::tasks::words;

/// A goal with its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoalView {
    /// Which version.
    pub version: u32,
    /// The words. Absent: they were erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Who said so.
    pub by: Name,
}

/// Something that a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// Its id.
    pub id: Id,
    /// The words. Absent: they were erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Who.
    pub by: Name,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What a task may use, has used and has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetView {
    /// At most.
    pub most: Budget,
    /// Until now.
    pub used: Budget,
    /// What is left. Absent fields have no bound.
    pub left: Budget,
    /// What models used, as the loop recorded.
    pub models: Spent,
    /// How long actions waited for people, in milliseconds: it counts against
    /// nothing.
    pub waited_ms: u64,
    /// How often people were asked.
    pub asks: u64,
}

/// A task with its words.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskView {
    /// What it is now.
    pub task: Task,
    /// What is to be reached.
    pub goal: GoalView,
    /// What holds besides.
    pub constraints: Vec<Said>,
    /// What was said and no turn has been told yet.
    pub steers: Vec<Said>,
    /// What it may use, has used and has left.
    pub budget: BudgetView,
}

impl BudgetView {
    /// Of a task.
    pub(super) fn of(most: Budget, used: &TaskUse, models: Spent) -> Self {
        let now = Budget {
            actions: Some(used.actions),
            run_ms: Some(used.run_us / 1000),
            output_bytes: Some(used.output_bytes),
            egress_bytes: Some(used.egress_bytes),
            cost_micros: Some(used.cost_micros.saturating_add(models.cost_micros)),
        };
        let left = |most: Option<u64>, used: Option<u64>| Some(most?.saturating_sub(used.unwrap_or_default()));
        Self {
            most,
            used: now,
            left: Budget {
                actions: left(most.actions, now.actions),
                run_ms: left(most.run_ms, now.run_ms),
                output_bytes: left(most.output_bytes, now.output_bytes),
                egress_bytes: left(most.egress_bytes, now.egress_bytes),
                cost_micros: left(most.cost_micros, now.cost_micros),
            },
            models,
            waited_ms: used.waiting_us / 1000,
            asks: used.asks,
        }
    }
}

impl ActionService {
    /// A task with its words.
    ///
    /// # Errors
    /// `task-unknown`, also for those of others.
    pub fn task(&self, principal: &Principal, id: &Id) -> Result<TaskView, Problem> {
        self.task_view(&self.known_task(principal, id)?)
    }

    pub(super) fn task_view(&self, task: &Task) -> Result<TaskView, Problem> {
        let said = |remark: &glovebox_events::Remark| -> Result<Said, Problem> {
            let text = words(&self.parts, task, &remark.text)?;
            Ok(Said { id: remark.id.clone(), text, by: remark.by.clone(), at_ms: remark.at_ms })
        };
        let used = self.parts.store.task(&task.principal.tenant, &task.id)?.used;
        Ok(TaskView {
            goal: GoalView {
                version: task.goal.version,
                text: words(&self.parts, task, &task.goal.text)?,
                by: task.goal.by.clone(),
            },
            constraints: task.constraints.iter().map(said).collect::<Result<_, _>>()?,
            steers: task.steers.iter().map(said).collect::<Result<_, _>>()?,
            budget: BudgetView::of(task.budget, &used, task.spent),
            task: task.clone(),
        })
    }

    /// Tasks with their words, newest first: the same pages as of
    /// [`tasks`](Self::tasks).
    ///
    /// # Errors
    /// Those of the store.
    pub fn task_views(&self, principal: &Principal, filter: &TaskFilter) -> Result<Page<TaskView>, Problem> {
        let Page { items, next } = self.tasks(principal, filter)?;
        Ok(Page { items: items.iter().map(|task| self.task_view(task)).collect::<Result<_, _>>()?, next })
    }
}
