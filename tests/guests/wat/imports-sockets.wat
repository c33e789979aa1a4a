;; A command that imports a socket interface, which no contract here grants, and
;; calls it: where ungranted imports are stubs, the call has to be refused.
(component
  (import "wasi:sockets/instance-network@0.2.0" (instance $network
    (export "network" (type $n (sub resource)))
    (export "instance-network" (func (result (own $n))))
  ))
  (core func $get (canon lower (func $network "instance-network")))
  (core module $m
    (import "network" "instance-network" (func $get (result i32)))
    (func (export "run") (result i32)
      (drop (call $get))
      (i32.const 0)
    )
  )
  (core instance $i (instantiate $m
    (with "network" (instance (export "instance-network" (func $get))))
  ))
  (func $f (result (result)) (canon lift (core func $i "run")))
  (instance $r (export "run" (func $f)))
  (export "wasi:cli/run@0.2.0" (instance $r))
)
