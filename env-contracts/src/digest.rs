//! Domain-separated digests: equal bytes in two roles never have equal digests.

use sha2::{Digest as _, Sha256};

use crate::Digest;

/// A digest over named parts, each length-prefixed, in a domain of its own.
///
/// The domain and every part are framed by their length, so that no two
/// different sequences of parts feed the hash the same bytes.
pub struct Hasher(Sha256);

impl Hasher {
    /// A hasher for this domain, such as `glovebox/intent/v1`.
    pub fn new(domain: &str) -> Self {
        let mut hasher = Self(Sha256::new());
        hasher.bytes(domain.as_bytes());
        hasher
    }

    /// Adds a named part.
    pub fn part(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.bytes(name.as_bytes());
        self.bytes(value);
        self
    }

    /// The digest of all that was added.
    pub fn finish(self) -> Digest {
        Digest::from_bytes(self.0.finalize().into())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }
}
