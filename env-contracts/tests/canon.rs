//! Canonical arguments: golden vectors and what errors say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use env_contracts::canon::{CanonErrorKind, Canonical, MAX_BYTES, MAX_DEPTH, ParseLimits};
use env_contracts::{Code, Diagnose};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    input: Option<String>,
    input_hex: Option<String>,
    canonical: Option<String>,
    digest: Option<String>,
    error: Option<String>,
    offset: Option<usize>,
}

impl Vector {
    fn bytes(&self) -> Vec<u8> {
        match (&self.input, &self.input_hex) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(hex)) => {
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
            }
            _ => panic!("{}: exactly one of input and input_hex", self.name),
        }
    }
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("../golden/canon/vectors.json")).unwrap()
}

fn parse(text: &str) -> Result<Canonical, env_contracts::canon::CanonError> {
    Canonical::parse(text.as_bytes(), ParseLimits::default())
}

#[test]
fn golden_vectors() {
    let vectors = vectors();
    assert!(vectors.len() >= 60);
    for vector in vectors {
        let name = &vector.name;
        match (&vector.canonical, Canonical::parse(&vector.bytes(), ParseLimits::default())) {
            (Some(expected), Ok(canonical)) => {
                assert_eq!(canonical.as_str(), expected, "{name}");
                assert_eq!(Some(canonical.digest_hex()), vector.digest, "{name}");
                assert_eq!(parse(expected).unwrap(), canonical, "{name}: not a fixpoint");
                let again = Canonical::from_value(canonical.value()).unwrap();
                assert_eq!(again, canonical, "{name}: from_value differs");
            }
            (None, Err(error)) => {
                assert_eq!(Some(error.kind.name()), vector.error.as_deref(), "{name}: {error}");
                assert_eq!(error.position.map(|at| at.offset), vector.offset, "{name}: {error}");
            }
            (_, got) => panic!("{name}: {got:?}"),
        }
    }
}

#[test]
fn every_error_kind_but_limits_has_a_vector() {
    let seen: BTreeSet<String> = vectors().into_iter().filter_map(|vector| vector.error).collect();
    let expected = [
        "byte-order-mark",
        "duplicate-key",
        "integer-range",
        "lone-surrogate",
        "not-finite",
        "not-utf8",
        "raw-control",
        "syntax",
        "too-deep",
        "trailing",
    ];
    assert_eq!(seen, expected.map(String::from).into());
}

#[test]
fn different_meanings_have_different_digests() {
    let groups = [
        &[r#"{"a":5}"#, r#"{"a":"5"}"#, r#"{"a":5.0}"#, r#"{"a":[5]}"#][..],
        &[r#"{"a":null}"#, "{}", r#"{"a":false}"#, r#"{"a":""}"#, r#"{"a":0}"#],
        &["[1,2]", "[2,1]", "[1,2,2]", "[[1,2]]"],
        &["0.0", "-0.0", "0"],
    ];
    for group in groups {
        let digests: BTreeSet<_> = group.iter().map(|text| parse(text).unwrap().digest()).collect();
        assert_eq!(digests.len(), group.len(), "{group:?}");
    }
    let order = [r#"{"a":1,"b":{"c":2,"d":3}}"#, r#"{"b":{"d":3,"c":2},"a":1}"#];
    assert_eq!(parse(order[0]).unwrap().digest(), parse(order[1]).unwrap().digest());
}

#[test]
fn errors_say_what_and_where() {
    let cases = [
        ("{\n  \"é\": nul\n}", "expected a value after `:`, got \"nul\" at line 2, column 8 (byte 10), in `/é`"),
        (
            r#"{"items":[{"a/b":18446744073709551616}]}"#,
            "the integer \"18446744073709551616\" does not fit 64 bits at line 1, column 18 (byte 17), in `/items/0/a~1b`",
        ),
        ("[1", "expected `,` or `]`, got the end of the input at line 1, column 3 (byte 2)"),
        (
            "[NaN]",
            "expected a finite number (JSON has no NaN and no Infinity), got \"NaN]\" at line 1, column 2 (byte 1), in `/0`",
        ),
        ("[1] // two", "expected nothing after the value, got \"// two\" at line 1, column 5 (byte 4)"),
        (r#"["\ud83d"]"#, r#"the escape "\\ud83d" is half of a surrogate pair at line 1, column 3 (byte 2), in `/0`"#),
    ];
    for (input, expected) in cases {
        let error = parse(input).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.code(), Code::ArgumentsInvalid);
    }
    let help = parse("[99999999999999999999]").unwrap_err().help();
    assert!(help.starts_with("send it as a string"), "{help}");
}

#[test]
fn errors_repeat_little_of_the_input_and_escape_it() {
    let long = "k".repeat(100_000);
    let evil = "\u{202e}\u{1b}[2J`".to_owned() + &long;
    let json_evil = serde_json::to_string(&evil).unwrap();
    let deep = format!("{{{json_evil}:").repeat(MAX_DEPTH);
    let inputs = [
        long.clone(),
        format!("[1] {evil}"),
        format!("{{{json_evil}:1,{json_evil}:2}}"),
        format!("{{{json_evil}:nul}}"),
        format!("{deep}x"),
        "9".repeat(100_000),
        format!("[\u{1b}{long}"),
    ];
    for input in inputs {
        let message = parse(&input).unwrap_err().to_string();
        assert!(message.chars().count() < 350, "{} characters: {message}", message.len());
        assert!(!message.contains(['\u{202e}', '\u{1b}', '\n']), "{message:?}");
        assert!(!message.contains(&"k".repeat(41)), "{message}");
    }
}

#[test]
fn limits_hold_before_the_work_is_done() {
    let limits = |max_bytes, max_values| ParseLimits { max_bytes, max_values };
    let check = |text: &str, limits, expected: Result<&str, CanonErrorKind>| {
        let got = Canonical::parse(text.as_bytes(), limits);
        let got = got.map(Canonical::into_string).map_err(|error| error.kind);
        assert_eq!(got, expected.map(String::from), "{text:.40}");
    };
    check("[1,2]", limits(5, 3), Ok("[1,2]"));
    check("[1,2]", limits(4, 3), Err(CanonErrorKind::TooLarge { limit: 4 }));
    check("[1,2]", limits(5, 2), Err(CanonErrorKind::TooManyValues { limit: 2 }));
    // Refused while it is read, not only once it is all in memory.
    let error = Canonical::parse(b"[1,2]", limits(5, 2)).unwrap_err();
    assert_eq!(error.position.map(|at| at.offset), Some(3));
    // The size is checked first: these bytes are not even UTF-8.
    let big = vec![0xFF; MAX_BYTES + 1];
    let error = Canonical::parse(&big, ParseLimits::default()).unwrap_err();
    assert_eq!(error.kind, CanonErrorKind::TooLarge { limit: MAX_BYTES });
    // A canonical text that is longer than the limit could not be read again.
    check("[1e5]", limits(9, 2), Err(CanonErrorKind::TooLarge { limit: 9 }));
    check("[1e5]", limits(10, 2), Ok("[100000.0]"));
}

#[test]
fn values_made_by_programs_obey_the_same_limits() {
    let mut deep = json!(1);
    for _ in 0..MAX_DEPTH {
        deep = json!({ "d": deep });
    }
    assert!(Canonical::from_value(&deep).is_ok());
    let deeper = json!([deep]);
    let error = Canonical::from_value(&deeper).unwrap_err();
    assert_eq!(error.kind, CanonErrorKind::TooDeep { limit: MAX_DEPTH });

    let mut bottomless = Value::Null;
    for _ in 0..10_000 {
        bottomless = Value::Array(vec![bottomless]);
    }
    let error = Canonical::from_value(&bottomless).unwrap_err();
    assert_eq!(error.kind, CanonErrorKind::TooDeep { limit: MAX_DEPTH });
    // Dropping it would recurse 10 000 deep.
    std::mem::forget(bottomless);

    let error = Canonical::from_value(&json!("x".repeat(MAX_BYTES))).unwrap_err();
    assert_eq!(error.kind, CanonErrorKind::TooLarge { limit: MAX_BYTES });
}
