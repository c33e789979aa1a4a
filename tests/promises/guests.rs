//! The guests: from source in `tests/guests`, or as text here.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use glovebox_plane::Builtin;

/// The largest file that is looked at: what the CLI accepts unless told otherwise.
const LARGEST: u64 = 64 << 20;

/// Whom a request is for.
#[derive(Clone)]
pub(crate) enum Guest {
    /// A built file of `tests/guests/dist`.
    Built(&'static str),
    /// A file of `tests/guests/wat`.
    Wat(&'static str),
    /// WebAssembly as text.
    Text(Cow<'static, str>),
}

impl Guest {
    /// The component.
    pub(crate) fn component(&self) -> Vec<u8> {
        let bytes = match self {
            Self::Built(name) => fs_err::read(checkout(&format!("tests/guests/dist/{name}.wasm"))).unwrap(),
            Self::Wat(name) => wat::parse_file(checkout(&format!("tests/guests/wat/{name}.wat"))).unwrap(),
            Self::Text(text) => wat::parse_str(text).unwrap(),
        };
        let inspection = glovebox_wasm::inspect(&bytes, LARGEST).unwrap();
        glovebox_wasm::adapt(&bytes, &inspection).unwrap().into_owned()
    }
}

/// A built-in tool, as the product has it.
pub(crate) fn builtin(folder: &str, name: &str) -> Builtin {
    let manifest = fs_err::read_to_string(checkout(&format!("tools/{folder}/tool.toml"))).unwrap();
    let component = fs_err::read(checkout(&format!("tools/dist/{name}.wasm"))).unwrap();
    // A registry keeps built-in tools for good; there are a few of these.
    Builtin { manifest: manifest.leak(), component: component.leak() }
}

/// A path in the checkout.
pub(crate) fn checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A command whose core module has this body: it exports `run`, which answers
/// 0 for success. `declarations` stand before it, and `with` gives their
/// instances to it.
pub(crate) fn core_command(declarations: &str, with: &str, body: &str) -> Guest {
    let text = format!(
        r#"(component
          {declarations}
          (core module $m {body})
          (core instance $i (instantiate $m {with}))
          (func $f (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#
    );
    Guest::Text(text.into())
}

/// A preview 1 module that writes `bytes` to its standard output.
pub(crate) fn printer(bytes: &[u8]) -> Guest {
    let data: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let text = format!(
        r#"(module
          (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
          (memory (export "memory") 1)
          (data (i32.const 1024) "{data}")
          (func (export "_start")
            (i32.store (i32.const 0) (i32.const 1024))
            (i32.store (i32.const 4) (i32.const {}))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#,
        bytes.len()
    );
    Guest::Text(text.into())
}
