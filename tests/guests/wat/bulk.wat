;; A command that fills 64 MiB of its memory for ever: single instructions
;; that take long, between which alone it can be stopped.
(component
  (core module $m
    (memory 1024)
    (func (export "run") (result i32)
      (loop $again
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x4000000))
        (br $again)
      )
      (i32.const 0)
    )
  )
  (core instance $i (instantiate $m))
  (func $f (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $r))
)
