//! What is shipped decides as its table of risks says, and fits every tool that
//! is shipped.

use env_contracts::Manifest;
use glovebox_policy::{check, run_tests};

/// The manifests of the tools that come with Glovebox.
fn tools() -> Vec<Manifest> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let entries = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join("tool.toml"));
    entries
        .filter(|path| path.exists())
        .map(|path| Manifest::from_toml(&fs_err::read_to_string(path).unwrap()).unwrap())
        .collect()
}

#[test]
fn every_row_of_the_table_of_risks_holds() {
    let report = run_tests(None, []).unwrap();
    assert_eq!(report.failed, []);
    assert!(report.passed >= 25, "{}", report.passed);
}

#[test]
fn the_shipped_policy_fits_the_shipped_tools_and_is_monotonic() {
    let tools = tools();
    assert!(tools.len() >= 9);
    let report = check(None, &tools).unwrap();
    assert_eq!((report.problems, report.warnings), (vec![], vec![]));
}
