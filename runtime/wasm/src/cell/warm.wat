;; What idle cells run before their claim, so that the pages of the engine, of
;; its allocations and of what guests ask for most are in place when it comes:
;; a look at a folder, an output, the time, a random number. It is adapted like
;; any program for WASI preview 1.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_filestat_get" (func $stat (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 17)
  ;; "warm" and where it lies, as an output wants it.
  (data (i32.const 1024) "warm")
  (data (i32.const 1032) "\00\04\00\00\04\00\00\00")
  (func (export "_start")
    ;; The first folder: there is no such file in it, but there is itself.
    (drop (call $open (i32.const 3) (i32.const 0) (i32.const 1024) (i32.const 4) (i32.const 0)
      (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 2048)))
    (drop (call $stat (i32.const 3) (i32.const 0) (i32.const 1027) (i32.const 0) (i32.const 2056)))
    (drop (call $write (i32.const 1) (i32.const 1032) (i32.const 1) (i32.const 2048)))
    (drop (call $time (i32.const 0) (i64.const 1) (i32.const 2048)))
    (drop (call $random (i32.const 2048) (i32.const 8)))
    (i32.store (i32.const 1048576) (i32.const 1)))
)
