//! What every store promises, whatever it is made of.

mod conditions;
mod lists;
mod log;
pub(crate) mod made;
pub(crate) mod opened;
mod owners;
mod questions;
mod tasks;

pub(crate) use conditions::*;
pub(crate) use lists::*;
pub(crate) use log::*;
pub(crate) use owners::*;
pub(crate) use questions::*;
pub(crate) use tasks::*;
