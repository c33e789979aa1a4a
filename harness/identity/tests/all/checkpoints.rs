//! The key that signs checkpoints.

use std::os::unix::fs::PermissionsExt as _;

use env_contracts::Code;
use glovebox_identity::{CheckpointKey, PublicKey};

use crate::problem;

#[test]
fn a_key_is_made_kept_and_used() {
    let folder = tempfile::tempdir().unwrap();
    // Folders above it are made, for their owner alone.
    let path = folder.path().join("vault").join("key.toml");
    let made = CheckpointKey::create(&path).unwrap();
    let mode = |path: &std::path::Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    let loaded = CheckpointKey::load(&path).unwrap();
    let public: PublicKey = made.public().to_string().parse().unwrap();
    assert_eq!(loaded.public(), public);
    let signature = loaded.sign(b"heads at 7");
    public.verify_checkpoint(b"heads at 7", &signature).unwrap();

    let (code, message) = problem(public.verify_checkpoint(b"heads at 8", &signature));
    assert_eq!(code, Code::SignatureInvalid);
    assert!(message.contains(&public.to_string()), "{message}");
    let other = CheckpointKey::create(&folder.path().join("other.toml")).unwrap();
    assert!(other.public().verify_checkpoint(b"heads at 7", &signature).is_err());

    // A key is never written over: what it signed could not be verified.
    assert_eq!(problem(CheckpointKey::create(&path)).0, Code::KeyInvalid);
    assert_eq!(CheckpointKey::load(&path).unwrap().public(), public);

    let secret = fs_err::read_to_string(&path).unwrap();
    let secret = secret.split("secret = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert!(secret.len() == 64 && !format!("{loaded:?}").contains(&secret));
}
