//! The question on a terminal: a person reads the card and types.

use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

use crate::people::{PASSPHRASE, write};
use crate::support::House;

/// The program on a terminal of its own, as `script` makes one.
struct Terminal {
    child: Child,
    said: String,
}

/// More than any of this takes: a program that never answers is ended, and
/// the test fails by what is missing.
const GIVEN_UP: &str = "120";

impl Terminal {
    fn new(house: &House, args: &[String]) -> Self {
        Self::of_shell(house, &format!("exec {}", glovebox(args)))
    }

    fn of_shell(house: &House, line: &str) -> Self {
        let mut command = house.command();
        let (env, folder) = (
            command.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect::<Vec<_>>(),
            house.workspace(),
        );
        command = other("timeout");
        command.args([GIVEN_UP, "script", "--quiet", "--return", "--flush", "--command", line, "/dev/null"]);
        command.current_dir(folder).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in env {
            command.env(name, value.unwrap_or_default());
        }
        command.env("SHELL", "/bin/sh").env("TERM", "dumb");
        Self { child: command.spawn().unwrap(), said: String::new() }
    }

    /// Reads until this is on the screen, and gives what stood before it.
    fn until(&mut self, text: &str) -> String {
        let mut byte = [0];
        let out = self.child.stdout.as_mut().unwrap();
        let mut read = Vec::new();
        while !read.ends_with(text.as_bytes()) {
            assert!(
                out.read(&mut byte).unwrap() == 1,
                "`{text}` is missing: {}{}",
                self.said,
                String::from_utf8_lossy(&read)
            );
            read.push(byte[0]);
        }
        let read = String::from_utf8_lossy(&read).into_owned();
        self.said.push_str(&read);
        read
    }

    fn types(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        self.child.stdin.as_mut().unwrap().flush().unwrap();
    }

    /// The rest, and the exit code.
    fn end(mut self) -> (i32, String) {
        let mut rest = String::new();
        self.child.stdout.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), self.said + &rest)
    }
}

#[expect(clippy::disallowed_methods, reason = "a test helper starts a terminal")]
fn other(program: &str) -> std::process::Command {
    std::process::Command::new(program)
}

/// The program with these arguments, as a shell takes it.
fn glovebox(args: &[String]) -> String {
    let words = std::iter::once(env!("CARGO_BIN_EXE_glovebox")).chain(args.iter().map(String::as_str));
    words.map(quote).collect::<Vec<_>>().join(" ")
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// An agent's attempt to write, for people: not as JSON.
fn writes(path: &str) -> Vec<String> {
    write(path, &[]).into_iter().filter(|arg| arg != "--json").collect()
}

const PROMPT: &str = "answer (a number, and what you have to say about it): ";

#[test]
fn the_card_is_shown_and_a_number_answers_it() {
    let house = House::that_may_write();
    let mut terminal = Terminal::new(&house, &writes("n.txt"));
    let card = terminal.until(PROMPT);
    for word in ["fs.write@1.0.0", "agent coder for", "n.txt", "why asked", "may answer", "[1] "] {
        assert!(card.contains(word), "`{word}` is missing: {card}");
    }
    terminal.types("99\n");
    assert!(terminal.until(PROMPT).contains("type a number from 1 to"), "a wrong number is no answer");
    terminal.types("yes\n");
    assert!(terminal.until(PROMPT).contains("type a number from 1 to"), "a word is no answer");
    assert!(!house.has("n.txt") && house.pending().len() == 1);
    terminal.types("1 go ahead\n");
    let (code, said) = terminal.end();
    assert!(code == 0 && said.contains("completed"), "{said}");
    assert!(house.has("n.txt"));
    let all = house.json(&["approvals", "list", "--all"]);
    let answer = &all["approvals"][0]["answer"];
    assert_eq!((&answer["words"], &answer["offer"]), (&"go ahead".into(), &"once".into()), "{all:#}");
}

#[test]
fn words_behind_a_decline_arrive_at_the_agent() {
    let house = House::that_may_write();
    let mut terminal = Terminal::new(&house, &writes("n.txt"));
    let card = terminal.until(PROMPT);
    let number = card.lines().find(|line| line.contains("] ") && line.contains("decline")).unwrap();
    let number = number.trim().trim_start_matches('[').split(']').next().unwrap().to_owned();
    terminal.types(&format!("{number} not on a Friday\n"));
    let (code, said) = terminal.end();
    assert!(code == 23 && said.contains("declined: not on a Friday"), "{code}: {said}");
    assert!(!house.has("n.txt"));
}

#[test]
fn an_interrupt_withdraws_the_question() {
    let house = House::that_may_write();
    let mut terminal = Terminal::new(&house, &writes("n.txt"));
    terminal.until(PROMPT);
    assert_eq!(house.pending().len(), 1);
    terminal.types("\u{3}");
    let (code, said) = terminal.end();
    assert_eq!(code, 30, "{said}");
    assert!(house.pending().is_empty() && !house.has("n.txt"));
    assert_eq!(house.json(&["approvals", "list", "--all"])["approvals"][0]["state"], "withdrawn");
}

#[test]
fn a_terminal_alone_does_not_approve_what_can_not_be_undone() {
    let house = House::new();
    house.has_a_tool_that_deletes();
    house.has_an_approver();
    let run = ["run", "x.delete", "--agent", "coder", "--raw"].map(str::to_owned);
    let mut terminal = Terminal::new(&house, &run);
    terminal.until(PROMPT);
    terminal.types("1\n");
    terminal.until("this needs a passphrase; your name: ");
    terminal.types("mira\n");
    terminal.until("passphrase: ");
    terminal.types("a guess that is wrong\n");
    assert!(terminal.until(PROMPT).contains("credential-wrong"));
    assert_eq!(house.pending().len(), 1);
    terminal.types("1\n");
    terminal.until("your name: ");
    terminal.types("mira\n");
    terminal.until("passphrase: ");
    terminal.types(&format!("{PASSPHRASE}\n"));
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains(PASSPHRASE), "the passphrase was shown");
    let answer = &house.json(&["approvals", "list", "--all"])["approvals"][0]["answer"];
    assert_eq!((&answer["by"], &answer["assurance"]), (&"mira".into(), &"console-login".into()), "{answer:#}");
}

#[test]
fn two_runs_on_one_terminal_ask_one_after_the_other() {
    let house = House::that_may_write();
    let (a, b) = (glovebox(&writes("a.txt")), glovebox(&writes("b.txt")));
    // A shell takes the terminal from what runs in the background.
    let mut terminal = Terminal::of_shell(&house, &format!("exec 3<&0; {a} <&3 & {b}; wait"));
    let said = terminal.until("waits for its turn on this terminal");
    if !said.contains(PROMPT) {
        terminal.until(PROMPT);
    }
    terminal.types("1\n");
    terminal.until(PROMPT);
    assert_eq!(house.pending().len(), 1, "one answer answers one question");
    terminal.types("1\n");
    let (_, said) = terminal.end();
    assert!(house.has("a.txt") && house.has("b.txt"), "{said}");
}

#[test]
fn the_next_question_is_shown_when_the_last_is_answered_elsewhere() {
    let house = House::that_may_write();
    let mut terminal = Terminal::new(&house, &writes("n.txt"));
    terminal.until(PROMPT);
    let first = house.pending()[0]["approval"].as_str().unwrap().to_owned();
    let other = r#"{"path":"m.txt","mode":"create","text":"x"}"#;
    house.run(&["approvals", "edit", &first, "--args", other]).ok();
    let card = terminal.until(PROMPT);
    assert!(card.contains("answered elsewhere") && card.contains("m.txt"), "{card}");
    terminal.types("1\n");
    let (code, said) = terminal.end();
    assert!(code == 0 && house.has("m.txt") && !house.has("n.txt"), "{said}");
}
