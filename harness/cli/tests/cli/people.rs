//! What tests of decisions share: an agent that asks, and a person's answers.

use serde_json::Value;

use crate::support::{House, Ran, talker};

/// The passphrase of `mira`.
pub(crate) const PASSPHRASE: &str = "four words that rhyme with nothing";

/// The stable ids of what waits.
pub(crate) struct Asked {
    pub(crate) action: String,
    pub(crate) approval: String,
}

/// An agent wants to write a file.
pub(crate) fn write(path: &str, more: &[&str]) -> Vec<String> {
    let path = format!("path={path}");
    let own =
        ["run", "fs.write", "--arg", "mode=create", "--arg", "text=x", "--workspace", ".:write", "--agent", "coder"];
    [&own[..], &["--json", "--arg", &path], more].concat().into_iter().map(str::to_owned).collect()
}

pub(crate) fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

impl House {
    /// A house whose operator lets tools write.
    pub(crate) fn that_may_write() -> Self {
        let house = Self::new();
        house.may_write();
        house
    }

    /// An agent's attempt to write a file.
    pub(crate) fn writes(&self, path: &str, more: &[&str]) -> Ran {
        self.run(&strs(&write(path, more)))
    }

    /// The same, which is asked.
    pub(crate) fn asks_to_write(&self, path: &str) -> Asked {
        Asked::of(&self.writes(path, &[]))
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.workspace().join(path).exists()
    }

    /// `coder` comes back for an action.
    pub(crate) fn resumes(&self, action: &str) -> Ran {
        self.run(&["action", "resume", action, "--agent", "coder", "--json"])
    }

    /// Commands that print JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).ok().json()
    }

    /// What waits for a person.
    pub(crate) fn pending(&self) -> Vec<Value> {
        self.json(&["approvals", "list"])["approvals"].as_array().unwrap().clone()
    }

    /// Registers `mira`.
    pub(crate) fn has_an_approver(&self) {
        let input = format!("{PASSPHRASE}\n").into_bytes();
        self.run_with(&["approver", "add", "mira", "--passphrase-stdin"], input).ok();
    }

    /// `mira` approves with this passphrase.
    pub(crate) fn mira_approves(&self, approval: &str, passphrase: &str) -> Ran {
        let args = ["approvals", "approve", approval, "--as", "mira", "--passphrase-stdin", "--json"];
        self.run_with(&args, format!("{passphrase}\n").into_bytes())
    }

    /// A tool whose manifest says that it deletes.
    pub(crate) fn has_a_tool_that_deletes(&self) {
        let file = self.file("deleter.wasm", talker(1));
        let manifest = self.file(
            "deleter.toml",
            "schema = \"glovebox/tool/v1\"\nname = \"x.delete\"\nversion = \"1.0.0\"\ntitle = \"Delete\"\n\
             description = \"Deletes.\"\n[entry]\nkind = \"command\"\nresult = \"text\"\n\
             [effects]\nside_effects = \"certain\"\nclasses = [\"delete\"]\n\
             [input]\ntype = \"object\"\n[contract]\nschema = \"glovebox/contract/v1\"\n",
        );
        self.run(&["tool", "add", &file, "--manifest", &manifest]).ok();
    }

    /// `coder` wants what can't be undone.
    pub(crate) fn asks_to_delete(&self) -> Asked {
        Asked::of(&self.run(&["run", "x.delete", "--agent", "coder", "--json"]))
    }
}

impl Asked {
    pub(crate) fn of(ran: &Ran) -> Self {
        assert_eq!(ran.code, 38, "{}{}", ran.stdout, ran.stderr);
        let waiting = &ran.json()["waiting"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self { action: text(&waiting["action"]["id"]), approval: text(&waiting["approval"]["approval"]) }
    }
}

/// How an action ended: exit code, error code, message.
pub(crate) fn ended(ran: &Ran) -> (i32, String, String) {
    let outcome = &ran.json()["outcome"];
    let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
    (ran.code, text("code"), text("message"))
}
