//! The compile child and the cache.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use env_contracts::{Code, Diagnose};
use glovebox_runtime::job::UngrantedImports;
use glovebox_wasm::{CompileCache, CompileEvent, CompileLimits, Compiler, WasmError, adapt, inspect};

use crate::harness::{built, compiler, digest, executor, wat};

fn cache_in(folder: &Path, limits: CompileLimits) -> CompileCache {
    CompileCache::open(folder.join("cache"), executor().engine(), compiler(limits)).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs_err::read_dir(folder.join("cache"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn limited(change: impl FnOnce(&mut CompileLimits)) -> CompileLimits {
    let mut limits = CompileLimits::default();
    change(&mut limits);
    limits
}

#[test]
fn an_entry_is_made_once_and_verified_before_each_use() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(folder.path(), CompileLimits::default());
    let bytes = built("tools/dist/text.count.wasm");
    let component = digest(&bytes);
    assert!(cache.get(&component).unwrap().is_none());
    let mut compiled = 0;
    for _ in 0..2 {
        cache
            .get_or_compile(
                &component,
                || {
                    compiled += 1;
                    Ok(bytes.clone())
                },
                &mut |_| {},
            )
            .unwrap();
    }
    assert_eq!(compiled, 1);
    assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
    for entry in fs_err::read_dir(folder.path().join("cache")).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }

    // One byte of the machine code, one of the description, half of it, nothing.
    let path = |ending: &str| {
        folder.path().join("cache").join(names(folder.path()).into_iter().find(|name| name.ends_with(ending)).unwrap())
    };
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        (".cwasm", |bytes| {
            let at = bytes.len() / 2;
            bytes[at] ^= 1;
        }),
        (".cwasm", |bytes| bytes.truncate(bytes.len() / 2)),
        (".json", |bytes| bytes.truncate(bytes.len() / 2)),
        (".json", |bytes| {
            let at = bytes.len() - 10;
            bytes[at] ^= 1;
        }),
    ];
    for (ending, damage) in damages {
        let mut content = fs_err::read(path(ending)).unwrap();
        damage(&mut content);
        // Another file under the name: the old one may be mapped by now.
        fs_err::write(folder.path().join("damaged"), &content).unwrap();
        fs_err::rename(folder.path().join("damaged"), path(ending)).unwrap();
        assert!(cache.get(&component).unwrap().is_none(), "{ending}: a damaged entry was used");
        let mut notices = Vec::new();
        let artefact = cache
            .get_or_compile(&component, || Ok(bytes.clone()), &mut |event| {
                if let CompileEvent::Rebuilding(problem) = event {
                    notices.push(problem.clone());
                }
            })
            .unwrap();
        assert_eq!(notices.len(), 1, "{ending}");
        assert_eq!(notices[0].code, Code::CacheCorrupt);
        assert_eq!(artefact.component(), component);
        executor().load(&artefact, UngrantedImports::Refuse).unwrap();
    }
    assert_eq!(names(folder.path()).len(), 2);

    let entries = cache.entries().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].component, component);
    assert!(entries[0].size > 100_000 && entries[0].used > 0);
    cache.remove(&entries[0]).unwrap();
    assert!(names(folder.path()).is_empty());
}

#[test]
fn who_comes_at_the_same_time_waits_for_one_compilation() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = built("tools/dist/fs.search.wasm");
    let component = digest(&bytes);
    let compiled = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // Each its own cache, as another process would have.
                let cache = cache_in(folder.path(), CompileLimits::default());
                let fetch = || {
                    compiled.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    Ok(bytes.clone())
                };
                cache.get_or_compile(&component, fetch, &mut |_| {}).unwrap();
            });
        }
    });
    assert_eq!(compiled.into_inner(), 1);
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn a_compiler_that_ends_badly_is_a_coded_error_and_leaves_nothing() {
    let large = built("tools/dist/fs.search.wasm");
    let cases: [(&str, CompileLimits, Vec<u8>, Code, &str); 7] = [
        ("input", limited(|limits| limits.input = 1000), large.clone(), Code::ComponentTooLarge, "1000"),
        ("output", limited(|limits| limits.output = 1000), large.clone(), Code::CompileFailed, "larger than 1000"),
        ("memory", limited(|limits| limits.memory = 60 << 20), large.clone(), Code::CompileFailed, "compiler"),
        (
            "wall",
            limited(|limits| limits.wall = Duration::from_millis(20)),
            large.clone(),
            Code::CompileFailed,
            "took longer",
        ),
        ("nonsense", CompileLimits::default(), b"\0asm\x0d\0\x01\0\xff".to_vec(), Code::CompileFailed, "compiled: "),
        (
            "a core module",
            CompileLimits::default(),
            wat::parse_str("(module)").unwrap(),
            Code::CompileFailed,
            "compiled: ",
        ),
        ("nothing to call", CompileLimits::default(), vec![], Code::CompileFailed, "compiled: "),
    ];
    for (what, limits, bytes, code, says) in cases {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache_in(folder.path(), limits);
        let error = cache.get_or_compile(&digest(&bytes), || Ok(bytes.clone()), &mut |_| {}).expect_err(what);
        assert_eq!(error.code(), code, "{what}: {error}");
        assert!(error.to_string().contains(says), "{what}: {error}");
        assert_eq!(names(folder.path()), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn processor_time_of_the_compiler_is_limited() {
    // Many functions that take long; one second for all.
    let function = "(func (result i32) ".to_owned()
        + &"(i32.add ".repeat(300)
        + "(i32.const 1)"
        + &" (i32.const 2))".repeat(300)
        + ")";
    let module = format!("(component (core module {}))", function.repeat(6000));
    let bytes = wat::parse_str(module).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(folder.path(), limited(|limits| limits.cpu = Duration::from_secs(1)));
    let mut ticks = 0;
    let error = cache
        .get_or_compile(&digest(&bytes), || Ok(bytes.clone()), &mut |event| {
            ticks += u32::from(matches!(event, CompileEvent::Compiling(_)));
        })
        .unwrap_err();
    assert!(error.to_string().contains("killed"), "{error}");
    assert!(ticks > 0, "nothing was said meanwhile");
}

#[test]
fn a_missing_compiler_and_a_full_disk_are_coded() {
    let folder = tempfile::tempdir().unwrap();
    let none = Compiler::new(glovebox_wasm::Helper::new("/nonexistent/compiler", vec![]), CompileLimits::default());
    let cache = CompileCache::open(folder.path().join("cache"), executor().engine(), none).unwrap();
    let bytes = wat("nothing");
    let error = cache.get_or_compile(&digest(&bytes), || Ok(bytes.clone()), &mut |_| {}).unwrap_err();
    assert_eq!(error.code(), Code::CompileFailed);

    let full = fs_err::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = compiler(CompileLimits::default()).compile(&bytes, &full, &mut |_| {}).unwrap_err();
    assert_eq!(error.code(), Code::DiskFull, "{error}");
}

/// Nothing of a module's bytes is adapted in this process.
#[test]
fn modules_are_adapted_in_a_child() {
    let module = built("tests/guests/dist/preview1.wasm");
    let inspection = inspect(&module, 64 << 20).unwrap();
    let child = compiler(CompileLimits::default());
    assert_eq!(child.adapt(&module, &inspection).unwrap(), adapt(&module, &inspection).unwrap());

    let none = Compiler::new(glovebox_wasm::Helper::new("/nonexistent/compiler", vec![]), CompileLimits::default());
    assert_eq!(none.adapt(&module, &inspection).unwrap_err().code(), Code::CompileFailed);
    let small = compiler(limited(|limits| limits.input = module.len() as u64));
    let error = small.adapt(&module, &inspection).unwrap_err();
    assert!(error.to_string().contains("larger than"), "the adapter adds to it: {error}");

    let text = r#"(module (import "wasi_snapshot_preview1" "nonsense" (func)) (func (export "_start")))"#;
    let module = wat::parse_str(text).unwrap();
    let inspection = inspect(&module, 64 << 20).unwrap();
    let error = child.adapt(&module, &inspection).unwrap_err();
    assert_eq!(error.code(), Code::ComponentInvalid);
    assert_eq!(error.to_string(), adapt(&module, &inspection).unwrap_err().to_string());
}

#[test]
fn a_folder_that_others_can_write_to_is_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    let open = || CompileCache::open(folder.path(), executor().engine(), compiler(CompileLimits::default()));
    open().unwrap();
    fs_err::set_permissions(folder.path(), PermissionsExt::from_mode(0o770)).unwrap();
    assert_eq!(open().unwrap_err().code(), Code::StateUnavailable);
    let file = folder.path().join("file");
    fs_err::write(&file, "").unwrap();
    let error = CompileCache::open(&file, executor().engine(), compiler(CompileLimits::default())).unwrap_err();
    assert_eq!(error.code(), Code::StateUnavailable);
    let error =
        CompileCache::open("/proc/nothing/here", executor().engine(), compiler(CompileLimits::default())).unwrap_err();
    assert_eq!(error.code(), Code::StateUnavailable);
}

#[test]
fn bytes_that_are_not_those_of_the_digest_are_not_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(folder.path(), CompileLimits::default());
    let error = cache.get_or_compile(&digest(b"other"), || Ok(wat("nothing")), &mut |_| {}).unwrap_err();
    assert!(matches!(error, WasmError::Digest { .. }));
    for digest in ["", "../../etc/passwd", &"A".repeat(64)] {
        assert!(matches!(cache.get(digest), Err(WasmError::Invalid(_))));
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn artefacts_do_not_depend_on_the_size_of_the_pool() {
    let other = glovebox_wasm::Engine::new(glovebox_wasm::EngineConfig { slots: 1, ..Default::default() }).unwrap();
    assert_eq!(other.compatibility(), executor().engine().compatibility());
}

#[test]
fn a_pool_that_has_no_room_is_a_coded_error() {
    let error =
        glovebox_wasm::Engine::new(glovebox_wasm::EngineConfig { slots: u32::MAX, ..Default::default() }).unwrap_err();
    assert_eq!(error.code(), Code::BackendUnavailable);
    let error =
        glovebox_wasm::Engine::new(glovebox_wasm::EngineConfig { slots: 20_000, ..Default::default() }).unwrap_err();
    assert_eq!(error.code(), Code::BackendUnavailable, "{error}");
}

/// Each of these has been a way out of a sandbox somewhere; no tool needs them.
#[test]
fn proposals_that_are_off_stay_off() {
    for (what, module) in [
        ("64-bit memories", "(memory i64 1)"),
        ("shared memories", "(memory 1 1 shared)"),
        ("garbage collection", "(type (struct (field i32)))"),
        ("exceptions", "(tag)"),
    ] {
        let bytes = wat::parse_str(format!("(component (core module {module}))")).unwrap();
        assert!(crate::harness::compile(&bytes).is_err(), "{what} compile");
    }
    crate::harness::compile(&wat::parse_str("(component (core module (memory 1)))").unwrap()).unwrap();
}
