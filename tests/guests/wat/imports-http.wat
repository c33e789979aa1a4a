;; A command that imports outgoing HTTP, which no contract here grants, and
;; makes the headers of a request.
(component
  (import "wasi:http/types@0.2.0" (instance $t
    (export "fields" (type $f (sub resource)))
    (export "outgoing-request" (type (sub resource)))
    (export "[constructor]fields" (func (result (own $f))))))
  (alias export $t "outgoing-request" (type $request))
  (import "wasi:http/outgoing-handler@0.2.0" (instance
    (alias outer 1 $request (type $r'))
    (export "outgoing-request" (type $r (eq $r')))))
  (core func $fields (canon lower (func $t "[constructor]fields")))
  (core module $m
    (import "h" "fields" (func $fields (result i32)))
    (func (export "run") (result i32) (drop (call $fields)) (i32.const 0)))
  (core instance $i (instantiate $m (with "h" (instance (export "fields" (func $fields))))))
  (func $run (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $r)))
