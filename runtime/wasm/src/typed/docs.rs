//! Doc comments of WIT, from the custom section that tools write them into.
//!
//! A component's types carry no comments. The section is JSON that a stranger
//! wrote: what is not as expected in it is no documentation, and no error.

use std::borrow::Cow;

use serde_json::Value;
use wasmparser::{Parser, Payload};
use wit_parser::{Resolve, TypeDef, TypeOwner};

/// The section's name.
const SECTION: &str = "package-docs";
/// Versions of the section that are read: the byte before its JSON.
const VERSIONS: [u8; 2] = [0, 1];
/// The longest section that is read. Real ones have some KiB.
const SECTION_MAX: usize = 1 << 20;
/// What is kept of one text. It is sent to a model with every list of tools.
const TEXT_MAX: usize = 1 << 10;

/// All comments of a component.
pub(super) struct Docs(Value);

/// Where something is defined.
pub(super) enum Home<'a> {
    /// In an interface of this name, without package and version.
    Interface(&'a str),
    /// In the world itself.
    World,
    /// Nowhere, like a list.
    Nowhere,
}

impl<'a> Home<'a> {
    pub(super) fn of(resolve: &'a Resolve, def: &TypeDef) -> Self {
        match def.owner {
            TypeOwner::Interface(id) => resolve.interfaces[id].name.as_deref().map_or(Home::Nowhere, Home::Interface),
            TypeOwner::World(_) => Home::World,
            TypeOwner::None => Home::Nowhere,
        }
    }
}

impl Docs {
    /// The first section of a component, wherever it lies.
    pub(super) fn read(component: &[u8]) -> Self {
        let sections = Parser::new(0).parse_all(component).map_while(Result::ok);
        let first = sections.into_iter().find_map(|payload| match payload {
            Payload::CustomSection(section) if section.name() == SECTION => Some(section.data()),
            _ => None,
        });
        let json = first.filter(|data| data.len() <= SECTION_MAX).and_then(|data| match data.split_first() {
            Some((version, json)) if VERSIONS.contains(version) => serde_json::from_slice(json).ok(),
            _ => None,
        });
        Self(json.unwrap_or_default())
    }

    /// What a function's comment says. A function of no interface is one of
    /// the world's.
    pub(super) fn of_function(&self, interface: Option<&str>, function: &str) -> Option<String> {
        match interface {
            Some(interface) => self.interfaces(interface).find_map(|known| text(&known["funcs"][function])),
            None => self
                .worlds()
                .find_map(|world| text(&world["func_exports"][function]).or_else(|| text(&world["funcs"][function]))),
        }
    }

    /// What a type's comment says.
    pub(super) fn of_type(&self, home: &Home<'_>, ty: Option<&str>) -> Option<String> {
        self.types(home, ty?).find_map(text)
    }

    /// What the comment of a field, case or flag says.
    pub(super) fn of_item(&self, home: &Home<'_>, ty: Option<&str>, item: &str) -> Option<String> {
        self.types(home, ty?).find_map(|ty| text(&ty["items"][item]))
    }

    fn types<'v>(&'v self, home: &Home<'_>, ty: &'v str) -> impl Iterator<Item = &'v Value> {
        let holders: Vec<&Value> = match home {
            Home::Interface(interface) => self.interfaces(interface).collect(),
            Home::World => self.worlds().collect(),
            Home::Nowhere => Vec::new(),
        };
        holders.into_iter().map(move |holder| &holder["types"][ty])
    }

    /// The interfaces of this name: one of the package, and those that worlds
    /// define in place.
    fn interfaces(&self, name: &str) -> impl Iterator<Item = &Value> {
        let in_worlds = self.worlds().flat_map(move |world| [&world["interface_exports"], &world["interfaces"]]);
        let name = name.to_owned();
        std::iter::once(&self.0["interfaces"]).chain(in_worlds).map(move |all| &all[&name])
    }

    fn worlds(&self) -> impl Iterator<Item = &Value> {
        self.0["worlds"].as_object().into_iter().flat_map(|worlds| worlds.values())
    }
}

/// The component with its sections under another name. The decoder would read
/// them too, and refuse a component whose texts are for another world.
pub(super) fn hidden(component: &[u8]) -> Cow<'_, [u8]> {
    let mut copy = Cow::Borrowed(component);
    for payload in Parser::new(0).parse_all(component).map_while(Result::ok) {
        if let Payload::CustomSection(section) = payload
            && section.name() == SECTION
        {
            // The name ends where the data begins.
            let end = section.data_offset();
            copy.to_mut()[end - SECTION.len()..end].fill(b'-');
        }
    }
    copy
}

/// A text as it stands or below `docs`, without its margins, and not too long.
fn text(value: &Value) -> Option<String> {
    let text = value.as_str().or_else(|| value["docs"].as_str())?.trim();
    (!text.is_empty()).then(|| crate::host::cut(text, TEXT_MAX).to_owned())
}
