//! A way to the engine that can be made to stop and to go on, or that lies.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

/// Passes bytes between whoever connects and the engine, until it is frozen.
pub(crate) struct Proxy {
    pub(crate) socket: PathBuf,
    frozen: Arc<AtomicBool>,
}

impl Proxy {
    /// In front of an engine, in a folder.
    pub(crate) fn new(folder: &Path, engine: &Path) -> Self {
        Self::lying(folder, engine, &[], &[])
    }

    /// The same, which has other words in the place of some: in what is asked,
    /// and in what is answered. Both have one length.
    pub(crate) fn lying(folder: &Path, engine: &Path, asked: &[(&str, &str)], answered: &[(&str, &str)]) -> Self {
        let words = |pairs: &[(&str, &str)]| -> Lies {
            assert!(pairs.iter().all(|(from, to)| from.len() == to.len()), "{pairs:?}");
            pairs.iter().map(|(from, to)| (from.as_bytes().into(), to.as_bytes().into())).collect::<Vec<_>>().into()
        };
        let (asked, answered) = (words(asked), words(answered));
        let socket = folder.join("proxy.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let frozen = Arc::new(AtomicBool::new(false));
        let (engine, still) = (engine.to_owned(), frozen.clone());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (engine, still) = (engine.clone(), still.clone());
                let (asked, answered) = (asked.clone(), answered.clone());
                tokio::spawn(async move {
                    let far = UnixStream::connect(engine).await.unwrap();
                    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                    tokio::spawn(pass(near_in, far_out, still.clone(), asked));
                    pass(far_in, near_out, still, answered).await;
                });
            }
        });
        Self { socket, frozen }
    }

    /// As an engine that is stuck: connections stand, and nothing comes.
    pub(crate) fn freeze(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::SeqCst);
    }
}

/// What stands in the place of what.
type Lies = Arc<[(Box<[u8]>, Box<[u8]>)]>;

async fn pass(
    mut from: tokio::net::unix::OwnedReadHalf,
    mut to: tokio::net::unix::OwnedWriteHalf,
    frozen: Arc<AtomicBool>,
    lies: Lies,
) {
    let mut bytes = vec![0; 256 << 10];
    loop {
        let Ok(count) = from.read(&mut bytes).await else { return };
        while frozen.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if count == 0 {
            let _ = to.shutdown().await;
            return;
        }
        for (from, to) in lies.iter() {
            let mut said = &mut bytes[..count];
            // Wherever it says so.
            while let Some(at) = said.windows(from.len()).position(|window| window == &from[..]) {
                said[at..at + to.len()].copy_from_slice(to);
                said = &mut said[at + to.len()..];
            }
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
