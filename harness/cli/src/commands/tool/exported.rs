//! Manifests for functions that a component exports with types of its own.

use std::path::Path;

use env_contracts::{
    Access, CapabilityName, Code, Contract, DeclaredEffects, Imports, Limits, Manifest, ManifestEntry, ManifestSchema,
    Mount, Problem, Source as Folder, Version, Wasm,
};
use glovebox_wasm::typed::{self, ExportedFunction, Signature};

use super::generate::Wish;
use super::names;
use super::source::Source;
use crate::terminal::escaped_line;

/// What a manifest's title and description may have.
const TITLE_MAX: usize = 128;
const DESCRIPTION_MAX: usize = 4096;
/// Functions that an error lists.
const LISTED: usize = 20;

/// The manifests of the functions that are wanted, and what was left out.
pub(super) struct Made {
    pub(super) texts: Vec<String>,
    pub(super) left_out: Vec<String>,
}

/// Makes manifests: of all functions that can be called with JSON, or of those
/// that are named.
///
/// # Errors
/// `component-exports` where there are none, with the reason for each;
/// `usage` for a name that is none, or that fits several.
pub(super) fn manifests(path: &Path, source: &Source, wish: &Wish<'_>) -> Result<Made, Problem> {
    let usage = |error: String| Problem::new(Code::Usage, error);
    let version: Version = wish.version.parse().map_err(usage)?;
    let functions = typed::exports(&source.component).map_err(|error| Problem::of(&error))?;
    let names = names::of_functions(path, &functions);
    let all: Vec<(&ExportedFunction, CapabilityName)> = functions.iter().zip(names).collect();
    let chosen: Vec<usize> = if wish.exports.is_empty() {
        (0..all.len()).collect()
    } else {
        wish.exports.iter().map(|wanted| choose(wanted, &all)).collect::<Result<_, _>>()?
    };
    let mut made = Made { texts: Vec::new(), left_out: Vec::new() };
    let mut callable = Vec::new();
    for index in chosen {
        let (function, name) = &all[index];
        match &function.signature {
            Ok(signature) => callable.push((*function, signature, name)),
            Err(reason) => made.left_out.push(format!("`{}`: {reason}", function.place())),
        }
    }
    if callable.is_empty() || !(wish.exports.is_empty() || made.left_out.is_empty()) {
        let why = listed(made.left_out.iter().map(|line| escaped_line(line)));
        let message = match all.is_empty() {
            true => "the component exports no function".to_owned(),
            false => format!("no JSON can be given to these functions: {why}"),
        };
        return Err(Problem::new(Code::ComponentExports, message)
            .with_help("export functions whose types have no resources, streams and futures, the `glovebox:tool/tool` interface, or `wasi:cli/run`"));
    }
    let own: Option<CapabilityName> = wish.name.map(str::parse).transpose().map_err(usage)?;
    if own.is_some() && callable.len() > 1 {
        let which = listed(callable.iter().map(|(function, ..)| escaped_line(&function.place())));
        return Err(usage(format!("--name: the component exports several functions: {which}"))
            .with_help("choose one of them with --export FUNCTION, or leave --name out"));
    }
    for (function, signature, name) in callable {
        let name = own.as_ref().unwrap_or(name);
        made.texts.push(text(path, source, function, signature, name, &version)?);
    }
    Ok(made)
}

/// The one function that is meant: by its name, with or without its interface,
/// or by the name of its capability.
fn choose(wanted: &str, all: &[(&ExportedFunction, CapabilityName)]) -> Result<usize, Problem> {
    let fits = |(function, name): &(&ExportedFunction, CapabilityName)| {
        let own = function.function == wanted || name.as_str() == wanted;
        let whole = wanted.split_once('#').is_some_and(|(interface, own)| {
            function.function == own && function.interface.as_deref() == Some(interface)
        });
        own || whole
    };
    let found: Vec<usize> = (0..all.len()).filter(|&index| fits(&all[index])).collect();
    let places = |indexes: &[usize]| listed(indexes.iter().map(|&index| escaped_line(&all[index].0.place())));
    let shown = escaped_line(wanted);
    match found[..] {
        [one] => Ok(one),
        [] => {
            let every: Vec<usize> = (0..all.len()).collect();
            Err(Problem::new(Code::Usage, format!("--export: the component exports no function `{shown}`"))
                .with_help(format!("it exports {}", places(&every))))
        }
        _ => Err(Problem::new(Code::Usage, format!("--export: `{shown}` fits several functions"))
            .with_help(format!("name one with its interface: {}", places(&found)))),
    }
}

fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let mut shown: Vec<String> = names.take(LISTED).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    if shown.is_empty() { "none".into() } else { shown.join(", ") }
}

/// The text of one manifest: little is granted, and everything that was chosen
/// can be read in it.
fn text(
    path: &Path,
    source: &Source,
    function: &ExportedFunction,
    signature: &Signature,
    name: &CapabilityName,
    version: &Version,
) -> Result<String, Problem> {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let title = format!("The function {} of {file}", function.place());
    let files = source.inspection.imports.iter().any(|import| import.starts_with("wasi:filesystem/"));
    let stubs = !source.inspection.ungranted.is_empty();
    let manifest = Manifest {
        schema: ManifestSchema::V1,
        name: name.clone(),
        version: version.clone(),
        title: cut(&title, TITLE_MAX).to_owned(),
        description: description(function, files),
        non_goals: Vec::new(),
        preview: None,
        verify: None,
        repair: None,
        compensate: None,
        owner: None,
        requires: Vec::new(),
        rate: None,
        entry: ManifestEntry::Export { interface: function.interface.clone(), function: function.function.clone() },
        effects: DeclaredEffects::default(),
        input: signature.input.clone(),
        output: Some(signature.output.clone()),
        errors: Vec::new(),
        examples: Vec::new(),
        contract: contract(files, stubs)?,
    };
    let mut text = String::new();
    if stubs {
        text.push_str("# It imports more than is granted. What is not granted answers access-denied or ends it:\n");
        for import in &source.inspection.ungranted {
            text.push_str(&format!("#   {}\n", escaped_line(import)));
        }
    }
    let body = toml::to_string(&manifest).map_err(|error| {
        let message = format!("the manifest of `{}` can't be written: {error}", function.place());
        Problem::new(Code::ManifestInvalid, message)
    })?;
    text.push_str(&body);
    Ok(text)
}

fn description(function: &ExportedFunction, files: bool) -> String {
    let docs = match &function.docs {
        Some(docs) => docs.clone(),
        None => format!("Calls the function `{}`.", function.place()),
    };
    let notes = if files {
        " The workspace is /workspace, files given with the request are below /inputs, /tmp is empty and gone \
          afterwards; files written to /outputs become artifacts."
    } else {
        ""
    };
    format!("{}{notes}", cut(&docs, DESCRIPTION_MAX - notes.len()))
}

/// Folders only for what can look at them.
fn contract(files: bool, stubs: bool) -> Result<Contract, Problem> {
    let mount = |guest: &str, source: Folder, access: Access| -> Result<Mount, String> {
        Ok(Mount { guest: guest.parse()?, source, access, hide: None })
    };
    let filled = || -> Result<Contract, String> {
        let mut limits = Limits {
            wall: Some("30s".parse()?),
            memory: Some("256MiB".parse()?),
            output: Some("1MiB".parse()?),
            ..Limits::default()
        };
        let mut filesystem = Vec::new();
        if files {
            limits.storage = Some("64MiB".parse()?);
            limits.inodes = Some(1000);
            filesystem = vec![
                mount("/workspace", Folder::Workspace, Access::Read)?,
                mount("/inputs", "input:*".parse()?, Access::Read)?,
                mount("/outputs", Folder::Outputs, Access::Write)?,
                mount("/tmp", Folder::Scratch, Access::Write)?,
            ];
        }
        let wasm = Wasm { imports: if stubs { Imports::Stub } else { Imports::Refuse }, ..Wasm::default() };
        Ok(Contract { filesystem, limits, wasm, ..Contract::default() })
    };
    filled().map_err(|error| Problem::new(Code::ManifestInvalid, error))
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
