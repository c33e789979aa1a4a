//! wasmtime is compiled once.
//!
//! Cargo takes the union of the features that the selected crates ask for.
//! `cargo run --release` selects one crate, `cargo test --workspace` all with
//! their test dependencies; where that gives a crate under wasmtime another
//! feature, everything from there up to wasmtime is compiled a second time,
//! which takes minutes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::Faults;
use crate::process;
use crate::root::Root;

/// The crate that is expensive to compile.
const EXPENSIVE: &str = "wasmtime";

/// Compares the two selections.
pub(super) fn faults(root: &Root) -> Result<Faults> {
    let tree = |selection: &[&str]| {
        process::stdout(
            root.cargo()
                .args(["tree", "--quiet", "--prefix", "depth", "--charset", "ascii"])
                .args(["--format", " {p} {f}"])
                .args(selection),
        )
    };
    let run = tree(&["--package", "glovebox", "--edges", "normal,build"])?;
    let test = tree(&["--workspace", "--edges", "normal,build,dev"])?;
    Ok(compare(&below(&run, EXPENSIVE), &below(&test, EXPENSIVE)))
}

/// Packages with the feature sets they are built with: one for the target and
/// perhaps another one for build scripts and macros.
type Builds<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn compare(run: &Builds, test: &Builds) -> Faults {
    let shown = |builds: &BTreeSet<&str>| {
        let sets: Vec<_> = builds.iter().map(|features| format!("[{features}]")).collect();
        sets.join(" and ")
    };
    let mut faults = Vec::new();
    for (package, features) in run {
        let Some(in_tests) = test.get(package).filter(|found| *found != features) else {
            continue;
        };
        let name = package.split(' ').next().unwrap_or(package);
        faults.push(format!(
            "{package}: built with features {} under `cargo run` and with {} under `cargo test \
             --workspace`, so {EXPENSIVE} is compiled twice: drop the feature where it is added \
             (`cargo tree --workspace --edges features --invert {name}` shows where), or ask for \
             it in runtime/wasm too",
            shown(features),
            shown(in_tests)
        ));
    }
    faults
}

/// Everything that the named package depends on, and itself, from the output of
/// `cargo tree --prefix depth`. A package that was shown before ends in `(*)`
/// and is expanded there.
fn below<'a>(tree: &'a str, name: &str) -> Builds<'a> {
    let mut edges: BTreeMap<(&str, &str), BTreeSet<(&str, &str)>> = BTreeMap::new();
    let mut path: Vec<(&str, &str)> = Vec::new();
    for (depth, node) in tree.lines().filter_map(parse) {
        path.truncate(depth);
        if let Some(parent) = path.last() {
            edges.entry(*parent).or_default().insert(node);
        }
        path.push(node);
    }
    let is_named = |node: &&(&str, &str)| node.0.split(' ').next() == Some(name);
    let mut open: Vec<_> = edges.keys().filter(is_named).copied().collect();
    let mut seen = BTreeSet::new();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(edges.get(&node).into_iter().flatten());
        }
    }
    let mut builds = Builds::new();
    for (package, features) in seen {
        builds.entry(package).or_default().insert(features);
    }
    builds
}

/// Depth, package with version, and features of one line.
fn parse(line: &str) -> Option<(usize, (&str, &str))> {
    let (depth, rest) = line.split_once(' ')?;
    let rest = rest.strip_suffix(" (*)").unwrap_or(rest);
    let version = rest.find(" v")? + " v".len();
    let end = rest[version..].find(' ').map_or(rest.len(), |space| version + space);
    let features = rest[end..].trim().trim_start_matches("(proc-macro)").trim();
    Some((depth.parse().ok()?, (&rest[..end], features)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
0 glovebox v0.1.0 (/house/harness/cli) 
1 clap v4.6.9 std
1 wasmtime v48.0.8 std
2 libc v0.2.1 std
2 serde v1.0.0 std
3 serde_derive v1.0.0 (proc-macro) default
1 libc v0.2.1 std (*)
";

    #[test]
    fn only_what_wasmtime_needs_is_compared() {
        let builds = below(RUN, "wasmtime");
        let names: Vec<_> = builds.keys().copied().collect();
        assert_eq!(names, ["libc v0.2.1", "serde v1.0.0", "serde_derive v1.0.0", "wasmtime v48.0.8"]);
        assert_eq!(builds["serde_derive v1.0.0"], BTreeSet::from(["default"]));
    }

    #[test]
    fn a_feature_that_tests_add_is_found() {
        let check = |test: &str| compare(&below(RUN, "wasmtime"), &below(test, "wasmtime"));
        assert_eq!(check(RUN), Vec::<String>::new());
        assert_eq!(check(&RUN.replace("clap v4.6.9 std", "clap v4.6.9 std,env")).len(), 0);
        let found = check(&RUN.replace("libc v0.2.1 std", "libc v0.2.1 extra_traits,std"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("libc") && found[0].contains("extra_traits"));
        // The build for macros has `std` either way; the one for the target changed.
        let run = RUN.to_owned() + "1 wasmtime v48.0.8 std\n2 libc v0.2.1 \n";
        let found = compare(&below(&run, "wasmtime"), &below(RUN, "wasmtime"));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
