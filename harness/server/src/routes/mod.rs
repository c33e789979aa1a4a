//! The routes, a file for each kind of thing.

mod actions;
mod approvals;
pub(crate) mod artifacts;
mod capabilities;
mod environments;
mod operate;
mod output;
mod questions;
mod sessions;
mod streams;
mod tasks;
mod turns;
pub(crate) mod workspace;

use std::time::Duration;

pub(crate) use approvals::Outline;

use axum::http::{Method, Uri};
use env_contracts::{Code, Id, Problem};
use glovebox_store::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{Failure, usage};
use crate::table::Route;

/// Every route.
pub(crate) const ALL: &[&[Route]] = &[
    sessions::ROUTES,
    tasks::ROUTES,
    turns::ROUTES,
    actions::ROUTES,
    output::ROUTES,
    streams::ROUTES,
    approvals::ROUTES,
    questions::ROUTES,
    artifacts::ROUTES,
    capabilities::ROUTES,
    environments::ROUTES,
    operate::ROUTES,
    crate::mcp::ROUTES,
    crate::inbox::ROUTES,
];

/// How many entries a page has where nobody says.
const PAGE: u32 = 100;

/// What there is no route for.
pub(crate) async fn unknown(uri: Uri) -> Failure {
    let message = format!("there is no such request at `{}`", uri.path());
    Failure(Problem::new(Code::RouteUnknown, message))
}

/// What there is a route for, and not this way.
pub(crate) async fn not_this_way(method: Method, uri: Uri) -> Failure {
    let message = format!("`{}` can't be asked for with {method}", uri.path());
    Failure(Problem::new(Code::MethodUnknown, message))
}

/// Some entries, and where to go on.
#[derive(Serialize, JsonSchema)]
struct Paged<T> {
    items: Vec<T>,
    /// What to pass as `after` for the next page. Absent: this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Id>,
}

impl<T> Paged<T> {
    /// All that there are.
    fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }

    fn of<S>(page: Page<S>, each: impl FnMut(S) -> T) -> Self {
        Self { items: page.items.into_iter().map(each).collect(), next: page.next }
    }
}

/// Which page of a list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Paging {
    /// Those after this one: `next` of the page before.
    after: Option<Id>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// How many entries a page has at most: what is worked out in one go, and read.
const MOST: u32 = 1000;

/// The longest that a request waits, in seconds: clients and proxies give up
/// after a minute.
const MOST_WAIT: u32 = 50;

/// How long somebody asked to wait.
fn wait(seconds: u32) -> Result<Duration, Problem> {
    match seconds {
        0..=MOST_WAIT => Ok(Duration::from_secs(seconds.into())),
        _ => Err(usage(format!("wait: from 0 to {MOST_WAIT}"))),
    }
}

/// At most so many entries, as somebody asked.
fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked {
        None => Ok(PAGE),
        Some(asked @ 1..=MOST) => Ok(asked),
        Some(_) => Err(usage(format!("limit: from 1 to {MOST}"))),
    }
}
