;; A command that imports an interface nobody has heard of, and calls it.
(component
  (import "example:unknown/thing@1.0.0" (instance $thing
    (export "act" (func))
  ))
  (core func $act (canon lower (func $thing "act")))
  (core module $m
    (import "thing" "act" (func $act))
    (func (export "run") (result i32)
      (call $act)
      (i32.const 0)
    )
  )
  (core instance $i (instantiate $m
    (with "thing" (instance (export "act" (func $act))))
  ))
  (func $f (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $r))
)
