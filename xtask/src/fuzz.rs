//! `cargo xtask fuzz`: one target of tests/fuzz for a given time.

use anyhow::{Context, Result, bail};

use crate::install::CARGO_FUZZ;
use crate::process;
use crate::root::Root;

/// Where the fuzz crate lives: outside the workspace, because libFuzzer needs
/// compiler flags of its own.
const FOLDER: &str = "tests/fuzz";

/// Fuzzes until the time is over or an input fails.
pub(crate) fn run(root: &Root, name: &str, seconds: u32) -> Result<()> {
    let targets = targets(root)?;
    if !targets.iter().any(|target| target == name) {
        bail!("no fuzz target `{name}`; there are: {}", targets.join(", "));
    }
    let helper = CARGO_FUZZ.path(root)?;
    let cache = root.cache()?.join("fuzz");
    // What fuzzing finds stays outside the checkout; committed seeds are only read.
    let corpus = cache.join("corpus").join(name);
    let failures = cache.join("failures").join(name);
    for folder in [&corpus, &failures] {
        fs_err::create_dir_all(folder)?;
    }
    let seeds = root.join(FOLDER).join("corpus").join(name);

    let mut fuzz = root.command(helper);
    fuzz.args(["fuzz", "run", "--fuzz-dir", FOLDER])
        // The targets hold no unsafe code: speed finds more here than the address sanitizer.
        .args(["--sanitizer", "none", "--target-dir"])
        .arg(cache.join("target"))
        .arg(name)
        .arg(&corpus)
        .args(seeds.is_dir().then_some(&seeds))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", failures.display()))
        // A dictionary only suggests; that of JSON hurts no target.
        .arg(format!("-dict={FOLDER}/json.dict"))
        // Coverage flags are unstable; this lets the pinned compiler take them.
        .env("RUSTC_BOOTSTRAP", "1");
    process::run(&mut fuzz)
        .with_context(|| format!("fuzzing `{name}` stopped; failing inputs are in {}", failures.display()))
}

/// The targets, from their sources.
fn targets(root: &Root) -> Result<Vec<String>> {
    let folder = root.join(FOLDER).join("fuzz_targets");
    let mut targets = Vec::new();
    for entry in fs_err::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(stem) = path.file_stem()
        {
            targets.push(stem.to_string_lossy().into_owned());
        }
    }
    targets.sort();
    Ok(targets)
}
