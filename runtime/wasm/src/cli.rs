//! `wasi:cli` for the guest: arguments, environment, standard streams, exit.

use bytes::Bytes;
use glovebox_runtime::job::{Entry, Job};
use wasmtime::component::Resource;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr, terminal_stdin,
    terminal_stdout,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use crate::run::Channel;
use crate::state::State;
use crate::stdio::{Listener, Speaker};

/// The folder a guest starts in, where it exists.
const HOME: &str = "/workspace";

/// Exactly what the job says; nothing of the host's own.
#[derive(Default)]
pub(crate) struct Surroundings {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    directory: Option<&'static str>,
    input: Listener,
}

impl Surroundings {
    pub(crate) fn of(job: &Job) -> Self {
        let directory = job.mounts.iter().any(|mount| mount.guest == HOME).then_some(HOME);
        match &job.entry {
            Entry::Tool { .. } | Entry::Export { .. } => Self { directory, ..Self::default() },
            Entry::Command { argv, stdin, env } => {
                let input = Bytes::from(stdin.bytes(&job.args));
                Self { arguments: argv.clone(), environment: env.clone(), directory, input: Listener::new(input) }
            }
        }
    }
}

impl environment::Host for State {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(self.surroundings.environment.clone())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.surroundings.arguments.clone())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(self.surroundings.directory.map(str::to_owned))
    }
}

impl exit::Host for State {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(I32Exit(status.is_err().into())))
    }

    fn exit_with_code(&mut self, code: u8) -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(I32Exit(code.into())))
    }
}

impl stdin::Host for State {
    fn get_stdin(&mut self) -> wasmtime::Result<Resource<DynInputStream>> {
        let input: DynInputStream = Box::new(self.surroundings.input.clone());
        Ok(self.table.push(input)?)
    }
}

impl stdout::Host for State {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.speaker(Channel::Out)
    }
}

impl stderr::Host for State {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.speaker(Channel::Err)
    }
}

impl State {
    fn speaker(&mut self, channel: Channel) -> wasmtime::Result<Resource<DynOutputStream>> {
        let speaker: DynOutputStream = Box::new(Speaker::new(self.run.clone(), channel));
        Ok(self.table.push(speaker)?)
    }
}

// There is no terminal: nobody gets one, so none is ever dropped.

impl terminal_stdin::Host for State {
    fn get_terminal_stdin(&mut self) -> wasmtime::Result<Option<Resource<terminal_input::TerminalInput>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for State {
    fn get_terminal_stdout(&mut self) -> wasmtime::Result<Option<Resource<terminal_output::TerminalOutput>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for State {
    fn get_terminal_stderr(&mut self) -> wasmtime::Result<Option<Resource<terminal_output::TerminalOutput>>> {
        Ok(None)
    }
}

impl terminal_input::Host for State {}

impl terminal_input::HostTerminalInput for State {
    fn drop(&mut self, terminal: Resource<terminal_input::TerminalInput>) -> wasmtime::Result<()> {
        self.table.delete(terminal)?;
        Ok(())
    }
}

impl terminal_output::Host for State {}

impl terminal_output::HostTerminalOutput for State {
    fn drop(&mut self, terminal: Resource<terminal_output::TerminalOutput>) -> wasmtime::Result<()> {
        self.table.delete(terminal)?;
        Ok(())
    }
}
