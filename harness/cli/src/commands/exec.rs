//! `glovebox exec`: a command in an image, for a person at a terminal.
//!
//! It goes the way of every action, as the tool `image.exec` that this process
//! has and no other: its contract is what the command line says. So nobody else
//! can go on with it, and it is never left.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use env_contracts::{
    Access, ActionRequest, CapabilityName, Code, Contract, DeclaredEffects, Id, Manifest, ManifestEntry,
    ManifestSchema, Mount, Name, Os, Problem, ResultFormat, Source, Stdin, Version,
};
use glovebox_container::ImageRecord;
use glovebox_plane::{Asking, Builtin, Card, Submission, Submitted, Watch};
use glovebox_runtime::Stop;
use glovebox_runtime::job::Frame;
use serde_json::{Value, json};

use super::{arguments, asking, files, limits, printed, run};
use crate::args::{AskMode, ContextArgs, ExecArgs};
use crate::config::Config;
use crate::places::Places;
use crate::progress::HUSH;
use crate::{backends, house, print, who};

/// What the tool is called in the log, and by rules.
const NAME: &str = "image.exec";
const VERSION: &str = "1.0.0";

pub(crate) fn run(args: &ExecArgs, config: &Config) -> Result<ExitCode, Problem> {
    // Whoever writes the command line writes the contract.
    who::person(config)?;
    let asking = match asking::mode(config, args.ask)? {
        (Asking::Leave, _) if args.ask == Some(AskMode::Leave) => {
            return Err(Problem::new(Code::Unsupported, "nobody else can go on with a command of `exec`")
                .with_help("use --ask here, wait or never; or register the image: `glovebox tool add --image`"));
        }
        (Asking::Leave, _) => (Asking::Never, false),
        mode => mode,
    };
    let places = Places::of(config);
    let image = image(args, config, &places)?;
    let manifest = manifest(args, &image)?;
    let registry = house::registry_with(&places, builtin(&manifest, &image)?);
    let service = house::service_of(config, places, registry, run::SLOTS)?;

    let mut asked = json!({ "argv": args.command });
    if args.stdin {
        asked["stdin"] = Value::String(files::read_stdin()?);
    }
    let workspace = args.workspace.as_ref().map(|_| folder(args)).transpose()?;
    let submission = Submission {
        principal: who::principal(),
        context: who::context(config, &ContextArgs::default()),
        request: ActionRequest::new(format!("{NAME}@{VERSION}").parse().map_err(usage)?, Value::Null),
        received: Some(asked.to_string().into_bytes()),
        workspace: workspace.map(|(folder, _)| folder),
        inputs: inputs(args)?,
        asking: asking.0,
        held: false,
    };
    let (said, unheard, printer) = printer(args.json);
    let answer = run::drive(&service, config, asking.1, async move |service, watch, stop| {
        let watch = Streamed { inner: watch, said, unheard, stop: stop.clone() };
        service.submit(submission, Arc::new(watch), &stop).await
    });
    // All that was said is printed before what came of it.
    match printer.join() {
        // As a program that writes for nobody ends.
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::from(SIGPIPE)),
        Ok(Err(error)) => return printed(Err(error), 0),
        Ok(Ok(())) | Err(_) => {}
    }
    let Submitted::Done(observation) = answer?.into_submitted() else {
        return Err(Problem::new(Code::ApprovalPending, "a person has to decide, and nobody can go on with it later")
            .with_help("use --ask here at a terminal, or --ask wait"));
    };
    if args.json {
        return printed(print::json(&observation), observation.outcome.exit_code());
    }
    for notice in &observation.notices {
        let _ = writeln!(anstream::stderr().lock(), "note: {}", crate::terminal::escaped_line(&notice.message));
    }
    for artifact in &observation.artifacts {
        let name = crate::terminal::escaped_line(&artifact.name);
        let _ = writeln!(anstream::stderr().lock(), "{name}: {} ({} bytes)", artifact.uri, artifact.size);
    }
    let outcome = &observation.outcome;
    match (outcome.exit, outcome.code) {
        // A command's own code is its own, whatever it means.
        (Some(code), None | Some(Code::ToolFailed)) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        (_, Some(code)) => {
            let message = outcome.message.clone().unwrap_or_default();
            let help = outcome.help.clone().unwrap_or_default();
            print::problem(&Problem { code, message, help, retryable: outcome.retryable });
            Ok(ExitCode::from(outcome.exit_code()))
        }
        (None, None) => Ok(ExitCode::SUCCESS),
    }
}

fn usage(error: String) -> Problem {
    Problem::new(Code::Usage, error)
}

/// The image that is named, as the engine has it.
fn image(args: &ExecArgs, config: &Config, places: &Places) -> Result<ImageRecord, Problem> {
    let named = args.image.as_deref().unwrap_or_else(|| config.entry("container.image").0);
    if named.is_empty() {
        return Err(Problem::new(Code::Usage, "no image is named")
            .with_help("name one with --image, or set `container.image`; `cargo xtask images build` makes two"));
    }
    places.make()?;
    let containers = backends::containers(config, places)?;
    house::tokio_runtime()?.block_on(containers.find_image(named))
}

/// The folder, and what may be done with it.
fn folder(args: &ExecArgs) -> Result<(PathBuf, Access), Problem> {
    let text = args.workspace.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let reads = text.ends_with(":read");
    let (folder, _) = run::workspace(&text)?;
    Ok((folder, if reads { Access::Read } else { Access::Write }))
}

fn inputs(args: &ExecArgs) -> Result<BTreeMap<Name, PathBuf>, Problem> {
    let mut inputs = BTreeMap::new();
    for input in &args.input {
        let (name, from) = arguments::pair("--input", input)?;
        let from = PathBuf::from(from);
        drop(files::open(&from)?);
        inputs.insert(name.parse().map_err(usage)?, from);
    }
    Ok(inputs)
}

/// The tool that the command line describes.
fn manifest(args: &ExecArgs, image: &ImageRecord) -> Result<Manifest, Problem> {
    let mount = |guest: &str, source: Source, access| -> Result<Mount, Problem> {
        // A person's own folder, as a whole.
        let hide = matches!(source, Source::Workspace).then(Vec::new);
        Ok(Mount { guest: guest.parse().map_err(usage)?, source, access, hide })
    };
    let mut filesystem = vec![mount("/outputs", Source::Outputs, Access::Write)?];
    if args.workspace.is_some() {
        filesystem.push(mount("/workspace", Source::Workspace, folder(args)?.1)?);
    }
    if !args.input.is_empty() {
        filesystem.push(mount("/inputs", Source::Input(None), Access::Read)?);
    }
    let mut contract = Contract { filesystem, limits: limits::of(&args.limits)?, ..Contract::default() };
    contract.platform.os = Some(Os::Linux);
    contract.platform.image = Some(image.image.clone());
    contract.platform.runtime = args.runtime.as_deref().map(|name| name.parse().map_err(usage)).transpose()?;
    let mut env = BTreeMap::new();
    for line in &args.env {
        let (name, value) = arguments::pair("--env", line)?;
        env.insert(name.to_owned(), value.to_owned());
    }
    let name: CapabilityName = NAME.parse().map_err(usage)?;
    let version: Version = VERSION.parse().map_err(usage)?;
    let text = |text: &str| json!({ "type": "string", "description": text });
    let manifest = Manifest {
        schema: ManifestSchema::V1,
        name,
        version,
        title: "A command in an image".to_owned(),
        description: format!("Runs a command in the image {}.", image.reference),
        non_goals: Vec::new(),
        preview: None,
        verify: None,
        repair: None,
        compensate: None,
        owner: None,
        requires: Vec::new(),
        rate: None,
        entry: ManifestEntry::Command {
            argv: vec!["{argv}".to_owned()],
            stdin: if args.stdin { Stdin::Argument } else { Stdin::None },
            result: ResultFormat::Text,
            env,
        },
        effects: DeclaredEffects::default(),
        input: json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["argv"],
            "properties": {
                "argv": { "type": "array", "minItems": 1, "items": text("A part of the command.") },
                "stdin": text("What stands on its standard input."),
            },
        }),
        output: None,
        errors: Vec::new(),
        examples: Vec::new(),
        contract,
    };
    manifest.validate().map_err(|error| Problem::of(&error))?;
    Ok(manifest)
}

/// The tool, as this process has it: for as long as it lives.
fn builtin(manifest: &Manifest, image: &ImageRecord) -> Result<Builtin, Problem> {
    let text = toml::to_string(manifest).map_err(|error| Problem::new(Code::ManifestInvalid, error.to_string()))?;
    Ok(Builtin {
        manifest: Box::leak(text.into_boxed_str()),
        component: Box::leak(image.to_bytes().into_boxed_slice()),
    })
}

/// What a command said, as it says it. A terminal that takes nothing must not
/// hold up who reads the container.
type Said = mpsc::Sender<(bool, Vec<u8>)>;

/// The exit code of a program whose reader is gone.
const SIGPIPE: u8 = 141;

/// Prints what is said, to the stream that it was said on, as long as that takes
/// it; then says that nobody hears it.
fn printer(silent: bool) -> (Said, Arc<AtomicBool>, std::thread::JoinHandle<std::io::Result<()>>) {
    let (said, heard) = mpsc::channel::<(bool, Vec<u8>)>();
    let unheard = Arc::new(AtomicBool::new(false));
    let tells = unheard.clone();
    let printer = std::thread::spawn(move || {
        for (out, bytes) in heard.iter().filter(|_| !silent) {
            let printed = if out { print::bytes(&bytes) } else { print::error_bytes(&bytes) };
            if printed.is_err() {
                tells.store(true, Ordering::Relaxed);
                return printed;
            }
        }
        Ok(())
    });
    (said, unheard, printer)
}

/// Watches an action, and passes on what its tool says.
struct Streamed {
    inner: Arc<dyn Watch>,
    said: Said,
    /// Whether nobody takes it any more.
    unheard: Arc<AtomicBool>,
    stop: Stop,
}

impl Watch for Streamed {
    fn begun(&self, action: &Id) {
        self.inner.begun(action);
    }

    fn phase(&self, line: &str) {
        self.inner.phase(line);
    }

    fn frame(&self, frame: &Frame<'_>) {
        if self.unheard.load(Ordering::Relaxed) {
            self.stop.request();
        }
        // The tool has the terminal now.
        self.inner.phase(HUSH);
        match frame {
            Frame::Stdout(bytes) => drop(self.said.send((true, bytes.to_vec()))),
            Frame::Stderr(bytes) => drop(self.said.send((false, bytes.to_vec()))),
            Frame::Log { .. } | Frame::Progress { .. } => {}
        }
        self.inner.frame(frame);
    }

    fn asked(&self, card: &Card) {
        self.inner.asked(card);
    }

    fn retired(&self, approval: &Id) {
        self.inner.retired(approval);
    }
}
