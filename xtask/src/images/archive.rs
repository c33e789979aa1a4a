//! Files in, an image out: the same bytes every time.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::process;
use crate::root::Root;

/// Folders that a merged system has as links.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];
/// Folders that every program takes to be there.
const FOLDERS: [&str; 7] = ["dev", "etc", "inputs", "outputs", "proc", "tmp", "workspace"];
/// What nobody reads in a container.
const LEFT_OUT: [&str; 6] =
    ["usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "usr/share/bug", "var/cache"];

/// Unpacks packages over each other. None of their scripts is run.
pub(super) fn unpack(root: &Root, packages: &[PathBuf], tree: &Path) -> Result<()> {
    for folder in MERGED {
        fs_err::create_dir_all(tree.join("usr").join(folder))?;
        fs_err::os::unix::fs::symlink(format!("usr/{folder}"), tree.join(folder))?;
    }
    for folder in FOLDERS {
        fs_err::create_dir_all(tree.join(folder))?;
    }
    let layer = tree.with_extension("package");
    for package in packages {
        let files = fs_err::File::create(&layer)?.into_parts().0;
        process::run(root.command("dpkg-deb").arg("--fsys-tarfile").arg(package).stdout(files))?;
        let mut tar = root.command("tar");
        tar.args(["--extract", "--keep-directory-symlink", "--no-same-owner", "--file"]).arg(&layer);
        process::run(tar.arg("--directory").arg(tree))?;
    }
    for path in LEFT_OUT {
        let path = tree.join(path);
        if path.exists() {
            fs_err::remove_dir_all(path)?;
        }
    }
    // Whoever ships a package ships its licence; the rest of its papers stay here.
    process::run(root.command("find").arg(tree.join("usr/share/doc")).args([
        "-type",
        "f",
        "!",
        "-name",
        "copyright",
        "-delete",
    ]))?;
    // What base-passwd's script would do.
    for (from, to) in [("passwd.master", "passwd"), ("group.master", "group")] {
        let from = tree.join("usr/share/base-passwd").join(from);
        if from.exists() {
            fs_err::copy(from, tree.join("etc").join(to))?;
        }
    }
    let shell = tree.join("usr/bin/sh");
    if fs_err::symlink_metadata(&shell).is_err() {
        fs_err::os::unix::fs::symlink("dash", shell)?;
    }
    // Nobody gets more rights by starting something.
    process::run(root.command("chmod").args(["-R", "u-s,g-s,go-w,a+rX,u+w"]).arg(tree))
}

/// The tree as one layer.
pub(super) fn pack(root: &Root, tree: &Path, layer: &Path) -> Result<()> {
    let mut tar = root.command("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    process::run(tar.arg("--file").arg(layer).arg("--directory").arg(tree).arg("."))
}

/// A layer as an image that an engine loads. Its id.
pub(super) fn image(
    root: &Root,
    layer: &Path,
    tag: &str,
    architecture: &str,
    env: &[String],
    to: &Path,
) -> Result<String> {
    let layer_id = format!("sha256:{}", hash(layer)?);
    let all = environment(env);
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": { "Env": all, "Cmd": ["/bin/sh"], "WorkingDir": "/" },
        "rootfs": { "type": "layers", "diff_ids": [layer_id] },
        "history": [{ "created": "1970-01-01T00:00:00Z", "created_by": "cargo xtask images" }],
    });
    let config = serde_json::to_vec(&config)?;
    let id = Sha256::digest(&config).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let folder = layer.parent().context("a layer lies in a folder")?;
    fs_err::write(folder.join(format!("{id}.json")), config)?;
    let manifest = json!([{ "Config": format!("{id}.json"), "RepoTags": [tag], "Layers": ["layer.tar"] }]);
    fs_err::write(folder.join("manifest.json"), serde_json::to_vec(&manifest)?)?;
    let mut tar = root.command("tar");
    tar.arg("--create").arg("--file").arg(to).arg("--directory").arg(folder);
    process::run(tar.args(["manifest.json", &format!("{id}.json"), "layer.tar"]))?;
    Ok(format!("sha256:{id}"))
}

/// The environment of an image.
pub(super) fn environment(own: &[String]) -> Vec<String> {
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
    std::iter::once(path).chain(own.iter().cloned()).collect()
}

fn hash(path: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    std::io::copy(&mut fs_err::File::open(path)?, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
