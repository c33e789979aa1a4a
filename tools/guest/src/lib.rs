//! What every Glovebox tool in Rust shares: the bindings of the `tool`
//! interface, reading of arguments, errors, paths, writing of files.
//!
//! It is not a framework: a tool is a type that implements [`Tool`] and the
//! line `export!(Type)`. It knows nothing of the host but its interface.
//!
//! ```
//! use glovebox_guest::{Context, Failure, Json, Tool, json};
//!
//! struct Greet;
//!
//! #[derive(serde::Deserialize)]
//! struct Args {
//!     name: String,
//! }
//!
//! impl Tool for Greet {
//!     const NAME: &'static str = "greet";
//!     const MANIFEST: &'static str = r#"{"name":"greet"}"#;
//!     type Args = Args;
//!
//!     fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
//!         Ok(json!({ "text": format!("hello {}", args.name) }))
//!     }
//! }
//!
//! glovebox_guest::export!(Greet);
//!
//! # let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! let result = Greet::call(Args { name: "you".to_owned() }, &context);
//! assert_eq!(result.unwrap()["text"], "hello you");
//! ```

mod failure;
mod path;
mod write;

pub use failure::{Failure, Kind};
pub use path::{open, read, resolve, shown};
pub use serde_json::{Value as Json, json};
pub use write::{Place, Staged, hex, make_parents, place, sha256};

/// The bindings that are generated from the interface definition.
#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "tool-component",
        pub_export_macro: true,
        export_macro_name: "export_bindings",
        default_bindings_module: "glovebox_guest::bindings",
    });
}

pub use bindings::exports::glovebox::tool::tool::Context;
pub use bindings::glovebox::tool::host::{Level, log, progress};

use bindings::exports::glovebox::tool::tool::{Output, ToolError};

/// One tool.
pub trait Tool {
    /// Its name, as in the manifest.
    const NAME: &'static str;
    /// The manifest as JSON: what `describe` answers.
    const MANIFEST: &'static str;
    /// The arguments. Unknown keys should be refused.
    type Args: serde::de::DeserializeOwned;

    /// Does the work.
    ///
    /// # Errors
    /// Whatever the manifest's list of errors says.
    fn call(args: Self::Args, context: &Context) -> Result<Json, Failure>;
}

/// Calls `T`: checks the name, reads the arguments, writes the result.
#[doc(hidden)]
pub fn dispatch<T: Tool>(name: &str, args: &str, context: &Context) -> Result<Output, ToolError> {
    if name != T::NAME {
        return Err(Failure::invalid(format!("this component is `{}`, not `{name}`", T::NAME)).into());
    }
    let args =
        serde_json::from_str(args).map_err(|error| Failure::invalid(format!("the arguments do not fit: {error}")))?;
    let result = T::call(args, context)?;
    Ok(Output { content: result.to_string(), artifacts: Vec::new() })
}

/// Exports a type that implements [`Tool`] from this component.
#[macro_export]
macro_rules! export {
    ($tool:ty) => {
        // Only there: a native linker does not take the names of the exports,
        // and tests of a tool's own code are native.
        #[cfg(target_family = "wasm")]
        const _: () = {
            use $crate::bindings::exports::glovebox::tool::tool as interface;

            struct Exported;

            impl interface::Guest for Exported {
                fn describe() -> String {
                    <$tool as $crate::Tool>::MANIFEST.to_owned()
                }

                fn call(
                    name: String,
                    args: String,
                    context: interface::Context,
                ) -> Result<interface::Output, interface::ToolError> {
                    $crate::dispatch::<$tool>(&name, &args, &context)
                }
            }

    $crate::bindings::export_bindings!(Exported with_types_in $crate::bindings);
        };
    };
}
