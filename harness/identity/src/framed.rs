//! Bytes to sign: a domain and named parts, each with its length before it, so
//! that no two different things are signed as the same bytes.

/// The bytes of one thing that is signed.
pub(crate) struct Framed(Vec<u8>);

impl Framed {
    /// Nothing yet, in this domain, such as `glovebox/decision/v1`.
    pub(crate) fn new(domain: &str) -> Self {
        Self(Vec::with_capacity(512)).bytes(domain.as_bytes())
    }

    /// Adds a named part.
    pub(crate) fn part(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.bytes(name.as_bytes()).bytes(value.as_ref())
    }

    /// Adds a named part where there is one. The names tell what is absent.
    pub(crate) fn maybe(self, name: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        match value {
            Some(value) => self.part(name, value),
            None => self,
        }
    }

    /// All of it.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        self.0.extend_from_slice(bytes);
        self
    }
}
