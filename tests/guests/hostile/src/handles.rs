//! Using up what the host keeps for a guest.

use std::fs::File;

use serde_json::{Value, json};

use crate::Told;

/// Opens `path` again and again, `count` times or until it is refused.
pub(crate) fn open_files(told: &Told) -> Value {
    let path = told.text("path", "/workspace/a.txt");
    let mut files = Vec::new();
    while (files.len() as u64) < told.number("count", u64::MAX) {
        match File::open(path) {
            Ok(file) => files.push(file),
            Err(error) => return json!({ "opened": files.len(), "refused": format!("{error:?}") }),
        }
    }
    json!({ "opened": files.len() })
}
