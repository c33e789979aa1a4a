//! Any type, any value: what goes in comes out, and the schemas are right.

use glovebox_runtime::job::End;
use glovebox_wasm::Loaded;
use glovebox_wasm::typed::{Signature, exports};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::harness::load;
use crate::typed::{call_in, returned};

/// A WIT type.
#[derive(Debug, Clone)]
enum Wit {
    Plain(&'static str),
    List(Box<Wit>),
    Option(Box<Wit>),
    Tuple(Vec<Wit>),
    Record(Vec<Wit>),
    Variant(Vec<Option<Wit>>),
    Result(Option<Box<Wit>>, Option<Box<Wit>>),
    Enum(usize),
    Flags(usize),
}

const PLAIN: [&str; 13] =
    ["bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64", "char", "string"];

fn types() -> BoxedStrategy<Wit> {
    let leaf = prop_oneof![
        4 => proptest::sample::select(&PLAIN[..]).prop_map(Wit::Plain),
        1 => (1..5_usize).prop_map(Wit::Enum),
        1 => (1..33_usize).prop_map(Wit::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let maybe = proptest::option::of(boxed.clone());
        prop_oneof![
            boxed.clone().prop_map(Wit::List),
            boxed.prop_map(Wit::Option),
            vec(inner.clone(), 1..4).prop_map(Wit::Tuple),
            vec(inner.clone(), 1..4).prop_map(Wit::Record),
            vec(proptest::option::of(inner), 1..4).prop_map(Wit::Variant),
            (maybe.clone(), maybe).prop_map(|(ok, err)| Wit::Result(ok, err)),
        ]
    })
    .boxed()
}

/// Values of a type, each as it is written when it comes back.
fn values(ty: &Wit) -> BoxedStrategy<Value> {
    match ty {
        Wit::Plain(name) => plain(name),
        Wit::List(item) if matches!(**item, Wit::Plain("u8")) => {
            vec(any::<u8>(), 0..40).prop_map(|bytes| json!(data_encoding::BASE64.encode(&bytes))).boxed()
        }
        Wit::List(item) => vec(values(item), 0..4).prop_map(Value::Array).boxed(),
        Wit::Option(inner) => {
            let nested = matches!(**inner, Wit::Option(_));
            let some = values(inner).prop_map(move |value| if nested { json!({ "some": value }) } else { value });
            prop_oneof![Just(Value::Null), some].boxed()
        }
        Wit::Tuple(items) => items.iter().map(values).collect::<Vec<_>>().prop_map(Value::Array).boxed(),
        Wit::Record(fields) => {
            let fields = fields.iter().enumerate().map(|(index, field)| {
                let option = matches!(field, Wit::Option(_));
                values(field).prop_map(move |value| (format!("f{index}"), value, option))
            });
            let object = |fields: Vec<(String, Value, bool)>| -> Map<String, Value> {
                let there = fields.into_iter().filter(|(_, value, option)| !(*option && value.is_null()));
                there.map(|(name, value, _)| (name, value)).collect()
            };
            fields.collect::<Vec<_>>().prop_map(move |fields| Value::Object(object(fields))).boxed()
        }
        Wit::Variant(cases) => {
            let cases = cases.iter().enumerate().map(|(index, ty)| case(format!("c{index}"), ty.as_ref()));
            proptest::strategy::Union::new(cases).boxed()
        }
        Wit::Result(ok, err) => {
            prop_oneof![case("ok".into(), ok.as_deref()), case("err".into(), err.as_deref())].boxed()
        }
        Wit::Enum(count) => (0..*count).prop_map(|index| json!(format!("c{index}"))).boxed(),
        Wit::Flags(count) => {
            let names: Vec<String> = (0..*count).map(|index| format!("c{index}")).collect();
            proptest::sample::subsequence(names, 0..=*count).prop_map(|flags| json!(flags)).boxed()
        }
    }
}

fn case(tag: String, ty: Option<&Wit>) -> BoxedStrategy<Value> {
    match ty {
        None => Just(json!({ "tag": tag })).boxed(),
        Some(ty) => values(ty).prop_map(move |value| json!({ "tag": tag, "val": value })).boxed(),
    }
}

fn plain(name: &str) -> BoxedStrategy<Value> {
    let named = |name: &'static str| Just(json!(name));
    let special = prop_oneof![named("NaN"), named("Infinity"), named("-Infinity")];
    // A number that JSON has; the shortest one for a single.
    let double = |text: String| text.parse::<f64>().map_or(Value::Null, |double| json!(double));
    match name {
        "bool" => any::<bool>().prop_map(Value::Bool).boxed(),
        "s8" => any::<i8>().prop_map(Value::from).boxed(),
        "u8" => any::<u8>().prop_map(Value::from).boxed(),
        "s16" => any::<i16>().prop_map(Value::from).boxed(),
        "u16" => any::<u16>().prop_map(Value::from).boxed(),
        "s32" => any::<i32>().prop_map(Value::from).boxed(),
        "u32" => any::<u32>().prop_map(Value::from).boxed(),
        "s64" => any::<i64>().prop_map(Value::from).boxed(),
        "u64" => any::<u64>().prop_map(Value::from).boxed(),
        "f32" => prop_oneof![
            8 => proptest::num::f32::NORMAL.prop_map(move |single| double(single.to_string())),
            1 => Just(json!(3.4028235e38)),
            1 => special,
        ]
        .boxed(),
        "f64" => prop_oneof![8 => proptest::num::f64::NORMAL.prop_map(|double| json!(double)), 1 => special].boxed(),
        "char" => any::<char>().prop_map(|c| json!(c.to_string())).boxed(),
        _ => ".{0,20}".prop_map(Value::String).boxed(),
    }
}

/// The type in the text format; what has to have a name gets one.
fn text(ty: &Wit, declarations: &mut String, names: &mut usize) -> String {
    let items = |types: &mut dyn Iterator<Item = String>| types.collect::<Vec<_>>().join(" ");
    let body = match ty {
        Wit::Plain(name) => return (*name).into(),
        Wit::List(item) => return format!("(list {})", text(item, declarations, names)),
        Wit::Option(inner) => return format!("(option {})", text(inner, declarations, names)),
        Wit::Tuple(types) => {
            return format!("(tuple {})", items(&mut types.iter().map(|ty| text(ty, declarations, names))));
        }
        Wit::Result(ok, err) => {
            let ok = ok.as_ref().map(|ty| text(ty, declarations, names)).unwrap_or_default();
            let err = err.as_ref().map(|ty| format!("(error {})", text(ty, declarations, names))).unwrap_or_default();
            return format!("(result {ok} {err})");
        }
        Wit::Record(types) => {
            let fields = types.iter().enumerate();
            let mut fields =
                fields.map(|(index, ty)| format!("(field \"f{index}\" {})", text(ty, declarations, names)));
            format!("(record {})", items(&mut fields))
        }
        Wit::Variant(types) => {
            let cases = types.iter().enumerate();
            let mut cases = cases.map(|(index, ty)| {
                let payload = ty.as_ref().map(|ty| text(ty, declarations, names)).unwrap_or_default();
                format!("(case \"c{index}\" {payload})")
            });
            format!("(variant {})", items(&mut cases))
        }
        Wit::Enum(count) => format!("(enum {})", items(&mut (0..*count).map(|index| format!("\"c{index}\"")))),
        Wit::Flags(count) => format!("(flags {})", items(&mut (0..*count).map(|index| format!("\"c{index}\"")))),
    };
    *names += 1;
    let name = format!("t{names}");
    declarations.push_str(&format!("(type ${name}' {body}) (import \"{name}\" (type ${name} (eq ${name}')))\n"));
    format!("${name}")
}

/// A component with a function `echo0`, `echo1`, … for each type, which takes
/// a list of it and gives it back.
fn component(types: &[Wit]) -> Vec<u8> {
    let (mut declarations, mut names) = (String::new(), 0);
    for (index, ty) in types.iter().enumerate() {
        let ty = text(ty, &mut declarations, &mut names);
        declarations.push_str(&format!(
            r#"(func $f{index} (param "x" (list {ty})) (result (list {ty}))
                (canon lift (core func $i "echo") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
            (export "echo{index}" (func $f{index}))
            "#
        ));
    }
    let text = format!(
        r#"(component
            (core module $m
                (memory (export "memory") 16)
                (global $next (mut i32) (i32.const 1024))
                (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
                    (local $at i32)
                    (local.set $at (i32.and
                        (i32.add (global.get $next) (i32.sub (local.get 2) (i32.const 1)))
                        (i32.sub (i32.const 0) (local.get 2))))
                    (global.set $next (i32.add (local.get $at) (local.get $size)))
                    (local.get $at))
                (func (export "echo") (param i32 i32) (result i32)
                    (i32.store (i32.const 8) (local.get 0))
                    (i32.store (i32.const 12) (local.get 1))
                    (i32.const 8)))
            (core instance $i (instantiate $m))
            {declarations})"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The same types and values each time, so that compiled guests are reused.
fn sample<T>(runner: &mut TestRunner, strategy: &BoxedStrategy<T>) -> T
where
    T: std::fmt::Debug,
{
    strategy.new_tree(runner).unwrap().current()
}

fn valid(schema: &Value, value: &Value) -> bool {
    jsonschema::validator_for(schema).unwrap().is_valid(value)
}

/// What the schema lets through is taken, what it rejects is refused; base64
/// is all that it can't say.
fn agrees(loaded: &Loaded, name: &str, signature: &Signature, args: &Value) {
    let end = call_in(loaded, None, name, args).end;
    match (valid(&signature.input, args), &end) {
        (true, End::Returned { content, .. }) => {
            let given: Value = serde_json::from_str(content).unwrap();
            assert!(valid(&signature.output, &given), "{given} is not {}", signature.output);
            // Once normal, always normal.
            assert_eq!(returned(call_in(loaded, None, name, &json!({ "x": given })).end), given);
        }
        (false, End::Refused(_)) => {}
        (true, End::Refused(problem)) if problem.message.contains("base64") => {}
        (valid, _) => panic!("{args}\nis valid: {valid}\nfor {}\nbut: {end:?}", signature.input),
    }
}

#[test]
fn any_value_of_any_type_comes_back_as_it_went_and_fits_the_schemas() {
    const COMPONENTS: usize = 8;
    const TYPES: usize = 16;
    const VALUES: usize = 6;
    let mut runner = TestRunner::deterministic();
    for _ in 0..COMPONENTS {
        let drawn: Vec<Wit> = (0..TYPES).map(|_| sample(&mut runner, &types())).collect();
        let bytes = component(&drawn);
        let signatures: Vec<Signature> =
            exports(&bytes).unwrap().into_iter().map(|known| known.signature.unwrap()).collect();
        let loaded = load(&bytes);
        let lists: Vec<BoxedStrategy<Value>> =
            drawn.iter().map(|ty| values(&Wit::List(Box::new(ty.clone())))).collect();
        for (index, (list, signature)) in lists.iter().zip(&signatures).enumerate() {
            let name = format!("echo{index}");
            for _ in 0..VALUES {
                let value = sample(&mut runner, list);
                let args = json!({ "x": value });
                assert!(valid(&signature.input, &args), "{args} is not {}", signature.input);
                let given = returned(call_in(&loaded, None, &name, &args).end);
                assert_eq!(given.to_string(), value.to_string(), "{:?}", drawn[index]);
                assert!(valid(&signature.output, &given), "{given} is not {}", signature.output);
            }
            for other in &lists {
                agrees(&loaded, &name, signature, &json!({ "x": sample(&mut runner, other) }));
            }
        }
    }
}

/// Small arguments can mean many values, and each takes host memory.
#[test]
fn values_are_bounded_in_all() {
    let options = Wit::Record((0..100).map(|_| Wit::Option(Box::new(Wit::Plain("u8")))).collect());
    let bytes = Wit::List(Box::new(Wit::Plain("u8")));
    let loaded = load(&component(&[options, bytes]));
    let refused =
        |name: &str, item: Value, count: usize| match call_in(&loaded, None, name, &json!({ "x": vec![item; count] }))
            .end
        {
            End::Refused(problem) => problem.message,
            End::Returned { .. } => String::new(),
            other => panic!("{other:?}"),
        };
    assert_eq!(refused("echo0", json!({}), 10), "");
    assert!(refused("echo0", json!({}), 10_000).contains("more than 16 MiB"));
    let hundred = json!(data_encoding::BASE64.encode(&[7; 100 << 10]));
    assert_eq!(refused("echo1", hundred.clone(), 2), "");
    assert!(refused("echo1", hundred, 3).contains("at most 256 KiB in all"));
}
