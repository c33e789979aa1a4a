;; A command that returns an error, without a word.
(component
  (core module $m
    (func (export "run") (result i32) (i32.const 1))
  )
  (core instance $i (instantiate $m))
  (func $f (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $r))
)
