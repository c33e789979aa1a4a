//! Imports: only what is granted is linked.

use env_contracts::{Code, Diagnose};
use glovebox_runtime::job::{End, UngrantedImports};
use glovebox_wasm::inspect;

use crate::harness::{Act, compile, executor, text, wat};

#[test]
fn ungranted_imports_are_refused_with_the_list() {
    for (guest, import) in
        [("imports-sockets", "wasi:sockets/instance-network@0.2.0"), ("imports-unknown", "example:unknown/thing@1.0.0")]
    {
        let error = executor().load(&compile(&wat(guest)).unwrap(), UngrantedImports::Refuse).unwrap_err();
        assert_eq!(error.code(), Code::ComponentImports);
        assert!(error.to_string().contains(import), "{error}");
        // It is known before anything is compiled.
        let inspection = inspect(&wat(guest), 1 << 20).unwrap();
        assert_eq!(inspection.ungranted, [import]);
        assert_eq!(inspection.check(UngrantedImports::Refuse).unwrap_err().code(), Code::ComponentImports);
        inspection.check(UngrantedImports::Stub).unwrap();
    }
}

#[test]
fn http_is_not_linked() {
    let guest = wat::parse_str(
        r#"(component
          (import "wasi:http/types@0.2.0" (instance (export "fields" (type (sub resource)))))
          (core module $m (func (export "run") (result i32) (i32.const 0)))
          (core instance $i (instantiate $m))
          (func $f (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#,
    );
    let error = executor().load(&compile(&guest.unwrap()).unwrap(), UngrantedImports::Refuse).unwrap_err();
    assert!(error.to_string().contains("wasi:http/types@0.2.0"));
}

#[test]
fn stubs_end_the_guest_that_calls_them_by_name() {
    let guest = executor().load(&compile(&wat("imports-unknown")).unwrap(), UngrantedImports::Stub).unwrap();
    let came = Act::command("").run(&guest);
    assert!(
        matches!(&came.end, End::Trapped(text) if text.contains("`example:unknown/thing@1.0.0#act` is not granted")),
        "{came:?}"
    );
}

#[test]
fn stubbed_sockets_answer_access_denied() {
    // Exits with the code of the error that creating a socket gives.
    let guest = wat::parse_str(
        r#"(component
          (import "wasi:sockets/network@0.2.0" (instance $n
            (type $ec' (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout" "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit" "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset" "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure" "permanent-resolver-failure"))
            (export "error-code" (type (eq $ec')))
            (type $f' (enum "ipv4" "ipv6"))
            (export "ip-address-family" (type (eq $f')))))
          (alias export $n "error-code" (type $error))
          (alias export $n "ip-address-family" (type $family))
          (import "wasi:sockets/tcp@0.2.0" (instance $t (export "tcp-socket" (type (sub resource)))))
          (alias export $t "tcp-socket" (type $socket))
          (import "wasi:sockets/tcp-create-socket@0.2.0" (instance $c
            (alias outer 1 $error (type $e'))
            (export "error-code" (type $e (eq $e')))
            (alias outer 1 $family (type $f'))
            (export "ip-address-family" (type $f (eq $f')))
            (alias outer 1 $socket (type $s'))
            (export "tcp-socket" (type $s (eq $s')))
            (export "create-tcp-socket" (func (param "address-family" $f) (result (result (own $s) (error $e)))))))
          (import "wasi:cli/exit@0.2.0" (instance $x (export "exit-with-code" (func (param "status-code" u8)))))
          (core module $mem (memory (export "memory") 1))
          (core instance $mi (instantiate $mem))
          (alias core export $mi "memory" (core memory $memory))
          (core func $create (canon lower (func $c "create-tcp-socket") (memory $memory)))
          (core func $exit (canon lower (func $x "exit-with-code")))
          (core module $m
            (import "h" "memory" (memory 1))
            (import "h" "create" (func $create (param i32 i32)))
            (import "h" "exit" (func $exit (param i32)))
            (func (export "run") (result i32)
              (call $create (i32.const 0) (i32.const 16))
              (if (i32.eqz (i32.load8_u (i32.const 16))) (then (return (i32.const 0))))
              (call $exit (i32.add (i32.const 100) (i32.load8_u (i32.const 20))))
              unreachable))
          (core instance $i (instantiate $m (with "h" (instance
            (export "memory" (memory $memory)) (export "create" (func $create)) (export "exit" (func $exit))))))
          (func $run (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $run)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#,
    )
    .unwrap();
    let guest = executor().load(&compile(&guest).unwrap(), UngrantedImports::Stub).unwrap();
    // `access-denied` is the second of the codes.
    assert_eq!(Act::command("").run(&guest).end, End::Exited { code: 101 });
}

#[test]
fn what_is_loaded_stays_loaded_under_its_mode() {
    let loaded = text(
        r#"(component
          (core module $m (func (export "run") (result i32) (i32.const 0)))
          (core instance $i (instantiate $m))
          (func $f (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.5" (instance $r)))"#,
    );
    let again = executor().loaded(loaded.component(), UngrantedImports::Refuse).unwrap();
    assert!(std::sync::Arc::ptr_eq(&loaded, &again));
    assert!(executor().loaded(loaded.component(), UngrantedImports::Stub).is_none());
    assert_eq!(Act::command("").run(&again).end, End::Exited { code: 0 });
}
