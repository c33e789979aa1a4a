//! Who may call at a door, by token or by user of the machine.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use env_contracts::{Code, Digest};
use glovebox_identity::{By, Credentials, New, Role, TOKEN_PREFIX};

use crate::{NOW_MS, name, problem};

const GOLDEN: &str = include_str!("../../golden/credentials.v1.toml");

fn list() -> (tempfile::TempDir, PathBuf, Credentials) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials.toml");
    let credentials = Credentials::load(&path).unwrap();
    (folder, path, credentials)
}

pub(crate) fn new(called: &str, role: Role) -> New {
    New {
        name: name(called),
        role,
        tenant: name("local"),
        user: name("mira"),
        agent: (role == Role::Agent).then(|| name("builder")),
        agent_version: None,
        stage: None,
        on_behalf: false,
        expires_ms: None,
    }
}

fn put(path: &Path, text: &str) {
    fs_err::write(path, text).unwrap();
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_token_opens_until_it_is_removed() {
    let (_folder, path, mut credentials) = list();
    let (added, token) = credentials.add_token(new("ci", Role::Agent), NOW_MS).unwrap();
    let (_, other) = credentials.add_token(new("eye", Role::Observer), NOW_MS).unwrap();
    assert!(token.reveal().starts_with(TOKEN_PREFIX) && token.reveal() != other.reveal());
    assert_eq!(added.created_ms, NOW_MS);

    // Another process lets the same in, and tells them apart.
    let elsewhere = Credentials::load(&path).unwrap();
    assert_eq!(elsewhere.by_token(token.reveal(), NOW_MS).unwrap(), &added);
    assert_eq!(elsewhere.by_token(other.reveal(), NOW_MS).unwrap().name, name("eye"));
    let principal = added.principal();
    assert_eq!((principal.user, principal.agent), (name("mira"), Some(name("builder"))));

    // Nothing near it opens anything, and neither does what is on the disk.
    let text = token.reveal();
    let (head, last) = text.split_at(text.len() - 1);
    let changed = format!("{head}{}", if last == "A" { "B" } else { "A" });
    let By::Token { sha256 } = &added.by else { panic!("{added:?}") };
    for near in
        ["", TOKEN_PREFIX, head, &changed, &format!("{text}A"), &text.to_lowercase(), &text[4..], sha256.as_str()]
    {
        assert_eq!(elsewhere.by_token(near, NOW_MS), None, "{near:?}");
    }

    assert!(elsewhere.is_current() && credentials.is_current());
    credentials.remove(&name("ci")).unwrap();
    assert!(credentials.is_current() && credentials.by_token(text, NOW_MS).is_none());
    // Who loaded it before sees that it has to be loaded again.
    assert!(!elsewhere.is_current());
    assert!(Credentials::load(&path).unwrap().by_token(text, NOW_MS).is_none());
    assert_eq!(problem(credentials.remove(&name("ci"))).0, Code::CredentialUnknown);

    fs_err::remove_file(&path).unwrap();
    assert!(!credentials.is_current() && Credentials::load(&path).unwrap().is_current());
}

#[test]
fn what_expired_opens_nothing() {
    let (_folder, _, mut credentials) = list();
    let ends = Some(NOW_MS + 1000);
    let (_, token) = credentials.add_token(New { expires_ms: ends, ..new("ci", Role::Agent) }, NOW_MS).unwrap();
    credentials.add_peer(New { expires_ms: ends, ..new("mira", Role::Approver) }, 1001, NOW_MS).unwrap();
    for (at, opens) in [(NOW_MS, true), (NOW_MS + 999, true), (NOW_MS + 1000, false), (u64::MAX, false)] {
        assert_eq!(credentials.by_token(token.reveal(), at).is_some(), opens, "{at}");
        assert_eq!(credentials.by_peer(1001, at).is_some(), opens, "{at}");
    }
    let late = New { expires_ms: Some(NOW_MS), ..new("late", Role::Agent) };
    assert_eq!(problem(credentials.add_token(late, NOW_MS)).0, Code::Usage);
}

#[test]
fn a_user_of_the_machine_is_one_caller() {
    let (_folder, path, mut credentials) = list();
    let added = credentials.add_peer(new("mira", Role::Approver), 1001, NOW_MS).unwrap();
    assert_eq!(Credentials::load(&path).unwrap().by_peer(1001, NOW_MS).unwrap(), &added);
    assert_eq!(credentials.by_peer(1002, NOW_MS), None);
    // What a uid opens, no token does.
    assert_eq!(credentials.by_token("1001", NOW_MS), None);

    let (code, message) = problem(credentials.add_peer(new("noor", Role::Observer), 1001, NOW_MS));
    assert!(code == Code::CredentialConflict && message.contains("user 1001 has the credential `mira`"), "{message}");
    let (code, message) = problem(credentials.add_token(new("Mira", Role::Observer), NOW_MS));
    assert!(code == Code::CredentialConflict && message.contains("credential `mira` already"), "{message}");

    // Two lists that were loaded before both changed: neither change is lost.
    let mut other = Credentials::load(&path).unwrap();
    other.add_peer(new("noor", Role::Observer), 1002, NOW_MS).unwrap();
    credentials.add_peer(new("odo", Role::Worker), 1003, NOW_MS).unwrap();
    assert_eq!(credentials.list().len(), 3);
}

/// Who answers for others is a front end with a token, and nobody else.
#[test]
fn only_an_approvers_token_speaks_for_others() {
    let (_folder, _, mut credentials) = list();
    for role in Role::ALL {
        let front = New { on_behalf: true, ..new("front", role) };
        let peer = problem_of(credentials.add_peer(front.clone(), 1001, NOW_MS));
        assert_eq!(peer, Some(Code::Usage), "{role}: the kernel names one person");
        let token = problem_of(credentials.add_token(front, NOW_MS));
        assert_eq!(token, (role != Role::Approver).then_some(Code::Usage), "{role}");
    }
    let long = New { on_behalf: true, ..new(&"f".repeat(65), Role::Approver) };
    assert_eq!(problem_of(credentials.add_token(long, NOW_MS)), Some(Code::Usage));
}

fn problem_of<T>(made: Result<T, glovebox_identity::IdentityError>) -> Option<Code> {
    made.err().map(|error| env_contracts::Diagnose::code(&error))
}

/// An agent's credential is never a person's, whoever wrote it.
#[test]
fn only_an_agents_credential_has_an_agent_and_it_always_has_one() {
    let (_folder, path, mut credentials) = list();
    for role in Role::ALL {
        let agent = role == Role::Agent;
        let right = new("right", role);
        let wrong = New { name: name("wrong"), agent: (!agent).then(|| name("builder")), ..right.clone() };
        assert_eq!(problem(credentials.add_token(wrong.clone(), NOW_MS)).0, Code::Usage, "{role}");
        assert_eq!(problem(credentials.add_peer(wrong, 1001, NOW_MS)).0, Code::Usage, "{role}");
        if !agent {
            let version = Some("1.0.0".parse().unwrap());
            let versioned = New { agent_version: version, ..right.clone() };
            let staged = New { stage: Some(name("build")), ..right.clone() };
            assert_eq!(problem(credentials.add_token(versioned, NOW_MS)).0, Code::Usage, "{role}");
            assert_eq!(problem(credentials.add_token(staged, NOW_MS)).0, Code::Usage, "{role}");
        }
        assert!(credentials.list().is_empty());
        let (added, _) = credentials.add_token(right, NOW_MS).unwrap();
        assert_eq!(added.principal().agent.is_some(), agent);
        assert!(!agent || !role.decides());
        credentials.remove(&name("right")).unwrap();
    }
    // The same in a file.
    let cases = [
        (GOLDEN.replace("agent = \"builder\"\n", ""), "`ci` with the role `agent` names its agent"),
        (GOLDEN.replace("role = \"agent\"", "role = \"approver\""), "`ci` with the role `approver` is no agent's"),
        (GOLDEN.replace("user = \"mira\"\ncreated", "user = \"mira\"\nagent = \"b\"\ncreated"), "`mira` with the role"),
        (GOLDEN.replace("name = \"mira\"", "name = \"CI\""), "there is a credential `ci` already"),
        (GOLDEN.replace("expires_ms = 19", "expires_ms = 17"), "`ci` ends after it begins"),
        (GOLDEN.replace("uid = 1001", "uid = -1"), "line "),
        (GOLDEN.replace("[credential.by.peer]\nuid", "[credential.by.anybody]\nuid"), "unknown variant `anybody`"),
        (GOLDEN.replace("uid = 1001", "uid = 1001\ngid = 7"), "unexpected keys in table: gid"),
        (GOLDEN.replace("tenant = ", "tenants = "), "unknown field `tenants`"),
        (GOLDEN.replace("credentials/v1", "credentials/v2"), "glovebox/credentials/v2"),
        (String::new(), "missing field `schema`"),
        (twice(), "user 1001 has the credential `mira` already"),
    ];
    for (text, why) in cases {
        put(&path, &text);
        let (code, message) = problem(Credentials::load(&path));
        assert_eq!(code, Code::CredentialsInvalid, "{message}");
        assert!(message.contains(why), "`{why}` is not in: {message}");
        // And it is not written over.
        assert_eq!(problem(credentials.add_peer(new("noor", Role::Observer), 7, NOW_MS)).0, Code::CredentialsInvalid);
        assert_eq!(fs_err::read_to_string(&path).unwrap(), text);
    }
}

fn twice() -> String {
    let mira = GOLDEN.rfind("[[credential]]").unwrap();
    format!("{GOLDEN}\n{}", GOLDEN[mira..].replace("name = \"mira\"", "name = \"noor\""))
}

/// The file opens nothing for who reads it, and is its owner's alone.
#[test]
fn no_token_is_stored_or_shown_by_accident() {
    let (folder, path, mut credentials) = list();
    let (added, token) = credentials.add_token(new("ci", Role::Agent), NOW_MS).unwrap();
    let text = fs_err::read_to_string(&path).unwrap();
    let body = &token.reveal()[TOKEN_PREFIX.len()..];
    assert!(!text.contains(body) && text.contains(Digest::of(token.reveal().as_bytes()).as_str()), "{text}");
    assert_eq!(format!("{token:?}"), "Token(..)");
    assert!(!format!("{added:?} {credentials:?}").contains(body));
    assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    for mode in [0o602, 0o604, 0o620, 0o660] {
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let (code, message) = problem(Credentials::load(&path));
        assert!(code == Code::CredentialsInvalid && message.contains("by others"), "{message}");
        assert!(!credentials.is_current());
    }
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(problem(Credentials::load(&path)).0, Code::CredentialsInvalid);
}

#[test]
fn a_role_has_one_word() {
    for role in Role::ALL {
        assert_eq!(role.as_str().parse::<Role>().unwrap(), role);
        assert_eq!(toml::Value::try_from(role).unwrap().as_str(), Some(role.as_str()));
    }
    assert_eq!(
        "root".parse::<Role>().unwrap_err(),
        "`root` is no role; there are agent, observer, approver, operator, worker"
    );
}
