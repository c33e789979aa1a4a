//! Whoever can write the database writes rows, not decisions.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use env_contracts::{Assurance, Code, OutcomeKind};
use glovebox_events::{Action, ActionState, ApprovalState, Grant};
use glovebox_identity::WitnessKey;
use glovebox_plane::{Key, Submitted};
use rusqlite::{Connection, params};

use crate::fake::WRITE;
use crate::house::{Ground, House, Setup, approval, digest, done, id, offered, person};
use crate::people::{Served, liar, mira, noor, noors_credential};
use crate::steps::answer;

const LOGIN: &str = "permit (principal, action, resource) \
     when { context has approval && context.approval.at_least.contains(\"console-login\") };";

fn database(ground: &Ground) -> Connection {
    Connection::open(ground.path("state/store.db")).unwrap()
}

/// Writes an action over the stored one.
fn write(ground: &Ground, action: &Action) {
    let body = serde_json::to_vec(action).unwrap();
    let written = database(ground).execute(
        "UPDATE actions SET body = ?, state = ?, version = ? WHERE id = ?",
        params![body, action.state.as_str(), action.version, action.id.as_str()],
    );
    assert_eq!(written.unwrap(), 1);
}

/// The stored action, as if this answer had been given.
fn forge(house: &House, action: &Action, change: impl FnOnce(&mut glovebox_events::Answer)) {
    let mut forged = house.now(&action.id);
    let mut given = answer("p", glovebox_events::Answered::Approve, "d");
    given.approval = approval(action).clone();
    given.seen = digest(action).clone();
    given.at_ms = house.ground.clock.ms();
    given.by.name = "mira".parse().unwrap();
    given.by.assurance = Assurance::ConsoleLogin;
    change(&mut given);
    let asked = forged.approval.as_mut().unwrap();
    (asked.state, asked.answer) = (ApprovalState::Approved, Some(given));
    forged.state = ActionState::Authorized;
    write(&house.ground, &forged);
}

#[test]
fn an_answer_that_nobody_signed_runs_nothing() {
    for signature in [None, Some("ed25519:00"), Some("nonsense")] {
        let house = House::of(&Setup::of(&[WRITE]).rules(LOGIN));
        let action = house.waits("fake.write", "{}");
        forge(&house, &action, |given| given.signature = signature.map(str::to_owned));
        let seen = done(house.resume(&action));
        assert_eq!((seen.outcome.kind, seen.outcome.code), (OutcomeKind::Drift, Some(Code::SignatureInvalid)));
        assert_eq!(house.ground.ran(&action.id), 0, "{signature:?}");
    }
}

#[test]
fn an_answer_that_was_signed_for_another_action_runs_nothing() {
    let house = House::of(&Setup::of(&[WRITE]).rules(LOGIN));
    let (one, two) = (house.waits("fake.write", "{}"), house.waits("fake.write", "{}"));
    let signed = house.reply(&person("u"), Some(mira()), offered(approval(&one), "once", None)).unwrap();
    let signature = signed.approval.answer.unwrap().signature;
    forge(&house, &two, |given| given.signature = signature);
    assert_eq!(done(house.resume(&two)).outcome.code, Some(Code::SignatureInvalid));
    assert_eq!(house.ground.ran(&two.id), 0);
}

#[test]
fn a_signed_answer_counts_for_nothing_but_what_was_signed() {
    let house = House::of(&Setup::of(&[WRITE]).rules(LOGIN));
    let action = house.waits("fake.write", "{}");
    house.reply(&person("u"), Some(mira()), offered(approval(&action), "decline", None)).unwrap();
    // A no turned into a yes, with the signature of the no.
    let signature = house.now(&action.id).approval.unwrap().answer.unwrap().signature;
    let mut revived = house.now(&action.id);
    (revived.end, revived.state) = (None, ActionState::Authorized);
    write(&house.ground, &revived);
    forge(&house, &action, |given| given.signature = signature);
    assert_eq!(done(house.resume(&action)).outcome.code, Some(Code::SignatureInvalid));
    assert_eq!(house.ground.ran(&action.id), 0);
}

#[test]
fn an_answer_with_less_assurance_than_policy_wants_needs_no_forger_and_is_worth_nothing() {
    let house = House::of(&Setup::of(&[WRITE]).rules(LOGIN));
    let action = house.waits("fake.write", "{}");
    forge(&house, &action, |given| given.by.assurance = Assurance::SameUser);
    assert!(matches!(house.resume(&action), Submitted::Waiting(_)), "it is asked anew");
    let action = house.waits("fake.write", "{}");
    forge(&house, &action, |given| given.by.assurance = Assurance::Passkey);
    assert_eq!(done(house.resume(&action)).outcome.code, Some(Code::SignatureInvalid));
    assert!(house.ground.runs().is_empty());
}

/// That another user of the machine answered shows a signature of the
/// service's, under exactly this answer, and nothing else.
#[test]
fn an_answer_of_another_user_is_one_that_the_service_signed() {
    let house = House::of(&Setup::of(&[WRITE]).rules(LOGIN));
    house.runs_well();
    let answered = |key: Key<'_>| {
        let action = house.waits("fake.write", "{}");
        house.reply_with(&person("u"), Some(key), offered(approval(&action), "once", None)).unwrap();
        let given = house.now(&action.id).approval.unwrap().answer.unwrap();
        (action, given)
    };
    let noor = noor();
    let (action, given) = answered(Key::Witness(&noor));
    assert_eq!((given.by.name.as_str(), given.by.assurance), ("noor", Assurance::SeparateUser));
    assert_eq!(done(house.resume(&action)).outcome.code, None);

    // A key that is another's, though it speaks for the same person.
    let theirs = liar().of(noors_credential()).unwrap();
    let (action, _) = answered(Key::Witness(&theirs));
    assert_eq!(done(house.resume(&action)).outcome.code, Some(Code::SignatureInvalid));

    let (_, by_key) = answered(Key::Own(mira()));
    type Change<'a> = &'a dyn Fn(&mut glovebox_events::Answer);
    let changes: [(&str, Change<'_>); 6] = [
        ("unsigned", &|given| given.signature = None),
        ("of another action", &|_| ()),
        ("of a passphrase", &|given| given.signature.clone_from(&by_key.signature)),
        ("for somebody without a credential", &|given| given.by.name = "mira".parse().unwrap()),
        ("as if by passphrase", &|given| given.by.assurance = Assurance::ConsoleLogin),
        ("as if by an authenticator", &|given| given.by.assurance = Assurance::Passkey),
    ];
    for (what, change) in changes {
        let action = house.waits("fake.write", "{}");
        forge(&house, &action, |forged| {
            (forged.by, forged.signature) = (given.by.clone(), given.signature.clone());
            change(forged);
        });
        let seen = done(house.resume(&action)).outcome;
        assert_eq!(seen.kind, OutcomeKind::Drift, "{what}");
        let code = if what.contains("without") { Code::CredentialUnknown } else { Code::SignatureInvalid };
        assert_eq!(seen.code, Some(code), "{what}");
        assert_eq!(house.ground.ran(&action.id), 0, "{what}");
    }
}

/// Where somebody else could have read the service's key, nothing that it
/// signed counts.
#[test]
fn an_answer_of_another_user_counts_for_nothing_once_others_can_read_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let served = Arc::new(Served(folder.path().to_owned()));
    let key = WitnessKey::open(&served.key()).unwrap();
    let mut setup = Setup::of(&[WRITE]).rules(LOGIN);
    setup.people = Some(served.clone());
    let house = House::of(&setup);
    house.runs_well();
    let chmod = |mode| fs_err::set_permissions(served.key(), std::fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o600, 0o640, 0o604, 0o602, 0o600] {
        chmod(0o600);
        let action = house.waits("fake.write", "{}");
        let noor = key.of(noors_credential()).unwrap();
        house.reply_with(&person("u"), Some(Key::Witness(&noor)), offered(approval(&action), "once", None)).unwrap();
        chmod(mode);
        let outcome = done(house.resume(&action)).outcome;
        let believed = mode == 0o600;
        assert_eq!(outcome.code, (!believed).then_some(Code::KeyInvalid), "{mode:o}");
        assert_eq!(house.ground.ran(&action.id), usize::from(believed), "{mode:o}");
    }
}

/// A grant that covers what the house asks, put into the database.
fn put_grant(house: &House, change: impl FnOnce(&mut Grant)) {
    let action = house.waits("fake.write", "{}");
    let asked = action.approval.as_ref().unwrap();
    let offer = asked.offers.iter().find(|offer| offer.id == id("rule")).unwrap();
    let mut given = answer("p", glovebox_events::Answered::Approve, "d").by;
    given.name = "mira".parse().unwrap();
    given.assurance = Assurance::ConsoleLogin;
    let now = house.ground.clock.ms();
    let mut grant = Grant {
        id: id("forged"),
        principal: action.principal.clone(),
        session: None,
        task: None,
        turn: None,
        scope: glovebox_events::GrantScope::Rule,
        matcher: offer.matcher.clone().unwrap(),
        approval: asked.id.clone(),
        action: action.id.clone(),
        by: given,
        classes: vec!["person".parse().unwrap()],
        made_ms: now,
        expires_ms: now + 1_000_000,
        revoked: None,
    };
    change(&mut grant);
    put(house, &grant);
}

/// Writes a grant into the database.
fn put(house: &House, grant: &Grant) {
    let body = serde_json::to_vec(grant).unwrap();
    let written = database(&house.ground).execute(
        "INSERT OR REPLACE INTO grants (tenant, id, user, session, expires_ms, revoked, body) \
         VALUES ('local', ?, 'u', ?, ?, 0, ?)",
        params![grant.id.as_str(), grant.session.as_ref().map(env_contracts::Id::as_str), grant.expires_ms, body],
    );
    assert_eq!(written.unwrap(), 1);
}

#[test]
fn a_grant_that_no_answer_made_covers_nothing() {
    let house = House::of(&Setup::of(&[WRITE]).rules(LOGIN));
    put_grant(&house, |_| {});
    house.waits("fake.write", "{}");
    put_grant(&house, |grant| grant.approval = id("never-was"));
    house.waits("fake.write", "{}");
    // One that names a real answer of hers: she approved once, not for ever.
    let once = house.waits("fake.write", "{}");
    house.reply(&person("u"), Some(mira()), offered(approval(&once), "once", None)).unwrap();
    put_grant(&house, |grant| grant.approval = approval(&once).clone());
    house.waits("fake.write", "{}");
    assert!(house.ground.runs().is_empty());
}

#[test]
fn a_real_grant_is_not_longer_wider_or_anothers_for_a_changed_row() {
    let house = House::of(&Setup::of(&[WRITE]).rules(LOGIN));
    house.runs_well();
    let action = house.waits("fake.write", r#"{"count":1}"#);
    let settled = house.reply(&person("u"), Some(mira()), offered(approval(&action), "session", None)).unwrap();
    let real = settled.grant.unwrap();
    let runs = |session: &str| {
        let mut submission = house.asked("fake.write", r#"{"count":1}"#);
        submission.context.session = id(session);
        matches!(house.send(submission).unwrap(), Submitted::Done(_))
    };
    assert!(runs("s1"));
    let later = real.expires_ms + 1;
    let intent = action.intent.clone().unwrap();
    let with = |change: &dyn Fn(&mut Grant)| {
        let mut grant = real.clone();
        change(&mut grant);
        grant
    };
    let changed = [
        with(&|grant| grant.expires_ms = later),
        with(&|grant| grant.scope = glovebox_events::GrantScope::Rule),
        with(&|grant| grant.session = None),
        with(&|grant| grant.matcher = glovebox_events::Matcher::Intent { intent: intent.clone() }),
        with(&|grant| grant.by.name = "u".parse().unwrap()),
        with(&|grant| grant.by.assurance = Assurance::Passkey),
    ];
    for grant in changed {
        put(&house, &grant);
        assert!(!runs("s1") && !runs("s2"), "{grant:?}");
    }
    put(&house, &real);
    assert!(runs("s1") && !runs("s2"), "the real one still holds where it did");
}
