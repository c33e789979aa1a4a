//! Imports: only what is granted is linked.

use env_contracts::{Code, Diagnose};
use glovebox_runtime::job::{End, UngrantedImports};
use glovebox_wasm::inspect;

use crate::harness::{Act, compile, executor, text, wat};

#[test]
fn ungranted_imports_are_refused_with_the_list() {
    let sockets: &[&str] =
        &["wasi:sockets/network@0.2.0", "wasi:sockets/tcp@0.2.0", "wasi:sockets/tcp-create-socket@0.2.0"];
    for (guest, imports) in [("imports-sockets", sockets), ("imports-unknown", &["example:unknown/thing@1.0.0"])] {
        let error = executor().load(&compile(&wat(guest)).unwrap(), UngrantedImports::Refuse).unwrap_err();
        assert_eq!(error.code(), Code::ComponentImports);
        assert!(imports.iter().all(|import| error.to_string().contains(import)), "{error}");
        // It is known before anything is compiled.
        let inspection = inspect(&wat(guest), 1 << 20).unwrap();
        assert_eq!(inspection.ungranted, imports);
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
    let guest = executor().load(&compile(&wat("imports-sockets")).unwrap(), UngrantedImports::Stub).unwrap();
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
