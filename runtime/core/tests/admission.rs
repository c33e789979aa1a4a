//! Who gets room, and when.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use env_contracts::{ByteSize, Code};
use glovebox_runtime::{Admission, Budgets};

fn admission(memory: u64, actions: u32, queue: u32) -> Admission {
    waiting(memory, actions, queue, Duration::from_secs(600))
}

fn waiting(memory: u64, actions: u32, queue: u32, wait: Duration) -> Admission {
    Admission::new(Budgets { memory: ByteSize::mib(memory), actions, queue, wait })
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
}

#[test]
fn what_can_never_fit_is_refused_at_once() {
    run(async {
        let problem = admission(10, 4, 4).enter("t", ByteSize::mib(11)).await.unwrap_err();
        assert_eq!(problem.code, Code::ContractUnsatisfied);
    });
}

#[test]
fn room_comes_back_and_is_never_given_twice() {
    run(async {
        let admission = admission(10, 2, 100);
        for _ in 0..100 {
            let a = admission.enter("t", ByteSize::mib(5)).await.unwrap();
            let b = admission.enter("t", ByteSize::mib(5)).await.unwrap();
            let third = tokio::time::timeout(Duration::from_millis(1), admission.enter("t", ByteSize::mib(5))).await;
            assert!(third.is_err(), "a third action got room that is not there");
            drop((a, b));
        }
        let _all = admission.enter("t", ByteSize::mib(10)).await.unwrap();
    });
}

#[test]
fn a_full_queue_and_a_long_wait_answer_busy() {
    run(async {
        let admission = waiting(10, 1, 1, Duration::from_millis(200));
        let _held = admission.enter("t", ByteSize::mib(1)).await.unwrap();
        let waits = tokio::spawn({
            let admission = admission.clone();
            async move { admission.enter("t", ByteSize::mib(1)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(admission.enter("t", ByteSize::mib(1)).await.unwrap_err().code, Code::Busy);
        // Another tenant's queue is its own.
        assert!(tokio::time::timeout(Duration::from_millis(20), admission.enter("u", ByteSize::mib(1))).await.is_err());
        assert_eq!(waits.await.unwrap().unwrap_err().code, Code::Busy);
    });
}

#[test]
fn tenants_take_turns_however_many_one_of_them_sends() {
    run(async {
        let admission = admission(10, 1, 100);
        let held = admission.enter("many", ByteSize::mib(1)).await.unwrap();
        let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for tenant in ["many", "many", "many", "many", "few"] {
            let (admission, order) = (admission.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let _room = admission.enter(tenant, ByteSize::mib(1)).await.unwrap();
                order.lock().unwrap().push(tenant);
            }));
            tokio::task::yield_now().await;
        }
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(order.lock().unwrap()[..2], ["many", "few"]);
    });
}

#[test]
fn whoever_gives_up_does_not_keep_others_waiting() {
    run(async {
        let admission = admission(10, 4, 100);
        let held = admission.enter("t", ByteSize::mib(5)).await.unwrap();
        // A large action waits at the front, and gives up.
        assert!(tokio::time::timeout(Duration::from_millis(1), admission.enter("t", ByteSize::mib(10))).await.is_err());
        let small = tokio::time::timeout(Duration::from_millis(1), admission.enter("t", ByteSize::mib(5))).await;
        assert!(small.is_ok(), "a waiter that is gone still blocks the queue");
        drop(held);
    });
}

/// Two handles on one folder stand for two processes: nothing but the folder
/// connects them.
#[test]
fn processes_that_share_a_folder_share_their_budgets() {
    let dir = tempfile::tempdir().unwrap();
    let room = dir.path().join("room");
    let process = |wait| {
        let budgets = Budgets { memory: ByteSize::mib(10), actions: 2, queue: 2, wait: Duration::from_millis(wait) };
        Admission::shared(budgets, room.clone())
    };
    let (a, b) = (process(10_000), process(50));
    run(async {
        let first = a.enter("t", ByteSize::mib(6)).await.unwrap();
        assert_eq!(b.enter("t", ByteSize::mib(6)).await.unwrap_err().code, Code::Busy, "memory");
        let second = b.enter("t", ByteSize::mib(4)).await.unwrap();
        assert_eq!(b.enter("t", ByteSize::mib(0)).await.unwrap_err().code, Code::Busy, "number");
        let waits = tokio::spawn(async move { a.enter("t", ByteSize::mib(6)).await.map(drop) });
        drop(first);
        waits.await.unwrap().unwrap();
        drop(second);
    });
    // Claims of processes that are gone count for nothing.
    fs_err::write(room.join("r-0000000000000001-0000000001-0000000000-10485760"), "").unwrap();
    fs_err::write(room.join("w-0000000000000001-0000000001-0000000001-10485760"), "").unwrap();
    run(async {
        b.enter("t", ByteSize::mib(10)).await.unwrap();
    });
    assert_eq!(fs_err::read_dir(&room).unwrap().count(), 1, "only the gate is left");
}
