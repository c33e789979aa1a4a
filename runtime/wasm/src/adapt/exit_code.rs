//! The exit code of a preview 1 module.
//!
//! The adapter turns `proc_exit(code)` into an exit that only says success or
//! failure. `wasi:cli/exit.exit-with-code` says the code and takes the same
//! core argument, so the module is made to import it instead.

use std::borrow::Cow;

use wasm_encoder::reencode::{Reencode as _, RoundtripReencoder};
use wasm_encoder::{ImportSection, Module, RawSection};
use wasmparser::{Parser, Payload};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::inspect::PREVIEW1;

/// What a module calls to exit.
const EXIT: &str = "proc_exit";
/// Where it goes instead: an interface and a function of ours to grant, in a
/// version that no adapter uses, so that the two never have to agree.
const INTERFACE: &str = "wasi:cli/exit@0.2.0";
const FUNCTION: &str = "exit-with-code";

const WIT: &str = "
package wasi:cli@0.2.0;
interface exit { exit-with-code: func(status-code: u8); }
world exits { import exit; }
";

/// The module, with its exit code kept; unchanged if it never exits.
pub(super) fn kept(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let mut module = Module::new();
    let mut exits = false;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(text)?;
        if let Payload::ImportSection(section) = payload {
            let mut imports = ImportSection::new();
            for import in section.into_imports() {
                let import = import.map_err(text)?;
                let exit = import.module == PREVIEW1 && import.name == EXIT;
                exits |= exit;
                let (from, name) = if exit { (INTERFACE, FUNCTION) } else { (import.module, import.name) };
                imports.import(from, name, RoundtripReencoder.entity_type(import.ty).map_err(text)?);
            }
            module.section(&imports);
        } else if let Some((id, range)) = payload.as_section() {
            module.section(&RawSection { id, data: &bytes[range] });
        }
    }
    if !exits {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut resolve = Resolve::default();
    let package = resolve.push_str("exit.wit", WIT).map_err(text)?;
    let world = resolve.select_world(&[package], None).map_err(text)?;
    let mut module = module.finish();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).map_err(text)?;
    Ok(Cow::Owned(module))
}

/// The encoder's errors have a type of their own; their words are what counts.
pub(super) fn text(error: impl std::fmt::Display) -> String {
    format!("{error:#}")
}
