//! What a file is, from its bytes alone: nothing is compiled, nothing is run.

use glovebox_runtime::job::UngrantedImports;
use wasmparser::{ComponentExternalKind, ComponentTypeRef, Encoding, Parser, Payload, TypeBounds};

use crate::error::WasmError;
use crate::{link, name};

/// Names that one file may import or export. Real ones have some hundreds.
const NAMES_MAX: usize = 10_000;
/// The tool interface, any version that this host speaks.
const TOOL: &str = "glovebox:tool/tool@0.1.";
/// A WASI command, any version that this host speaks.
const COMMAND: &str = "wasi:cli/run@0.2.";
/// The custom section in which a module says what component it is to be.
const COMPONENT_TYPE: &str = "component-type";
/// What a preview 1 command exports.
const START: &str = "_start";
/// Where a preview 1 module imports its system interface from.
pub(crate) const PREVIEW1: &str = "wasi_snapshot_preview1";

/// A file that can be looked at, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Component or core module.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// What it imports: interfaces of a component, modules of a core module.
    /// Long names are cut and told apart by a hash.
    pub imports: Vec<String>,
    /// What it exports, in the same form.
    pub exports: Vec<String>,
    /// Those of its imports that nothing grants. Empty, or the component needs
    /// a contract that allows stubs.
    pub ungranted: Vec<String>,
    /// Whether it exports the tool interface.
    pub tool: bool,
    /// Whether it is a command.
    pub command: bool,
    /// Whether it exports functions of its own, perhaps in interfaces. Which
    /// of them can be called, [`typed::exports`](crate::typed::exports) says.
    pub functions: bool,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A component: it can be compiled as it is.
    Component,
    /// A core module: it has to be adapted first.
    Module,
}

impl Inspection {
    /// Refuses what exports nothing that can be called, or imports what is
    /// not granted.
    ///
    /// # Errors
    /// [`WasmError::Exports`] or [`WasmError::Imports`], with the names.
    pub fn check(&self, imports: UngrantedImports) -> Result<(), WasmError> {
        if !self.tool && !self.command && !self.functions {
            return Err(WasmError::Exports { found: self.exports.clone() });
        }
        if imports == UngrantedImports::Refuse && !self.ungranted.is_empty() {
            return Err(WasmError::Imports { ungranted: self.ungranted.clone() });
        }
        Ok(())
    }
}

/// Looks at a file of at most `limit` bytes.
///
/// # Errors
/// [`WasmError::TooLarge`]; or [`WasmError::Invalid`] for what is no
/// WebAssembly, is cut short, or is malformed in its outline. The code itself
/// is judged by the compiler.
pub fn inspect(bytes: &[u8], limit: u64) -> Result<Inspection, WasmError> {
    let size = bytes.len() as u64;
    if size > limit {
        return Err(WasmError::TooLarge { size, limit });
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(WasmError::Invalid(match bytes {
            [] => "the file is empty".into(),
            [b'(', ..] => "the file holds WebAssembly text; it has to be binary".into(),
            _ => "the file is no WebAssembly: it does not begin with `\\0asm`".into(),
        }));
    }
    let mut names = Names::default();
    let mut kind = None;
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(malformed)? {
            Payload::Version { encoding, .. } => {
                kind.get_or_insert(match encoding {
                    Encoding::Component => Kind::Component,
                    Encoding::Module => Kind::Module,
                });
                depth += 1;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            // What lies inside a component is its own affair.
            _ if depth > 1 => {}
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import.map_err(malformed)?;
                    // A name for a type is all that this is; nobody has to
                    // provide it.
                    if !matches!(import.ty, ComponentTypeRef::Type(TypeBounds::Eq(_))) {
                        names.import(import.name.name)?;
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export.map_err(malformed)?;
                    let callable = matches!(export.kind, ComponentExternalKind::Func | ComponentExternalKind::Instance);
                    names.functions |= callable && !is_ours(export.name.name);
                    names.export(export.name.name)?;
                }
            }
            // What a module's functions take and give stands there.
            Payload::CustomSection(section) if section.name().starts_with(COMPONENT_TYPE) => names.functions = true,
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    names.import(import.map_err(malformed)?.module)?;
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    names.export(export.map_err(malformed)?.name)?;
                }
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(WasmError::Invalid("the file is cut short".into()));
    }
    let kind = kind.ok_or_else(|| WasmError::Invalid("the file is cut short".into()))?;
    Ok(names.judge(kind, size))
}

#[derive(Default)]
struct Names<'a> {
    imports: Vec<&'a str>,
    exports: Vec<&'a str>,
    functions: bool,
}

impl<'a> Names<'a> {
    fn import(&mut self, name: &'a str) -> Result<(), WasmError> {
        // Core modules name the same one for each function, one after the other.
        if self.imports.last() == Some(&name) {
            return Ok(());
        }
        push(&mut self.imports, name)
    }

    fn export(&mut self, name: &'a str) -> Result<(), WasmError> {
        push(&mut self.exports, name)
    }

    fn judge(mut self, kind: Kind, size: u64) -> Inspection {
        if kind == Kind::Module {
            self.imports.sort_unstable();
            self.imports.dedup();
        }
        let granted = |import: &str| link::is_granted(import) || (kind == Kind::Module && import == PREVIEW1);
        let exports = |test: &dyn Fn(&str) -> bool| self.exports.iter().any(|name| test(name));
        let (tool, command) = match kind {
            Kind::Component => (exports(&|name| name.starts_with(TOOL)), exports(&|name| name.starts_with(COMMAND))),
            Kind::Module => (
                exports(&|name| name.starts_with(TOOL) && name.ends_with("#call")),
                exports(&|name| name == START || (name.starts_with(COMMAND) && name.ends_with("#run"))),
            ),
        };
        let bounded = |names: &[&str]| names.iter().map(|name| name::bounded(name)).collect();
        let ungranted: Vec<&str> = self.imports.iter().copied().filter(|import| !granted(import)).collect();
        Inspection {
            kind,
            size,
            imports: bounded(&self.imports),
            exports: bounded(&self.exports),
            ungranted: bounded(&ungranted),
            tool,
            command,
            functions: self.functions,
        }
    }
}

/// Whether an export is one of those that are called by what they are.
fn is_ours(export: &str) -> bool {
    export.starts_with(TOOL) || export.starts_with(COMMAND)
}

fn push<'a>(names: &mut Vec<&'a str>, name: &'a str) -> Result<(), WasmError> {
    if names.len() >= NAMES_MAX {
        return Err(WasmError::Invalid(format!("the file has more than {NAMES_MAX} imports or exports")));
    }
    names.push(name);
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn malformed(error: wasmparser::BinaryReaderError) -> WasmError {
    let text = error.message();
    if text.contains("unexpected end") || error.offset() == 0 && text.is_empty() {
        return WasmError::Invalid(format!("the file is cut short at byte {}", error.offset()));
    }
    WasmError::Invalid(format!("the file is malformed at byte {}: {text}", error.offset()))
}
