;; A command that does nothing, in the shape of most that do something: a
;; memory with data, a table, a call. Idle cells run it once, so that the pages
;; of the engine and of its allocations are in place when a claim comes.
(component
  (core module $m
    (type $f (func (result i32)))
    (memory (export "memory") 17)
    (table 8 funcref)
    (elem (i32.const 0) $run)
    (data (i32.const 1024) "warm")
    (func $run (export "run") (type $f)
      (i32.store (i32.const 65536) (i32.load (i32.const 1024)))
      (i32.const 0))
  )
  (core instance $i (instantiate $m))
  (func $f (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $r))
)
