//! The tools that come with the program.

use glovebox_plane::Builtin;

/// Declares a built-in tool from its folder and its built component.
macro_rules! builtin {
    ($folder:literal, $component:literal) => {
        Builtin {
            manifest: include_str!(concat!("../../../tools/", $folder, "/tool.toml")),
            component: include_bytes!(concat!("../../../tools/dist/", $component, ".wasm")),
        }
    };
}

/// Every built-in tool.
pub(crate) fn all() -> Vec<Builtin> {
    vec![
        builtin!("archive-extract", "archive.extract"),
        builtin!("archive-list", "archive.list"),
        builtin!("fs-patch", "fs.patch"),
        builtin!("fs-read", "fs.read"),
        builtin!("fs-search", "fs.search"),
        builtin!("fs-write", "fs.write"),
        builtin!("json-query", "json.query"),
        builtin!("text-count", "text.count"),
        builtin!("text-diff", "text.diff"),
    ]
}
