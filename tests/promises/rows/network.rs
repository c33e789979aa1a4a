//! No way out, by name or by number, and no silence about it.

use env_contracts::Code;
use serde_json::json;

use super::{NO_WEBASSEMBLY, Row, row};
use crate::guests::Guest;
use crate::house::House;

const STUBS: &str = "wasm = { imports = \"stub\" }";

pub(super) const ROWS: &[Row] = &[
    row("a guest that imports sockets, name look-up or HTTP is refused with the names", imports)
        .of_components(NO_WEBASSEMBLY),
    row("a stubbed socket answers access-denied", sockets).of_components(NO_WEBASSEMBLY),
    row("a stubbed name look-up resolves nothing and asks nobody", names).of_components(NO_WEBASSEMBLY),
    row("a stubbed import that is none of WASI ends the guest that calls it, by name", unknown)
        .of_components(NO_WEBASSEMBLY),
    row("a tool reaches no network: no interface, no way, no name, no socket of this host", nothing_reached)
        .of_images("a component has no sockets: see the rows above"),
    row("egress reaches what the contract names and nothing else", egress),
    row("ingress reaches the port that the contract names", ingress),
    row("a secret is inserted where the contract says, and nowhere held by the guest", secrets),
];

fn imports(house: &House) {
    for (guest, names) in [
        ("imports-sockets", &["wasi:sockets/network@0.2.0", "wasi:sockets/tcp-create-socket@0.2.0"][..]),
        ("imports-dns", &["wasi:sockets/ip-name-lookup@0.2.0"][..]),
        ("imports-http", &["wasi:http/types@0.2.0", "wasi:http/outgoing-handler@0.2.0"][..]),
        ("imports-unknown", &["example:unknown/thing@1.0.0"][..]),
    ] {
        let seen = house.act(&Guest::Wat(guest), &json!({})).run().ends("contract-unsatisfied");
        let seen = seen.coded(Code::ComponentImports).says(names);
        assert_eq!((seen.output.stdout.total, seen.times.run_us), (0, 0), "{seen:?}");
    }
}

fn sockets(house: &House) {
    let act = house.act(&Guest::Wat("imports-sockets"), &json!({})).clause(STUBS);
    // 100, and the number of `access-denied`.
    act.run().ends("completed(101)");
}

fn names(house: &House) {
    let act = house.act(&Guest::Wat("imports-dns"), &json!({})).clause(STUBS);
    // 100, and the number of `permanent-resolver-failure`: not a failure to
    // reach a server, which would be the one before.
    act.run().ends("completed(120)");
}

fn unknown(house: &House) {
    let act = house.act(&Guest::Wat("imports-unknown"), &json!({})).clause(STUBS);
    act.run().ends("completed(trap)").says(&["`example:unknown/thing@1.0.0#act` is not granted"]);
    let act = house.act(&Guest::Wat("imports-http"), &json!({})).clause(STUBS);
    act.run().ends("completed(trap)").says(&["`wasi:http/types@0.2.0", "is not granted"]);
}

/// Between its own processes a tool may talk as it likes.
fn nothing_reached(house: &House) {
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let socket = crate::engine::socket().path().display().to_string();
    assert!(std::os::unix::net::UnixStream::connect(&socket).is_ok(), "the engine of this host listens");
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let told = json!({
        "do": "reach-network",
        "names": ["example.com", "host.docker.internal", "metadata.google.internal", host],
        "addresses": [format!("127.0.0.1:{}", listener.local_addr().unwrap().port())],
        "sockets": [socket, "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"],
    });
    let seen = house.command(&told).run().succeeds();
    assert_eq!(seen.data()["interfaces"], json!(["lo"]), "{seen:?}");
    assert_eq!((&seen.data()["reached"], &seen.data()["routes"]), (&json!([]), &json!(0)), "{seen:?}");
    assert_eq!((&seen.data()["strangers"], &seen.data()["own"]), (&json!(0), &json!(true)), "{seen:?}");
}

/// A backend that lets something through has to be tried here; until then it
/// must refuse.
fn refuses(house: &House, lines: &str) {
    house.command(&json!({ "do": "nothing" })).clause(lines).run();
    panic!("this backend grants `{lines}`, and nothing here tries what else it lets through");
}

fn egress(house: &House) {
    refuses(house, "network = { egress = [{ host = \"api.example.com\", ports = [443] }] }");
}

fn ingress(house: &House) {
    refuses(house, "network = { ingress = [{ port = 8080, protocol = \"http\" }] }");
}

fn secrets(house: &House) {
    // Without the egress that it goes with, which may be dropped.
    refuses(
        house,
        "network = { egress = [{ host = \"api.example.com\", ports = [443] }] }\n\
         degrade = { \"network.egress[api.example.com]\" = \"allow\" }\n\
         secrets = [{ ref = \"token\", inject = { host = \"api.example.com\", header = \"authorization\", format = \"Bearer {secret}\" } }]",
    );
}
