//! Functions that a component exports with types of its own, called with JSON.
//!
//! | WIT | JSON |
//! |---|---|
//! | `s8` … `u64` | an integer in range; the schema marks 64 bits, so that arguments may have decimal strings |
//! | `f32`, `f64` | a number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `char`, `string`, `bool` | a string of one character, a string, a boolean |
//! | `list<u8>` | a string of base64 |
//! | `list<T>`, `tuple<…>` | an array |
//! | `record`, parameters | an object without other keys |
//! | `option<T>` | T or null; a field or parameter may also be left out |
//! | `option<option<T>>` | null, or `{"some": …}` around the inner one |
//! | `enum` | a string |
//! | `flags` | an array of different strings |
//! | `variant` | `{"tag": CASE}`, or `{"tag": CASE, "val": …}` for a case with a payload |
//! | `result<T, E>` as the result | T; or the tool fails, with E as details |
//! | `result<T, E>` elsewhere | like a variant with the cases `ok` and `err` |
//!
//! Resources, streams, futures, error contexts and asynchronous functions have
//! no JSON: [`exports`] says where a function uses them. It reads types alone;
//! nothing is compiled or run.

mod bulk;
mod call;
mod docs;
mod lift;
mod lower;
mod schema;

pub(crate) use self::call::{call, exports_any, find};

use serde_json::Value;
use wasmparser::{ComponentType, ComponentTypeDeclaration, Encoding, InstanceTypeDeclaration, Parser, Payload};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Function, WorldItem, WorldKey};

use self::docs::Docs;
use self::schema::{Draughtsman, Schemas};
use crate::error::WasmError;
use crate::name;

/// Functions of one component that are looked at.
const FUNCTIONS_MAX: usize = 500;
/// Types that one component may define. A world with all of WASI has some
/// hundreds.
const TYPES_MAX: usize = 10_000;
/// A type may nest as deep as there are types, and the decoder recurses.
const STACK: usize = 64 << 20;

/// A function that a component exports.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedFunction {
    /// The exported interface it stands in, with package and version; none is
    /// the component itself.
    pub interface: Option<String>,
    /// The function's name.
    pub function: String,
    /// Its doc comment, where the component carries one. A stranger's text.
    pub docs: Option<String>,
    /// What it takes and gives as JSON, or why it can't be called so: the
    /// place and the type.
    pub signature: Result<Signature, String>,
}

/// What a function takes and gives, as JSON Schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// Of the arguments: an object.
    pub input: Value,
    /// Of the result.
    pub output: Value,
    /// Of the details of a failure, where the function's result is a `result`.
    pub error: Option<Value>,
}

impl ExportedFunction {
    /// `INTERFACE#FUNCTION`, or the function alone; long names cut and told
    /// apart by a hash.
    pub fn place(&self) -> String {
        place(self.interface.as_deref(), &self.function)
    }
}

/// `INTERFACE#FUNCTION`, or the function alone, fit to be shown.
pub(crate) fn place(interface: Option<&str>, function: &str) -> String {
    match interface {
        Some(interface) => format!("{}#{}", name::bounded(interface), name::bounded(function)),
        None => name::bounded(function),
    }
}

/// The functions that a component exports, in its order, from its types alone.
///
/// # Errors
/// [`WasmError::Invalid`] for what is no component, or has more types or
/// functions than any real one.
pub fn exports(component: &[u8]) -> Result<Vec<ExportedFunction>, WasmError> {
    bounded(component)?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("wit".into()).stack_size(STACK);
        let decoding = thread.spawn_scoped(scope, || look(component)).map_err(|error| invalid(error.to_string()))?;
        // The decoder was written for components of one's own making.
        decoding.join().unwrap_or_else(|_| Err(invalid("the decoder gave up".into())))
    })
}

fn look(component: &[u8]) -> Result<Vec<ExportedFunction>, WasmError> {
    let (resolve, world) = match decode(&docs::hidden(component)) {
        Ok(DecodedWasm::Component(resolve, world)) => (resolve, world),
        Ok(DecodedWasm::WitPackage(..)) => return Err(invalid("it holds an interface's text and no code".into())),
        Err(error) => return Err(invalid(format!("{error:#}"))),
    };
    let docs = Docs::read(component);
    let mut draughtsman = Draughtsman::new(&resolve, &docs);
    let mut found = Vec::new();
    let mut add = |interface: Option<(String, Option<&str>)>, function: &Function| {
        if found.len() == FUNCTIONS_MAX {
            return Err(invalid(format!("it exports more than {FUNCTIONS_MAX} functions")));
        }
        let (interface, short) = interface.unzip();
        let docs = docs.of_function(short.flatten(), &function.name);
        let signature = draughtsman.function(function);
        let signature = signature.map(|Schemas { input, output, error }| Signature { input, output, error });
        found.push(ExportedFunction { interface, function: function.name.clone(), docs, signature });
        Ok(())
    };
    for (key, item) in &resolve.worlds[world].exports {
        match item {
            WorldItem::Function(function) => add(None, function)?,
            WorldItem::Interface { id, .. } => {
                let interface = &resolve.interfaces[*id];
                let short = match key {
                    WorldKey::Name(name) => Some(name.as_str()),
                    WorldKey::Interface(_) => interface.name.as_deref(),
                };
                for function in interface.functions.values() {
                    add(Some((resolve.name_world_key(key), short)), function)?;
                }
            }
            WorldItem::Type { .. } => {}
        }
    }
    Ok(found)
}

/// Refuses what would keep the decoder busy or drive it deep.
fn bounded(component: &[u8]) -> Result<(), WasmError> {
    let mut types = 0;
    let mut outermost = None;
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(malformed)? {
            Payload::Version { encoding, .. } => drop(outermost.get_or_insert(encoding)),
            Payload::ComponentTypeSection(section) => {
                for ty in section {
                    count(&ty.map_err(malformed)?, &mut types);
                    if types > TYPES_MAX {
                        return Err(invalid(format!("it defines more than {TYPES_MAX} types")));
                    }
                }
            }
            _ => {}
        }
    }
    if outermost == Some(Encoding::Component) { Ok(()) } else { Err(invalid("it is a core module".into())) }
}

fn count(ty: &ComponentType<'_>, types: &mut usize) {
    *types += 1;
    match ty {
        ComponentType::Component(declarations) => {
            for declaration in declarations {
                if let ComponentTypeDeclaration::Type(ty) = declaration {
                    count(ty, types);
                }
            }
        }
        ComponentType::Instance(declarations) => {
            for declaration in declarations {
                if let InstanceTypeDeclaration::Type(ty) = declaration {
                    count(ty, types);
                }
            }
        }
        ComponentType::Defined(_) | ComponentType::Func(_) | ComponentType::Resource { .. } => {}
    }
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn malformed(error: wasmparser::BinaryReaderError) -> WasmError {
    invalid(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "most reasons are made for it")]
fn invalid(reason: String) -> WasmError {
    WasmError::Invalid(format!("the component's types can't be read: {}", crate::host::cut(&reason, REASON_MAX)))
}

/// What is shown of a decoder's reason, which quotes names.
const REASON_MAX: usize = 1 << 10;
