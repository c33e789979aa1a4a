;; A command that grows a table by 1024 elements at a time until that is
;; refused; then succeeds.
(component
  (core module $m
    (table $t 1 funcref)
    (func (export "run") (result i32)
      (loop $again
        (br_if $again
          (i32.ne (table.grow $t (ref.null func) (i32.const 1024)) (i32.const -1)))
      )
      (i32.const 0)
    )
  )
  (core instance $i (instantiate $m))
  (func $f (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $r))
)
