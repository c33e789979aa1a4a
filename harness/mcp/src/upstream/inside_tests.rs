//! Servers that do what a test tells them, behind the port to containers.

use std::collections::VecDeque;

use env_contracts::{DerivedEffects, Plan, Principal, Span};
use glovebox_runtime::job::Timer;
use glovebox_runtime::{ArtifactBytes, Runtime};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

use super::super::program::{Life, look};
use super::*;

/// What a server does from its start to its end.
#[derive(Clone, Default)]
struct Script {
    /// What it says of its tool.
    words: &'static str,
    /// What it writes when it is called; nothing: it answers.
    called: Option<String>,
    /// How its container ends, where it ends by itself when it is called.
    ends: Option<End>,
    /// Whether it answers before that.
    answers: bool,
    /// Whether it writes in the call without end.
    endless: bool,
}

/// The action that a server ran for, and what it was told.
type Told = Vec<(Option<String>, String)>;

/// Runs one script after the other, and keeps what they were told.
#[derive(Default)]
struct Fakes {
    scripts: Mutex<VecDeque<Script>>,
    told: Arc<Mutex<Told>>,
    /// How many run.
    alive: Arc<Mutex<usize>>,
}

struct FakeLife {
    task: tokio::task::JoinHandle<End>,
    alive: Arc<Mutex<usize>>,
}

impl Drop for FakeLife {
    fn drop(&mut self) {
        self.task.abort();
        *self.alive.lock().unwrap() -= 1;
    }
}

impl Life for FakeLife {
    fn last_words(&self) -> String {
        "last words".to_owned()
    }

    fn end(mut self: Box<Self>) -> BoxFuture<'static, RunReport> {
        Box::pin(async move {
            let ended = tokio::time::timeout(Duration::from_millis(50), &mut self.task).await;
            let end = ended.map_or(End::Interrupted, |end| end.unwrap());
            RunReport { end, usage: JobUsage::default(), notices: Vec::new() }
        })
    }
}

impl Programs for Fakes {
    fn enforce(&self, _: &Clause<'_>) -> Enforcement {
        Enforcement::By("a fake")
    }

    fn start(&self, action: Option<&env_contracts::Id>, _: &Program, _: Box<dyn FrameSink>) -> Running {
        let (said, theirs) = duplex(1 << 10);
        let (told, heard) = duplex(1 << 10);
        let script = self.scripts.lock().unwrap().pop_front().expect("nobody starts one more");
        *self.alive.lock().unwrap() += 1;
        let task = tokio::spawn(serve(script, heard, theirs, self.told.clone(), action.map(ToString::to_string)));
        let life = FakeLife { task, alive: self.alive.clone() };
        Running { said: Box::new(said), told: Box::new(told), life: Box::new(life) }
    }
}

async fn serve(
    script: Script,
    heard: DuplexStream,
    mut say: DuplexStream,
    told: Arc<Mutex<Told>>,
    action: Option<String>,
) -> End {
    let mut lines = BufReader::new(heard).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        told.lock().unwrap().push((action.clone(), method.clone()));
        let result = match &*method {
            "initialize" => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" } }),
            "tools/list" => json!({ "tools": [{ "name": "note", "description": script.words,
                "inputSchema": { "type": "object" } }] }),
            "tools/call" => {
                if let Some(end) = script.ends {
                    let result = json!({ "content": [] });
                    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                    if script.answers {
                        let _ = say.write_all(format!("{answer}\n").as_bytes()).await;
                    }
                    return end;
                }
                while script.endless && say.write_all(&[b'x'; 512]).await.is_ok() {}
                match &script.called {
                    Some(text) => {
                        let _ = say.write_all(text.as_bytes()).await;
                        continue;
                    }
                    None => json!({ "content": [{ "type": "text", "text": "done" }] }),
                }
            }
            _ => {
                let error = json!({ "code": -32601, "message": "no such method" });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                if !message["id"].is_null() {
                    let _ = say.write_all(format!("{answer}\n").as_bytes()).await;
                }
                continue;
            }
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let _ = say.write_all(format!("{answer}\n").as_bytes()).await;
    }
    End::Exited { code: 0 }
}

fn program() -> Program {
    let limits = Limits {
        wall: Some(Span(Duration::from_secs(30))),
        output: Some(env_contracts::ByteSize(1 << 16)),
        ..Limits::default()
    };
    let command = vec!["notes".to_owned()];
    Program { image: Digest::of(b"image"), runtime: None, command, env: [].into(), limits }
}

fn says(words: &'static str) -> Script {
    Script { words, ..Script::default() }
}

/// A tool of a server that says `registered`, and what its runs do after that.
async fn tool(scripts: &[Script]) -> (Arc<Fakes>, Registered, Contract) {
    let fakes = Arc::new(Fakes::default());
    let limits = program().limits;
    fakes.scripts.lock().unwrap().push_back(says("registered"));
    let adoption = look(program(), &"ex".parse().unwrap(), &limits, &*fakes).await.unwrap();
    let [adopted] = &adoption.tools[..] else { panic!("{:?}", adoption.left_out) };
    let registered = Registered {
        digest: Digest::of(&adopted.pinned),
        bytes: ArtifactBytes::Memory(adopted.pinned.clone().into()),
        entry: adopted.manifest.entry.clone(),
        name: adopted.manifest.name.to_string(),
    };
    assert_eq!(*fakes.alive.lock().unwrap(), 0, "who was looked at is gone");
    fakes.scripts.lock().unwrap().extend(scripts.iter().cloned());
    fakes.told.lock().unwrap().clear();
    (fakes, registered, adopted.manifest.contract.clone())
}

struct Nobody;

impl FrameSink for Nobody {
    fn frame(&mut self, _: Frame<'_>) {}
}

/// How a call ends, with what the server was told in it.
async fn called(scripts: &[Script], stop: Stop) -> (End, Vec<String>) {
    let (fakes, registered, contract) = tool(scripts).await;
    let backend = Arc::new(ProgramBackend::new(fakes.clone()));
    assert!(backend.takes(&registered.entry, &contract));
    let prepared = backend.prepare(&registered, &contract, &|_| {}).await.unwrap();
    assert_eq!(*fakes.alive.lock().unwrap(), 0, "nothing waits for a decision");
    assert!(fakes.told.lock().unwrap().iter().all(|(action, method)| action.is_none() && method != "tools/call"));
    let plan = Plan {
        action_id: "a1".parse().unwrap(),
        revision: 1,
        capability: "ex.note@1.0.0".parse().unwrap(),
        artifact: registered.digest.clone(),
        arguments: "{}".to_owned(),
        contract,
        effects: DerivedEffects::None,
        principal: Principal {
            tenant: "t".parse().unwrap(),
            user: "u".parse().unwrap(),
            agent: None,
            agent_version: None,
            chain: Vec::new(),
        },
        backend: backend.name().to_owned(),
    };
    let files = Files {
        mounts: Vec::new(),
        sealed: Vec::new(),
        outputs: None,
        facts: Default::default(),
        evidence: Vec::new(),
    };
    let bound = Bound::new(plan, registered, prepared, files);
    let (runtime, authority) = Runtime::new(vec![backend]);
    let permit = authority.permit(&bound.digest);
    let report = runtime.run(bound, permit, Ports { frames: Box::new(Nobody), stop }).await.unwrap();
    assert_eq!(*fakes.alive.lock().unwrap(), 0, "its server is gone");
    let told = fakes.told.lock().unwrap().clone();
    let mine = told.into_iter().filter(|(action, _)| action.as_deref() == Some("a1"));
    (report.end, mine.map(|(_, method)| method).collect())
}

async fn end_of(script: Script) -> End {
    let scripts = [says("registered"), Script { words: "registered", ..script }];
    let (end, told) = called(&scripts, Stop::default()).await;
    assert!(told.contains(&"tools/call".to_owned()), "{told:?}");
    end
}

#[tokio::test]
async fn the_run_that_is_called_was_asked_and_called_once() {
    let (end, told) = called(&[says("registered"), says("registered")], Stop::default()).await;
    assert!(matches!(&end, End::Returned { content, .. } if content == "\"done\""), "{end:?}");
    assert_eq!(told.iter().filter(|method| *method == "tools/call").count(), 1, "{told:?}");
}

/// Who says one thing before the decision and another after it hears nothing of
/// the call.
#[tokio::test]
async fn who_says_something_else_when_called_is_not_called() {
    let (end, told) = called(&[says("registered"), says("Sends money.")], Stop::default()).await;
    let End::Refused(problem) = end else { panic!("{end:?}") };
    assert_eq!(problem.code, Code::Drift);
    assert!(told.contains(&"tools/list".to_owned()) && !told.contains(&"tools/call".to_owned()), "{told:?}");
    // What a person saw is what is compared, not what was registered.
    let (end, _) = called(&[says("Sends money."), says("Sends money.")], Stop::default()).await;
    assert!(matches!(end, End::Returned { .. }), "{end:?}");
    let (end, told) = called(&[says("Sends money."), says("registered")], Stop::default()).await;
    assert!(matches!(end, End::Refused(_)) && !told.contains(&"tools/call".to_owned()), "{end:?}");
}

#[tokio::test]
async fn what_is_no_answer_has_a_name() {
    let bad = |end: &End| matches!(end, End::Failed(failure) if failure.kind == "bad-answer");
    for text in ["done!\n", "{\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n", "{}\n"] {
        let end = end_of(Script { called: Some(text.to_owned()), ..Script::default() }).await;
        assert!(bad(&end), "{text}: {end:?}");
    }
    let end = end_of(Script { endless: true, ..Script::default() }).await;
    assert_eq!(end, End::LimitHit(Limit::Output));
    for (ends, as_what) in [
        (End::Exited { code: 0 }, "ended with exit code 0"),
        (End::Exited { code: 3 }, "ended with exit code 3"),
        (End::Trapped("ended by signal 11".into()), "ended by signal 11"),
    ] {
        let end = end_of(Script { ends: Some(ends), ..Script::default() }).await;
        assert!(matches!(&end, End::Trapped(text) if text.contains(as_what)), "{end:?}");
    }
    for own in
        [End::TimedOut(Timer::Wall), End::LimitHit(Limit::Memory), End::Lost("gone".into()), End::Violation("v".into())]
    {
        let end = end_of(Script { ends: Some(own.clone()), ..Script::default() }).await;
        assert_eq!(end, own);
    }
}

/// An answer is worth nothing where something else ran; and all that it is where
/// its server ended after it.
#[tokio::test]
async fn an_answer_counts_by_where_it_comes_from() {
    let answered = |own| Script { ends: Some(own), answers: true, ..Script::default() };
    assert_eq!(end_of(answered(End::Violation("v".into()))).await, End::Violation("v".into()));
    let end = end_of(answered(End::Exited { code: 3 })).await;
    assert!(matches!(end, End::Returned { .. }), "{end:?}");
}

/// A server that is called and says nothing is given up with its action.
#[tokio::test]
async fn a_stop_ends_the_call() {
    let stop = Stop::default();
    let silent = Script { words: "registered", called: Some(String::new()), ..Script::default() };
    let scripts = [says("registered"), silent];
    let (ended, ()) = tokio::join!(called(&scripts, stop.clone()), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.request();
    });
    assert_eq!(ended.0, End::Interrupted);
}

/// What holds in a container holds here, but for folders and what is kept.
#[test]
fn nothing_is_shown_and_nothing_kept() {
    let backend = ProgramBackend::new(Arc::new(Fakes::default()));
    let refused = |clause: &Clause<'_>| matches!(backend.enforce(clause), Enforcement::Refused { .. });
    let mount = |source| env_contracts::Mount {
        guest: "/x".parse().unwrap(),
        source,
        access: env_contracts::Access::Read,
        hide: None,
    };
    assert!(refused(&Clause::Mount(&mount(Source::Workspace))) && refused(&Clause::Mount(&mount(Source::Scratch))));
    assert!(!refused(&Clause::Mount(&mount(Source::Outputs))));
    assert!(
        refused(&Clause::Persistence(Persistence::Environment)) && !refused(&Clause::Persistence(Persistence::None))
    );
    assert!(!refused(&Clause::Pids(9)));
}
