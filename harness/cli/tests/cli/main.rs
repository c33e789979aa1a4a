//! The `glovebox` command as people and scripts meet it: the real program, in
//! a state folder of its own.

#![expect(clippy::unwrap_used, reason = "a test that meets what it does not expect fails there")]

mod artifacts;
mod audit;
mod bad_input;
mod clients;
mod containers;
mod crowd;
mod decisions;
mod doors_story;
#[path = "../../../server/tests/inbox/driver.rs"]
#[expect(dead_code, reason = "the tests of the inbox ask more of a browser")]
mod driver;
mod environments;
mod folders;
mod hook;
mod hook_stops;
mod host;
mod main_job;
mod mcp;
mod operating;
mod people;
mod policy;
mod profiles;
mod programs;
mod reference;
mod repeat;
mod same_user;
mod serve;
mod served;
mod stdio;
mod stopping;
mod support;
mod tasks;
mod terminal;
mod tokens;
mod tools;
mod typed;
mod upstream;
mod webhook;
