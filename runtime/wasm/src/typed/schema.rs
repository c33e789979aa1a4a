//! WIT types as JSON Schema. `lower` and `lift` hold to the same mapping; the
//! module's own text is where it is written down.

use serde_json::{Map, Value, json};
use wit_parser::{Case, Function, FunctionKind, Handle, Resolve, Type, TypeDef, TypeDefKind};

use super::docs::{Docs, Home};
use crate::name;

/// How deep types may nest. Arguments nest as deep, and JSON of 64 levels is
/// the most that is read anywhere.
const DEPTH_MAX: usize = 24;
/// Subschemas of one schema. Types that are used in several places count in
/// each; a small definition can mean a huge schema.
const PLACES_MAX: usize = 1_500;

/// The largest single in its shortest decimal form, which as a double is a
/// little more than the single and is rounded to it.
const SINGLE_MAX: f64 = 3.4028235e38;

/// The first integer that 64 bits don't hold. The last one that they do is more
/// than a manifest in TOML can say.
const UNSIGNED_END: f64 = 18_446_744_073_709_551_616.0;

/// The schemas of one function.
pub(super) struct Schemas {
    pub(super) input: Value,
    pub(super) output: Value,
    /// Of the details of a failure, where the function can say that it failed.
    pub(super) error: Option<Value>,
}

/// Draws the schemas of functions.
pub(super) struct Draughtsman<'a> {
    resolve: &'a Resolve,
    docs: &'a Docs,
    /// Where the type being drawn stands, from the outside to the inside.
    way: Vec<String>,
    places: usize,
}

impl<'a> Draughtsman<'a> {
    pub(super) fn new(resolve: &'a Resolve, docs: &'a Docs) -> Self {
        Self { resolve, docs, way: Vec::new(), places: 0 }
    }

    /// The schemas of a function, or what keeps it from being called with
    /// JSON, and where.
    pub(super) fn function(&mut self, function: &Function) -> Result<Schemas, String> {
        let own = name::bounded(&function.name);
        match function.kind {
            FunctionKind::Freestanding => {}
            FunctionKind::AsyncFreestanding => return Err("it is asynchronous".into()),
            FunctionKind::Method(id)
            | FunctionKind::AsyncMethod(id)
            | FunctionKind::Static(id)
            | FunctionKind::AsyncStatic(id)
            | FunctionKind::Constructor(id) => return Err(format!("it belongs to {}", self.resource(id))),
        }
        let (mut properties, mut required) = (Map::new(), Vec::new());
        self.places = 0;
        for param in &function.params {
            let place = format!("parameter `{}` of `{own}`", name::bounded(&param.name));
            let schema = self.at(place, |this| this.ty(&param.ty))?;
            properties.insert(param.name.clone(), schema);
            if !self.is_option(&param.ty) {
                required.push(param.name.as_str());
            }
        }
        let input = object(properties, &required);
        let resolve = self.resolve;
        let result = function.result.as_ref();
        let (output, error) = match result.map(|ty| peel(resolve, ty)) {
            Some(Kind::Defined(TypeDef { kind: TypeDefKind::Result(both), .. })) => {
                let output = self.given(format!("result of `{own}`"), both.ok.as_ref())?;
                (output, Some(self.given(format!("error of `{own}`"), both.err.as_ref())?))
            }
            _ => (self.given(format!("result of `{own}`"), result)?, None),
        };
        Ok(Schemas { input, output, error })
    }

    /// What the function gives: nothing is null.
    fn given(&mut self, place: String, ty: Option<&Type>) -> Result<Value, String> {
        self.places = 0;
        match ty {
            None => Ok(json!({ "type": "null" })),
            Some(ty) => self.at(place, |this| this.ty(ty)),
        }
    }

    fn ty(&mut self, ty: &Type) -> Result<Value, String> {
        self.places += 1;
        if self.places > PLACES_MAX {
            return Err(self.refused(&format!("more than {PLACES_MAX} types within types")));
        }
        if self.way.len() > DEPTH_MAX {
            return Err(self.refused(&format!("more than {DEPTH_MAX} types in one another")));
        }
        let integer = |least: i64, most: i64| json!({ "type": "integer", "minimum": least, "maximum": most });
        Ok(match ty {
            Type::Bool => json!({ "type": "boolean" }),
            Type::U8 => integer(0, u8::MAX.into()),
            Type::U16 => integer(0, u16::MAX.into()),
            Type::U32 => integer(0, u32::MAX.into()),
            // The format also lets a decimal string through where a client
            // can't write such numbers exactly.
            Type::U64 => {
                json!({ "type": "integer", "format": "uint64", "minimum": 0, "exclusiveMaximum": UNSIGNED_END })
            }
            Type::S8 => integer(i8::MIN.into(), i8::MAX.into()),
            Type::S16 => integer(i16::MIN.into(), i16::MAX.into()),
            Type::S32 => integer(i32::MIN.into(), i32::MAX.into()),
            Type::S64 => with(integer(i64::MIN, i64::MAX), json!({ "format": "int64" })),
            Type::F32 => float(json!({ "type": "number", "minimum": -SINGLE_MAX, "maximum": SINGLE_MAX })),
            Type::F64 => float(json!({ "type": "number" })),
            Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            Type::String => json!({ "type": "string" }),
            Type::ErrorContext => return Err(self.refused("error-context")),
            Type::Id(id) => {
                let def = &self.resolve.types[*id];
                let schema = self.defined(def, *id)?;
                describe(schema, self.docs.of_type(&Home::of(self.resolve, def), def.name.as_deref()))
            }
        })
    }

    fn defined(&mut self, def: &TypeDef, id: wit_parser::TypeId) -> Result<Value, String> {
        let home = Home::of(self.resolve, def);
        let docs = |item: &str| self.docs.of_item(&home, def.name.as_deref(), item);
        match &def.kind {
            TypeDefKind::Type(inner) => self.ty(inner),
            TypeDefKind::Record(record) => {
                let (mut properties, mut required) = (Map::new(), Vec::new());
                for field in &record.fields {
                    let place = format!("field `{}`", name::bounded(&field.name));
                    let schema = self.at(place, |this| this.ty(&field.ty))?;
                    properties.insert(field.name.clone(), describe(schema, docs(&field.name)));
                    if !self.is_option(&field.ty) {
                        required.push(field.name.as_str());
                    }
                }
                Ok(object(properties, &required))
            }
            TypeDefKind::Tuple(tuple) => {
                let items = tuple.types.iter().enumerate();
                let items: Vec<Value> = items
                    .map(|(index, ty)| self.at(format!("element {index}"), |this| this.ty(ty)))
                    .collect::<Result<_, _>>()?;
                let count = items.len();
                let array = json!({ "type": "array", "prefixItems": items, "items": false });
                Ok(with(array, json!({ "minItems": count, "maxItems": count })))
            }
            TypeDefKind::List(element) if self.is_byte(element) => {
                Ok(json!({ "type": "string", "contentEncoding": "base64" }))
            }
            TypeDefKind::List(element) => {
                let items = self.at("item".into(), |this| this.ty(element))?;
                Ok(json!({ "type": "array", "items": items }))
            }
            TypeDefKind::Option(inner) if self.is_option(inner) => {
                let inner = self.at("some".into(), |this| this.ty(inner))?;
                Ok(nullable(object(Map::from_iter([("some".into(), inner)]), &["some"])))
            }
            TypeDefKind::Option(inner) => self.ty(inner).map(nullable),
            TypeDefKind::Enum(cases) => {
                let names: Vec<&str> = cases.cases.iter().map(|case| case.name.as_str()).collect();
                let schema = json!({ "type": "string", "enum": names });
                Ok(describe(schema, list_of_docs(&names, docs)))
            }
            TypeDefKind::Flags(flags) => {
                let names: Vec<&str> = flags.flags.iter().map(|flag| flag.name.as_str()).collect();
                let items = json!({ "type": "string", "enum": names });
                let schema = json!({ "type": "array", "uniqueItems": true, "items": items });
                Ok(describe(schema, list_of_docs(&names, docs)))
            }
            TypeDefKind::Variant(variant) => {
                let mut branches = Vec::new();
                for Case { name: case, ty, .. } in &variant.cases {
                    branches.push(describe(self.case(case, ty.as_ref())?, docs(case)));
                }
                Ok(json!({ "oneOf": branches }))
            }
            TypeDefKind::Result(result) => {
                let branches = [self.case("ok", result.ok.as_ref())?, self.case("err", result.err.as_ref())?];
                Ok(json!({ "oneOf": branches }))
            }
            TypeDefKind::Handle(Handle::Own(id) | Handle::Borrow(id)) => Err(self.refused(&self.resource(*id))),
            TypeDefKind::Resource => Err(self.refused(&self.resource(id))),
            kind @ (TypeDefKind::Map(..)
            | TypeDefKind::FixedLengthList(..)
            | TypeDefKind::Future(_)
            | TypeDefKind::Stream(_)
            | TypeDefKind::Unknown) => Err(self.refused(kind.as_str())),
        }
    }

    /// One case of a variant: `{"tag": NAME}`, with `val` where it carries one.
    fn case(&mut self, case: &str, ty: Option<&Type>) -> Result<Value, String> {
        self.places += 1;
        let mut properties = Map::from_iter([("tag".into(), json!({ "type": "string", "const": case }))]);
        let mut required = vec!["tag"];
        if let Some(ty) = ty {
            let payload = self.at(format!("case `{}`", name::bounded(case)), |this| this.ty(ty))?;
            properties.insert("val".into(), payload);
            if !self.is_option(ty) {
                required.push("val");
            }
        }
        Ok(object(properties, &required))
    }

    fn at<T>(&mut self, step: String, draw: impl FnOnce(&mut Self) -> T) -> T {
        self.way.push(step);
        let drawn = draw(self);
        self.way.pop();
        drawn
    }

    fn refused(&self, what: &str) -> String {
        format!("{}: {what}", self.way.join(", "))
    }

    fn resource(&self, id: wit_parser::TypeId) -> String {
        // A resource that is used elsewhere than where it is defined is an
        // alias there.
        let mut def = &self.resolve.types[id];
        while let TypeDefKind::Type(Type::Id(inner)) = def.kind {
            def = &self.resolve.types[inner];
        }
        match &def.name {
            Some(own) => format!("resource `{}`", name::bounded(own)),
            None => "a resource".into(),
        }
    }

    fn is_option(&self, ty: &Type) -> bool {
        matches!(peel(self.resolve, ty), Kind::Defined(TypeDef { kind: TypeDefKind::Option(_), .. }))
    }

    fn is_byte(&self, ty: &Type) -> bool {
        matches!(peel(self.resolve, ty), Kind::Plain(Type::U8))
    }
}

/// A type behind all names that it has.
enum Kind<'a> {
    Plain(Type),
    Defined(&'a TypeDef),
}

fn peel<'a>(resolve: &'a Resolve, ty: &Type) -> Kind<'a> {
    let mut ty = *ty;
    while let Type::Id(id) = ty {
        match &resolve.types[id].kind {
            TypeDefKind::Type(inner) => ty = *inner,
            _ => return Kind::Defined(&resolve.types[id]),
        }
    }
    Kind::Plain(ty)
}

/// What JSON has no number for is a string.
fn float(number: Value) -> Value {
    json!({ "anyOf": [number, { "type": "string", "enum": ["NaN", "Infinity", "-Infinity"] }] })
}

fn object(properties: Map<String, Value>, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if required.is_empty() { schema } else { with(schema, json!({ "required": required })) }
}

/// The same, or null.
fn nullable(schema: Value) -> Value {
    let nothing = json!({ "type": "null" });
    let simple = schema.get("type").and_then(Value::as_str).map(str::to_owned);
    let choices = schema.get("anyOf").and_then(Value::as_array).cloned();
    match (simple, choices) {
        // An enumeration would have to list null too.
        (Some(ty), _) if schema.get("enum").is_none() => with(schema, json!({ "type": [ty, "null"] })),
        (_, Some(mut choices)) => {
            choices.push(nothing);
            with(schema, json!({ "anyOf": choices }))
        }
        _ => json!({ "anyOf": [schema, nothing] }),
    }
}

fn with(schema: Value, more: Value) -> Value {
    match (schema, more) {
        (Value::Object(mut schema), Value::Object(more)) => {
            schema.extend(more);
            Value::Object(schema)
        }
        (schema, _) => schema,
    }
}

/// Adds a text: of a field, then of its type, then of the type's cases.
fn describe(schema: Value, docs: Option<String>) -> Value {
    let Some(docs) = docs else { return schema };
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(inner) if inner != docs => format!("{docs}\n{inner}"),
        _ => docs,
    };
    with(schema, json!({ "description": text }))
}

/// The texts of cases or flags, which have no place of their own in a schema.
fn list_of_docs(names: &[&str], docs: impl Fn(&str) -> Option<String>) -> Option<String> {
    let lines: Vec<String> =
        names.iter().filter_map(|name| docs(name).map(|text| format!("`{name}`: {text}"))).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
