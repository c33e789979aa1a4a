//! What a program shows to be let in: random text, kept by its digest alone.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use env_contracts::Digest;
use zeroize::Zeroizing;

/// What a token begins with, so that people and scanners for lost secrets know
/// one when they see it.
pub const PREFIX: &str = "gbx_";

/// How many random bytes are in one: 256 bits, which nobody guesses, however
/// fast the digest is. A passphrase needs a slow one; this does not.
const RANDOM: usize = 32;

/// How many characters that makes: 43 digits of six bits behind the prefix.
const LENGTH: usize = PREFIX.len() + 43;

/// A new token. It exists here, and nowhere else: what is kept is its digest.
pub struct Token(Zeroizing<String>);

impl Token {
    pub(crate) fn of(random: &Zeroizing<[u8; RANDOM]>) -> Self {
        // Room for all of it: text that grows leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(LENGTH));
        text.push_str(PREFIX);
        BASE64URL_NOPAD.encode_append(&**random, &mut text);
        Self(text)
    }

    /// The text, for whoever it is made for. The only way to it: it is printed
    /// where somebody says so, and never by accident.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What is kept of a token. `None`: the text is none, and not worth a digest.
///
/// Equal digests are equal tokens, so the digest is what is looked for. How
/// long that takes may depend on how far two digests agree; but who could
/// choose a token by its digest could break SHA-256, so time tells nothing
/// about a token.
pub(crate) fn digest(text: &str) -> Option<Digest> {
    (text.len() == LENGTH && text.starts_with(PREFIX)).then(|| Digest::of(text.as_bytes()))
}
