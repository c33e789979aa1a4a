//! A tool that misbehaves as it is told: the guest of the adversarial tests of
//! the `tool` interface.
//!
//! Its only argument that matters is `do`; the behaviours and what a host must
//! make of them are listed in `../README.md`.
//!
//! It is no example of a tool: it promises nothing, checks nothing and has no
//! manifest. It runs nowhere but in a sandbox, so nothing of it is tested here.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use bindings::exports::glovebox::tool::tool::{Context, Guest, Output, ToolError};
use bindings::glovebox::tool::host::{self, Level};
use bindings::glovebox::tool::types::{Artifact, ErrorKind};

/// The bindings that are generated from the interface definition.
mod bindings {
    wit_bindgen::generate!({ path: "../../../tools/wit", world: "tool-component" });
}

struct Hostile;

bindings::export!(Hostile with_types_in bindings);

/// How often this instance was called: more than once only where one is reused.
static CALLS: AtomicU64 = AtomicU64::new(0);

impl Guest for Hostile {
    fn describe() -> String {
        json!({ "name": "hostile", "version": "0.1.0" }).to_string()
    }

    fn call(name: String, args: String, context: Context) -> Result<Output, ToolError> {
        let told: Value = serde_json::from_str(&args).unwrap_or_default();
        let number = |key: &str, default: u64| told[key].as_u64().unwrap_or(default);
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
        let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
        match text("do").as_str() {
            "echo" => content(json!({
                "name": name,
                "args": args,
                "calls": calls,
                "context": {
                    "request_id": context.request_id,
                    "deadline_ms": context.deadline_ms,
                    "locale": context.locale,
                    "idempotency_key": context.idempotency_key,
                },
            })),
            "result" => raw(text("content")),
            "large-result" => raw(format!("\"{}\"", filler(number("bytes", 64 << 20)))),
            "invalid-json" => raw("{\"broken\": ".to_owned()),
            "deep-result" => {
                let depth = number("depth", 10_000) as usize;
                raw("[".repeat(depth) + &"]".repeat(depth))
            }
            "error" => Err(ToolError {
                kind: kind(&text("kind")),
                message: text("message") + &filler(number("message_bytes", 0)),
                retryable: told["retryable"].as_bool().unwrap_or(false),
                details: told["details"].as_str().map(str::to_owned),
            }),
            "artifacts" => {
                for file in told["write"].as_array().into_iter().flatten() {
                    let written = file["text"].as_str().unwrap_or_default();
                    if let Some(Err(error)) = file["path"].as_str().map(|path| std::fs::write(path, written)) {
                        return Err(internal(&error.to_string()));
                    }
                }
                let asked = told["describe"].as_array().into_iter().flatten().map(described);
                let flood = (0..number("count", 0)).map(|at| described(&json!({ "path": format!("{at}") })));
                Ok(Output { content: "{}".to_owned(), artifacts: asked.chain(flood).collect() })
            }
            "log" => {
                for _ in 0..number("count", 1) {
                    host::log(level(&text("level")), &(text("message") + &filler(number("bytes", 0))));
                }
                content(json!({ "logged": true }))
            }
            "progress" => {
                let (count, total) = (number("count", 1), told["total"].as_u64());
                for done in 0..count {
                    host::progress(done, total, &(text("message") + &filler(number("bytes", 0))));
                }
                content(json!({ "reported": count }))
            }
            "print" => {
                println!("{}", text("message"));
                eprintln!("{}", text("message"));
                content(json!({ "printed": true }))
            }
            "loop" => loop {
                std::hint::black_box(calls);
            },
            "panic" => panic!("told to"),
            "unreachable" => core::arch::wasm32::unreachable(),
            "exit" => std::process::exit(0),
            other => Err(internal(&format!("unknown behaviour `{other}`"))),
        }
    }
}

fn raw(content: String) -> Result<Output, ToolError> {
    Ok(Output { content, artifacts: Vec::new() })
}

fn content(value: Value) -> Result<Output, ToolError> {
    raw(value.to_string())
}

fn internal(message: &str) -> ToolError {
    ToolError { kind: ErrorKind::Internal, message: message.to_owned(), retryable: false, details: None }
}

fn filler(bytes: u64) -> String {
    "x".repeat(bytes as usize)
}

fn described(value: &Value) -> Artifact {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Artifact {
        path: text("path").unwrap_or_default(),
        media_type: text("media_type"),
        description: text("description"),
    }
}

fn kind(name: &str) -> ErrorKind {
    match name {
        "invalid-args" => ErrorKind::InvalidArgs,
        "not-found" => ErrorKind::NotFound,
        "denied" => ErrorKind::Denied,
        "unavailable" => ErrorKind::Unavailable,
        "timeout" => ErrorKind::Timeout,
        "conflict" => ErrorKind::Conflict,
        _ => ErrorKind::Internal,
    }
}

fn level(name: &str) -> Level {
    match name {
        "debug" => Level::Debug,
        "warn" => Level::Warn,
        "error" => Level::Error,
        _ => Level::Info,
    }
}
