//! JSON to the values of a component.

use data_encoding::BASE64;
use serde_json::Value;
use wasmtime::component::{Type, Val};

/// What a value is not, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// As a JSON pointer into the arguments.
    at: String,
    expected: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = if self.at.is_empty() { "the arguments" } else { crate::host::cut(&self.at, SHOWN_MAX) };
        write!(f, "`{at}`: expected {}", crate::host::cut(&self.expected, SHOWN_MAX))
    }
}

/// What is shown of a place or a list of names.
const SHOWN_MAX: usize = 256;

/// Bytes of all `list<u8>` of a call that are handed over one by one, where the function
/// has a signature without a faster way (see `bulk`). Each takes 40 bytes of
/// host memory meanwhile.
const SLOW_BYTES_MAX: usize = 256 << 10;

/// Host memory that all values of one call may take. Small arguments can mean
/// many: each field that is left out is a value too.
const VALUES_MAX: usize = 16 << 20;

/// What is left of both.
struct Budget {
    bytes: usize,
    memory: usize,
}

impl Budget {
    /// Takes a value with a name of this length.
    fn value(&mut self, name: usize) -> Result<(), Mismatch> {
        match self.memory.checked_sub(size_of::<Val>() + name) {
            Some(left) => {
                self.memory = left;
                Ok(())
            }
            None => mismatch(format!("less: all values together would take more than {} MiB", VALUES_MAX >> 20)),
        }
    }

    /// Takes the bytes of a list.
    fn bytes(&mut self, count: usize) -> Result<(), Mismatch> {
        match self.bytes.checked_sub(count) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => {
                let kib = SLOW_BYTES_MAX >> 10;
                mismatch(format!("at most {kib} KiB in all: hand more over as a file, with --input NAME=FILE"))
            }
        }
    }
}

type Lowered = Result<Val, Mismatch>;

fn mismatch<T>(expected: impl Into<String>) -> Result<T, Mismatch> {
    Err(Mismatch { at: String::new(), expected: expected.into() })
}

/// Adds the outer part of the place.
pub(super) fn below<T>(lowered: Result<T, Mismatch>, step: &dyn std::fmt::Display) -> Result<T, Mismatch> {
    lowered.map_err(|inner| {
        let step = step.to_string().replace('~', "~0").replace('/', "~1");
        Mismatch { at: format!("/{step}{}", inner.at), ..inner }
    })
}

/// The parameters of a function, from an object.
pub(super) fn parameters<'t>(
    types: impl Iterator<Item = (&'t str, Type)>,
    arguments: &Value,
) -> Result<Vec<Val>, Mismatch> {
    let members = members(types, arguments)?;
    let mut budget = Budget { bytes: SLOW_BYTES_MAX, memory: VALUES_MAX };
    members.map(|(name, ty, value)| below(member(&ty, value, &mut budget), &name)).collect()
}

/// The members of an object by name, in the order of the types; none but these.
pub(super) fn members<'t, 'v>(
    types: impl Iterator<Item = (&'t str, Type)>,
    value: &'v Value,
) -> Result<impl Iterator<Item = (&'t str, Type, Option<&'v Value>)>, Mismatch> {
    let Value::Object(object) = value else { return mismatch("an object") };
    let members: Vec<_> = types.map(|(name, ty)| (name, ty, object.get(name))).collect();
    let known = members.iter().filter(|(_, _, value)| value.is_some()).count();
    if known < object.len() {
        let unknown = object.keys().find(|key| !members.iter().any(|(name, ..)| name == key));
        return below(mismatch("nothing: there is no such key"), &unknown.map_or("", String::as_str));
    }
    Ok(members.into_iter())
}

fn member(ty: &Type, value: Option<&Value>, budget: &mut Budget) -> Lowered {
    match (value, ty) {
        (Some(value), _) => lower(ty, value, budget),
        (None, Type::Option(_)) => budget.value(0).map(|()| Val::Option(None)),
        (None, _) => mismatch("a value"),
    }
}

/// One value. Recurses as deep as the type nests, which the engine bounds.
fn lower(ty: &Type, value: &Value, budget: &mut Budget) -> Lowered {
    budget.value(0)?;
    Ok(match ty {
        Type::Bool => match value {
            Value::Bool(value) => Val::Bool(*value),
            _ => return mismatch("true or false"),
        },
        Type::S8 => Val::S8(integer(value)?),
        Type::U8 => Val::U8(integer(value)?),
        Type::S16 => Val::S16(integer(value)?),
        Type::U16 => Val::U16(integer(value)?),
        Type::S32 => Val::S32(integer(value)?),
        Type::U32 => Val::U32(integer(value)?),
        Type::S64 => Val::S64(integer(value)?),
        Type::U64 => Val::U64(integer(value)?),
        Type::Float32 => Val::Float32(single(value)?),
        Type::Float64 => Val::Float64(double(value)?),
        Type::Char => {
            let mut chars = text(value)?.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Val::Char(c),
                _ => return mismatch("a string of one character"),
            }
        }
        Type::String => Val::String(text(value)?.to_owned()),
        Type::List(list) if list.ty() == Type::U8 => {
            let bytes = bytes(value)?;
            budget.bytes(bytes.len())?;
            Val::List(bytes.into_iter().map(Val::U8).collect())
        }
        Type::List(list) => Val::List(
            items(value)?
                .map(|(index, item)| below(lower(&list.ty(), item, budget), &index))
                .collect::<Result<_, _>>()?,
        ),
        Type::Tuple(tuple) => {
            let types = tuple.types();
            let count = types.len();
            let items = items(value)?;
            if items.len() != count {
                return mismatch(format!("an array of {count}"));
            }
            Val::Tuple(
                types
                    .zip(items)
                    .map(|(ty, (index, item))| below(lower(&ty, item, budget), &index))
                    .collect::<Result<_, _>>()?,
            )
        }
        Type::Record(record) => {
            let fields = members(record.fields().map(|field| (field.name, field.ty)), value)?;
            Val::Record(
                fields
                    .map(|(name, ty, value)| {
                        budget.value(name.len())?;
                        Ok((name.to_owned(), below(member(&ty, value, budget), &name)?))
                    })
                    .collect::<Result<_, _>>()?,
            )
        }
        Type::Option(_) if value.is_null() => Val::Option(None),
        Type::Option(option) => {
            let inner = option.ty();
            let some = match (&inner, value) {
                // Null in it would be taken for none.
                (Type::Option(_), Value::Object(object)) if object.len() == 1 && object.contains_key("some") => {
                    below(lower(&inner, &object["some"], budget), &"some")?
                }
                (Type::Option(_), _) => return mismatch("null or `{\"some\": …}`"),
                (_, value) => lower(&inner, value, budget)?,
            };
            Val::Option(Some(Box::new(some)))
        }
        Type::Enum(cases) => Val::Enum(one_of(text(value)?, cases.names())?),
        Type::Flags(flags) => {
            let mut set = Vec::new();
            for (index, item) in items(value)? {
                let flag = below(text(item).and_then(|name| one_of(name, flags.names())), &index)?;
                if set.contains(&flag) {
                    return below(mismatch("each flag once"), &index);
                }
                set.push(flag);
            }
            Val::Flags(set)
        }
        Type::Variant(variant) => {
            let (tag, payload) = tagged(value)?;
            let Some(case) = variant.cases().find(|case| case.name == tag) else {
                let names: Vec<&str> = variant.cases().map(|case| case.name).collect();
                return below(mismatch(listed(&names)), &"tag");
            };
            Val::Variant(tag.to_owned(), carried(case.ty.as_ref(), payload, budget)?)
        }
        Type::Result(result) => match tagged(value)? {
            ("ok", payload) => Val::Result(Ok(carried(result.ok().as_ref(), payload, budget)?)),
            ("err", payload) => Val::Result(Err(carried(result.err().as_ref(), payload, budget)?)),
            _ => return below(mismatch("one of `ok`, `err`"), &"tag"),
        },
        Type::Map(_)
        | Type::Own(_)
        | Type::Borrow(_)
        | Type::Future(_)
        | Type::Stream(_)
        | Type::ErrorContext
        | Type::FixedLengthList(_) => return mismatch("a type that JSON has a form for"),
    })
}

/// The bytes of a base64 string.
pub(super) fn bytes(value: &Value) -> Result<Vec<u8>, Mismatch> {
    let text = text(value)?;
    BASE64.decode(text.as_bytes()).or_else(|error| mismatch(format!("base64, with padding: {error}")))
}

pub(super) fn text(value: &Value) -> Result<&str, Mismatch> {
    value.as_str().map_or_else(|| mismatch("a string"), Ok)
}

fn items(value: &Value) -> Result<impl ExactSizeIterator<Item = (usize, &Value)>, Mismatch> {
    match value {
        Value::Array(items) => Ok(items.iter().enumerate()),
        _ => mismatch("an array"),
    }
}

fn one_of<'t>(name: &str, names: impl Iterator<Item = &'t str>) -> Result<String, Mismatch> {
    let names: Vec<&str> = names.collect();
    if names.contains(&name) { Ok(name.to_owned()) } else { mismatch(listed(&names)) }
}

fn listed(names: &[&str]) -> String {
    format!("one of {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
}

/// `{"tag": NAME}` and perhaps `val`.
fn tagged(value: &Value) -> Result<(&str, Option<&Value>), Mismatch> {
    let expected = "an object with the keys `tag` and, where there is one, `val`";
    let Value::Object(object) = value else { return mismatch(expected) };
    let payload = object.get("val");
    match object.get("tag") {
        Some(Value::String(tag)) if object.len() == 1 + usize::from(payload.is_some()) => Ok((tag, payload)),
        _ => mismatch(expected),
    }
}

fn carried(ty: Option<&Type>, payload: Option<&Value>, budget: &mut Budget) -> Result<Option<Box<Val>>, Mismatch> {
    match (ty, payload) {
        (Some(ty), payload) => below(member(ty, payload, budget), &"val").map(|val| Some(Box::new(val))),
        (None, None) => Ok(None),
        (None, Some(_)) => below(mismatch("nothing: this case carries no value"), &"val"),
    }
}

/// An integer in range. A double without a fraction is one to JSON Schema, so
/// it is one here.
fn integer<T: TryFrom<i128>>(value: &Value) -> Result<T, Mismatch> {
    let wide = match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => Some(i128::from(number)),
            (_, Some(number), _) => Some(i128::from(number)),
            (.., Some(double)) => whole(double),
            _ => None,
        },
        _ => None,
    };
    let bits = size_of::<T>() * 8;
    wide.and_then(|wide| T::try_from(wide).ok()).map_or_else(|| mismatch(format!("an integer of {bits} bits")), Ok)
}

fn whole(double: f64) -> Option<i128> {
    // Beyond it there is no integer that a guest could take.
    const END: f64 = 18_446_744_073_709_551_616.0;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is in range")]
    (double.fract() == 0.0 && double.abs() <= END).then_some(double as i128)
}

fn double(value: &Value) -> Result<f64, Mismatch> {
    match value {
        Value::Number(number) => number.as_f64().map_or_else(|| mismatch("a number"), Ok),
        Value::String(text) => match text.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => mismatch("a number, \"NaN\", \"Infinity\" or \"-Infinity\""),
        },
        _ => mismatch("a number"),
    }
}

fn single(value: &Value) -> Result<f32, Mismatch> {
    let double = double(value)?;
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what a single is")]
    let single = double as f32;
    if single.is_infinite() && double.is_finite() { mismatch("a number that 32 bits can hold") } else { Ok(single) }
}
