//! Very many readers of one server, some of whom never take a byte.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::served::Served;
use crate::support::House;

/// How many read.
const READERS: usize = 500;
/// How many of them are stuck.
const STUCK: usize = 10;
/// How much more memory all of it may take, in KiB: some for each connection,
/// and nothing for what a reader did not take. Kept for each, the events below
/// would be more than this.
const MOST_KIB: u64 = 32 << 10;

/// A server has this much memory, in KiB.
fn resident(served: &Served) -> u64 {
    let status = fs_err::read_to_string(format!("/proc/{}/status", served.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// A reader as the kernel has it: what it does not read, waits in its socket.
fn reader(served: &Served, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.url.strip_prefix("http://").unwrap()).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
    let host = served.url.strip_prefix("http://").unwrap();
    write!(stream, "GET /v1/sessions/crowd/events HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n")
        .unwrap();
    stream
}

#[test]
fn readers_that_are_stuck_hold_no_memory_and_nobody_up() {
    let house = House::new();
    let docs = format!("docs={}", house.workspace().display());
    let agent = house.token("ci", "agent");
    let served = Served::start(&house, &["--workspace", &docs]);
    served.post(&agent, "/v1/sessions", &json!({ "id": "crowd" }));
    // What is long stands in each event of its action.
    let count = |n: usize| {
        let long = format!("{n} {}", "because ".repeat(200));
        json!({ "capability": "text.count", "arguments": { "path": "a.txt" }, "workspace": "docs", "session": "crowd", "purpose": long })
    };
    for n in 0..20 {
        assert_eq!(served.post(&agent, "/v1/actions", &count(n)).0, 200);
    }
    let stuck: Vec<TcpStream> = (0..STUCK).map(|_| reader(&served, &agent)).collect();
    let mut readers: Vec<TcpStream> = (STUCK..READERS).map(|_| reader(&served, &agent)).collect();
    let mut first = [0; 16];
    for stream in &mut readers {
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first[..12], b"HTTP/1.1 200");
    }
    let before = resident(&served);
    let taking: Vec<_> = readers
        .into_iter()
        .map(|mut stream| {
            std::thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(move || {
                    // To the end of the session, which ends the stream.
                    let (mut seen, mut chunk) = (0, [0; 8192]);
                    let mut tail = Vec::new();
                    while !tail.windows(b"session-closed".len()).any(|part| part == b"session-closed") {
                        let read = stream.read(&mut chunk).unwrap();
                        assert_ne!(read, 0, "it was cut after {seen} bytes");
                        seen += read;
                        tail.extend_from_slice(&chunk[..read]);
                        tail.drain(..tail.len().saturating_sub(16 << 10));
                    }
                    seen
                })
                .unwrap()
        })
        .collect();
    for n in 0..30 {
        assert_eq!(served.post(&agent, "/v1/actions", &count(n)).0, 200);
    }
    let grown = resident(&served).saturating_sub(before);
    assert_eq!(served.post(&agent, "/v1/sessions/crowd/close", &json!({})).0, 200);
    let all: Vec<usize> = taking.into_iter().map(|taken| taken.join().unwrap()).collect();
    assert!(grown < MOST_KIB, "{grown} KiB more, while each took {} bytes", all[0]);
    assert!((all.len() * all[0]) as u64 > MOST_KIB << 10, "{} bytes are no crowd", all[0]);
    drop(stuck);
    served.end();
}
