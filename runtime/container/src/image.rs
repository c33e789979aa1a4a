//! Images: what a tool that is one has registered, and what the engine has.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use bollard::models::ImageInspect;
use env_contracts::{Code, Digest, Problem};
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, QUICK, within};
use crate::error::{is_missing, problem};

/// The longest record.
pub const MAX_RECORD: usize = 64 << 10;

/// The version tag of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum RecordSchema {
    /// The first.
    #[serde(rename = "glovebox/image/v1")]
    V1,
}

/// What is registered of an image: its digest, which names every byte of it.
/// The tag that led there is for people; nothing looks it up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRecord {
    schema: RecordSchema,
    /// As it was named.
    pub reference: String,
    /// Its id: the sha256 of its configuration, which names its layers.
    pub image: Digest,
    /// Its architecture, as images spell it: `amd64`.
    pub architecture: String,
    /// What it would run by itself.
    pub command: Vec<String>,
    /// Its environment.
    pub env: Vec<String>,
    /// Where it begins.
    pub workdir: String,
}

impl ImageRecord {
    /// Its bytes, as they are registered.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_else(|error| unreachable!("text and lists: {error}"))
    }

    /// Reads a record.
    ///
    /// # Errors
    /// `image-invalid`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Problem> {
        let bad =
            |why: String| Problem::new(Code::ImageInvalid, format!("the record of an image can't be read: {why}"));
        if bytes.len() > MAX_RECORD {
            return Err(bad(format!("it has more than {MAX_RECORD} bytes")));
        }
        serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))
    }
}

/// What an image brings that a container must not get by itself.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// Folders that it wants a volume of its own for.
    pub(crate) volumes: BTreeSet<String>,
    /// Its environment.
    pub(crate) env: Vec<String>,
    /// Where it begins.
    pub(crate) workdir: String,
}

impl Engine {
    /// Looks an image up that is on the engine already: by tag or by id.
    pub(crate) async fn find_image(&self, reference: &str) -> Result<ImageRecord, Problem> {
        let seen = self.look_up(reference).await?;
        let arch = seen.architecture.clone().unwrap_or_default();
        let os = seen.os.clone().unwrap_or_default();
        if os != "linux" || arch != host_arch() {
            let message = format!("`{reference}` is an image for {os}/{arch}, and this host is linux/{}", host_arch());
            return Err(Problem::new(Code::ImageInvalid, message).with_help("get the image for this host"));
        }
        let image = seen.id.as_deref().and_then(digest).ok_or_else(|| no_id(reference))?;
        let config = seen.config.unwrap_or_default();
        let mut command = config.entrypoint.unwrap_or_default();
        command.extend(config.cmd.unwrap_or_default());
        let record = ImageRecord {
            schema: RecordSchema::V1,
            reference: reference.to_owned(),
            image,
            architecture: arch,
            command,
            env: config.env.unwrap_or_default(),
            workdir: workdir(config.working_dir),
        };
        // What it says of itself has no bounds of its own.
        ImageRecord::from_bytes(&record.to_bytes())
    }

    /// Whether the image of this digest is here, and what it brings.
    pub(crate) async fn have_image(&self, digest: &Digest) -> Result<Image, Problem> {
        let known = || self.images.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = known().get(digest) {
            // Gone by now, it is missed where a container is made of it.
            return Ok(image.clone());
        }
        let seen = self.look_up(&id(digest)).await?;
        if seen.id.as_deref().and_then(self::digest).as_ref() != Some(digest) {
            return Err(no_id(&id(digest)));
        }
        let config = seen.config.unwrap_or_default();
        let volumes = config.volumes.unwrap_or_default().into_iter().map(|volume| place(&volume));
        let image = Image {
            volumes: volumes.collect::<Result<_, _>>()?,
            env: config.env.unwrap_or_default(),
            workdir: workdir(config.working_dir),
        };
        known().insert(digest.clone(), image.clone());
        Ok(image)
    }

    /// An image that is not there any more is looked up again.
    pub(crate) fn forget_image(&self, id: &str) {
        self.images.lock().unwrap_or_else(PoisonError::into_inner).retain(|digest, _| self::id(digest) != id);
    }

    async fn look_up(&self, reference: &str) -> Result<ImageInspect, Problem> {
        // It becomes part of an address.
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        if !reference.chars().all(plain) || reference.split('/').any(|part| matches!(part, "" | "." | "..")) {
            let message = format!("`{}` is no name of an image", reference.escape_debug());
            return Err(Problem::new(Code::ImageUnknown, message)
                .with_help("write NAME:TAG or sha256:DIGEST, as `docker images` shows them"));
        }
        let client = self.client().await?;
        let doing = format!("looking for the image `{reference}`");
        let seen = within(&doing, QUICK, async {
            match client.inspect_image(reference).await {
                Err(error) if is_missing(&error) => Ok(Err(error)),
                other => other.map(Ok),
            }
        });
        seen.await?.map_err(|error| unknown(problem(&doing, &error)))
    }
}

/// Where an image begins.
fn workdir(named: Option<String>) -> String {
    named.filter(|dir| dir.starts_with('/')).unwrap_or_else(|| "/".to_owned())
}

/// What the engine said of an image that it does not have.
pub(crate) fn unknown(problem: Problem) -> Problem {
    let help = "bring it there (`docker pull`, `docker load`, `docker import`): nothing is pulled by itself; \
                `cargo xtask images build` makes those of `shell.run` and `python.run`";
    Problem { code: Code::ImageUnknown, help: help.into(), ..problem }
}

/// Where a volume lies that an image wishes for, in the one way in which the engine
/// will spell it.
fn place(volume: &str) -> Result<String, Problem> {
    let mut names = Vec::new();
    for name in volume.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    let place = format!("/{}", names.join("/"));
    let kernels = ["proc", "sys", "dev", ".glovebox-supervisor"];
    if !volume.starts_with('/') || names.first().is_none_or(|first| kernels.contains(first)) {
        let shown = volume.escape_debug();
        return Err(Problem::new(Code::ImageInvalid, format!("the image wishes for a volume at `{shown}`"))
            .with_help("make it without that `VOLUME`: nothing can lie there"));
    }
    Ok(place)
}

/// An image's id as the engine takes it.
pub(crate) fn id(digest: &Digest) -> String {
    format!("sha256:{digest}")
}

fn digest(id: &str) -> Option<Digest> {
    id.strip_prefix("sha256:")?.parse().ok()
}

fn no_id(reference: &str) -> Problem {
    Problem::new(Code::ImageInvalid, format!("the engine names `{reference}` by no digest"))
}

/// This host's architecture, as images spell it.
fn host_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spelled otherwise, the engine would make a volume of its own beside ours.
    #[test]
    fn a_volume_lies_where_the_engine_will_say_that_it_lies() {
        for (volume, at) in [("/data", "/data"), ("/a/../data", "/data"), ("//d/./e/", "/d/e"), ("/../x", "/x")] {
            assert_eq!(place(volume).unwrap(), at);
        }
        for volume in ["/", "relative", "", "/proc", "/x/../sys/fs", "/dev/shm", "/.glovebox-supervisor", "/.."] {
            assert_eq!(place(volume).unwrap_err().code, Code::ImageInvalid, "{volume}");
        }
    }
}
