//! An execution on its way.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use env_contracts::{Code, Problem};
use glovebox_runtime::{BoxFuture, RunReport};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

type Report = Result<RunReport, Problem>;

/// An execution that somebody waits for. It goes on when they stop waiting, and
/// a panic in it is a report like others.
pub(super) enum Execution {
    /// On the task of whoever waits: handing it to another thread and being
    /// woken by it takes longer than all else that is done here. Absent once it
    /// is over.
    Here(Option<BoxFuture<'static, Report>>),
    /// On a task of its own, because it may hold its thread.
    Apart(JoinHandle<Report>),
}

impl Execution {
    /// Begins one. `here`: whether polling it never holds the thread.
    pub(super) fn begin(run: impl Future<Output = Report> + Send + 'static, here: bool) -> Self {
        if here { Self::Here(Some(Box::pin(run))) } else { Self::Apart(tokio::spawn(run)) }
    }
}

impl Future for Execution {
    type Output = Report;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Report> {
        match &mut *self {
            Self::Here(here) => {
                let Some(run) = here else { return Poll::Pending };
                // What it panicked in the middle of is not polled again.
                let done = match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(context))) {
                    Ok(Poll::Pending) => return Poll::Pending,
                    Ok(Poll::Ready(report)) => report,
                    Err(panic) => Err(panicked(&said(&*panic))),
                };
                *here = None;
                Poll::Ready(done)
            }
            Self::Apart(apart) => {
                Pin::new(apart).poll(context).map(|done| done.unwrap_or_else(|error| Err(panicked(&error.to_string()))))
            }
        }
    }
}

impl Drop for Execution {
    /// Whoever waited is gone. It was asked to stop, and stops by itself.
    fn drop(&mut self) {
        if let Self::Here(here) = self
            && let (Some(run), Ok(tokio)) = (here.take(), Handle::try_current())
        {
            tokio.spawn(run);
        }
    }
}

fn panicked(what: &str) -> Problem {
    Problem::new(Code::BackendError, format!("the execution panicked: {what}"))
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".to_owned())
}
