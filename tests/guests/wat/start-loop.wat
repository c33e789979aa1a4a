;; A command that never comes to be called: the start function of its core
;; module runs for ever while the component is instantiated.
(component
  (core module $m
    (func $spin (loop $again (br $again)))
    (start $spin)
    (func (export "run") (result i32) (i32.const 0))
  )
  (core instance $i (instantiate $m))
  (func $f (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $r))
)
