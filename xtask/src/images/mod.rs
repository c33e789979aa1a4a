//! `cargo xtask images`: the container images that tools of ours run in, from
//! Debian's packages and nothing else.
//!
//! `images/NAME.toml` says what is wanted, `NAME.lock` which packages that is,
//! each by its sha256. From one lock there comes one image, byte for byte: names
//! sorted, times and owners the same for all, no setuid file, no script run. So
//! its digest can be written down (`index.toml`) before it is made, and a tool
//! can name it.

mod archive;
mod packages;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::process;
use crate::root::Root;
use packages::Package;

/// The folder of all of it.
const FOLDER: &str = "images";
/// The images, in the order in which they are made.
const NAMES: [&str; 2] = ["minimal", "python"];
/// The tools that come with Glovebox and run in them.
const TOOLS: [(&str, &str); 2] = [("tools/shell-run", "minimal"), ("tools/python-run", "python")];
/// The architecture of the images that those tools name.
const SHIPPED: &str = "amd64";

/// What is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// How the engine calls it.
    tag: String,
    packages: Vec<String>,
    /// What packages' scripts would link, which are not run.
    links: BTreeMap<String, String>,
    env: Vec<String>,
}

/// Which packages that is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    package: Vec<Package>,
}

/// What comes of them, for each architecture and image.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Index(BTreeMap<String, BTreeMap<String, String>>);

/// An image as the engine takes it.
struct Made {
    archive: PathBuf,
    /// Its id, which is the sha256 of its configuration.
    id: String,
}

/// Looks up which packages the wishes lead to now, and writes them down with
/// what they are made of and what comes of it.
pub(crate) fn lock(root: &Root) -> Result<()> {
    let mut index = index(root)?;
    for name in NAMES {
        let wanted = wanted(root, name)?;
        let package = packages::resolve(root, &wanted.packages)?;
        let lock = Lock { package };
        let text = toml::to_string(&lock).context("a lock is plain data")?;
        fs_err::write(path(root, name, "lock"), format!("# Written by `cargo xtask images lock`.\n{text}"))?;
        let bill = serde_json::to_string_pretty(&packages::bill(&wanted.tag, &lock.package))?;
        fs_err::write(path(root, name, "spdx.json"), bill + "\n")?;
        let made = make(root, name)?;
        println!("{}: {} packages, {}", wanted.tag, lock.package.len(), made.id);
        index.0.entry(architecture(root)?).or_default().insert(name.to_owned(), made.id);
    }
    let text = toml::to_string(&index).context("an index is plain data")?;
    fs_err::write(root.join(FOLDER).join("index.toml"), format!("# Written by `cargo xtask images lock`.\n{text}"))?;
    tie(root, &index)
}

/// Writes into the shipped tools which image they run in: the digest into the
/// manifest, and beside it the record that is registered.
fn tie(root: &Root, index: &Index) -> Result<()> {
    let Some(images) = index.0.get(SHIPPED) else { return Ok(()) };
    for (folder, name) in TOOLS {
        let (wanted, id) = (wanted(root, name)?, &images[name]);
        let digest = id.trim_start_matches("sha256:");
        let path = root.join(folder).join("tool.toml");
        let text = fs_err::read_to_string(&path)?;
        let line = text.lines().find(|line| line.starts_with("image = ")).context("a manifest without an image")?;
        fs_err::write(&path, text.replacen(line, &format!("image = \"{digest}\""), 1))?;
        let record = serde_json::json!({
            "schema": "glovebox/image/v1",
            "reference": wanted.tag,
            "image": digest,
            "architecture": SHIPPED,
            "command": ["/bin/sh"],
            "env": archive::environment(&wanted.env),
            "workdir": "/",
        });
        fs_err::write(root.join(folder).join("image.json"), serde_json::to_string_pretty(&record)? + "\n")?;
    }
    Ok(())
}

/// Makes every image and gives it to the engine. What comes of it has to be what
/// is written down.
pub(crate) fn build(root: &Root) -> Result<()> {
    let (index, architecture) = (index(root)?, architecture(root)?);
    for name in NAMES {
        let tag = wanted(root, name)?.tag;
        let Some(known) = index.0.get(&architecture).and_then(|images| images.get(name)) else {
            bail!("there is no lock for {architecture}: `cargo xtask images lock` on such a machine writes one");
        };
        let seen = ["image", "inspect", "--format", "{{.Id}}", &tag];
        if process::stdout(root.command("docker").args(seen)).is_ok_and(|id| id.trim() == known) {
            println!("{tag}: {known}, as the engine has it");
            continue;
        }
        let made = make(root, name)?;
        if made.id != *known {
            bail!("{tag} came out as {}, and {FOLDER}/index.toml says {known}", made.id);
        }
        process::run(root.command("docker").args(["load", "--quiet", "--input"]).arg(&made.archive))?;
        println!("{tag}: {known}");
    }
    Ok(())
}

fn make(root: &Root, name: &str) -> Result<Made> {
    let wanted = wanted(root, name)?;
    let text = fs_err::read_to_string(path(root, name, "lock"))?;
    let lock: Lock = toml::from_str(&text).with_context(|| format!("{FOLDER}/{name}.lock"))?;
    let cache = root.cache()?.join("images");
    let files = packages::fetch(root, &lock.package, &cache.join("packages"))?;
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("root");
    archive::unpack(root, &files, &tree)?;
    for (link, target) in &wanted.links {
        let link = tree.join(link);
        if fs_err::symlink_metadata(&link).is_err() {
            fs_err::os::unix::fs::symlink(target, link)?;
        }
    }
    let layer = folder.path().join("layer.tar");
    archive::pack(root, &tree, &layer)?;
    let to = cache.join(format!("{name}.tar"));
    let id = archive::image(root, &layer, &wanted.tag, &architecture(root)?, &wanted.env, &to)?;
    Ok(Made { archive: to, id })
}

fn wanted(root: &Root, name: &str) -> Result<Wanted> {
    let text = fs_err::read_to_string(path(root, name, "toml"))?;
    toml::from_str(&text).with_context(|| format!("{FOLDER}/{name}.toml"))
}

fn index(root: &Root) -> Result<Index> {
    let path = root.join(FOLDER).join("index.toml");
    if !path.exists() {
        return Ok(Index::default());
    }
    toml::from_str(&fs_err::read_to_string(path)?).context("images/index.toml")
}

fn path(root: &Root, name: &str, kind: &str) -> PathBuf {
    root.join(FOLDER).join(Path::new(name).with_extension(kind))
}

/// The architecture as Debian and images spell it.
fn architecture(root: &Root) -> Result<String> {
    Ok(process::stdout(root.command("dpkg").arg("--print-architecture"))?.trim().to_owned())
}
