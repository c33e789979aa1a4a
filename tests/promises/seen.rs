//! What came back, with the questions that rows ask about it.

use std::fmt;
use std::ops::Deref;

use env_contracts::{Artifact, Code, Digest, Observation};
use serde_json::Value;

use crate::house::{House, TOKIO};

/// An Observation of a house.
pub(crate) struct Seen<'h> {
    house: &'h House,
    observation: Observation,
}

impl<'h> Seen<'h> {
    pub(crate) fn new(house: &'h House, observation: Observation) -> Self {
        Self { house, observation }
    }

    /// It ended like this: `timed-out(wall)`.
    pub(crate) fn ends(self, outcome: &str) -> Self {
        assert_eq!(self.outcome.to_string(), outcome, "{self:?}");
        self.house.note(outcome);
        self
    }

    /// It succeeded.
    pub(crate) fn succeeds(self) -> Self {
        assert_eq!(self.outcome.code, None, "{self:?}");
        self
    }

    /// It failed with this code.
    pub(crate) fn coded(self, code: Code) -> Self {
        assert_eq!(self.outcome.code, Some(code), "{self:?}");
        self
    }

    /// Its message holds all these words.
    pub(crate) fn says(self, words: &[&str]) -> Self {
        let message = self.outcome.message.as_deref().unwrap_or_default();
        assert!(words.iter().all(|word| message.contains(word)), "{words:?}: {self:?}");
        self
    }

    /// Nothing ran: there is no plan, no output, no time.
    pub(crate) fn ran_nothing(self) -> Self {
        assert!(self.plan.is_none() && self.artifacts.is_empty(), "{self:?}");
        assert_eq!((self.output.stdout.total, self.usage.wall_us, self.times.run_us), (0, 0, 0), "{self:?}");
        self
    }

    /// Standard output, as far as it was kept.
    pub(crate) fn out(&self) -> &str {
        self.output.stdout.text.as_deref().unwrap_or_default()
    }

    /// Standard error, as far as it was kept.
    pub(crate) fn err(&self) -> &str {
        self.output.stderr.text.as_deref().unwrap_or_default()
    }

    /// A number in the result.
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.data[key].as_u64().unwrap_or_else(|| panic!("no number `{key}`: {self:?}"))
    }

    /// Whether there is a notice of this kind.
    pub(crate) fn noticed(&self, kind: &str) -> bool {
        self.notices.iter().any(|notice| notice.kind == kind)
    }

    /// Whether it was bound to this content.
    pub(crate) fn saw(&self, content: &[u8]) -> bool {
        let digest = Digest::of(content);
        self.evidence.iter().any(|evidence| evidence.sha256 == digest)
    }

    /// The names of the artifacts, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// An artifact's content, whose size and sha256 are what was said.
    pub(crate) fn artifact(&self, name: &str) -> Vec<u8> {
        let found = self.artifacts.iter().find(|artifact| artifact.name == name);
        let artifact = found.unwrap_or_else(|| panic!("no artifact `{name}`: {self:?}"));
        self.content(artifact)
    }

    fn content(&self, artifact: &Artifact) -> Vec<u8> {
        let bytes = TOKIO.block_on(async {
            let mut reader = self.house.service.artifacts().get(&artifact.uri.parse().unwrap()).await.unwrap();
            let mut bytes = Vec::new();
            while let Some(chunk) = reader.next_chunk().await.unwrap() {
                bytes.extend_from_slice(&chunk);
            }
            bytes
        });
        assert_eq!(artifact.size, bytes.len() as u64, "{artifact:?}");
        assert_eq!(artifact.sha256, Digest::of(&bytes), "{artifact:?}");
        bytes
    }

    /// The result.
    pub(crate) fn data(&self) -> &Value {
        &self.observation.data
    }
}

impl Deref for Seen<'_> {
    type Target = Observation;

    fn deref(&self) -> &Observation {
        &self.observation
    }
}

impl fmt::Debug for Seen<'_> {
    /// How it ended and what it said, short enough to be read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = |text: &str| text.chars().take(600).collect::<String>();
        write!(
            f,
            "{} [{:?}]: {}\ndata: {}\nstdout: {}\nstderr: {}\nnotices: {:?}\nusage: {:?}",
            self.outcome,
            self.outcome.code,
            self.outcome.message.as_deref().unwrap_or_default(),
            cut(&self.observation.data.to_string()),
            cut(self.out()),
            cut(self.err()),
            self.notices,
            self.usage
        )
    }
}
