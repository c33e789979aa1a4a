//! Tasks: what is to be reached, and what is said about it.

use axum::routing::{get, post};
use env_contracts::Id;
use glovebox_events::{Budget, Task, TaskState};
use glovebox_plane::{ActionView, Interrupted, NewTask, Saying, Target, TaskView, Trace};
use glovebox_store::TaskFilter;
use schemars::JsonSchema;
use serde::Deserialize;

use super::sessions::{Stop, stopped};
use super::{Paged, limit};
use crate::auth::Caller;
use crate::extract::{Args, Body, In, Json};
use crate::problem::Answered;
use crate::table::Answer::Json as Gives;
use crate::table::{ACTS, LOOKS, Route, SEES, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::post(
        "openTask",
        "/v1/tasks",
        ACTS,
        "Opens a task, and its session where nobody did before.",
        Gives(schema::<TaskView>),
        || post(open),
    )
    .body(schema::<Open>),
    Route::get(
        "listTasks",
        "/v1/tasks",
        LOOKS,
        "Tasks that were opened, newest first.",
        Gives(schema::<Paged<TaskView>>),
        || get(list),
    )
    .query(schema::<List>),
    Route::get(
        "getTask",
        "/v1/tasks/{task}",
        SEES,
        "A task with its words and its budget.",
        Gives(schema::<TaskView>),
        || get(one),
    ),
    Route::post(
        "sayToTask",
        "/v1/tasks/{task}/say",
        ACTS,
        "Says something to a task: a direction, a constraint, another goal, another stage. An agent directs nobody.",
        Gives(schema::<TaskView>),
        || post(say),
    )
    .body(schema::<Say>),
    Route::post(
        "endTask",
        "/v1/tasks/{task}/end",
        ACTS,
        "Ends a task, by its loop.",
        Gives(schema::<TaskView>),
        || post(end),
    )
    .body(schema::<End>),
    Route::post(
        "interruptTask",
        "/v1/tasks/{task}/interrupt",
        ACTS,
        "Stops a task, which is cancelled with it.",
        Gives(schema::<Interrupted>),
        || post(interrupt),
    )
    .body(schema::<Stop>),
    Route::get(
        "getTrace",
        "/v1/tasks/{task}/trace",
        SEES,
        "The story of a task: what happened, and because of what.",
        Gives(schema::<Trace>),
        || get(trace),
    ),
    Route::get(
        "getAcceptedPlan",
        "/v1/tasks/{task}/plan",
        SEES,
        "The newest plan that was accepted for the goal that the task has now; null: none was.",
        Gives(schema::<Option<ActionView>>),
        || get(plan),
    ),
];

/// A task that somebody opens.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Open {
    /// Its name. Absent: one is made.
    id: Option<Id>,
    /// In which session. It is opened with the task where nobody did before.
    session: Id,
    /// What is to be reached.
    goal: String,
    /// What it is for: a fact for policy.
    purpose: Option<String>,
    /// At which stage it begins: a fact for policy. Absent: as the credential
    /// of the loop says.
    stage: Option<String>,
    /// What it may use at most.
    #[serde(default)]
    budget: Budget,
}

async fn open(caller: Caller, Body(open): Body<Open>) -> Answered<Json<TaskView>> {
    // What a credential says about the stage, its loop can't change.
    let stage = caller.stage().or(open.stage);
    let new = NewTask {
        id: open.id,
        session: open.session,
        goal: open.goal,
        purpose: open.purpose,
        stage,
        budget: open.budget,
    };
    worded(&caller, &caller.service.open_task(&caller.principal, new).await?)
}

/// Which tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Of this session.
    session: Option<Id>,
    /// Whether only those that are not over.
    open: Option<bool>,
    /// Those after this one: `next` of the page before.
    after: Option<Id>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

async fn list(caller: Caller, Args(list): Args<List>) -> Answered<Json<Paged<TaskView>>> {
    let filter = TaskFilter {
        session: list.session,
        open: list.open.unwrap_or_default(),
        after: list.after,
        limit: limit(list.limit)?,
        ..TaskFilter::default()
    };
    let objects = caller.sees_objects();
    let seen = |task| if objects { task } else { wordless(task) };
    Ok(Json(Paged::of(caller.service.task_views(&caller.principal, &filter)?, seen)))
}

async fn one(caller: Caller, In(id): In<Id>) -> Answered<Json<TaskView>> {
    Ok(Json(caller.service.task(&caller.principal, &id)?))
}

/// A task as it is shown to who sees that something is done, and not what.
fn wordless(mut task: TaskView) -> TaskView {
    task.goal.text = None;
    (task.task.purpose, task.task.stage) = (None, None);
    for said in task.constraints.iter_mut().chain(&mut task.steers) {
        said.text = None;
    }
    task
}

/// A task that was changed, with its words.
fn worded(caller: &Caller, task: &Task) -> Answered<Json<TaskView>> {
    Ok(Json(caller.service.task(&caller.principal, &task.id)?))
}

/// What somebody says to a task.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Say {
    /// A direction: it reaches the loop at its next step.
    Steer {
        /// The words.
        text: String,
    },
    /// Something that has to hold besides the goal.
    Constraint {
        /// The words.
        text: String,
    },
    /// Another goal.
    Goal {
        /// The words.
        text: String,
    },
    /// Another stage: a fact for policy.
    Stage {
        /// Its name. Absent: none.
        stage: Option<String>,
    },
}

async fn say(caller: Caller, In(id): In<Id>, Body(say): Body<Say>) -> Answered<Json<TaskView>> {
    let saying = match &say {
        Say::Steer { text } => Saying::Steer(text),
        Say::Constraint { text } => Saying::Constrain(text),
        Say::Goal { text } => Saying::Goal(text),
        Say::Stage { stage } => Saying::Stage(stage.as_deref()),
    };
    worded(&caller, &caller.service.say(&caller.principal, &id, saying).await?)
}

/// How a task ended.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct End {
    /// How: `done`, `failed` or `cancelled`.
    state: TaskState,
    /// In words.
    why: Option<String>,
}

async fn end(caller: Caller, In(id): In<Id>, Body(end): Body<End>) -> Answered<Json<TaskView>> {
    worded(&caller, &caller.service.end_task(&caller.principal, &id, end.state, end.why.as_deref()).await?)
}

async fn interrupt(caller: Caller, In(id): In<Id>, Body(stop): Body<Stop>) -> Answered<Json<Interrupted>> {
    stopped(&caller, Target::Task(id), stop).await
}

async fn trace(caller: Caller, In(id): In<Id>) -> Answered<Json<Trace>> {
    Ok(Json(caller.service.trace(&caller.principal, &id)?))
}

async fn plan(caller: Caller, In(id): In<Id>) -> Answered<Json<Option<ActionView>>> {
    Ok(Json(caller.service.accepted_plan(&caller.principal, &id)?))
}
