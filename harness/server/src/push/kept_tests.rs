use glovebox_identity::SecretFrom;

use super::*;

const FIRST: Duration = Duration::from_secs(5);

fn webhook(created_ms: u64) -> Webhook {
    Webhook {
        name: "portal".parse().unwrap(),
        tenant: "local".parse().unwrap(),
        url: "https://portal.example/".into(),
        kinds: Vec::new(),
        classes: Vec::new(),
        objects: true,
        allow_private: false,
        created_ms,
        secret: SecretFrom::Environment("NONE".into()),
    }
}

fn notice(rank: u64, of: &str) -> Notice {
    let kind = WebhookKind::ApprovalOpened;
    Notice { kind, of: of.parse().unwrap(), at_ms: 1, rank, unless_answered: false }
}

#[test]
fn what_is_kept_is_read_as_it_always_was_and_only_for_its_own_webhook() {
    let folder = tempfile::tempdir().unwrap();
    let golden = include_str!("../../golden/webhook-state.v1.json");
    fs_err::write(folder.path().join("portal.json"), golden).unwrap();
    let mut kept = Kept::load(folder.path(), &webhook(1_800_000_000_000)).unwrap().unwrap();
    assert_eq!((kept.read, kept.parked.len(), kept.given_up), (41, 2, 1));
    assert_eq!(kept.due(u64::MAX).unwrap().rank, 39);
    kept.park(notice(41, "c"), 7);
    kept.save(folder.path(), &webhook(1).name).unwrap();
    assert_eq!(Kept::load(folder.path(), &webhook(1_800_000_000_000)).unwrap().unwrap(), kept);
    assert_eq!(Kept::load(folder.path(), &webhook(7)).unwrap(), None, "another of the same name begins anew");
}

#[test]
fn what_waits_of_one_approval_is_tried_in_its_order_and_others_are_not_held_up() {
    let mut kept = Kept::new(&webhook(1), 0);
    for (rank, of) in [(1, "a"), (2, "a"), (3, "b")] {
        kept.park(notice(rank, of), 0);
    }
    assert!(!kept.failed(&notice(1, "a"), "down", FIRST, 0));
    // The second of `a` is due by its time, and waits behind the first.
    assert_eq!(kept.due(0).unwrap().rank, 3);
    kept.done(&notice(3, "b"), Some(1));
    assert_eq!(kept.due(0), None);
    assert_eq!(kept.due(kept.next_ms().unwrap()).unwrap().rank, 1);
    kept.done(&notice(1, "a"), Some(2));
    assert_eq!(kept.due(0).unwrap().rank, 2);
}

#[test]
fn waits_double_within_bounds_and_are_spread() {
    for attempts in 1..40 {
        let whole = (5000 << (attempts - 1).min(20)).min(3_600_000);
        for dice in [0, 1, 7_919, u64::MAX] {
            let waits = wait(FIRST, attempts, dice);
            assert!(waits > whole / 2 - 1 && waits <= whole, "{attempts}: {waits} of {whole}");
        }
    }
    let spread: std::collections::BTreeSet<u64> =
        (0..20).map(|rank| wait(FIRST, 3, dice(&notice(rank, &format!("ap-{rank}")), 3))).collect();
    assert!(spread.len() > 15, "{spread:?}");
}

#[test]
fn a_notice_is_given_up_after_days_and_not_before() {
    let mut kept = Kept::new(&webhook(1), 0);
    kept.park(notice(1, "a"), 1000);
    let days = ms(GIVE_UP);
    assert!(!kept.failed(&notice(1, "a"), "down", FIRST, 1000 + days - 1));
    assert_eq!(kept.status().pending, 1);
    assert!(kept.failed(&notice(1, "a"), "still down", FIRST, 1000 + days));
    let status = kept.status();
    assert_eq!((status.pending, status.given_up, status.next_try_ms), (0, 1, None));
    assert_eq!(status.failure.unwrap().message, "still down");
}

#[test]
fn no_more_is_held_than_there_is_room_for() {
    let mut kept = Kept::new(&webhook(1), 0);
    for rank in 0..MOST_PARKED as u64 {
        assert!(!kept.is_full());
        kept.park(notice(rank, &format!("ap-{rank}")), 0);
    }
    assert!(kept.is_full());
    kept.failed(&notice(0, "ap-0"), &"x".repeat(10_000), FIRST, 0);
    assert_eq!(kept.status().failure.unwrap().message.len(), MAX_MESSAGE);
}
