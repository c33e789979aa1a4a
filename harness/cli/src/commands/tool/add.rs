//! `glovebox tool add`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use env_contracts::{Code, Manifest, Problem, Wanted};
use glovebox_plane::{Added, Tool};
use glovebox_runtime::{ArtifactBytes, Clock as _, SystemClock};

use super::generate::Wish;
use super::source::{Source, Text, marked};
use super::{describe, stdio, upstream};
use crate::args::ToolAddArgs;
use crate::commands::printed;
use crate::config::Config;
use crate::house;
use crate::places::Places;
use crate::print;
use crate::terminal::escaped_line;

pub(crate) fn run(args: &ToolAddArgs, config: &Config) -> Result<ExitCode, Problem> {
    match (&args.file, &args.mcp_http, &args.image) {
        (Some(file), ..) => component(file, args, config),
        (None, Some(url), _) => upstream::add(url, args, config),
        (None, None, Some(image)) if !args.mcp_stdio => super::image::add(image, args, config),
        (None, None, _) => stdio::add(args, config),
    }
}

fn component(file: &Path, args: &ToolAddArgs, config: &Config) -> Result<ExitCode, Problem> {
    let source = Source::read(file, config)?;
    let wish = Wish { name: args.name.as_deref(), version: &args.version, stdin: args.stdin, exports: &args.export };
    let found = Text::find(file, args.manifest.as_deref(), &source, &wish)?;
    let made = found.texts.iter().all(|text| text.from.is_none());
    let manifests = found.texts.iter().map(Text::parse).collect::<Result<Vec<_>, _>>()?;
    for (manifest, text) in manifests.iter().zip(&found.texts) {
        // What was made from it fits it.
        if text.from.is_some() {
            source.agrees(manifest)?;
        }
        marked(manifest)?;
        // The schemas, before anything is written.
        Tool::new(manifest.clone(), source.digest(), ArtifactBytes::Embedded(&[]), false)?;
    }

    let places = Places::of(config);
    let registry = house::registry(&places);
    // Without a file of their own, people raise the version here.
    let raise = |problem: Problem| match problem.code {
        Code::ToolConflict if made => {
            problem.with_help("register it under a higher version with --version, or another name with --name")
        }
        Code::ToolReserved if made => problem.with_help("choose another name with --name"),
        _ => problem,
    };
    for manifest in &manifests {
        free(&registry, manifest, &source).map_err(raise)?;
    }
    places.make()?;
    // Compiled before it is registered, so that what can't be compiled leaves
    // nothing behind, and the first run is as fast as any.
    // Several are functions of one component under one contract.
    if let Some(manifest) = manifests.first() {
        describe::compile(&source.component, manifest, &places, config)?;
    }
    let mut err = anstream::stderr().lock();
    for left_out in &found.left_out {
        let _ = writeln!(err, "left out {}", escaped_line(left_out));
    }
    let one = found.texts.len() == 1;
    if made && one {
        let _ = writeln!(err, "it has no manifest; the one on standard output was made, and is what is registered");
    }
    let mut first = None;
    for text in &found.texts {
        let now = SystemClock.now();
        let (tool, added) = registry.add_like(first.as_ref(), &text.text, &source.component, now).map_err(raise)?;
        let capability = tool.manifest.capability();
        let adapted = if source.adapted { ", adapted from a preview 1 module" } else { "" };
        let said = match added {
            Added::New => "registered",
            Added::Known => "already registered:",
        };
        let _ = writeln!(err, "{said} {capability} (component {}{adapted})", tool.registered.digest.short());
        first.get_or_insert(tool);
    }
    if !one {
        let _ = writeln!(err, "`glovebox tool show NAME` shows the manifests, which were made from the types");
    }
    drop(err);
    printed(if made && one { print::bytes(found.texts[0].text.as_bytes()) } else { Ok(()) }, 0)
}

/// What is known already to be in the way: it saves compiling for nothing.
fn free(registry: &glovebox_plane::Registry, manifest: &Manifest, source: &Source) -> Result<(), Problem> {
    if let Ok(known) = registry.get(&Wanted { name: manifest.name.clone(), version: None })
        && known.builtin
    {
        return Err(Problem::new(Code::ToolReserved, format!("`{}` is a built-in tool", manifest.name)));
    }
    let capability = manifest.capability();
    match registry.get(&Wanted { name: capability.name.clone(), version: Some(capability.version.clone()) }) {
        Ok(known) if known.registered.digest != source.digest() => {
            let (was, is) = (known.registered.digest.short().to_owned(), source.digest());
            let message = format!("`{capability}` is registered with component {was}, this one is {}", is.short());
            Err(Problem::new(Code::ToolConflict, message))
        }
        _ => Ok(()),
    }
}
