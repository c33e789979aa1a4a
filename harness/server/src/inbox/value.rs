//! Values of guests and models, shown whole: what is long is marked, so that a
//! script can fold it and keep the decision off until it was opened.

use env_contracts::text::{escaped, escaped_json, escaped_line};
use maud::{Markup, html};
use serde_json::Value;

/// From here on a text is folded where there is a script: about a screen of a
/// phone.
const LONG: (usize, usize) = (700, 14);

/// The longest text that stands on the line of its name, in characters.
const SHORT: usize = 72;

/// A text of a stranger.
pub(super) fn text(text: &str) -> Markup {
    let shown = escaped(text);
    let (chars, lines) = (shown.chars().count(), shown.lines().count());
    let long = (chars > LONG.0 || lines > LONG.1).then(|| format!("{chars} characters, {lines} lines"));
    let diff = shown.starts_with("--- ") || shown.starts_with("diff ") || shown.contains("\n@@ ");
    html! {
        pre .value data-long=[long] tabindex=[diff.then_some("-1")] {
            @if diff { @for line in shown.split_inclusive('\n') { (diff_line(line)) } } @else { (shown) }
        }
        (hosts(text))
    }
}

fn diff_line(line: &str) -> Markup {
    let class = match line.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "hunk",
        _ => return html! { (line) },
    };
    html! { span class=(class) { (line) } }
}

/// Arguments, each under its name; `exact`: also as the text that they are.
pub(super) fn arguments(json: &str, exact: bool) -> Markup {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(json) else { return text(json) };
    html! {
        @if fields.is_empty() { p .faint { "none" } } @else {
            dl .fields {
                @for (name, value) in &fields {
                    dt { (escaped_line(name)) }
                    dd { (one(value)) }
                }
            }
        }
        @if exact { details .exact { summary { "As exact JSON" } pre .value { (escaped_json(json)) } } }
    }
}

fn one(value: &Value) -> Markup {
    match value {
        Value::String(words) if words.contains('\n') || words.chars().count() > SHORT => html! {
            span .faint { "as it stands:" }
            (text(words))
        },
        Value::String(words) => html! { code { (json(value)) } (hosts(words)) },
        Value::Array(_) | Value::Object(_) => text(&json(value)),
        plain => html! { code { (json(plain)) } },
    }
}

/// JSON that says the same and shows what it holds.
pub(super) fn json(value: &Value) -> String {
    escaped_json(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// The hosts of addresses in a text that are not what they look like, as they
/// are looked up.
fn hosts(text: &str) -> Markup {
    let parts = text.split("://").skip(1);
    let mut odd = Vec::new();
    for part in parts {
        let authority =
            part.split(['/', '?', '#', '\\', '"', '\'', ' ', '\n', '\t', '<', '>']).next().unwrap_or_default();
        // What stands before `@` is a user, made to look like a host.
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let host = host.split(':').next().unwrap_or_default();
        if host.is_ascii() && user.is_none() {
            continue;
        }
        let ascii = idna::domain_to_ascii(host).unwrap_or_else(|_| "no host at all".to_owned());
        if !odd.contains(&ascii) {
            odd.push(ascii);
        }
    }
    html! {
        @for host in &odd { p .host { "The host in it is " strong { code { (escaped_line(host)) } } } }
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
