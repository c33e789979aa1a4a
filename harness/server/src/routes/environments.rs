//! Environments: what actions that share one find of each other.

use axum::routing::{get, post};
use env_contracts::{Digest, Id};
use glovebox_plane::{EnvironmentView, SnapshotView, Was};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Paged;
use crate::auth::Caller;
use crate::extract::{Args, Body, In, Json};
use crate::problem::Answered;
use crate::table::Answer::Json as Gives;
use crate::table::{OPERATES, Route, SEES, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::get(
        "listEnvironments",
        "/v1/environments",
        SEES,
        "Environments that actions share, oldest first.",
        Gives(schema::<Paged<EnvironmentView>>),
        || get(list),
    ),
    Route::get(
        "getEnvironment",
        "/v1/environments/{environment}",
        SEES,
        "An environment: who shares it, what is in it, and its snapshots.",
        Gives(schema::<EnvironmentView>),
        || get(one),
    ),
    Route::post(
        "takeSnapshot",
        "/v1/environments/{environment}/snapshots",
        OPERATES,
        "Takes a snapshot of an environment that no action is in.",
        Gives(schema::<SnapshotView>),
        || post(take),
    ),
    Route::post(
        "endEnvironment",
        "/v1/environments/{environment}/end",
        OPERATES,
        "Ends an environment that no action is in: its folders are gone, its snapshots stay for a while.",
        Gives(schema::<Ended>),
        || post(end),
    ),
    Route::get(
        "listSnapshots",
        "/v1/snapshots",
        SEES,
        "Snapshots, oldest first, also of environments that ended.",
        Gives(schema::<Paged<SnapshotView>>),
        || get(snapshots),
    ),
    Route::get(
        "compareSnapshots",
        "/v1/snapshots/{snapshot}/changes",
        SEES,
        "How another snapshot differs from this one.",
        Gives(schema::<Paged<Changed>>),
        || get(changes),
    )
    .query(schema::<To>),
    Route::post(
        "restoreSnapshot",
        "/v1/snapshots/{snapshot}/restore",
        OPERATES,
        "Makes an environment's folders those of a snapshot again.",
        Gives(schema::<EnvironmentView>),
        || post(restore),
    )
    .body(schema::<Restore>),
];

async fn list(caller: Caller) -> Answered<Json<Paged<EnvironmentView>>> {
    Ok(Json(Paged::whole(caller.service.environments(&caller.principal)?)))
}

async fn one(caller: Caller, In(id): In<Id>) -> Answered<Json<EnvironmentView>> {
    Ok(Json(caller.service.environment_shown(&caller.principal, &id)?))
}

async fn take(caller: Caller, In(id): In<Id>) -> Answered<Json<SnapshotView>> {
    Ok(Json(caller.service.take_environment_snapshot(&caller.principal, &id).await?))
}

/// An environment that ended.
#[derive(Serialize, JsonSchema)]
struct Ended {
    /// Which one.
    ended: Id,
}

async fn end(caller: Caller, In(id): In<Id>) -> Answered<Json<Ended>> {
    caller.service.end_environment(&caller.principal, &id).await?;
    Ok(Json(Ended { ended: id }))
}

async fn snapshots(caller: Caller) -> Answered<Json<Paged<SnapshotView>>> {
    Ok(Json(Paged::whole(caller.service.environment_snapshots(&caller.principal)?)))
}

/// What to compare with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct To {
    /// The later snapshot.
    to: Digest,
}

/// How two snapshots differ in one path.
#[derive(Serialize, JsonSchema)]
struct Changed {
    /// Whether it was added, changed or deleted.
    was: Was,
    /// Its path. What is no UTF-8, control characters and `%` are `%XX`.
    path: String,
}

async fn changes(caller: Caller, In(from): In<Digest>, Args(to): Args<To>) -> Answered<Json<Paged<Changed>>> {
    let changes = caller.service.snapshot_changes(&caller.principal, &from, &to.to)?;
    let changed = changes.into_iter().map(|change| Changed { was: change.was, path: change.path });
    Ok(Json(Paged::whole(changed.collect())))
}

/// What to restore a snapshot into.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restore {
    /// Another environment of the same capability. Absent: the one that it was
    /// taken of, which begins again if it ended.
    into: Option<Id>,
    /// Whether it is restored although the tool or the policy is another by now.
    #[serde(default)]
    accept_drift: bool,
}

async fn restore(caller: Caller, In(id): In<Digest>, Body(restore): Body<Restore>) -> Answered<Json<EnvironmentView>> {
    let Restore { into, accept_drift } = restore;
    let restored = caller.service.restore_environment(&caller.principal, &id, into.as_ref(), accept_drift);
    Ok(Json(restored.await?))
}
