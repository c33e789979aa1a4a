;; A command that calls itself until the engine's stack is full. (Compiled
;; languages keep large frames in linear memory and hit its start first.)
(component
  (core module $m
    (func $deeper (export "run") (result i32)
      (i32.add (call $deeper) (i32.const 1))
    )
  )
  (core instance $i (instantiate $m))
  (func $f (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $r))
)
