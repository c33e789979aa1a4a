//! The values of a component to JSON.

use data_encoding::BASE64;
use serde_json::{Map, Number, Value, json};
use wasmtime::component::{Type, Val};

/// One value of a type. `None` where the value is none of the type's, which
/// the engine does not let happen.
pub(super) fn lift(ty: &Type, val: Val) -> Option<Value> {
    Some(match (ty, val) {
        (_, Val::Bool(value)) => Value::Bool(value),
        (_, Val::S8(value)) => value.into(),
        (_, Val::U8(value)) => value.into(),
        (_, Val::S16(value)) => value.into(),
        (_, Val::U16(value)) => value.into(),
        (_, Val::S32(value)) => value.into(),
        (_, Val::U32(value)) => value.into(),
        (_, Val::S64(value)) => value.into(),
        (_, Val::U64(value)) => value.into(),
        (_, Val::Float32(value)) => single(value),
        (_, Val::Float64(value)) => double(value),
        (_, Val::Char(value)) => Value::String(value.into()),
        (_, Val::String(value)) => Value::String(value),
        (Type::List(list), Val::List(items)) if list.ty() == Type::U8 => {
            let byte = |item| if let Val::U8(byte) = item { Some(byte) } else { None };
            bytes(&items.into_iter().map(byte).collect::<Option<Vec<u8>>>()?)
        }
        (Type::List(list), Val::List(items)) => {
            let ty = list.ty();
            Value::Array(items.into_iter().map(|item| lift(&ty, item)).collect::<Option<_>>()?)
        }
        (Type::Tuple(tuple), Val::Tuple(items)) => {
            Value::Array(tuple.types().zip(items).map(|(ty, item)| lift(&ty, item)).collect::<Option<_>>()?)
        }
        (Type::Record(record), Val::Record(fields)) => {
            let mut object = Map::new();
            for (field, (name, value)) in record.fields().zip(fields) {
                // What may be left out is left out.
                if !matches!(value, Val::Option(None)) {
                    object.insert(name, lift(&field.ty, value)?);
                }
            }
            Value::Object(object)
        }
        (Type::Option(_), Val::Option(None)) => Value::Null,
        (Type::Option(option), Val::Option(Some(value))) => match option.ty() {
            inner @ Type::Option(_) => json!({ "some": lift(&inner, *value)? }),
            inner => lift(&inner, *value)?,
        },
        (_, Val::Enum(case)) => Value::String(case),
        // In the order of the type, whatever order they came in.
        (Type::Flags(flags), Val::Flags(set)) => {
            flags.names().filter(|name| set.iter().any(|flag| flag == name)).collect()
        }
        (Type::Variant(variant), Val::Variant(tag, payload)) => {
            let case = variant.cases().find(|case| case.name == tag)?;
            tagged(case.name, case.ty.as_ref(), payload)?
        }
        (Type::Result(result), Val::Result(Ok(payload))) => tagged("ok", result.ok().as_ref(), payload)?,
        (Type::Result(result), Val::Result(Err(payload))) => tagged("err", result.err().as_ref(), payload)?,
        _ => return None,
    })
}

fn tagged(tag: &str, ty: Option<&Type>, payload: Option<Box<Val>>) -> Option<Value> {
    Some(match (ty, payload) {
        (Some(ty), Some(payload)) => json!({ "tag": tag, "val": lift(ty, *payload)? }),
        _ => json!({ "tag": tag }),
    })
}

/// Bytes as base64.
pub(super) fn bytes(bytes: &[u8]) -> Value {
    Value::String(BASE64.encode(bytes))
}

fn double(value: f64) -> Value {
    Number::from_f64(value).map_or_else(
        || {
            let name = if value.is_nan() {
                "NaN"
            } else if value > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            };
            Value::String(name.into())
        },
        Value::Number,
    )
}

/// The shortest decimal number that is this single: `0.1`, and not the double
/// next to it.
fn single(value: f32) -> Value {
    double(value.to_string().parse().unwrap_or(f64::from(value)))
}
