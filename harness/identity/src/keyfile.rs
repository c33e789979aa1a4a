//! The file of a key that signs: written once, for its owner alone.

use data_encoding::HEXLOWER;
use ed25519_dalek::SigningKey;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::error::IdentityError;
use crate::guarded::Guarded;
use crate::keys::PublicKey;

/// Which key it is: the version tag of its file, which no other key's has.
pub(crate) trait Kind: Serialize + DeserializeOwned {
    /// What is written.
    const NEWEST: Self;

    /// What stands at the beginning of the file, for who opens it.
    const HEADER: &'static str;
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<K> {
    schema: K,
    /// Printed when the key is made; here it shows damage.
    public: PublicKey,
    secret: Seed,
}

/// What the private key is made of, wiped when it is dropped.
struct Seed(Zeroizing<[u8; 32]>);

/// Makes a key and writes it to the file, which must not exist yet.
pub(crate) fn create<K: Kind>(file: &Guarded) -> Result<SigningKey, IdentityError> {
    let mut secret = Seed(Zeroizing::new([0; 32]));
    // So few bytes come whole.
    rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut secret.0[..], rustix::rand::GetRandomFlags::empty()))
        .map_err(|errno| file.failed("draw a key for", errno.into()))?;
    let key = SigningKey::from_bytes(&secret.0);
    let stored = Stored { schema: K::NEWEST, public: PublicKey::of(&key), secret };
    let text = toml::to_string(&stored).map(Zeroizing::new).map_err(|error| file.invalid(&error.to_string()))?;
    file.create(&Zeroizing::new(format!("{}{}", K::HEADER, *text)))?;
    Ok(key)
}

/// Reads the key; `None` if there is no file.
pub(crate) fn load<K: Kind>(file: &Guarded) -> Result<Option<SigningKey>, IdentityError> {
    let Some(text) = file.read()? else { return Ok(None) };
    // The parser's message would show the line, which may be the secret's.
    let stored: Stored<K> = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        file.invalid(&format!("line {line}: {}", error.message()))
    })?;
    let key = SigningKey::from_bytes(&stored.secret.0);
    if PublicKey::of(&key) == stored.public {
        Ok(Some(key))
    } else {
        Err(file.invalid("`public` is not that of `secret`"))
    }
}

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Zeroizing::new(HEXLOWER.encode(&*self.0)))
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let mut seed = Self(Zeroizing::new([0; 32]));
        // Decoding needs exactly as much room as there are digits for.
        let digits = text.len() == 64 && HEXLOWER.decode_mut(text.as_bytes(), &mut *seed.0).is_ok();
        if digits { Ok(seed) } else { Err(D::Error::custom("a secret is 64 lower-case hexadecimal digits")) }
    }
}
