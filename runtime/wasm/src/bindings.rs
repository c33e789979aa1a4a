//! What `bindgen!` makes of the WIT packages. Nothing is written by hand here.

/// The tool interface (`tools/wit`): what a tool exports and may import.
pub(crate) mod tool {
    wasmtime::component::bindgen!({
        path: "../../tools/wit",
        world: "glovebox:tool/tool-component",
        imports: { default: trappable },
        exports: { default: async },
    });
}

/// `wasi:filesystem`, bound to our own descriptors; synchronous, because the
/// executing thread may block on a file (see the `fs` module).
pub(crate) mod files {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "glovebox:wasi/files",
        imports: { default: trappable },
        trappable_error_type: {
            "wasi:filesystem/types.error-code" => crate::fs::FsError,
        },
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "wasi:clocks/wall-clock": wasmtime_wasi::p2::bindings::clocks::wall_clock,
            "wasi:filesystem/types.descriptor": crate::fs::Descriptor,
            "wasi:filesystem/types.directory-entry-stream": crate::fs::Entries,
        },
        require_store_data_send: true,
    });
}
