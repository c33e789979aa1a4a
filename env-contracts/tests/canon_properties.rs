//! Canonical arguments: what holds for every text.
//!
//! A [`Meaning`] is a value as a guest would tell it apart; [`spell`] writes it
//! in one of many ways. Equal meanings must have equal canonical texts however
//! they are spelled, and different meanings different ones.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use env_contracts::canon::{Canonical, ParseLimits};
use proptest::prelude::*;
use proptest::sample::Index;

/// A JSON value with integers and doubles apart, doubles by their bits.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    Null,
    Bool(bool),
    Integer(i128),
    Double(u64),
    Text(String),
    Array(Vec<Meaning>),
    Object(BTreeMap<String, Meaning>),
}

fn integers() -> impl Strategy<Value = i128> {
    prop_oneof![
        -3i128..4,
        any::<i64>().prop_map(i128::from),
        any::<u64>().prop_map(i128::from),
        Just(i128::from(i64::MIN)),
        Just(i128::from(u64::MAX)),
    ]
}

fn doubles() -> impl Strategy<Value = f64> {
    let any_bits = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite());
    prop_oneof![
        any_bits,
        integers().prop_map(|n| n as f64),
        Just(0.0),
        Just(-0.0),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
        Just(5e-324),
        (-5i32..5).prop_map(|n| f64::from(n) / 4.0),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{0,2}",
        any::<String>(),
        prop::collection::vec(any::<char>(), 0..4).prop_map(String::from_iter),
        Just("\u{0}\u{1f}\u{7f}\"\\/\u{2028}\u{feff}\u{1f600}".to_owned()),
    ]
}

fn meanings() -> impl Strategy<Value = Meaning> {
    let scalar = prop_oneof![
        Just(Meaning::Null),
        any::<bool>().prop_map(Meaning::Bool),
        integers().prop_map(Meaning::Integer),
        doubles().prop_map(|x| Meaning::Double(x.to_bits())),
        texts().prop_map(Meaning::Text),
    ];
    scalar.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Meaning::Array),
            prop::collection::btree_map(texts(), inner, 0..5).prop_map(Meaning::Object),
        ]
    })
}

/// A tape of choices; it repeats when it is used up.
struct Choices<'a> {
    tape: &'a [u8],
    at: usize,
}

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        self.at += 1;
        usize::from(self.tape[self.at % self.tape.len()]) % bound
    }

    fn pick<'b>(&mut self, options: &[&'b str]) -> &'b str {
        options[self.below(options.len())]
    }
}

fn spell(meaning: &Meaning, choices: &mut Choices<'_>) -> String {
    let blank = |choices: &mut Choices<'_>| choices.pick(&["", "", " ", "\t", "\r\n", "  \n"]);
    let before = blank(choices);
    let body = match meaning {
        Meaning::Null => "null".to_owned(),
        Meaning::Bool(value) => value.to_string(),
        Meaning::Integer(value) => value.to_string(),
        Meaning::Double(bits) => spell_double(f64::from_bits(*bits), choices),
        Meaning::Text(text) => spell_text(text, choices),
        Meaning::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| spell(item, choices)).collect();
            format!("[{}{}]", blank(choices), items.join(","))
        }
        Meaning::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            for at in (1..entries.len()).rev() {
                entries.swap(at, choices.below(at + 1));
            }
            let entries: Vec<_> = entries
                .into_iter()
                .map(|(key, value)| {
                    let key = spell_text(key, choices);
                    let (left, right) = (blank(choices), blank(choices));
                    format!("{left}{key}{right}:{}", spell(value, choices))
                })
                .collect();
            format!("{{{}{}}}", entries.join(","), blank(choices))
        }
    };
    format!("{before}{body}{}", blank(choices))
}

fn spell_double(value: f64, choices: &mut Choices<'_>) -> String {
    let short = format!("{value:?}");
    let exponent = format!("{value:e}");
    let (mantissa, power) = exponent.split_once('e').unwrap();
    let mark = choices.pick(&["e", "E"]);
    let sign = if power.starts_with('-') { "" } else { choices.pick(&["", "+", "+0"]) };
    match choices.below(4) {
        0 => short,
        1 => format!("{mantissa}{mark}{sign}{power}"),
        // All digits, none of them needed.
        2 => format!("{value:.1100}"),
        _ if mantissa.contains('.') => format!("{mantissa}000{mark}{sign}{power}"),
        _ => format!("{mantissa}.00{mark}{sign}{power}"),
    }
}

fn spell_text(text: &str, choices: &mut Choices<'_>) -> String {
    let mut out = String::from('"');
    for char in text.chars() {
        let short = match char {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '/' => Some("\\/"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            _ => None,
        };
        let raw_is_fine = char >= ' ' && char != '"' && char != '\\';
        match (choices.below(4), short) {
            (0..=1, _) if raw_is_fine => out.push(char),
            (2, Some(short)) => out.push_str(short),
            (way, _) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let lower = format!("\\u{unit:04x}");
                    let upper = format!("\\u{unit:04X}");
                    out.push_str(if way == 3 { &upper } else { &lower });
                }
            }
        }
    }
    out.push('"');
    out
}

fn tape() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..40)
}

fn parse(text: &str) -> Result<Canonical, TestCaseError> {
    Canonical::parse(text.as_bytes(), ParseLimits::default())
        .map_err(|error| TestCaseError::fail(format!("{error} in {text}")))
}

fn spelled(meaning: &Meaning, tape: &[u8]) -> String {
    spell(meaning, &mut Choices { tape, at: 0 })
}

/// A second value that is often equal and otherwise differs a little.
fn change(meaning: &Meaning, at: &Index, to: &Meaning) -> Meaning {
    match meaning {
        Meaning::Array(items) if !items.is_empty() => {
            let mut items = items.clone();
            let index = at.index(items.len());
            items[index] = to.clone();
            Meaning::Array(items)
        }
        Meaning::Object(map) if !map.is_empty() => {
            let mut map = map.clone();
            let key = map.keys().nth(at.index(map.len())).unwrap().clone();
            map.insert(key, to.clone());
            Meaning::Object(map)
        }
        _ => to.clone(),
    }
}

/// Whatever we accept: the canonical text is a fixpoint, and serde_json reads
/// the received text and the canonical one as the value we hold.
fn check_accepted(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(canonical) = Canonical::parse(bytes, ParseLimits::default()) else {
        return Ok(());
    };
    let again = parse(canonical.as_str())?;
    prop_assert_eq!(again.as_str(), canonical.as_str());
    let received: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let written: serde_json::Value = serde_json::from_str(canonical.as_str()).unwrap();
    prop_assert_eq!(&received, canonical.value());
    prop_assert_eq!(&written, canonical.value());
    // `==` takes 0.0 for -0.0; their texts differ.
    let from_received = Canonical::from_value(&received).unwrap();
    prop_assert_eq!(from_received.as_str(), canonical.as_str());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn one_meaning_has_one_text(meaning in meanings(), one in tape(), two in tape()) {
        let (one, two) = (spelled(&meaning, &one), spelled(&meaning, &two));
        let (a, b) = (parse(&one)?, parse(&two)?);
        prop_assert_eq!(a.as_str(), b.as_str());
        prop_assert_eq!(a.digest(), b.digest());
        check_accepted(one.as_bytes())?;
    }

    #[test]
    fn equal_digest_means_equal_input(
        a in meanings(), with in meanings(), at in any::<Index>(), one in tape(), two in tape(),
    ) {
        let b = change(&a, &at, &with);
        let (x, y) = (parse(&spelled(&a, &one))?, parse(&spelled(&b, &two))?);
        prop_assert_eq!(a == b, x.digest() == y.digest(), "{} {}", x, y);
        prop_assert_eq!(x.as_str() == y.as_str(), x.digest() == y.digest());
    }

    #[test]
    fn scalars_keep_apart(a in meanings(), b in meanings(), tape in tape()) {
        let (x, y) = (parse(&spelled(&a, &tape))?, parse(&spelled(&b, &tape))?);
        prop_assert_eq!(a == b, x == y);
    }

    #[test]
    fn a_repeated_key_is_refused_however_it_is_spelled(
        key in texts(), value in meanings(), one in tape(), two in tape(),
    ) {
        let mut choices = Choices { tape: &one, at: 0 };
        let first = spell_text(&key, &mut choices);
        let second = spell_text(&key, &mut Choices { tape: &two, at: 0 });
        let value = spell(&value, &mut choices);
        let text = format!("{{{first}:{value},{second}:{value}}}");
        let error = Canonical::parse(text.as_bytes(), ParseLimits::default()).unwrap_err();
        prop_assert_eq!(error.kind.name(), "duplicate-key");
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        check_accepted(&bytes)?;
    }

    #[test]
    fn texts_that_are_nearly_json_are_answered(
        meaning in meanings(), tape in tape(), at in any::<Index>(), with in any::<u8>(), way in 0..3,
    ) {
        let mut bytes = spelled(&meaning, &tape).into_bytes();
        let at = at.index(bytes.len());
        match way {
            0 => bytes[at] = with,
            1 => { bytes.remove(at); }
            _ => bytes.truncate(at),
        }
        check_accepted(&bytes)?;
    }

    #[test]
    fn soup_of_tokens_is_answered(
        text in "([\\[\\]{}:, ]|\"a\"|\"\\\\u0061\"|-?[01](\\.5)?|1e9|null|true|\\\\ud800|\"){0,24}",
    ) {
        check_accepted(text.as_bytes())?;
    }
}
