//! The key with which a service vouches for another user of the machine.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use env_contracts::{Code, Verdict};
use glovebox_identity::{By, Credential, Credentials, New, Role, Statement, WitnessKey};

use crate::credentials::new;
use crate::golden::statement;
use crate::{NOW_MS, name, problem};

/// A user that no machine has, and so is not the one who runs this.
const NOOR: u32 = 4_000_000_011;

/// The credential of one whom the kernel tells from this user.
pub(crate) fn noor() -> Credential {
    Credential {
        name: name("noors-account"),
        role: Role::Approver,
        tenant: name("local"),
        user: name("noor"),
        agent: None,
        agent_version: None,
        stage: None,
        on_behalf: false,
        created_ms: NOW_MS,
        expires_ms: None,
        by: By::Peer { uid: NOOR },
    }
}

fn chmod(path: &Path, mode: u32) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_service_vouches_for_a_person_of_another_user_and_for_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let key = WitnessKey::open(&folder.path().join("key.toml")).unwrap();
    let of = |role, by: By| key.of(&Credential { role, by, ..noor() }).map(|witness| witness.person().clone());
    for role in Role::ALL {
        let person = matches!(role, Role::Approver | Role::Operator).then(|| name("noor"));
        assert_eq!(of(role, By::Peer { uid: NOOR }), person, "{role}");
        // Whoever has a token could have it from the disk; this user is who
        // runs the agents, for all that the kernel says; root is everybody.
        let sha256 = env_contracts::Digest::of(b"t");
        let me = rustix::process::geteuid().as_raw();
        for by in [By::Token { sha256 }, By::Peer { uid: me }, By::Peer { uid: 0 }] {
            assert_eq!(of(role, by.clone()), None, "{role} {by:?}");
        }
    }
}

#[test]
fn what_the_service_vouched_for_counts_while_the_person_has_a_credential() {
    let folder = tempfile::tempdir().unwrap();
    let key = WitnessKey::open(&folder.path().join("key.toml")).unwrap();
    let path = folder.path().join("credentials.toml");
    let mut credentials = Credentials::load(&path).unwrap();
    let ends = New { user: name("noor"), expires_ms: Some(NOW_MS + 9), ..new("noor", Role::Approver) };
    credentials.add_peer(ends, NOOR, NOW_MS).unwrap();
    // One who has a token besides is not another user by it.
    credentials.add_token(New { user: name("mira"), ..new("mira", Role::Approver) }, NOW_MS).unwrap();

    let said = statement();
    let signature = key.of(credentials.by_peer(NOOR, NOW_MS).unwrap()).unwrap().sign(&said);
    key.verify(&credentials, &name("noor"), &said, &signature, NOW_MS).unwrap();
    // The same key after the service began anew.
    WitnessKey::open(&folder.path().join("key.toml"))
        .unwrap()
        .verify(&credentials, &name("noor"), &said, &signature, NOW_MS)
        .unwrap();

    let refused = |key: &WitnessKey, credentials: &Credentials, who: &str, said: &Statement, at| {
        problem(key.verify(credentials, &name(who), said, &signature, at)).0
    };
    let other = Statement { verdict: Verdict::Deny, ..said.clone() };
    assert_eq!(refused(&key, &credentials, "noor", &other, NOW_MS), Code::SignatureInvalid);
    let forged = WitnessKey::open(&folder.path().join("other.toml")).unwrap();
    assert_eq!(refused(&forged, &credentials, "noor", &said, NOW_MS), Code::SignatureInvalid);
    assert_eq!(refused(&key, &credentials, "mira", &said, NOW_MS), Code::CredentialUnknown);
    assert_eq!(refused(&key, &credentials, "noor", &said, NOW_MS + 9), Code::CredentialUnknown);
    credentials.remove(&name("noor")).unwrap();
    assert_eq!(refused(&key, &credentials, "noor", &said, NOW_MS), Code::CredentialUnknown);

    // Asking decides nothing, whoever signs it.
    credentials.add_peer(New { user: name("noor"), ..new("noor", Role::Operator) }, NOOR, NOW_MS).unwrap();
    let asks = Statement { verdict: Verdict::Ask, ..said };
    let signature = key.of(&noor()).unwrap().sign(&asks);
    let verified = key.verify(&credentials, &name("noor"), &asks, &signature, NOW_MS);
    assert_eq!(problem(verified).0, Code::SignatureInvalid);
}

/// A key that somebody else could have read shows nothing.
#[test]
fn the_key_is_its_users_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("witness-key.toml");
    assert_eq!(problem(WitnessKey::load(&path)).0, Code::KeyInvalid);
    // Two that come first at once have one key.
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| WitnessKey::open(&path).unwrap())).collect();
        threads.into_iter().map(|thread| format!("{:?}", thread.join().unwrap())).collect()
    });
    assert!(made.iter().all(|key| *key == made[0]), "{made:?}");
    let text = fs_err::read_to_string(&path).unwrap();
    let secret = text.split("secret = \"").nth(1).unwrap().split('"').next().unwrap();
    assert!(!made[0].contains(secret));
    assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    for mode in [0o640, 0o620, 0o604, 0o602, 0o660, 0o644] {
        chmod(&path, mode);
        for opened in [WitnessKey::load(&path), WitnessKey::open(&path)] {
            let (code, message) = problem(opened);
            assert!(code == Code::KeyInvalid && message.contains("can be read or written by others"), "{message}");
        }
    }
    chmod(&path, 0o600);
    chmod(path.parent().unwrap(), 0o770);
    assert_eq!(problem(WitnessKey::load(&path)).0, Code::KeyInvalid);
    chmod(path.parent().unwrap(), 0o700);
    // Another key's file is none of these.
    fs_err::write(&path, include_str!("../../golden/checkpoint-key.v1.toml")).unwrap();
    assert!(problem(WitnessKey::open(&path)).1.contains("glovebox/checkpoint-key/v1"));
}
