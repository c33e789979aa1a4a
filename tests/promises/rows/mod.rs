//! The promises, by what they are about.

mod ends;
mod files;
mod input;
mod leaks;
mod limits;
mod memory;
mod network;
mod output;
mod outputs;
mod owners;
mod report;
mod sharing;
mod surroundings;
mod system;
mod time;

use crate::columns::Kind;
use crate::house::House;

/// One promise.
#[derive(Clone, Copy)]
pub(crate) struct Promise {
    /// What it is about.
    pub(crate) about: &'static str,
    /// What is promised.
    pub(crate) says: &'static str,
    /// Fails by panicking.
    pub(crate) proof: fn(&House),
    /// Where it has a meaning at all, if not everywhere, and why not elsewhere.
    pub(crate) only: Option<(Kind, &'static str)>,
    /// Whether nothing else may run meanwhile.
    pub(crate) alone: bool,
}

/// Every promise, in the order of the table.
pub(crate) fn all() -> Vec<Promise> {
    let sections: [(&str, &[Row]); 14] = [
        ("time", time::ROWS),
        ("memory", memory::ROWS),
        ("other limits", limits::ROWS),
        ("output", output::ROWS),
        ("input", input::ROWS),
        ("network", network::ROWS),
        ("files", files::ROWS),
        ("owners", owners::ROWS),
        ("outputs", outputs::ROWS),
        ("surroundings", surroundings::ROWS),
        ("system", system::ROWS),
        ("ends", ends::ROWS),
        ("sharing", sharing::ROWS),
        ("report", report::ROWS),
    ];
    let promise = |about, alone| move |&Row { says, proof, only }: &Row| Promise { about, says, proof, only, alone };
    let together = sections.into_iter().flat_map(|(about, rows)| rows.iter().map(promise(about, false)));
    together.chain(leaks::ROWS.iter().map(promise("afterwards", true))).collect()
}

/// A promise and its proof.
#[derive(Clone, Copy)]
struct Row {
    says: &'static str,
    proof: fn(&House),
    only: Option<(Kind, &'static str)>,
}

/// A promise for every backend.
const fn row(says: &'static str, proof: fn(&House)) -> Row {
    Row { says, proof, only: None }
}

impl Row {
    /// A promise about components; why images can't have it.
    const fn of_components(self, otherwise: &'static str) -> Self {
        Self { only: Some((Kind::Component, otherwise)), ..self }
    }

    /// A promise about images; why components can't have it.
    const fn of_images(self, otherwise: &'static str) -> Self {
        Self { only: Some((Kind::Image, otherwise)), ..self }
    }
}

/// Why an image has no part in what is WebAssembly's.
const NO_WEBASSEMBLY: &str = "an image is no WebAssembly";
/// Why it has none in the interface of tools.
const NO_TOOL: &str = "an image is run as a command, and has no tool interface";
