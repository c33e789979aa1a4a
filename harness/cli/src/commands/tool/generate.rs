//! A manifest for a command that has none.

use std::path::Path;

use env_contracts::{CapabilityName, Code, Problem, Version};

use super::names;
use super::source::Source;
use crate::args::StdinArg;

/// What the person said about it.
pub(super) struct Wish<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) version: &'a str,
    /// What a command reads.
    pub(super) stdin: StdinArg,
    /// The functions that are wanted; none names all.
    pub(super) exports: &'a [String],
}

/// What the argument named `stdin` is.
const STDIN_PROPERTY: &str = r#"
[input.properties.stdin]
type = "string"
description = "What stands on standard input: for an interpreter, the script."
"#;

/// The text of a manifest: little is granted, and everything that was chosen
/// can be read in it.
///
/// # Errors
/// `usage` for a name or version that is none.
pub(super) fn manifest(path: &Path, source: &Source, wish: &Wish<'_>) -> Result<String, Problem> {
    let usage = |error: String| Problem::new(Code::Usage, error);
    let name: CapabilityName = match wish.name {
        Some(name) => name.parse().map_err(usage)?,
        None => names::of_file(path),
    };
    let version: Version = wish.version.parse().map_err(usage)?;
    let program = toml::Value::from(name.as_str().rsplit('.').next().unwrap_or_default());
    let file = toml::Value::from(format!("The command of {}", path.file_name().unwrap_or_default().to_string_lossy()));
    let (stdin, reads, property) = match wish.stdin {
        StdinArg::Args => ("args", "the whole object of arguments is also on its standard input, as JSON", ""),
        StdinArg::Argument => ("argument", "what it reads on standard input as `stdin`", STDIN_PROPERTY),
        StdinArg::None => ("none", "there is nothing on its standard input", ""),
    };
    let mut text = format!(
        r#"schema = "glovebox/tool/v1"
name = "{name}"
version = "{version}"
title = {file}
description = """
Runs the command. Give its command line arguments as `args`; {reads}. \
The workspace is /workspace, files given with the request are below /inputs, /tmp is empty and gone \
afterwards; files that it writes to /outputs become artifacts. The result is its standard output as text."""

[entry]
kind = "command"
argv = [{program}, "{{args}}"]
stdin = "{stdin}"
result = "text"

[input]
type = "object"
additionalProperties = true

[input.properties.args]
type = "array"
description = "The command line arguments, without the program's name."

[input.properties.args.items]
type = "string"
{property}
[contract]
schema = "glovebox/contract/v1"

[[contract.filesystem]]
guest = "/workspace"
source = "workspace"
access = "read"

[[contract.filesystem]]
guest = "/inputs"
source = "input:*"
access = "read"

[[contract.filesystem]]
guest = "/outputs"
source = "outputs"
access = "write"

[[contract.filesystem]]
guest = "/tmp"
source = "scratch"
access = "write"

[contract.limits]
wall = "30s"
memory = "256MiB"
output = "1MiB"
storage = "64MiB"
inodes = 1000
"#
    );
    if !source.inspection.ungranted.is_empty() {
        text.push_str("\n# It imports more than is granted. What is not granted answers access-denied or ends it:\n");
        for import in &source.inspection.ungranted {
            text.push_str(&format!("#   {}\n", crate::terminal::escaped_line(import)));
        }
        text.push_str("[contract.wasm]\nimports = \"stub\"\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_a_manifest() {
        let inspection = |ungranted: &[&str]| glovebox_wasm::Inspection {
            kind: glovebox_wasm::Kind::Component,
            size: 0,
            imports: Vec::new(),
            exports: Vec::new(),
            ungranted: ungranted.iter().map(|&import| import.to_owned()).collect(),
            tool: false,
            command: true,
            functions: false,
        };
        let wish = Wish { name: None, version: "0.1.0", stdin: StdinArg::Argument, exports: &[] };
        for ungranted in [&[][..], &["wasi:sockets/tcp@0.2.0", "evil\nimports = \"x\""]] {
            let source = Source { component: Vec::new(), inspection: inspection(ungranted), adapted: false };
            let text = manifest(Path::new("we\"ird\n.wasm"), &source, &wish).unwrap();
            let manifest = env_contracts::Manifest::from_toml(&text).unwrap();
            let stubs = manifest.contract.wasm.imports == env_contracts::Imports::Stub;
            assert_eq!(stubs, !ungranted.is_empty());
            glovebox_plane::arguments::Schema::compile(&manifest.input).unwrap();
        }
        let bad = Wish { name: Some("Bad Name"), version: "0.1.0", stdin: StdinArg::Argument, exports: &[] };
        let source = Source { component: Vec::new(), inspection: inspection(&[]), adapted: false };
        assert_eq!(manifest(Path::new("x.wasm"), &source, &bad).unwrap_err().code, Code::Usage);
    }
}
