//! Every event is sealed together with the one before.

use env_contracts::{Digest, Id, digest::Hasher};
use glovebox_events::LogKey;

/// The domain of these hashes: equal bytes elsewhere have other digests.
const DOMAIN: &str = "glovebox/event/v1";

/// The place of an event and the event, as it is hashed.
pub(crate) struct Link<'a> {
    pub(crate) log: &'a LogKey,
    pub(crate) seq: u64,
    pub(crate) at_ms: u64,
    pub(crate) action: Option<&'a Id>,
    /// The bytes that are stored, not what they would be if written again.
    pub(crate) body: &'a [u8],
}

impl Link<'_> {
    /// The hash of this event after that one. The first of a log has none.
    pub(crate) fn hash(&self, previous: Option<&Digest>) -> Digest {
        let mut hasher = Hasher::new(DOMAIN);
        hasher
            .part("previous", previous.map_or("", Digest::as_str).as_bytes())
            .part("tenant", self.log.tenant.as_str().as_bytes())
            .part("session", self.log.session.as_str().as_bytes())
            .part("seq", &self.seq.to_be_bytes())
            .part("at", &self.at_ms.to_be_bytes())
            .part("action", self.action.map_or("", Id::as_str).as_bytes())
            .part("body", self.body);
        hasher.finish()
    }
}

/// The 32 bytes of a digest: half the room of its text.
pub(crate) fn raw(digest: &Digest) -> [u8; 32] {
    let nibble = |character: u8| match character {
        b'0'..=b'9' => character - b'0',
        // A digest holds nothing else than lower-case hexadecimal.
        _ => character.wrapping_sub(b'a').wrapping_add(10),
    };
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digest.as_str().as_bytes().chunks_exact(2)) {
        *byte = nibble(pair[0]) << 4 | nibble(pair[1]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_fit_in_32_bytes() {
        let digest = Digest::of(b"anything");
        assert_eq!(Digest::from_bytes(raw(&digest)), digest);
    }
}
