//! `glovebox tool add --image`: a tool that is a container image.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use env_contracts::{CapabilityName, Code, Manifest, ManifestEntry, Os, Problem, Version};
use glovebox_container::ImageRecord;
use glovebox_plane::Added;
use glovebox_runtime::{Clock as _, SystemClock};
use serde_json::json;

use super::source::marked;
use crate::args::{StdinArg, ToolAddArgs};
use crate::commands::{files, printed};
use crate::config::Config;
use crate::places::Places;
use crate::terminal::escaped_line;
use crate::{backends, house, print};

/// Registers an image that the engine has, under the digest that its name leads
/// to now. Nobody follows the name again.
pub(super) fn add(reference: &str, args: &ToolAddArgs, config: &Config) -> Result<ExitCode, Problem> {
    let places = Places::of(config);
    places.make()?;
    let containers = backends::containers(config, &places)?;
    let image = house::tokio_runtime()?.block_on(containers.find_image(reference))?;
    let mut manifest = match &args.manifest {
        Some(path) => read(path)?,
        None => made(args, &image)?,
    };
    pin(&mut manifest, &image)?;
    marked(&manifest)?;
    let text = toml::to_string(&manifest).map_err(|error| {
        Problem::new(Code::ManifestInvalid, format!("the manifest of `{}` can't be written: {error}", manifest.name))
    })?;
    let registry = house::registry(&places);
    let (tool, added) =
        registry.add(&text, &image.to_bytes(), SystemClock.now()).map_err(|problem| match problem.code {
            Code::ToolConflict if args.manifest.is_none() => problem.with_help("raise its version with --version"),
            Code::ToolReserved if args.manifest.is_none() => problem.with_help("choose another name with --name"),
            _ => problem,
        })?;
    let said = match added {
        Added::New => "registered",
        Added::Known => "already registered:",
    };
    let mut err = anstream::stderr().lock();
    if args.manifest.is_none() {
        let _ = writeln!(err, "it has no manifest; the one on standard output was made, and is what is registered");
    }
    let image = image.image.short();
    let _ = writeln!(err, "{said} {} (image {image}, {})", tool.manifest.capability(), escaped_line(reference));
    drop(err);
    printed(if args.manifest.is_none() { print::bytes(text.as_bytes()) } else { Ok(()) }, 0)
}

fn read(path: &Path) -> Result<Manifest, Problem> {
    Manifest::from_toml(&files::read_text(path)?).map_err(|error| {
        let problem = Problem::of(&error);
        Problem { message: format!("`{}`: {}", path.display(), problem.message), ..problem }
    })
}

/// Ties a manifest to the image: what it says of one has to be this one.
fn pin(manifest: &mut Manifest, image: &ImageRecord) -> Result<(), Problem> {
    let refuse = |message: String, help: &str| Err(Problem::new(Code::ManifestInvalid, message).with_help(help));
    if !matches!(manifest.entry, ManifestEntry::Command { .. }) {
        return refuse(
            format!("`entry` of `{}`: an image is run as a command", manifest.name),
            "write `kind = \"command\"` and its `argv`",
        );
    }
    let platform = &mut manifest.contract.platform;
    if platform.image.as_ref().is_some_and(|named| *named != image.image) {
        return refuse(
            format!("`contract.platform.image` names another image than `{}` is", image.reference),
            "leave it out: it is filled in; or name the image by that digest",
        );
    }
    platform.image = Some(image.image.clone());
    platform.os.get_or_insert(Os::Linux);
    manifest.validate().map_err(|error| Problem::of(&error))
}

/// A manifest for an image that has none: its own command with arguments, and
/// little granted.
fn made(args: &ToolAddArgs, image: &ImageRecord) -> Result<Manifest, Problem> {
    let usage = |error: String| Problem::new(Code::Usage, error);
    let repository = image.reference.split(['@', ':']).next().unwrap_or_default();
    let last = repository.rsplit('/').next().unwrap_or_default();
    let slug = args.name.clone().or_else(|| CapabilityName::slug(last));
    let name = slug.ok_or_else(|| usage("--name: the image has no name to be called by".into()))?;
    let name: CapabilityName = name.parse().map_err(usage)?;
    let version: Version = args.version.parse().map_err(usage)?;
    let mut argv = image.command.clone();
    // What is in it are no places for arguments.
    if let Some(word) = argv.iter().find(|word| word.contains('{')) {
        return Err(usage(format!("the image's command has `{}` in it", escaped_line(word)))
            .with_help("write a manifest, and name it with --manifest"));
    }
    argv.push("{args}".to_owned());
    let (stdin, reads) = match args.stdin {
        StdinArg::Args => ("args", "the whole object of arguments is also on its standard input, as JSON"),
        StdinArg::Argument => ("argument", "what it reads on standard input as `stdin`"),
        StdinArg::None => ("none", "there is nothing on its standard input"),
    };
    let mut input = json!({
        "type": "object",
        "additionalProperties": args.stdin == StdinArg::Args,
        "properties": {
            "args": {
                "type": "array", "items": { "type": "string" },
                "description": "The command line arguments, after the image's own command.",
            },
        },
    });
    if args.stdin == StdinArg::Argument {
        input["properties"]["stdin"] = json!({ "type": "string", "description": "What stands on standard input." });
    }
    let description = format!(
        "Runs the command of the image. Give its arguments as `args`; {reads}. The workspace is /workspace, /tmp is empty \
         and gone afterwards; files that it writes to /outputs become artifacts. The result is its standard output as text."
    );
    let manifest = json!({
        "schema": "glovebox/tool/v1",
        "name": name,
        "version": version,
        "title": format!("The image {}", cut(&image.reference, 100)),
        "description": description,
        "entry": { "kind": "command", "argv": argv, "stdin": stdin, "result": "text" },
        "input": input,
        "contract": {
            "schema": "glovebox/contract/v1",
            "filesystem": [
                { "guest": "/workspace", "source": "workspace", "access": "read" },
                { "guest": "/outputs", "source": "outputs", "access": "write" },
                { "guest": "/tmp", "source": "scratch", "access": "write" },
            ],
            "limits": { "wall": "1m", "memory": "512MiB", "pids": 128, "output": "1MiB", "storage": "64MiB", "inodes": 1000 },
        },
    });
    serde_json::from_value(manifest).map_err(|error| Problem::new(Code::ManifestInvalid, error.to_string()))
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
