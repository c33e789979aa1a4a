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
mod report;
mod sharing;
mod surroundings;
mod time;

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
    /// Whether nothing else may run meanwhile.
    pub(crate) alone: bool,
}

/// Every promise, in the order of the table.
pub(crate) fn all() -> Vec<Promise> {
    let sections: [(&str, &[Row]); 12] = [
        ("time", time::ROWS),
        ("memory", memory::ROWS),
        ("other limits", limits::ROWS),
        ("output", output::ROWS),
        ("input", input::ROWS),
        ("network", network::ROWS),
        ("files", files::ROWS),
        ("outputs", outputs::ROWS),
        ("surroundings", surroundings::ROWS),
        ("ends", ends::ROWS),
        ("sharing", sharing::ROWS),
        ("report", report::ROWS),
    ];
    let promise = |about, alone| move |&(says, proof): &Row| Promise { about, says, proof, alone };
    let together = sections.into_iter().flat_map(|(about, rows)| rows.iter().map(promise(about, false)));
    together.chain(leaks::ROWS.iter().map(promise("afterwards", true))).collect()
}

/// A promise and its proof.
type Row = (&'static str, fn(&House));
