//! The operator's ceiling and profiles, read anew when their files change.

use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use env_contracts::Problem;
use glovebox_plane::{Operator, OperatorSource};
use glovebox_runtime::{Clock as _, SystemClock};

use crate::config::Config;
use crate::{ceiling, profiles};

/// How long a file must have rested to be known by its times: two writes within
/// one tick of a file system's clock leave the same ones.
const RESTED_MS: u64 = 2_000;

/// What the files hold, as long as they are the same.
pub(crate) struct LiveOperator {
    config: Config,
    read: Mutex<Option<Read>>,
}

struct Read {
    stamps: Stamps,
    operator: Arc<Operator>,
}

/// What tells one state of both files from another. `None`: there is no file.
type Stamps = [Option<Stamp>; 2];

#[derive(PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    /// Of a change of content or rights, in nanoseconds.
    changed: i128,
}

impl Stamp {
    /// Whether whoever reads the file now knows it by this from then on.
    fn has_rested(&self, now_ms: u64) -> bool {
        self.changed / 1_000_000 + i128::from(RESTED_MS) < i128::from(now_ms)
    }
}

impl LiveOperator {
    /// With what the files hold now.
    ///
    /// # Errors
    /// `ceiling-invalid`, `profiles-invalid`, `config-invalid`.
    pub(crate) fn load(config: &Config) -> Result<Arc<Self>, Problem> {
        let live = Self { config: config.clone(), read: Mutex::default() };
        live.current()?;
        Ok(Arc::new(live))
    }

    fn stamps(&self) -> Stamps {
        ["ceiling", "profiles"].map(|entry| {
            let meta = fs_err::metadata(self.config.entry(entry).0).ok()?;
            let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
            Some(Stamp { file: (meta.dev(), meta.ino()), size: meta.size(), changed })
        })
    }
}

impl OperatorSource for LiveOperator {
    fn current(&self) -> Result<Arc<Operator>, Problem> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the files are read: what changes in between is seen next time.
        let stamps = self.stamps();
        if let Some(known) = read.as_ref().filter(|known| known.stamps == stamps) {
            return Ok(known.operator.clone());
        }
        *read = None;
        let ceiling = ceiling::read(&self.config)?;
        let profiles = profiles::load(&self.config)?.unwrap_or_default();
        let operator = Arc::new(Operator { ceiling, profiles });
        let now_ms = SystemClock.now().unix_millis;
        if stamps.iter().flatten().all(|stamp| stamp.has_rested(now_ms)) {
            *read = Some(Read { stamps, operator: operator.clone() });
        }
        Ok(operator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who writes twice within a tick leaves the same times: the first of them
    /// must not stand for the second.
    #[test]
    fn what_was_written_just_now_is_read_again() {
        let stamp = Stamp { file: (1, 2), size: 3, changed: 5_000_000_000 };
        assert_eq!([0, 5_000, 7_000, 7_001].map(|now_ms| stamp.has_rested(now_ms)), [false, false, false, true]);
    }
}
