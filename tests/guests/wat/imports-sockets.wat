;; A command that imports socket interfaces, which no contract here grants, and
;; makes a socket. It exits with 100 and the number of the error code that this
;; gives: 101 is access-denied.
(component
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
  (export "wasi:cli/run@0.2.0" (instance $r)))
