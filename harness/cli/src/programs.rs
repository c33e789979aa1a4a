//! Programs that are spoken to, in the containers of this host: what the MCP
//! crate asks for, and the container crate has.

use std::sync::Arc;

use env_contracts::{Clause, Id};
use glovebox_container::{ContainerBackend, Containers, Conversation};
use glovebox_mcp::upstream::{self, Programs, Running};
use glovebox_runtime::job::FrameSink;
use glovebox_runtime::{Backend as _, BoxFuture, Enforcement, RunReport};

/// Programs in containers.
pub(crate) struct Contained {
    containers: Arc<Containers>,
    /// What it keeps, these keep.
    backend: ContainerBackend,
}

impl Contained {
    pub(crate) fn new(containers: Arc<Containers>) -> Self {
        Self { backend: ContainerBackend::new(containers.clone()), containers }
    }
}

impl Programs for Contained {
    fn enforce(&self, clause: &Clause<'_>) -> Enforcement {
        self.backend.enforce(clause)
    }

    fn start(&self, action: Option<&Id>, program: &upstream::Program, stderr: Box<dyn FrameSink>) -> Running {
        let program = glovebox_container::Program {
            action: action.cloned(),
            image: program.image.clone(),
            runtime: program.runtime.clone(),
            limits: program.limits.clone(),
            argv: program.command.clone(),
            env: program.env.clone().into_iter().collect(),
        };
        let Conversation { said, told, life } = self.containers.converse(program, stderr);
        Running { said: Box::new(said), told: Box::new(told), life: Box::new(Life(life)) }
    }
}

struct Life(glovebox_container::Life);

impl upstream::Life for Life {
    fn last_words(&self) -> String {
        self.0.last_words()
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, RunReport> {
        Box::pin(self.0.end())
    }
}
