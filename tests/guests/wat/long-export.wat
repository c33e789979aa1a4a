;; Exports nothing that can be called, under a name of 200 characters.
(component
  (core module $m
    (func (export "f"))
  )
  (export "a-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-exported" (core module $m))
)
