//! From a passphrase to a key pair.

use argon2::{Argon2, AssociatedData, Block, ParamsBuilder, Version};
use ed25519_dalek::SigningKey;
use env_contracts::ByteSize;
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::IdentityError;
use crate::record::Derivation;

/// How much memory one derivation takes: the second choice of RFC 9106, for
/// where many gigabytes can't be asked for. It is what makes a guess dear on
/// hardware that has many small processors.
pub const MEMORY: ByteSize = ByteSize(64 << 20);

/// How often that memory is gone over: with it, a derivation takes some 0.3 to
/// 0.5 seconds on one processor of today. A person waits that long; who
/// guesses pays it for each guess.
pub const PASSES: u32 = 8;

/// How many threads could share the work. We use one; more would help who
/// guesses as much.
pub const LANES: u32 = 1;

/// The fewest characters of a passphrase. The file of approvers can be read by
/// every process of its owner, so guesses are made away from here, at the cost
/// of a derivation each: twelve letters drawn by lot are some 10^17 guesses.
pub const SHORTEST: usize = 12;

/// The fewest different characters: less is a key held down.
pub const MIN_DIFFERENT: usize = 5;

/// The most bytes of a passphrase. Nobody types more; more is a mistaken file.
pub const LONGEST: usize = 1024;

/// Which purpose the derived key is for, so that the same passphrase and salt
/// elsewhere yield another key.
const PURPOSE: &[u8] = b"glovebox/approver/v1";

/// Checks a passphrase that somebody wants to have. It is taken byte for byte:
/// nothing is trimmed and no letter is taken for another.
pub(crate) fn acceptable(passphrase: &str) -> Result<(), IdentityError> {
    let refuse = |why: String| Err(IdentityError::Passphrase(why));
    let characters = passphrase.chars().count();
    if passphrase.len() > LONGEST {
        return refuse(format!("has {} bytes, at most {LONGEST} are taken", passphrase.len()));
    }
    if characters == 0 {
        return refuse("is empty".into());
    }
    if characters < SHORTEST {
        return refuse(format!("has {characters} characters, at least {SHORTEST} are needed"));
    }
    let different: std::collections::BTreeSet<char> = passphrase.chars().collect();
    if different.len() < MIN_DIFFERENT {
        return refuse(format!("has {} different characters, at least {MIN_DIFFERENT} are needed", different.len()));
    }
    Ok(())
}

/// The key pair that a passphrase yields. What led to it is wiped.
pub(crate) fn derive(passphrase: &str, how: &Derivation) -> Result<SigningKey, IdentityError> {
    // Longer ones were never accepted; hashing them is work that a stranger
    // could ask for.
    if passphrase.len() > LONGEST {
        return Err(IdentityError::Wrong);
    }
    let failed = |error: argon2::Error| IdentityError::Passphrase(format!("can't be derived from: {error}"));
    let mut builder = ParamsBuilder::new();
    builder.m_cost(how.kibibytes()).t_cost(how.passes).p_cost(how.lanes).output_len(32);
    builder.data(AssociatedData::new(PURPOSE).map_err(failed)?);
    let params = builder.build().map_err(failed)?;
    let mut memory = vec![Block::new(); params.block_count()];
    let mut seed = Zeroizing::new([0; 32]);
    let derivation = Argon2::new(argon2::Algorithm::Argon2id, Version::V0x13, params);
    let derived =
        derivation.hash_password_into_with_memory(passphrase.as_bytes(), &how.salt.0, seed.as_mut(), &mut memory[..]);
    memory.zeroize();
    derived.map_err(failed)?;
    Ok(SigningKey::from_bytes(&seed))
}
