;; Exports nothing that can be called as a tool, under a name of 200 characters.
(component
  (core module $m
    (func (export "f"))
  )
  (core instance $i (instantiate $m))
  (func $f (canon lift (core func $i "f")))
  (export "a-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-exported" (func $f))
)
