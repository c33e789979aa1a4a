//! Names of capabilities for what has names of its own.

use std::path::Path;

use env_contracts::{CapabilityName, Digest, MAX_NAME};
use glovebox_wasm::typed::ExportedFunction;

/// What a name without a usable character becomes.
const NAMELESS: &str = "command";

/// Hex digits that tell names apart which would be the same otherwise.
const HASH: usize = 12;

/// The name of a file as the name of a capability.
pub(super) fn of_file(path: &Path) -> CapabilityName {
    named(&slug(&stem(path)))
}

/// The names of all functions of a component, in their order:
/// `interface.function`, or `file.function` for those of no interface. What
/// is too long, or is the same for several, ends in a hash of its full name,
/// so that a name depends on nothing but the component and the file's name.
pub(super) fn of_functions(path: &Path, functions: &[ExportedFunction]) -> Vec<CapabilityName> {
    let plain: Vec<String> = functions.iter().map(|function| plain(path, function)).collect();
    let several = |name: &String| plain.iter().filter(|other| *other == name).count() > 1;
    let whole = functions.iter().zip(&plain);
    whole
        .map(|(function, name)| {
            if name.len() <= MAX_NAME && !several(name) {
                return named(name);
            }
            let full = format!("{}#{}", function.interface.as_deref().unwrap_or_default(), function.function);
            let digest = Digest::of(full.as_bytes());
            let mut cut = name.clone();
            cut.truncate(MAX_NAME - HASH - 1);
            named(&format!("{}-{}", cut.trim_end_matches(['.', '-']), &digest.as_str()[..HASH]))
        })
        .collect()
}

fn plain(path: &Path, function: &ExportedFunction) -> String {
    let outer = match &function.interface {
        // `example:calc/ops@1.0.0` is `ops`.
        Some(interface) => {
            let unversioned = interface.split('@').next().unwrap_or_default();
            slug(unversioned.rsplit(['/', ':']).next().unwrap_or_default())
        }
        None => slug(&stem(path)),
    };
    let parts = [outer, slug(&function.function)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The words of a name, perhaps none.
fn slug(text: &str) -> String {
    CapabilityName::slug(text).unwrap_or_default()
}

fn named(slug: &str) -> CapabilityName {
    let cut = slug[..slug.len().min(MAX_NAME)].trim_end_matches(['.', '-']);
    let nameless = || NAMELESS.parse().unwrap_or_else(|error| unreachable!("it is a word: {error}"));
    cut.parse().unwrap_or_else(|_: String| nameless())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_file_name_makes_a_name() {
        for (file, name) in [
            ("jq.wasm", "jq"),
            ("My Tool_v2.wasm", "my-tool-v2"),
            ("-..x..-.wasm", "x"),
            ("fs.grep.wasm", "fs.grep"),
            ("日本.wasm", NAMELESS),
            ("", NAMELESS),
        ] {
            assert_eq!(of_file(Path::new(file)).as_str(), name, "{file}");
        }
        let long = format!("{}.wasm", "ab-".repeat(100));
        assert!(of_file(Path::new(&long)).as_str().len() <= MAX_NAME);
    }

    fn function(interface: Option<&str>, function: &str) -> ExportedFunction {
        let interface = interface.map(str::to_owned);
        ExportedFunction { interface, function: function.to_owned(), docs: None, signature: Err(String::new()) }
    }

    #[test]
    fn functions_are_named_after_where_they_stand() {
        let long = "a-".repeat(100) + "a";
        let functions = [
            function(Some("example:calc/ops@1.0.0"), "add"),
            function(Some("ops2"), "add"),
            function(None, "get-URL"),
            function(Some("a:x/same@1.0.0"), "f"),
            function(Some("b:x/same"), "f"),
            function(Some("a:x/same@2.0.0"), "f"),
            function(None, &long),
            function(None, &format!("{long}-b")),
            function(Some("日本"), "ä"),
        ];
        let names = of_functions(Path::new("My Calc.wasm"), &functions);
        let names: Vec<&str> = names.iter().map(CapabilityName::as_str).collect();
        assert_eq!(names[..3], ["ops.add", "ops2.add", "my-calc.get-url"]);
        assert!(names[3..6].iter().all(|name| name.starts_with("same.f-")), "{names:?}");
        assert!(names[6..8].iter().all(|name| name.starts_with("my-calc.a-a-") && name.len() <= MAX_NAME));
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        // A name does not depend on what is looked at first.
        let mut backwards = functions.to_vec();
        backwards.reverse();
        let again = of_functions(Path::new("My Calc.wasm"), &backwards);
        assert!(again.iter().rev().map(CapabilityName::as_str).eq(names.iter().copied()));
    }
}
