//! The change system of the story, its tools, and who may decide.

use std::path::Path;

use env_contracts::{Assurance, Digest, Name, Problem};
use glovebox_identity::{Approver, Approvers, Signature, Statement};
use glovebox_plane::People;
use glovebox_runtime::Bound;
use glovebox_runtime::job::End;
use serde_json::{Value, json};

use crate::fake::returned;
use crate::followups::played;
use crate::house::{Ground, Setup, name};

/// The file that says what is live.
pub(super) const DEPLOYED: &str = "deployed";

/// The drafts of the change system.
const DRAFTS: &str = "drafts";

const PASSPHRASE: &str = "four words that rhyme";

const READ: &str = r#"
name = "deps.read"
entry = { kind = "tool" }
[input]
type = "object"
properties = { path = { type = "string", x-glovebox-path = "/workspace" } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "read" }]
"#;

const PATCH: &str = r#"
name = "patch.write"
entry = { kind = "tool" }
[input]
type = "object"
properties = { path = { type = "string" } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "overlay" }]
"#;

const CREATE: &str = r#"
name = "change.create"
entry = { kind = "tool" }
[input]
type = "object"
properties = { title = { type = "string" }, key = { type = "string", x-glovebox-key = true } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "write" }]
"#;

const PREVIEW: &str = r#"
name = "change.preview"
entry = { kind = "tool" }
[input]
type = "object"
properties = { change = { type = "string" } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "read" }]
"#;

const VERIFY: &str = r#"
name = "change.verify"
entry = { kind = "tool" }
[input]
type = "object"
properties = { change = { type = "string" }, result = { type = "object" } }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "read" }]
"#;

const DEPLOY: &str = r#"
name = "production.deploy"
preview = "change.preview@1.0.0"
verify = "change.verify@1.0.0"
entry = { kind = "tool" }
effects = { classes = ["production"] }
[input]
type = "object"
[input.properties]
change = { type = "string" }
script = { type = "string", x-glovebox-path = "/workspace" }
version = { type = "string", x-glovebox-version = true }
key = { type = "string", x-glovebox-key = true }
[contract]
schema = "glovebox/contract/v1"
filesystem = [{ guest = "/workspace", source = "workspace", access = "write" }]
"#;

/// The shipped rules, and one that lets drafts be made.
const RULES: &str = concat!(
    include_str!("../../../../policy/default/default.cedar"),
    "\n@id(\"drafts\")\npermit (principal, action == Action::\"change.create@1.0.0\", resource);\n"
);

pub(super) fn setup(ground: &Ground) -> Setup {
    let mut setup = Setup::of(&[READ, PATCH, CREATE, PREVIEW, VERIFY, DEPLOY]).rules(RULES);
    setup.overlay = true;
    setup.people = Some(std::sync::Arc::new(Registered(approvers(ground))));
    setup
}

fn approvers(ground: &Ground) -> Approvers {
    Approvers::load(&ground.path("approvers.toml")).unwrap()
}

/// Registers the person who decides about releases.
pub(super) fn register(ground: &Ground) {
    approvers(ground).add(&name("mira"), PASSPHRASE, 1).unwrap();
}

pub(super) fn mira(ground: &Ground) -> Approver {
    approvers(ground).unlock(&name("mira"), PASSPHRASE).unwrap()
}

/// Those in the list of this ground, whichever process asks.
struct Registered(Approvers);

impl People for Registered {
    fn known(&self) -> Result<Vec<(Name, Assurance)>, Problem> {
        Ok(vec![(name("mira"), Assurance::ConsoleLogin)])
    }

    fn verify(&self, name: &Name, _: Assurance, statement: &Statement, signature: &Signature) -> Result<(), Problem> {
        self.0.verify(name, statement, signature).map_err(|error| Problem::of(&error))
    }
}

/// What the tools do: the change system is two files.
pub(super) fn system(folder: &Path, bound: &Bound) -> End {
    let arguments: Value = serde_json::from_str(&bound.plan.arguments).unwrap();
    let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
    let read = |file: &str| fs_err::read_to_string(folder.join(file)).unwrap_or_default();
    let version = || format!("draft-{}", read(DRAFTS).lines().count());
    match bound.plan.capability.name.as_str() {
        "deps.read" => returned(&json!({ "deps": read("workspace/deps.txt") }).to_string()),
        "patch.write" => returned(r#"{"patched":true}"#),
        "change.create" => {
            // By its key, so that the same draft is made once.
            let line = format!("{} {}\n", text("key"), text("title"));
            let drafts = read(DRAFTS);
            if !drafts.contains(&line) {
                fs_err::write(folder.join(DRAFTS), drafts + &line).unwrap();
            }
            returned(&json!({ "change": format!("CR-{}", read(DRAFTS).lines().count()) }).to_string())
        }
        "change.preview" => {
            returned(&json!({ "version": version(), "changes": read(DRAFTS).lines().count() }).to_string())
        }
        "production.deploy" if text("version") != version() => played("!moved"),
        "production.deploy" => {
            let script = read(&format!("workspace/{}", text("script")));
            fs_err::write(folder.join(DEPLOYED), format!("{} by {script}", text("change"))).unwrap();
            returned(&json!({ "sha256": Digest::of(script.as_bytes()) }).to_string())
        }
        "change.verify" => {
            let holds = read(DEPLOYED).starts_with(&text("change"));
            returned(&json!({ "holds": holds, "why": "it is what is live" }).to_string())
        }
        other => panic!("`{other}` is no tool of this story"),
    }
}
