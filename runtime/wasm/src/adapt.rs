//! Core modules made into components.

mod exit_code;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::ComponentEncoder;

use crate::error::WasmError;
use crate::inspect::{Inspection, Kind, PREVIEW1};
use exit_code::text;

/// The component that a file holds: itself, or a preview 1 core module behind
/// the adapter that gives it WASI 0.2. Pure and repeatable: equal bytes give
/// equal components. [`Compiler::adapt`](crate::Compiler::adapt) does it where
/// a stranger's bytes can do no harm.
///
/// # Errors
/// [`WasmError::Invalid`] says what keeps a module from being adapted.
pub fn adapt<'b>(bytes: &'b [u8], inspection: &Inspection) -> Result<Cow<'b, [u8]>, WasmError> {
    if inspection.kind == Kind::Component {
        return Ok(Cow::Borrowed(bytes));
    }
    // A module that is entered through `_start` runs once; the other kind is
    // called through what it exports.
    let adapter = if inspection.command && !inspection.tool {
        WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER
    } else {
        WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER
    };
    let encode = || {
        let module = exit_code::kept(bytes)?;
        let encoder = ComponentEncoder::default().validate(true).module(&module).map_err(text)?;
        encoder.adapter(PREVIEW1, adapter).map_err(text)?.encode().map_err(text)
    };
    // The encoder was written for modules of one's own making.
    match catch_unwind(AssertUnwindSafe(encode)) {
        Ok(Ok(component)) => Ok(Cow::Owned(component)),
        Ok(Err(error)) => Err(WasmError::Invalid(format!("the module can't be made a component: {error}"))),
        Err(_) => Err(WasmError::Invalid("the module can't be made a component: the encoder gave up".into())),
    }
}
