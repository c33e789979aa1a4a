//! Reaching for the kernel, for the process that watches, for devices, for a
//! network.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use glovebox_jail::Attempt;
use rustix::net::{AddressFamily, Protocol, RawProtocol, SocketType};
use serde_json::{Map, Value, json};

use super::standing::ask;
use crate::{Told, refused};

/// How long a connection may take that nobody answers.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes every attempt of `runtime/jail`, each in a process of its own, because
/// some end it: which did what they wanted, and what the kernel said to others.
pub(crate) fn attempts() -> Value {
    let one = |attempt: &Attempt| {
        let told = json!({ "do": "attempt", "name": attempt.name() });
        (attempt.name().to_owned(), ask("/proc/self/exe", &told).unwrap_or_else(refused))
    };
    Attempt::all().iter().map(one).collect::<Map<_, _>>().into()
}

/// Makes one attempt, as a child of the first process: what it tries of its
/// parent is tried of whoever watches.
pub(crate) fn attempt(told: &Told) -> Value {
    let name = told.text("name", "");
    if !told.flag("orphan") {
        // It says what came of it to whom this process would.
        let more = json!({ "do": "attempt", "name": name, "orphan": true });
        if let Err(error) = super::processes::start(&more, "", std::process::Stdio::inherit()) {
            return refused(error);
        }
        std::process::exit(0);
    }
    while std::os::unix::process::parent_id() != 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    match Attempt::named(name).map(Attempt::make) {
        Some(Ok(())) => json!({ "done": true }),
        Some(Err(error)) => refused(error.kind()),
        None => json!({ "unknown": name }),
    }
}

/// What of the first process can be read, traced or ended.
pub(crate) fn reach_init() -> Value {
    let mut reached = Vec::new();
    for file in ["environ", "mem", "maps", "auxv", "syscall", "stack"] {
        if std::fs::read(format!("/proc/1/{file}")).is_ok_and(|bytes| !bytes.is_empty()) {
            reached.push(format!("read {file}"));
        }
    }
    for link in ["cwd", "root", "exe"] {
        if std::fs::read_link(format!("/proc/1/{link}")).is_ok() {
            reached.push(format!("follow {link}"));
        }
    }
    if std::fs::read_dir("/proc/1/fd").is_ok_and(|all| all.count() > 0) {
        reached.push("list fd".to_owned());
    }
    if std::fs::OpenOptions::new().write(true).open("/proc/1/oom_score_adj").is_ok() {
        reached.push("open oom_score_adj".to_owned());
    }
    for signal in
        [libc::SIGTERM, libc::SIGINT, libc::SIGSEGV, libc::SIGPIPE, libc::SIGKILL, libc::SIGSTOP, libc::SIGHUP]
    {
        // SAFETY: takes numbers alone.
        let _ = unsafe { libc::kill(1, signal) };
    }
    // It would be over by then.
    std::thread::sleep(Duration::from_millis(300));
    json!({ "reached": reached, "alive": std::path::Path::new("/proc/1").exists() })
}

/// Takes one of `limits` after the other from the first process, as far as that
/// is let, then computes for ever, or writes to `path` for ever.
pub(crate) fn cripple_init(told: &Told) -> Value {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let mut taken = Vec::new();
    for (name, limit) in [
        ("files", libc::RLIMIT_NOFILE),
        ("file size", libc::RLIMIT_FSIZE),
        ("processes", libc::RLIMIT_NPROC),
        ("signals", libc::RLIMIT_SIGPENDING),
        ("memory", libc::RLIMIT_AS),
    ] {
        // SAFETY: reads one structure that lives until it returns.
        if told.list("limits").contains(&name)
            && unsafe { libc::prlimit(1, limit, &raw const none, std::ptr::null_mut()) } == 0
        {
            taken.push(name);
        }
    }
    println!("taken: {taken:?}");
    if told.text("path", "").is_empty() { crate::time::spin() } else { crate::files::write(told) }
}

/// What of a network is there: interfaces, ways, addresses, `names` that mean
/// something, `sockets` of this machine; and kinds of sockets that reach below.
pub(crate) fn reach_network(told: &Told) -> Value {
    let names = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut interfaces: Vec<_> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    interfaces.sort();
    let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    let mut reached = Vec::new();
    let usual = ["1.1.1.1:53", "169.254.169.254:80", "172.17.0.1:2375", "[2606:4700:4700::1111]:53"];
    for address in usual.into_iter().chain(told.list("addresses")) {
        let Ok(address) = address.parse::<std::net::SocketAddr>() else { continue };
        if TcpStream::connect_timeout(&address, PATIENCE).is_ok() {
            reached.push(format!("connect to {address}"));
        }
        let udp = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" });
        // To itself it may send.
        if !address.ip().is_loopback() && udp.and_then(|socket| socket.send_to(b"x", address)).is_ok() {
            reached.push(format!("send to {address}"));
        }
    }
    for name in told.list("names") {
        if (name, 80).to_socket_addrs().is_ok_and(|mut all| all.next().is_some()) {
            reached.push(format!("look up {name}"));
        }
    }
    for path in told.list("sockets") {
        if UnixStream::connect(path).is_ok() {
            reached.push(format!("connect to {path}"));
        }
    }
    let abstract_names = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let strangers = abstract_names.lines().skip(1).filter(|line| line.contains(" @") || line.contains(" /")).count();
    let raw = |family, kind, protocol: Option<Protocol>| rustix::net::socket(family, kind, protocol).map(drop);
    let number = |number| core::num::NonZeroU32::new(number).map(|raw: RawProtocol| Protocol::from_raw(raw));
    let kinds = [
        ("raw IP", raw(AddressFamily::INET, SocketType::RAW, number(1))),
        ("raw IPv6", raw(AddressFamily::INET6, SocketType::RAW, number(58))),
        ("packets", raw(AddressFamily::PACKET, SocketType::RAW, number(0x300))),
        ("Bluetooth", raw(AddressFamily::BLUETOOTH, SocketType::RAW, None)),
        ("virtual machines", raw(AddressFamily::from_raw(40), SocketType::STREAM, None)),
        ("cryptography", raw(AddressFamily::from_raw(38), SocketType::SEQPACKET, None)),
    ];
    reached.extend(kinds.into_iter().filter(|(_, made)| made.is_ok()).map(|(kind, _)| format!("socket for {kind}")));
    // Between its own processes it may talk as it likes.
    let own = || -> io::Result<()> { TcpStream::connect(TcpListener::bind("127.0.0.1:0")?.local_addr()?).map(drop) };
    json!({
        "interfaces": interfaces,
        "routes": routes.lines().skip(1).count(),
        "strangers": strangers,
        "reached": reached,
        "own": own().is_ok(),
    })
}

/// The devices that are there, by name, and which of them reach storage or
/// memory.
pub(crate) fn devices() -> Value {
    let (mut names, mut blocks) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir("/dev").into_iter().flatten().flatten() {
        let Ok(meta) = std::fs::symlink_metadata(entry.path()) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        if meta.file_type().is_char_device() {
            names.push(name.clone());
        }
        if meta.file_type().is_block_device() {
            blocks.push(name);
        }
    }
    names.sort();
    json!({ "characters": names, "blocks": blocks })
}

/// Opens each of `paths` for writing, makes it where it is not there, and reads
/// each of `readable`: what went well.
pub(crate) fn write(told: &Told) -> Value {
    let (mut done, mut refusals) = (Vec::new(), Map::new());
    for path in told.list("paths") {
        let opened = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
        match opened {
            Ok(_) => done.push(path),
            Err(error) => drop(refusals.insert(path.to_owned(), json!(format!("{:?}", error.kind())))),
        }
    }
    let mut read = Map::new();
    for path in told.list("readable") {
        use io::Read as _;
        let mut bytes = Vec::new();
        // As much as shows that it is there: some have no end.
        let got = std::fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut bytes));
        if got.is_ok_and(|count| count > 0) {
            read.insert(path.to_owned(), json!(String::from_utf8_lossy(&bytes)));
        }
    }
    json!({ "written": done, "refusals": refusals, "read": read })
}
