//! Packages of Debian's.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::process;
use crate::root::Root;

/// One package, to the byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    name: String,
    version: String,
    architecture: String,
    sha256: String,
}

impl Package {
    fn file(&self) -> String {
        // As apt names what it fetches.
        let version = self.version.replace(':', "%3a");
        format!("{}_{version}_{}.deb", self.name, self.architecture)
    }
}

/// What the wishes lead to on a system that has nothing, as its archive has it
/// now.
pub(super) fn resolve(root: &Root, wanted: &[String]) -> Result<Vec<Package>> {
    let mut apt = root.command("apt-get");
    // No package is installed, as far as this call knows.
    apt.args(["-o", "Dir::State::status=/dev/null", "install", "--print-uris", "--no-install-recommends", "-y"]);
    let listed = process::stdout(apt.args(wanted)).context("apt-get can't resolve the packages")?;
    let mut packages = Vec::new();
    let folder = root.cache()?.join("images/packages");
    for line in listed.lines().filter(|line| line.starts_with('\'')) {
        let name = line.split(' ').nth(1).context("a line of apt-get without a file")?;
        let mut parts = name.trim_end_matches(".deb").split('_');
        let (Some(name), Some(version), Some(architecture)) = (parts.next(), parts.next(), parts.next()) else {
            bail!("`{name}` is no package");
        };
        let mut package = Package {
            name: name.to_owned(),
            version: version.replace("%3a", ":"),
            architecture: architecture.to_owned(),
            sha256: String::new(),
        };
        package.sha256 = hash(&fs_err::read(download(root, &package, &folder)?)?);
        packages.push(package);
    }
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(packages)
}

/// The packages' files, in their order; each is what the lock says.
pub(super) fn fetch(root: &Root, packages: &[Package], folder: &Path) -> Result<Vec<PathBuf>> {
    packages
        .iter()
        .map(|package| {
            let path = download(root, package, folder)?;
            let sha256 = hash(&fs_err::read(&path)?);
            if sha256 != package.sha256 {
                bail!("{} has the sha256 {sha256}, and the lock says {}", path.display(), package.sha256);
            }
            Ok(path)
        })
        .collect()
}

fn download(root: &Root, package: &Package, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(package.file());
    if !path.exists() {
        fs_err::create_dir_all(folder)?;
        let which = format!("{}={}", package.name, package.version);
        let mut apt = root.command("apt-get");
        apt.args(["download", "-q", "-q", "-o", "APT::Sandbox::User=root", &which]).current_dir(folder);
        process::run(&mut apt).with_context(|| {
            format!(
                "{which} can't be had: `apt-get update`, and where Debian has a newer one, `cargo xtask images lock`"
            )
        })?;
    }
    Ok(path)
}

fn hash(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What an image is made of, as SPDX has it.
pub(super) fn bill(tag: &str, packages: &[Package]) -> Value {
    let one = |package: &Package| {
        let Package { name, version, architecture, sha256 } = package;
        json!({
            "SPDXID": format!("SPDXRef-{}", name.replace('+', "plus")),
            "name": name,
            "versionInfo": version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": false,
            "checksums": [{ "algorithm": "SHA256", "checksumValue": sha256 }],
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": format!("pkg:deb/debian/{name}@{version}?arch={architecture}"),
            }],
        })
    };
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": tag,
        "documentNamespace": format!("https://glovebox.dev/spdx/{}", tag.replace(':', "-")),
        "creationInfo": { "created": "2026-01-01T00:00:00Z", "creators": ["Tool: cargo xtask images"] },
        "packages": packages.iter().map(one).collect::<Vec<_>>(),
    })
}
