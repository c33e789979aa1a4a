//! kill -9 at any moment.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use glovebox_events::Owner;
use glovebox_store::{ActionFilter, Content, EventFilter, EventsOf, Options, Sqlite, Store};

use crate::child;
use crate::suite::made::*;

/// How often a process is killed.
const KILLS: usize = 60;

/// What stands before the id of each commit that was answered.
const ANSWERED: &str = "answered ";

#[test]
fn what_was_answered_survives_a_kill_and_nothing_is_half() {
    if let Some(folder) = child::folder() {
        commit_for_ever(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut answered = Vec::new();
    for kill in 0..KILLS {
        let name = "crash::what_was_answered_survives_a_kill_and_nothing_is_half";
        let mut child = child::again(name, folder.path()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut more = 1 + kill * 7 % 50;
        for line in lines {
            // What was on its way when the kill came was answered too.
            let line = line.unwrap_or_default();
            if let Some((_, id)) = line.split_once(ANSWERED) {
                answered.push(id.to_owned());
                more -= usize::from(more > 0);
                if more == 0 {
                    child.kill().unwrap();
                }
            }
        }
        child.wait().unwrap();
        if kill % 10 == 0 || kill + 1 == KILLS {
            check(folder.path(), &answered);
        }
    }
    assert!(answered.len() > KILLS * 10, "they got to work: {}", answered.len());
}

/// Several callers at once, so that there are batches to cut in half.
fn commit_for_ever(folder: &Path) -> ! {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store: &Sqlite = Box::leak(Box::new(Sqlite::open(folder, &Options::default()).unwrap()));
    runtime.block_on(async {
        let callers: Vec<_> = (0..6)
            .map(|caller| {
                tokio::spawn(async move {
                    for n in 0.. {
                        let mut action =
                            action(&log(&format!("s-{caller}")), &format!("{}-{caller}-{n}", store.holder()));
                        let mut commit = request(&action);
                        commit.records.clear();
                        let claimed = claim(&mut action, 2000);
                        commit.events.extend(claimed.events);
                        commit.records.extend(claimed.records);
                        store.commit(commit).await.unwrap();
                        // One write, so that lines don't mix.
                        let line = format!("\n{ANSWERED}{}\n", action.id);
                        if std::io::stdout().write_all(line.as_bytes()).is_err() {
                            return;
                        }
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
    });
    panic!("nobody listens and nobody killed it");
}

fn check(folder: &Path, answered: &[String]) {
    let store = Sqlite::open(folder, &Options::default()).unwrap();
    for id in answered {
        assert!(store.action(&house(), &of(id)).unwrap().is_some(), "{id} was answered and is gone");
    }
    // All that is there, answered or not, is there with everything.
    let mut filter = ActionFilter::default();
    let mut found = 0;
    loop {
        let page = store.actions(&house(), &filter).unwrap();
        for action in &page.items {
            let of = EventsOf::Action(action.id.clone());
            let events = store.events(&house(), &EventFilter { of, after: 0, limit: 0 }).unwrap();
            assert_eq!((events.len(), action.version), (2, 2), "{}", action.id);
            let words = store.payload(&house(), &Owner::Action(action.id.clone()), &action.submission).unwrap();
            assert!(matches!(words, Some(Content::Bytes(_))), "{}", action.id);
            found += 1;
        }
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    assert!(found >= answered.len());
    assert_eq!(store.task(&house(), &of("task-1")).unwrap().used.actions, found as u64);
    let report = store.verify(None).unwrap();
    assert!(report.sound(), "{:?}", report.findings);
    assert_eq!(Sqlite::check(folder).unwrap(), Vec::<String>::new());
}
