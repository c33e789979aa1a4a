;; A command with three memories. Grows one after the other by 1 MiB until each
;; refuses; then succeeds. A limit that is kept per memory allows three times
;; as much as it says.
(component
  (core module $m
    (memory 1)
    (func (export "grow") (result i32) (memory.grow (i32.const 16)))
  )
  (core module $main
    (import "a" "grow" (func $a (result i32)))
    (import "b" "grow" (func $b (result i32)))
    (import "c" "grow" (func $c (result i32)))
    (func (export "run") (result i32)
      (local $refused i32)
      (loop $again
        (local.set $refused (i32.eq (call $a) (i32.const -1)))
        (local.set $refused (i32.and (local.get $refused) (i32.eq (call $b) (i32.const -1))))
        (local.set $refused (i32.and (local.get $refused) (i32.eq (call $c) (i32.const -1))))
        (br_if $again (i32.eqz (local.get $refused)))
      )
      (i32.const 0)
    )
  )
  (core instance $a (instantiate $m))
  (core instance $b (instantiate $m))
  (core instance $c (instantiate $m))
  (core instance $run (instantiate $main
    (with "a" (instance $a))
    (with "b" (instance $b))
    (with "c" (instance $c))
  ))
  (func $f (result (result)) (canon lift (core func $run "run")))
  (instance $i (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $i))
)
