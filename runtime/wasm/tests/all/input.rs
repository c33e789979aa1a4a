//! Files that are no tool: each a coded error, none a panic.

use env_contracts::{Code, Diagnose};
use glovebox_runtime::job::UngrantedImports;
use glovebox_wasm::{Kind, WasmError, adapt, inspect};

use crate::harness::{built, compile, wat};

const LIMIT: u64 = 64 << 20;

fn judge(bytes: &[u8]) -> Result<(), WasmError> {
    let inspection = inspect(bytes, LIMIT)?;
    inspection.check(UngrantedImports::Refuse)?;
    adapt(bytes, &inspection).map(drop)
}

#[test]
fn bad_files_are_told_apart() {
    let module = |text: &str| wat::parse_str(text).unwrap();
    let tool = built("tools/dist/text.count.wasm");
    let mut large = tool.clone();
    large.resize(200 << 20, 0);
    for (what, bytes, code, says) in [
        ("nothing", vec![], Code::ComponentInvalid, "empty"),
        ("text", b"(module)".to_vec(), Code::ComponentInvalid, "text"),
        ("a script", b"#!/bin/sh\n".to_vec(), Code::ComponentInvalid, "no WebAssembly"),
        ("a header", b"\0asm".to_vec(), Code::ComponentInvalid, "cut short"),
        ("half a tool", tool[..tool.len() / 2].to_vec(), Code::ComponentInvalid, "cut short"),
        ("all but a byte", tool[..tool.len() - 1].to_vec(), Code::ComponentInvalid, "cut short"),
        ("200 MB", large, Code::ComponentTooLarge, "209715200"),
        ("no exports", wat("nothing"), Code::ComponentExports, "it exports nothing"),
        ("a long export", wat("long-export"), Code::ComponentExports, "…"),
        ("an empty module", module("(module)"), Code::ComponentExports, "it exports nothing"),
        (
            "a foreign module",
            module(r#"(module (import "env" "f" (func)) (func (export "_start")))"#),
            Code::ComponentImports,
            "env",
        ),
        (
            "preview 0",
            module(r#"(module (import "wasi_unstable" "proc_exit" (func (param i32))) (func (export "_start")))"#),
            Code::ComponentImports,
            "wasi_unstable",
        ),
        (
            "a preview 1 call that is none",
            module(r#"(module (import "wasi_snapshot_preview1" "nonsense" (func)) (func (export "_start")))"#),
            Code::ComponentInvalid,
            "nonsense",
        ),
    ] {
        let error = judge(&bytes).expect_err(what);
        assert_eq!(error.code(), code, "{what}: {error}");
        assert!(error.to_string().contains(says), "{what}: {error}");
        assert!(error.to_string().len() < 600, "{what}");
        assert!(!error.help().is_empty());
    }
}

#[test]
fn any_cut_and_any_changed_byte_is_an_answer() {
    let tool = wat("three-memories");
    for end in 0..tool.len() {
        // Cut between two sections it is a file of its own, which exports
        // nothing until its last section is there.
        let exported = tool[..end].windows(12).any(|name| name == b"wasi:cli/run");
        assert!(judge(&tool[..end]).is_err() || exported, "{end}");
    }
    for at in 0..tool.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = tool.clone();
            bytes[at] ^= flip;
            let _ = judge(&bytes);
        }
    }
}

#[test]
fn code_that_is_wrong_is_found_by_the_compiler() {
    let mut bytes = wat("three-memories");
    // The `run` function's body: an opcode that is none.
    let at = bytes.windows(2).rposition(|pair| pair == [0x10, 0x00]).unwrap();
    bytes[at] = 0xff;
    let error = compile(&bytes).unwrap_err();
    assert_eq!(error.code(), Code::CompileFailed, "{error}");
}

#[test]
fn kinds_are_recognised() {
    for (path, kind, tool, command) in [
        ("tools/dist/text.count.wasm", Kind::Component, true, false),
        ("tests/guests/dist/hostile.wasm", Kind::Component, false, true),
        ("tests/guests/dist/preview1.wasm", Kind::Module, false, true),
    ] {
        let bytes = built(path);
        let inspection = inspect(&bytes, LIMIT).unwrap();
        assert_eq!((inspection.kind, inspection.tool, inspection.command), (kind, tool, command), "{path}");
        assert_eq!(inspection.size, bytes.len() as u64);
        assert!(inspection.ungranted.is_empty(), "{:?}", inspection.ungranted);
        let component = adapt(&bytes, &inspection).unwrap();
        assert_eq!(inspect(&component, LIMIT).unwrap().kind, Kind::Component);
        assert_eq!(component, adapt(&bytes, &inspection).unwrap(), "adapting is not repeatable");
    }
}
