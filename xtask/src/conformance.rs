//! `cargo xtask conformance`: doors against what is written down of them, by
//! tools of others.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::install::{MCP_CONFORMANCE, OPENAPI_SPEC_VALIDATOR, SCHEMATHESIS};
use crate::process;
use crate::root::Root;

/// The doors that are tried.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Door {
    /// The committed OpenAPI document is valid, and a running server answers as it says.
    Http,
    /// The MCP door passes the suite of its protocol, but for what a file
    /// explains.
    Mcp,
}

/// How requests are made up: seed, number, checks, what is left out.
const SETTINGS: &str = "xtask/schemathesis.toml";

/// The revision of the Model Context Protocol that is held to.
const REVISION: &str = "2026-07-28";

/// What of the suite does not pass, each with its reason.
const BASELINE: &str = "harness/server/benches/mcp_fixture/baseline.yaml";

/// Where the settings look for the token of whoever asks.
const TOKEN: &str = "GLOVEBOX_TOKEN";

/// Who asks.
const ROLES: [&str; 3] = ["operator", "approver", "agent"];

/// Tries a door.
pub(crate) fn run(root: &Root, door: Door) -> Result<()> {
    match door {
        Door::Http => http(root),
        Door::Mcp => mcp(root),
    }
}

fn http(root: &Root) -> Result<()> {
    let Some(validator) = OPENAPI_SPEC_VALIDATOR.path(root)? else { return Ok(()) };
    process::run(root.command(validator).arg(root.join("docs/openapi.json")))?;
    let Some(schemathesis) = SCHEMATHESIS.path(root)? else { return Ok(()) };
    process::run(root.cargo().args(["build", "--release", "--quiet", "--workspace", "--bins"]))?;
    let house = House::new(root)?;
    let tokens = ROLES.iter().map(|role| Ok((*role, house.token(role)?))).collect::<Result<Vec<_>>>()?;
    let mut server = Server::start(&house)?;
    let mut failed = Vec::new();
    for (role, token) in &tokens {
        println!("==> as {role}");
        let mut command = root.command(&schemathesis);
        command.arg("--config-file").arg(root.join(SETTINGS)).arg("run").env(TOKEN, token);
        command.arg(format!("{}/openapi.json", server.url));
        if process::run(&mut command).is_err() {
            failed.push(*role);
        }
    }
    let said = server.end()?;
    if said.contains("panicked") {
        bail!("the server panicked:\n{said}");
    }
    if !failed.is_empty() {
        bail!("the server does not answer as its document says, asked by: {}", failed.join(", "));
    }
    Ok(())
}

fn mcp(root: &Root) -> Result<()> {
    let Some((node, script)) = MCP_CONFORMANCE.path(root)? else { return Ok(()) };
    let mut fixture = root.cargo();
    fixture.args(["bench", "--quiet", "--workspace", "--bench", "mcp_fixture"]);
    let mut fixture = fixture.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("can't start cargo")?;
    let mut line = String::new();
    let mut said = BufReader::new(fixture.stdout.take().context("it has no standard output")?);
    said.read_line(&mut line)?;
    let url = line.trim();
    if !url.starts_with("http://") {
        bail!("the fixture says no address: {line}");
    }
    let mut suite = root.command(node);
    suite.arg(script).args(["server", "--requirements", REVISION, "--url", url, "--expected-failures"]);
    let passed =
        process::run(suite.arg(root.join(BASELINE)).arg("--output-dir").arg(root.target().join("conformance")));
    // It ends with its input.
    drop(fixture.stdin.take());
    let ended = fixture.wait()?;
    passed.context("the MCP door does not keep to its protocol")?;
    if !ended.success() {
        bail!("the fixture failed");
    }
    Ok(())
}

/// Folders of a person who does not exist, and the program in them.
struct House {
    dir: tempfile::TempDir,
    program: PathBuf,
}

impl House {
    fn new(root: &Root) -> Result<Self> {
        let dir = tempfile::tempdir().context("can't make a temporary folder")?;
        fs_err::create_dir(dir.path().join("docs"))?;
        fs_err::write(dir.path().join("docs/a.txt"), "one two three\n")?;
        Ok(Self { dir, program: root.target().join("release/glovebox") })
    }

    fn glovebox(&self) -> Command {
        let mut command = process::command(&self.program);
        let home: &Path = self.dir.path();
        command.current_dir(home).env_clear().env("HOME", home).env("GLOVEBOX_STATE", home.join("state"));
        command
    }

    fn token(&self, role: &str) -> Result<String> {
        let mut command = self.glovebox();
        command.args(["token", "add", role, "--role", role]).stderr(Stdio::null());
        if role == "agent" {
            command.args(["--agent", "coder"]);
        }
        Ok(process::stdout(&mut command)?.trim().to_owned())
    }
}

/// A server that runs. It goes with its value.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(house: &House) -> Result<Self> {
        let mut command = house.glovebox();
        command.args(["serve", "--listen", "127.0.0.1:0", "--workspace", "docs=docs"]);
        let mut child = command.stderr(Stdio::piped()).spawn().context("can't start `glovebox serve`")?;
        let mut said = BufReader::new(child.stderr.take().context("it has no standard error")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        child.stderr = Some(said.into_inner());
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned);
        let mut server = Self { child, url: String::new() };
        server.url = url.with_context(|| format!("the server says no address: {line}"))?;
        Ok(server)
    }

    /// Ends it, and gives what it said meanwhile.
    fn end(&mut self) -> Result<String> {
        self.child.kill()?;
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut said)?;
        }
        self.child.wait()?;
        Ok(said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already, where it was ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
