//! Arguments against a tool's JSON Schema.
//!
//! Schema and arguments both come from strangers, so a [`Schema`] is bounded
//! before it is compiled (size, depth, references, patterns), and the work that
//! it asks for is counted before it is done. The dialect is JSON Schema
//! 2020-12; `format` is an annotation, as there, and never taken for a check.
//!
//! Two keywords of ours:
//! - `"x-glovebox-path": "/workspace"` on a string: it names a file below that
//!   mount, which is bound like everything else that is checked. See
//!   [`Schema::path_arguments`].
//! - `"format": "uint64"` or `"int64"` on an integer: a caller whose JSON
//!   library rounds large numbers may send a string of digits instead.
//!   [`Schema::accept`] turns it into the integer, there and nowhere else, so
//!   that `"5"` and `5` are one request. `uint64` refuses negative numbers.
//! - `"x-glovebox-version": true` on a string: the version of the object that
//!   the tool's preview saw is put there. `"x-glovebox-key": true`: the key of
//!   the request, or the action's id. See [`Schema::version`], [`Schema::keyed`].

mod effort;
mod error;
mod explain;
mod fills;
mod marks;
mod nearest;
mod outline;
mod patterns;
mod schema;
mod sketch;
mod words;

pub use error::{ArgumentsError, SchemaError};
pub use explain::{MAX_VIOLATIONS, Violation, ViolationKind};
pub use glovebox_runtime::bind::PathArgument;
pub use nearest::nearest;
pub use outline::{MAX_SCHEMA_BYTES, MAX_SCHEMA_PLACES};
pub use schema::Schema;
