//! The tool `json.query`: a filter in the jq language on one JSON value.
//!
//! No stream editor and no converter: it reads JSON, and answers JSON. The
//! language is jq's without what would make a result depend on anything but
//! filter and value: no environment, clock, log, modules or exit codes.
//!
//! ```
//! use glovebox_guest::{Context, Tool as _, json};
//!
//! let args = r#"{"filter": ".items[] | .name", "value": {"items": [{"name": "a"}, {"name": "b"}]}}"#;
//! let args: json_query::Args = serde_json::from_str(args).unwrap();
//! let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! let result = json_query::JsonQuery::call(args, &context).unwrap();
//! assert_eq!(result["results"], json!(["a", "b"]));
//! ```

mod filter;
mod results;

use glovebox_guest::{Context, Failure, Json, Tool, json, read};
use jaq_json::Val;
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde_json::value::RawValue;

use filter::Filter;
use results::{Results, Unfit};

/// The longest filter, in bytes. Filters that people write are far shorter; one
/// that is nothing but operators ends at the stack's limit before this.
const MOST_FILTER: usize = 4096;

/// The largest file, in bytes. A value takes up to twenty times the memory of
/// its text, and must fit into the contract's.
const MOST_FILE: u64 = 8 << 20;

/// How many results a call returns that does not say.
const DEFAULT_RESULTS: usize = 100;

/// The most results that one call returns.
const MOST_RESULTS: usize = 10_000;

/// The most bytes of JSON that one call returns: six times as much, which
/// escaping can make of it, still fits into the contract's output limit.
const MOST_BYTES: usize = 256 << 10;

/// The longest message of a filter's error, in bytes; a filter can make any.
const MOST_MESSAGE: usize = 2048;

/// The tool.
pub struct JsonQuery;

/// The arguments of `json.query`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    filter: String,
    /// Present with null too: null is a value.
    #[serde(default, deserialize_with = "present")]
    value: Option<Box<RawValue>>,
    path: Option<String>,
    #[serde(default)]
    slurp: bool,
    max_results: Option<usize>,
    #[serde(default)]
    as_text: bool,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Args {
    fn input(&self) -> Result<Val, Failure> {
        match (&self.value, &self.path) {
            (Some(value), None) if !self.slurp => parse("value", value.get().as_bytes(), false),
            (None, Some(path)) => parse(path, &read(path, MOST_FILE)?, self.slurp),
            (Some(_), None) => Err(Failure::invalid("`slurp` is about a file: name it with `path`")),
            _ => Err(Failure::invalid("give either `value`, a JSON value, or `path`, a file that holds one")),
        }
    }
}

impl Tool for JsonQuery {
    const NAME: &'static str = "json.query";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        if args.filter.len() > MOST_FILTER {
            return Err(Failure::invalid(format!("the filter is longer than {MOST_FILTER} bytes")));
        }
        let most = args.max_results.unwrap_or(DEFAULT_RESULTS);
        if most == 0 || most > MOST_RESULTS {
            return Err(Failure::invalid(format!("`max_results` must be from 1 to {MOST_RESULTS}")));
        }
        // First of all: a wrong filter costs no reading.
        let filter = Filter::new(&args.filter)?;
        let mut writer = Results::new(MOST_BYTES);
        let mut results = Vec::new();
        let mut stopped = None;
        // One is asked for more than is returned: only then it is known that there is more.
        for result in filter.run(args.input()?) {
            if results.len() == most {
                stopped = Some("max_results");
                break;
            }
            let result = result.map_err(|error| failed(&error, &results))?;
            let written = if args.as_text { writer.text(&result).map(Json::from) } else { writer.value(&result) };
            match written {
                Ok(result) => results.push(result),
                Err(Unfit::Long) => {
                    stopped = Some("bytes");
                    break;
                }
                Err(unfit) => return Err(refused(&unfit, results.len())),
            }
        }
        let mut answer = json!({ "count": results.len(), "truncated": stopped.is_some() });
        answer["results"] = results.into();
        if let Some(limit) = stopped {
            answer["stopped_by"] = limit.into();
        }
        if writer.rounded > 0 {
            answer["rounded"] = writer.rounded.into();
        }
        Ok(answer)
    }
}

/// Reads JSON strictly first: the filter's own parser takes more than JSON, and
/// does not bound how deep it goes.
fn parse(what: &str, text: &[u8], slurp: bool) -> Result<Val, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::invalid(format!("`{what}` is not JSON: {error}"));
    if slurp {
        for value in serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>() {
            value.map_err(|error| wrong(&error))?;
        }
        return jaq_json::read::parse_many(text).collect::<Result<_, _>>().map_err(|error| wrong(&error));
    }
    serde_json::from_slice::<IgnoredAny>(text).map_err(|error| {
        let several = if error.to_string().starts_with("trailing characters") {
            "; `slurp` reads a file of several values as one array"
        } else {
            ""
        };
        wrong(&format!("{error}{several}"))
    })?;
    jaq_json::read::parse_single(text).map_err(|error| wrong(&error))
}

/// What the filter itself reports, with what it gave before.
fn failed(error: &jaq_json::Error, results: &[Json]) -> Failure {
    let mut message = error.to_string();
    if message.len() > MOST_MESSAGE {
        let end = (0..=MOST_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    Failure::conflict(format!("the filter failed after {} results: {message}", results.len()))
        .with_details(json!({ "results": results, "count": results.len(), "message": message }))
}

fn refused(unfit: &Unfit, index: usize) -> Failure {
    let why = match unfit {
        Unfit::Deep => format!("nests deeper than {} levels", results::MOST_DEPTH),
        Unfit::Key(key) => format!("has the key {key}, which is no string; JSON has no such keys"),
        Unfit::Integer(integer) => {
            format!(
                "holds the integer {integer}, which 64 bits don't; ask for `as_text`, or let the filter make a string of it"
            )
        }
        Unfit::Long => "is too long".to_owned(),
    };
    Failure::conflict(format!("result {} {why}", index + 1))
}

glovebox_guest::export!(JsonQuery);

#[cfg(test)]
mod tests {
    use glovebox_guest::Kind;

    use super::*;

    fn call(args: &str) -> Result<Json, Failure> {
        let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
        JsonQuery::call(serde_json::from_str(args).unwrap(), &context)
    }

    #[test]
    fn answers() {
        let table = [
            (r#"{"filter": ".", "value": null}"#, json!({ "results": [null], "count": 1, "truncated": false })),
            (r#"{"filter": "empty", "value": 1}"#, json!({ "results": [], "count": 0, "truncated": false })),
            (
                r#"{"filter": "repeat(.)", "value": 1, "max_results": 2}"#,
                json!({ "results": [1, 1], "count": 2, "truncated": true, "stopped_by": "max_results" }),
            ),
            // As many as were asked for is all there is.
            (
                r#"{"filter": ".[]", "value": [1, 2], "max_results": 2}"#,
                json!({ "results": [1, 2], "count": 2, "truncated": false }),
            ),
            (
                r#"{"filter": ". + 1", "value": 18446744073709551614}"#,
                json!({ "results": [u64::MAX], "count": 1, "truncated": false }),
            ),
            (
                r#"{"filter": ".", "value": 0.10000000000000000001}"#,
                json!({ "results": [0.1], "count": 1, "truncated": false, "rounded": 1 }),
            ),
            (
                r#"{"filter": ". * 10", "value": 18446744073709551615, "as_text": true}"#,
                json!({ "results": ["184467440737095516150"], "count": 1, "truncated": false }),
            ),
            (
                r#"{"filter": "todate, @base64, (tostring | test(\"^0\"))", "value": 0}"#,
                json!({ "results": ["1970-01-01T00:00:00Z", "MA==", true], "count": 3, "truncated": false }),
            ),
        ];
        for (args, expected) in table {
            assert_eq!(call(args).unwrap(), expected, "{args}");
        }
        let long = call(r#"{"filter": "\"x\" * 100000 | repeat(.)", "value": 0}"#).unwrap();
        assert_eq!((&long["count"], &long["stopped_by"]), (&json!(2), &json!("bytes")));
    }

    #[test]
    fn refusals() {
        let deep = format!(r#"{{"filter": ".", "value": {}{}}}"#, "[".repeat(100), "]".repeat(100));
        let nested = format!(r#"{{"filter": "{}.{}", "value": 0}}"#, "(".repeat(65), ")".repeat(65));
        let table = [
            (r#"{"filter": "."}"#, Kind::InvalidArgs, "either `value`"),
            (r#"{"filter": ".", "value": 0, "path": "a"}"#, Kind::InvalidArgs, "either `value`"),
            (r#"{"filter": ".", "value": 0, "slurp": true}"#, Kind::InvalidArgs, "about a file"),
            (r#"{"filter": ".", "value": 0, "max_results": 0}"#, Kind::InvalidArgs, "from 1 to"),
            (r#"{"filter": "{a: ", "value": 0}"#, Kind::InvalidArgs, "line 1, column "),
            (r#"{"filter": ".a |\n nope(1)", "value": 0}"#, Kind::InvalidArgs, "line 2, column 2"),
            (r#"{"filter": "$x", "value": 0}"#, Kind::InvalidArgs, "`$x` is no variable"),
            (r#"{"filter": "import \"a\" as a; .", "value": 0}"#, Kind::InvalidArgs, "can't be imported"),
            (nested.as_str(), Kind::InvalidArgs, "nests deeper"),
            (r#"{"filter": "1, error(\"no\")", "value": 0}"#, Kind::Conflict, "after 1 results: \"no\""),
            (r#"{"filter": ".a", "value": 0}"#, Kind::Conflict, "cannot index"),
            (r#"{"filter": ". + 1", "value": 18446744073709551615}"#, Kind::Conflict, "ask for `as_text`"),
            (r#"{"filter": "{(0): 1}", "value": 0}"#, Kind::Conflict, "no string"),
            (deep.as_str(), Kind::Conflict, "nests deeper"),
        ];
        for (args, kind, message) in table {
            let failure = call(args).unwrap_err();
            assert_eq!(failure.kind, kind, "{args}: {}", failure.message);
            assert!(failure.message.contains(message), "{args}: {}", failure.message);
        }
    }

    #[test]
    fn nothing_of_the_machine_is_in_the_language() {
        for filter in [
            "now",
            "env",
            "$ENV",
            "localtime",
            "strflocaltime(\"%c\")",
            "input",
            "inputs",
            "debug",
            "debug(1)",
            "stderr",
            "halt",
            "halt(1)",
            "halt_error",
            "input_filename",
            "debug_empty",
            "stderr_empty",
        ] {
            let args = json!({ "filter": filter, "value": 0 }).to_string();
            let failure = call(&args).unwrap_err();
            assert_eq!(failure.kind, Kind::InvalidArgs, "{filter}");
        }
    }

    #[test]
    fn files_are_strict_json() {
        assert!(parse("a", b"{\"a\": NaN}", false).is_err());
        assert!(parse("a", b"# comment\n1", false).is_err());
        assert!(parse("a", "[".repeat(10_000).as_bytes(), true).is_err());
        let several = parse("a", b"1\n2\n", false).unwrap_err();
        assert!(several.message.contains("`slurp`"), "{}", several.message);
        assert_eq!(parse("a", b"1\n{\"a\":2}\n", true).unwrap().to_string(), r#"[1,{"a":2}]"#);
    }
}
