//! Embeds the manifest.

fn main() {
    glovebox_manifest::embed();
}
