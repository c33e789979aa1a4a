//! What is shipped decides as its table of risks says, and fits every tool that
//! is shipped.

use env_contracts::Manifest;
use glovebox_policy::{check, run_tests};

/// The manifests of all that comes with Glovebox: tools, and what agents do with
/// their own.
fn tools() -> Vec<Manifest> {
    let house = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let inside = |folder: &str| fs_err::read_dir(house.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let natives = inside("harness/plane/src/registry/natives");
    let paths = inside("tools").map(|folder| folder.join("tool.toml")).filter(|path| path.exists()).chain(natives);
    paths.map(|path| Manifest::from_toml(&fs_err::read_to_string(path).unwrap()).unwrap()).collect()
}

#[test]
fn every_row_of_the_table_of_risks_holds() {
    let report = run_tests(None, &tools()).unwrap();
    assert_eq!(report.failed, []);
    assert!(report.passed >= 25, "{}", report.passed);
}

#[test]
fn the_shipped_policy_fits_the_shipped_tools_and_is_monotonic() {
    let tools = tools();
    assert!(tools.len() >= 14);
    let report = check(None, &tools).unwrap();
    assert_eq!((report.problems, report.warnings), (vec![], vec![]));
}
