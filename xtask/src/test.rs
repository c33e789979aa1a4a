//! `cargo xtask test`: all tests in the one build profile, with what they need
//! of the system found, installed or named as missing.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::root::Root;
use crate::{engine, images, process};

/// Names of the needs that are missing, joined by commas. A test helper that
/// meets its need here prints one line and skips.
const SKIP: &str = "GLOVEBOX_TEST_SKIP";

/// Something of the system that some tests can't do without.
struct Need {
    /// How [`SKIP`] names it.
    name: &'static str,
    /// A command that succeeds where the need is met.
    probe: (&'static str, &'static [&'static str]),
    /// The Debian package that brings it.
    package: &'static str,
    /// What is not tested without it.
    skipped: &'static str,
    /// What to look at where the program is there and the probe still fails.
    otherwise: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        name: "private-mounts",
        probe: ("unshare", &["--user", "--map-root-user", "--mount", "true"]),
        package: "util-linux",
        skipped: "tests with a full disk and with a read-only state folder",
        otherwise: "this kernel or container forbids user namespaces \
                    (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, AppArmor)",
    },
    Need {
        name: "programs",
        probe: ("python3", &["-m", "pip", "--version"]),
        package: "python3-pip",
        skipped: "the test that downloads CPython and QuickJS for WASI and runs them",
        otherwise: "this python3 has no pip: install it (Debian: python3-pip)",
    },
    Need {
        name: "chromium",
        probe: ("chromedriver", &["--version"]),
        // It brings Chromium with it.
        package: "chromium-driver",
        skipped: "the tests of the inbox in a real browser",
        otherwise: "this chromedriver can't tell its version: install it anew (Debian: chromium-driver)",
    },
    Need {
        name: "busybox",
        probe: ("busybox", &["true"]),
        package: "busybox-static",
        skipped: "the tests of containers: their image is a static busybox",
        otherwise: "this busybox does not run",
    },
    Need {
        name: DOCKER,
        probe: ("docker", &["version", "--format", "{{.Server.APIVersion}}"]),
        package: "docker.io",
        skipped: "the tests of containers",
        otherwise: "the engine does not answer: start it, or let `--provision` start one (as root)",
    },
    Need {
        name: "images",
        probe: ("docker", &["image", "inspect", "glovebox/minimal:1", "glovebox/python:1"]),
        package: "docker.io",
        skipped: "the tests of shell.run, python.run and `glovebox exec`",
        otherwise: "the engine has not our images: `cargo xtask images build` makes them on Debian",
    },
    Need {
        name: RUNSC,
        probe: ("sh", &["-c", "docker info --format '{{json .Runtimes}}' | grep -q '\"runsc\"'"]),
        package: "runsc",
        skipped: "why containers of runsc are refused: only that an engine without it refuses them is tried",
        otherwise: "the engine has no runtime `runsc`: add it to the engine's configuration (`runtimes` of \
                    /etc/docker/daemon.json)",
    },
    Need {
        name: "iptables",
        probe: ("iptables", &["--version"]),
        package: "iptables",
        skipped: "nothing of itself: Debian's Docker does not start without it",
        otherwise: "this iptables does not run",
    },
];

/// The container engine, which has to run as well.
const DOCKER: &str = "docker";
/// Another runtime of it.
const RUNSC: &str = "runsc";
/// Its daemon, which Debian's client alone does not bring.
const DAEMON: &str = "dockerd";

/// Runs all tests and doctests; `args` go to the test programs.
pub(crate) fn run(root: &Root, provision: bool, args: &[OsString]) -> Result<()> {
    let mut missing = missing(NEEDS, &met);
    // Ends with the tests.
    let mut _daemon = None;
    if provision {
        install(root, &missing)?;
        if !engine::answers() {
            _daemon = engine::start(root)?;
        }
        if engine::answers()
            && let Err(error) = images::build(root)
        {
            println!("our images can't be made here: {error:#}");
        }
        missing.retain(|need| !met(need));
    }
    for need in &missing {
        println!("{}", skip_line(need, &on_path));
    }

    // Every failure in one run, not only those of the first crate or workspace.
    let test = |mut cargo: Command| {
        cargo.args(["--workspace", "--no-fail-fast"]).env(SKIP, names(&missing));
        if !args.is_empty() {
            cargo.arg("--").args(args);
        }
        process::run(&mut cargo)
    };
    // The tools' release profile is for size and slow to build: no --release there.
    let tools = test(root.cargo_tools("test"));
    let mut cargo = root.cargo();
    cargo.args(["test", "--release"]);
    test(cargo).and(tools)
}

/// The needs for which `met` says no.
fn missing<'a>(needs: &'a [Need], met: &dyn Fn(&Need) -> bool) -> Vec<&'a Need> {
    needs.iter().filter(|need| !met(need)).collect()
}

fn met(need: &Need) -> bool {
    let (program, args) = need.probe;
    process::succeeds(process::command(program).args(args))
}

fn names(needs: &[&Need]) -> String {
    needs.iter().map(|need| need.name).collect::<Vec<_>>().join(",")
}

fn skip_line(need: &Need, on_path: &dyn Fn(&str) -> bool) -> String {
    let remedy = if on_path(need.probe.0) {
        need.otherwise.to_owned()
    } else {
        format!("install the Debian package {} (`cargo xtask test --provision` does)", need.package)
    };
    format!("skipped: {}: {remedy}", need.skipped)
}

/// Installs the packages of the given needs whose program is not there.
fn install(root: &Root, needs: &[&Need]) -> Result<()> {
    let there = |need: &Need| {
        on_path(match need.name {
            DOCKER => DAEMON,
            RUNSC => RUNSC,
            _ => need.probe.0,
        })
    };
    let absent = needs.iter().filter(|need| !there(need));
    let packages: Vec<&str> = absent.map(|need| need.package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if !on_path("apt-get") {
        bail!(
            "--provision installs Debian packages and there is no apt-get here: install what \
             brings `{list}` on this system, then run `cargo xtask test`"
        );
    }
    if process::stdout(root.command("id").arg("-u"))?.trim() != "0" {
        bail!(
            "--provision must be root to install {list}: run `apt-get install {list}` as root, \
             then `cargo xtask test`"
        );
    }
    let apt = |args: &[&str]| process::run(root.command("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"));
    apt(&["update", "-q"])?;
    let install = ["install", "-q", "-y", "--no-install-recommends"];
    apt(&[&install, &packages[..]].concat()).with_context(|| format!("can't install {list}"))
}

fn on_path(program: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: [Need; 2] = [
        Need {
            name: "one",
            probe: ("true", &[]),
            package: "coreutils",
            skipped: "tests of one",
            otherwise: "look at one",
        },
        Need {
            name: "two",
            probe: ("/nonexistent/program", &[]),
            package: "two-tools",
            skipped: "tests of two",
            otherwise: "look at two",
        },
    ];

    #[test]
    fn what_is_missing_is_named_with_its_way_out() {
        let missing = missing(&TWO, &met);
        assert_eq!(names(&missing), "two");

        let absent = skip_line(missing[0], &|_| false);
        assert!(absent.contains("tests of two") && absent.contains("two-tools"), "{absent}");
        let useless = skip_line(missing[0], &|_| true);
        assert!(useless.contains("look at two") && !useless.contains("two-tools"), "{useless}");
    }

    #[test]
    fn names_are_joined_by_commas() {
        assert_eq!(names(&missing(&TWO, &|_| false)), "one,two");
        assert_eq!(names(&missing(&TWO, &|_| true)), "");
    }
}
