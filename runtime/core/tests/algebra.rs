//! The laws of the contract algebra, on small universes where everything
//! meets everything.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use env_contracts::{
    Access, Audit, AuditLevel, Bounds, ByteSize, Cleanup, Contract, Data, Delegation, Deterministic, Egress, Identity,
    Imports, Inject, Isolation, Label, Limits, Mount, Network, Persistence, Scope, Secret, Sharing, Snapshot, Source,
    Span, State, Tls, Walls, Wasm,
};
use glovebox_runtime::algebra::{self, Narrow};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

fn mounts() -> impl Strategy<Value = Vec<Mount>> {
    let one = |guest: &'static str| {
        let source = select(vec![Source::Workspace, Source::Host("/srv".into())]);
        let access = select(vec![Access::Read, Access::Overlay, Access::Write]);
        let hide = option::of(subsequence(vec!["a".to_owned(), "b".to_owned(), ".env*".to_owned()], 0..=3));
        (source, access, hide).prop_map(move |(source, access, hide)| Mount {
            guest: guest.parse().unwrap(),
            source,
            access,
            hide,
        })
    };
    (option::of(one("/x")), option::of(one("/y"))).prop_map(|(x, y)| x.into_iter().chain(y).collect())
}

fn egress() -> impl Strategy<Value = Egress> {
    let host = select(vec!["a.example.com", "b.example.com", "*.example.com", "**.example.com", "other.org"]);
    let ports = subsequence(vec![80_u16, 443], 1..=2);
    let methods = option::of(subsequence(vec!["GET".to_owned(), "POST".to_owned()], 1..=2));
    let paths =
        option::of(subsequence(vec!["/".to_owned(), "/a/".to_owned(), "/a/b/".to_owned(), "/c/".to_owned()], 1..=3));
    let max = option::of((1..3_u64).prop_map(ByteSize));
    let connections = option::of(1..3_u32);
    let tls = select(vec![Tls::Tunnel, Tls::Terminate]);
    (host, ports, methods, paths, max, connections, tls).prop_map(
        |(host, ports, methods, paths, max, connections, tls)| Egress {
            host: host.parse().unwrap(),
            ports,
            methods,
            paths,
            max,
            connections,
            tls,
        },
    )
}

fn secrets() -> impl Strategy<Value = Vec<Secret>> {
    let host = select(vec!["a.example.com", "*.example.com", "**.example.com"]);
    let path = option::of(select(vec!["/".to_owned(), "/a/".to_owned()]));
    let method = option::of(select(vec!["GET".to_owned(), "POST".to_owned()]));
    let one = (host, path, method).prop_map(|(host, path, method)| Secret {
        reference: "token".parse().unwrap(),
        inject: Inject {
            host: host.parse().unwrap(),
            method,
            path,
            header: "x-token".into(),
            format: "{secret}".into(),
        },
    });
    vec(one, 0..3)
}

fn limits() -> impl Strategy<Value = Limits> {
    let span = || option::of((1..4_u64).prop_map(Span::secs));
    let size = || option::of((1..4_u64).prop_map(ByteSize::mib));
    let count = || option::of(1..4_u32);
    (span(), span(), span(), size(), size(), size(), count(), count()).prop_map(
        |(wall, idle, cpu, memory, storage, output, pids, concurrency)| Limits {
            wall,
            idle,
            cpu,
            memory,
            storage,
            output,
            pids,
            concurrency,
            ..Limits::default()
        },
    )
}

fn contracts() -> impl Strategy<Value = Contract> {
    let network = (vec(egress(), 0..3), Just(Vec::new())).prop_map(|(egress, ingress)| Network { egress, ingress });
    let identity = (
        select(vec![Delegation::None, Delegation::Agent, Delegation::User]),
        subsequence(vec!["x".to_owned(), "y".to_owned()], 0..=2),
    )
        .prop_map(|(delegation, audiences)| Identity { delegation, audiences });
    let small = (
        select(vec![Persistence::None, Persistence::Environment]),
        select(vec![Snapshot::Never, Snapshot::Before]),
        select(vec![Sharing::Action, Sharing::Task, Sharing::Agent]),
        select(vec![Label::Public, Label::Internal, Label::Restricted]),
        select(vec![AuditLevel::Outcome, AuditLevel::Output]),
        option::of((1..3_u64).prop_map(Span::secs)),
        any::<bool>(),
        select(vec![Imports::Refuse, Imports::Stub]),
        (
            (1..=2_u8).prop_map(Walls),
            option::of((1..3_u64).prop_map(|seed| Deterministic { seed, time: Deterministic::beginning() })),
        ),
    );
    (mounts(), network, secrets(), identity, limits(), small).prop_map(
        |(filesystem, network, secrets, identity, limits, small)| {
            let (persistence, snapshot, sharing, label, level, retain, scratch, imports, (walls, deterministic)) =
                small;
            Contract {
                filesystem,
                network,
                secrets,
                identity,
                limits,
                state: State { persistence, snapshot },
                isolation: Isolation { sharing, walls },
                data: Data { label },
                audit: Audit { level, retain },
                cleanup: Cleanup { scratch },
                wasm: Wasm { imports, deterministic },
                ..Contract::default()
            }
        },
    )
}

/// A scope that has every section of a contract.
fn scope_of(contract: &Contract) -> Scope {
    let contract = contract.clone();
    Scope {
        filesystem: Some(contract.filesystem),
        network: Some(contract.network),
        secrets: Some(contract.secrets),
        identity: Some(contract.identity),
        limits: Some(contract.limits),
        state: Some(contract.state),
        isolation: Some(contract.isolation),
        data: Some(contract.data),
        audit: Some(contract.audit),
        cleanup: Some(contract.cleanup),
        wasm: Some(contract.wasm),
        ..Scope::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_order_is_reflexive(a in contracts()) {
        prop_assert!(algebra::le(&a, &a));
    }

    #[test]
    fn what_both_allow_lies_within_each(a in contracts(), b in contracts()) {
        let both = algebra::narrow(&a, &scope_of(&b));
        prop_assert!(algebra::le(&both, &a), "{both:?}");
        prop_assert!(algebra::le(&both, &b), "{both:?}");
    }

    #[test]
    fn nothing_that_both_allow_is_lost(a in contracts(), b in contracts(), c in contracts()) {
        // `c` is made to lie within both, so that the premise always holds.
        let c = algebra::narrow(&algebra::narrow(&c, &scope_of(&a)), &scope_of(&b));
        prop_assert!(algebra::le(&c, &a) && algebra::le(&c, &b));
        prop_assert!(algebra::le(&c, &algebra::narrow(&a, &scope_of(&b))));
    }

    #[test]
    fn the_order_is_transitive(a in contracts(), b in contracts(), c in contracts()) {
        let b = algebra::narrow(&b, &scope_of(&c));
        let a = algebra::narrow(&a, &scope_of(&b));
        prop_assert!(algebra::le(&a, &b) && algebra::le(&b, &c));
        prop_assert!(algebra::le(&a, &c));
    }

    #[test]
    fn narrowing_twice_is_narrowing_once(a in contracts(), b in contracts()) {
        let scope = scope_of(&b);
        let once = algebra::narrow(&a, &scope);
        let twice = algebra::narrow(&once, &scope);
        prop_assert!(algebra::le(&once, &twice) && algebra::le(&twice, &once));
    }

    #[test]
    fn an_empty_scope_changes_nothing(a in contracts()) {
        prop_assert_eq!(algebra::narrow(&a, &Scope::default()), a.clone());
        prop_assert!(algebra::delta(&a, &Scope::default()).is_empty());
    }

    /// A request that only narrows is no delta; one that is not within the
    /// tool's contract always is, and names a clause.
    #[test]
    fn a_delta_is_what_goes_beyond(a in contracts(), b in contracts()) {
        let within = algebra::narrow(&a, &scope_of(&b));
        prop_assert!(algebra::delta(&a, &scope_of(&within)).is_empty());
        // Audit, cleanup and walls can't be asked down; limits that are not asked
        // for stay the tool's.
        let isolation = Isolation { walls: a.isolation.walls, ..b.isolation.clone() };
        let wasm = Wasm { imports: b.wasm.imports, ..a.wasm.narrow(&b.wasm) };
        let (audit, cleanup) = (a.audit.clone(), a.cleanup.clone());
        let limits = b.limits.narrow(&a.limits);
        let asked = Contract { isolation, audit, cleanup, limits, wasm, ..b.clone() };
        if !algebra::le(&asked, &a) {
            prop_assert!(!algebra::delta(&a, &scope_of(&asked)).is_empty(), "{asked:?}");
        }
    }
}

/// The real clock is granted like anything else: where the operator gives
/// none, nobody gets it.
#[test]
fn a_ceiling_without_the_real_clock_leaves_nobody_with_it() {
    let chosen = |seed| Some(Deterministic { seed, time: Deterministic::beginning() });
    let wasm = |deterministic| Wasm { deterministic, ..Wasm::default() };
    let bounds = Bounds { wasm: wasm(chosen(7)), ..Bounds::default() };
    let filled = algebra::fill(&Contract::default(), &bounds);
    assert_eq!(filled.wasm.deterministic, chosen(7));
    let own = Contract { wasm: wasm(chosen(8)), ..Contract::default() };
    assert_eq!(algebra::fill(&own, &bounds).wasm.deterministic, chosen(8));
    assert!(algebra::excess(&filled, &bounds).is_empty() && !algebra::le(&Contract::default(), &filled));
}

/// What a folder hides is a clause of its own: to show it is more than the
/// folder.
#[test]
fn showing_what_is_hidden_goes_beyond_the_contract() {
    let tool = Contract::from_toml(
        "schema = \"glovebox/contract/v1\"\nfilesystem = [{ guest = \"/workspace\", source = \"workspace\", access = \"read\" }]\n",
    )
    .unwrap();
    for (hide, access, clauses) in [
        ("[]", "read", vec!["filesystem[/workspace].hide"]),
        ("[\"*.pem\"]", "read", vec!["filesystem[/workspace].hide"]),
        ("[]", "write", vec!["filesystem[/workspace]", "filesystem[/workspace].hide"]),
    ] {
        let text = format!(
            "filesystem = [{{ guest = \"/workspace\", source = \"workspace\", access = \"{access}\", hide = {hide} }}]\n"
        );
        let scope = Scope::from_toml(&text).unwrap();
        let beyond: Vec<String> = algebra::delta(&tool, &scope).iter().map(|delta| delta.clause.to_string()).collect();
        assert_eq!(beyond, clauses, "{text}");
    }
}
