//! What is signed is what is verified, and nothing else is.

use std::sync::LazyLock;

use env_contracts::{Code, Digest, Id, Name, Verdict};
use glovebox_identity::{Approver, Approvers, Statement};
use proptest::prelude::*;

use crate::{NOW_MS, PASSPHRASE, name, one_approver, problem};

/// Two approvers, and the first of them unlocked: made once, for it is slow.
static TWO: LazyLock<(Approvers, Approver)> = LazyLock::new(|| {
    let (_folder, _, mut approvers) = one_approver();
    approvers.add(&name("noor"), PASSPHRASE, NOW_MS).unwrap();
    let mira = approvers.unlock(&name("mira"), PASSPHRASE).unwrap();
    (approvers, mira)
});

fn statements() -> impl Strategy<Value = Statement> {
    let id = || "[a-z0-9][a-z0-9-]{0,12}".prop_map(|text| text.parse::<Id>().unwrap());
    let digest = || any::<[u8; 4]>().prop_map(|bytes| Digest::of(&bytes));
    let verdict = prop_oneof![Just(Verdict::Allow), Just(Verdict::Deny)];
    let scope = prop_oneof!["once", "turn", "task", "session", "rule"].prop_map(|text| text.parse::<Name>().unwrap());
    let maybe = || proptest::option::of(digest());
    (id(), id(), digest(), id(), verdict, scope, maybe(), maybe(), any::<u64>()).prop_map(
        |(approval, action, plan, offer, verdict, scope, delta, words, decided_at_ms)| Statement {
            approval,
            action,
            plan,
            offer,
            verdict,
            scope,
            delta,
            words,
            decided_at_ms,
        },
    )
}

/// One field of `b` in `a`.
fn with_field(field: usize, a: &Statement, b: &Statement) -> Statement {
    let mut out = a.clone();
    match field {
        0 => out.approval = b.approval.clone(),
        1 => out.action = b.action.clone(),
        2 => out.plan = b.plan.clone(),
        3 => out.offer = b.offer.clone(),
        4 => out.verdict = b.verdict,
        5 => out.scope = b.scope.clone(),
        6 => out.delta = b.delta.clone(),
        7 => out.words = b.words.clone(),
        _ => out.decided_at_ms = b.decided_at_ms,
    }
    out
}

proptest! {
    #[test]
    fn what_was_signed_verifies_and_survives_its_text_form(statement in statements()) {
        let (approvers, mira) = &*TWO;
        let signature = mira.sign(&statement);
        let read = signature.to_string().parse().unwrap();
        prop_assert!(approvers.verify(&name("mira"), &statement, &read).is_ok());
        // Not as somebody else's, and not as nobody's.
        for other in ["noor", "nobody", "Mira"] {
            let (code, _) = problem(approvers.verify(&name(other), &statement, &signature));
            prop_assert_eq!(code, Code::SignatureInvalid);
        }
    }

    #[test]
    fn any_changed_field_fails(statement in statements(), other in statements(), field in 0_usize..9) {
        let (approvers, mira) = &*TWO;
        let signature = mira.sign(&statement);
        let changed = with_field(field, &statement, &other);
        let verified = approvers.verify(&name("mira"), &changed, &signature).is_ok();
        prop_assert_eq!(verified, changed == statement, "{:?}", changed);
    }

    #[test]
    fn any_changed_bit_of_a_signature_fails(statement in statements(), at in 8_usize..136, to in "[0-9a-f]") {
        let (approvers, mira) = &*TWO;
        let signature = mira.sign(&statement);
        let mut text = signature.to_string();
        text.replace_range(at..=at, &to);
        let changed = text.parse().unwrap();
        let verified = approvers.verify(&name("mira"), &statement, &changed).is_ok();
        prop_assert_eq!(verified, changed == signature);
    }
}

/// Digests that stand in two places are not taken for one another.
#[test]
fn fields_are_not_exchanged() {
    let (approvers, mira) = &*TWO;
    let digest = Some(Digest::of(b"x"));
    let base = Statement {
        approval: "ab".parse().unwrap(),
        action: "c".parse().unwrap(),
        plan: Digest::of(b"plan"),
        offer: "c".parse().unwrap(),
        verdict: Verdict::Allow,
        scope: name("once"),
        delta: digest.clone(),
        words: None,
        decided_at_ms: 7,
    };
    let signature = mira.sign(&base);
    let exchanged = [
        Statement { delta: None, words: digest, ..base.clone() },
        Statement { approval: "a".parse().unwrap(), action: "bc".parse().unwrap(), ..base.clone() },
    ];
    for statement in exchanged {
        assert!(approvers.verify(&name("mira"), &statement, &signature).is_err(), "{statement:?}");
    }
    approvers.verify(&name("mira"), &base, &signature).unwrap();
}

/// Asking is no decision, whoever signed it.
#[test]
fn a_signed_question_decides_nothing() {
    let (approvers, mira) = &*TWO;
    let statement = Statement {
        approval: "a".parse().unwrap(),
        action: "b".parse().unwrap(),
        plan: Digest::of(b"plan"),
        offer: "c".parse().unwrap(),
        verdict: Verdict::Ask,
        scope: name("once"),
        delta: None,
        words: None,
        decided_at_ms: 7,
    };
    let (code, _) = problem(approvers.verify(&name("mira"), &statement, &mira.sign(&statement)));
    assert_eq!(code, Code::SignatureInvalid);
}

/// Who is removed decides nothing any more, and a namesake is somebody else.
#[test]
fn a_removed_approvers_signature_is_worth_nothing() {
    let (_folder, _, mut approvers) = one_approver();
    let mira = name("mira");
    let statement = Statement {
        approval: "a".parse().unwrap(),
        action: "b".parse().unwrap(),
        plan: Digest::of(b"plan"),
        offer: "c".parse().unwrap(),
        verdict: Verdict::Deny,
        scope: name("once"),
        delta: None,
        words: None,
        decided_at_ms: 7,
    };
    let signature = approvers.unlock(&mira, PASSPHRASE).unwrap().sign(&statement);
    approvers.verify(&mira, &statement, &signature).unwrap();
    approvers.remove(&mira).unwrap();
    assert!(approvers.verify(&mira, &statement, &signature).is_err());
    approvers.add(&mira, PASSPHRASE, NOW_MS).unwrap();
    assert!(approvers.verify(&mira, &statement, &signature).is_err());
}
