//! The container engine of this machine, and the image with the hostile guest.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use bollard::query_parameters::{CreateImageOptionsBuilder, ListContainersOptionsBuilder};
use bollard::{API_DEFAULT_VERSION, Docker};
use env_contracts::Digest;
use futures_util::StreamExt as _;
use glovebox_container::{Containers, ImageRecord, Socket};

use crate::guests::checkout;
use crate::house::TOKIO;
use crate::tar::Tar;

/// How `cargo xtask test` names the engine where there is none.
const NEED: &str = "docker";

/// The guest in its image, and what else lies there to be tried.
pub(crate) const PROGRAM: &str = "/hostile";
/// The same, as a program of root's that makes everybody root.
pub(crate) const SETUID: &str = "/hostile-setuid";
/// A file that only root may read.
pub(crate) const ROOTS: &str = "/roots-own";
/// A folder, and a file in it, that everybody may write, were they not the image's.
pub(crate) const OPEN: &str = "/open";

/// The socket of the engine of the tests.
pub(crate) fn socket() -> Socket {
    Socket::find(std::env::var("DOCKER_HOST").ok().as_deref(), None).unwrap()
}

/// Says that there is no engine, where that is known beforehand; or no guest.
pub(crate) fn lacks() -> Option<String> {
    if !guest().exists() {
        return Some(format!("the hostile guest is not built for {}", std::env::consts::ARCH));
    }
    let skipped = std::env::var("GLOVEBOX_TEST_SKIP").unwrap_or_default();
    let missing = skipped.split(',').any(|need| need == NEED);
    missing.then(|| "no container engine here".to_owned())
}

/// The guest as a program.
fn guest() -> PathBuf {
    checkout(&format!("tests/guests/dist/hostile-{}", std::env::consts::ARCH))
}

/// Says that the engine has no such runtime, where it has none.
pub(crate) fn lacks_runtime(runtime: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let containers = Containers::new(socket(), folder.path().to_owned());
    let facts = TOKIO.block_on(containers.engine().facts()).unwrap();
    let missing = !facts.runtimes.iter().any(|known| known == runtime);
    missing.then(|| format!("the container engine has no runtime `{runtime}`"))
}

/// The image with the hostile guest, which is there from now on.
pub(crate) fn image() -> ImageRecord {
    static IMAGE: LazyLock<ImageRecord> = LazyLock::new(|| TOKIO.block_on(made()));
    IMAGE.clone()
}

/// The identities of the containers that a folder of containers has now.
pub(crate) async fn containers_of(folder: &Path) -> Vec<String> {
    let id = fs_err::read_to_string(folder.join("installation")).unwrap_or_default();
    let label = format!("dev.glovebox.installation={id}");
    let filters = std::collections::HashMap::from([("label".to_owned(), vec![label])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let all = client().await.list_containers(Some(options)).await.unwrap();
    all.into_iter().filter_map(|container| container.id).collect()
}

async fn client() -> Docker {
    let address = socket().path().display().to_string();
    let client = Docker::connect_with_unix(&address, 60, API_DEFAULT_VERSION).unwrap();
    client.negotiate_version().await.unwrap()
}

/// Looks it up by what is in it, and imports it where it is not there.
async fn made() -> ImageRecord {
    let program = fs_err::read(guest()).unwrap();
    let mut tar = Tar::default();
    for (folder, mode) in [("etc", 0o755), (&OPEN[1..], 0o777)] {
        tar.entry(folder, b"", mode, b'5', "");
    }
    for (path, content, mode) in [
        (PROGRAM, &program[..], 0o755),
        (SETUID, &program[..], 0o4755),
        (ROOTS, b"root's", 0o600),
        ("/open/file", b"everybody's", 0o666),
    ] {
        tar.entry(&path[1..], content, mode, b'0', "");
    }
    let tar = tar.finish();
    let tag = Digest::of(&tar).short().to_string();
    let folder = tempfile::tempdir().unwrap();
    let containers = Containers::new(socket(), folder.path().to_owned());
    let name = format!("glovebox-test/hostile:{tag}");
    if containers.find_image(&name).await.is_err() {
        let changes = vec![format!("CMD [\"{PROGRAM}\"]")];
        let options = CreateImageOptionsBuilder::default().from_src("-").repo("glovebox-test/hostile").tag(&tag);
        let body = bollard::body_full(tar.into());
        let client = client().await;
        let mut steps = client.create_image(Some(options.changes(changes).build()), Some(body), None);
        while let Some(step) = steps.next().await {
            step.unwrap();
        }
    }
    containers.find_image(&name).await.unwrap()
}
