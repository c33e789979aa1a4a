//! The `glovebox` command as people and scripts meet it: the real program, in
//! a state folder of its own.

mod artifacts;
mod bad_input;
mod host;
mod main_job;
mod reference;
mod support;
mod tools;
