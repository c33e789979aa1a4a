//! Every form ever stored is still read, and signs what it always signed.

use std::os::unix::fs::PermissionsExt as _;

use env_contracts::{Digest, Verdict};
use glovebox_identity::{
    Approvers, CheckpointKey, Credentials, Statement, WebhookKind, WebhookSecret, Webhooks, WitnessKey,
};

use crate::name;

/// The passphrase of the list that is committed.
const PASSPHRASE: &str = "correct horse battery staple";

fn copy(golden: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy");
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(golden);
    fs_err::copy(from, &path).unwrap();
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    (folder, path)
}

fn signatures() -> Vec<String> {
    include_str!("../../golden/signatures.v1").lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

pub(crate) fn statement() -> Statement {
    Statement {
        approval: "ap-1".parse().unwrap(),
        action: "ac-1".parse().unwrap(),
        plan: Digest::of(b"plan"),
        offer: "of-1".parse().unwrap(),
        verdict: Verdict::Allow,
        scope: name("once"),
        delta: Some(Digest::of(b"delta")),
        words: Some(Digest::of(b"words")),
        decided_at_ms: 1_800_000_000_000,
    }
}

/// Approvals are verified over years and machines: the bytes are fixed.
#[test]
fn a_passphrase_and_a_decision_yield_the_signature_that_they_always_did() {
    let (_folder, path) = copy("approvers.v1.toml");
    let approvers = Approvers::load(&path).unwrap();
    let mira = approvers.unlock(&name("mira"), PASSPHRASE).unwrap();
    let whole = statement();
    let bare = Statement { verdict: Verdict::Deny, delta: None, words: None, ..whole.clone() };
    assert_eq!([mira.sign(&whole).to_string(), mira.sign(&bare).to_string()], signatures()[..2]);
}

#[test]
fn a_key_signs_a_checkpoint_as_it_always_did() {
    let (_folder, path) = copy("checkpoint-key.v1.toml");
    let key = CheckpointKey::load(&path).unwrap();
    assert_eq!(key.sign(b"heads").to_string(), signatures()[2]);
}

#[test]
fn a_service_vouches_as_it_always_did() {
    let (_folder, path) = copy("witness-key.v1.toml");
    let noor = crate::witness::noor();
    let key = WitnessKey::load(&path).unwrap();
    assert_eq!(key.of(&noor).unwrap().sign(&statement()).to_string(), signatures()[3]);
}

#[test]
fn a_front_end_speaks_for_others_as_it_always_did() {
    let (_folder, path) = copy("credentials.v1.on-behalf.toml");
    let credentials = Credentials::load(&path).unwrap();
    assert!(credentials.list()[0].on_behalf);
    let (_folder, path) = copy("credentials.v1.toml");
    assert!(Credentials::load(&path).unwrap().list().iter().all(|credential| !credential.on_behalf));
}

#[test]
fn a_webhook_is_what_it_always_was_and_signs_what_it_always_did() {
    let (_folder, path) = copy("webhooks.v1.toml");
    let webhooks = Webhooks::load(&path).unwrap();
    let [all, some] = webhooks.list() else { panic!("there are two") };
    assert!(all.objects && !all.allow_private && all.wants(WebhookKind::QuestionResolved, &[]));
    assert!(!some.objects && some.allow_private);
    assert!(some.wants(WebhookKind::ApprovalOpened, &[name("person"), name("owner")]));
    assert!(!some.wants(WebhookKind::ApprovalOpened, &[name("owner")]));
    assert!(!some.wants(WebhookKind::QuestionOpened, &[]), "a class is of approvals");
    let secret = WebhookSecret::parse("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    assert_eq!(secret.sign("ap-1/opened", 1_800_000_000, b"{}"), SIGNED);
}

/// `printf 'ap-1/opened.1800000000.{}' | openssl dgst -sha256 -mac HMAC
/// -macopt hexkey:000102…1f -binary | base64`.
const SIGNED: &str = "v1,sU/iysMgqyL7scOcOqazCOC11w2ojF4Of7M70mHb5w4=";

/// Who was let in is let in.
#[test]
fn a_token_opens_what_it_always_did() {
    let (_folder, path) = copy("credentials.v1.toml");
    let credentials = Credentials::load(&path).unwrap();
    let names: Vec<_> = credentials.list().iter().map(|credential| credential.name.as_str()).collect();
    assert_eq!(names, ["ci", "mira"]);
    let ci = credentials.by_token("gbx_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", 1_800_000_000_000).unwrap();
    assert_eq!((ci.agent.as_ref().unwrap().as_str(), ci.stage.as_ref().unwrap().as_str()), ("builder", "build"));
    assert_eq!(ci.principal().agent_version.unwrap().to_string(), "1.2.0");
    assert_eq!(credentials.by_peer(1001, 1_800_000_000_000).unwrap().name.as_str(), "mira");
}
