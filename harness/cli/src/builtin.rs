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

/// Declares a built-in tool that runs in an image of ours.
macro_rules! in_image {
    ($folder:literal) => {
        Builtin {
            manifest: include_str!(concat!("../../../tools/", $folder, "/tool.toml")),
            component: include_bytes!(concat!("../../../tools/", $folder, "/image.json")),
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
        in_image!("shell-run"),
        in_image!("python-run"),
    ]
}

#[cfg(test)]
mod tests {
    use env_contracts::Manifest;
    use glovebox_container::ImageRecord;

    use super::*;

    /// A tool's manifest, its record and the index of images name one image.
    #[test]
    fn tools_in_images_name_the_images_that_are_made() {
        let index: toml::Table = include_str!("../../../images/index.toml").parse().unwrap();
        for (tool, name) in [(in_image!("shell-run"), "minimal"), (in_image!("python-run"), "python")] {
            let manifest = Manifest::from_toml(tool.manifest).unwrap();
            let record = ImageRecord::from_bytes(tool.component).unwrap();
            let made = index["amd64"][name].as_str().unwrap();
            assert_eq!(manifest.contract.platform.image.as_ref(), Some(&record.image));
            assert_eq!(format!("sha256:{}", record.image), made);
        }
    }
}
