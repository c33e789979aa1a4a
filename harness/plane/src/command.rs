//! From arguments to the `argv` of a command.

use env_contracts::placeholders;
use serde_json::Value;

/// Fills a template in. An element that is nothing but `{FIELD}` is left out
/// where that argument is absent and is spread where it is an array; anywhere
/// else an absent argument is the empty text. Values are inserted as they
/// are: there is no shell that could read them otherwise.
pub(crate) fn argv(template: &[String], arguments: &Value) -> Vec<String> {
    let mut out = Vec::with_capacity(template.len());
    for element in template {
        let whole = element
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .filter(|field| !field.contains(['{', '}']));
        match whole {
            Some(field) => match arguments.get(field) {
                None | Some(Value::Null) => {}
                Some(Value::Array(items)) => out.extend(items.iter().map(text)),
                Some(value) => out.push(text(value)),
            },
            None => out.push(fill(element, arguments)),
        }
    }
    out
}

fn fill(element: &str, arguments: &Value) -> String {
    let mut out = element.to_owned();
    let fields: Vec<String> = placeholders(element).map(str::to_owned).collect();
    let mut from = 0;
    for field in fields {
        let place = format!("{{{field}}}");
        // Searched behind what was filled in, so that a value which looks
        // like a place is not taken for one.
        if let Some(at) = out[from..].find(&place).map(|at| at + from) {
            let value = arguments.get(&field).map(text).unwrap_or_default();
            out.replace_range(at..at + place.len(), &value);
            from = at + value.len();
        }
    }
    out
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_without_reading_values() {
        let arguments = serde_json::json!({ "a": "x; rm -rf /", "b": ["1", "2"], "n": 5, "q": "{a}" });
        for (template, expected) in [
            (vec!["prog", "{a}"], vec!["prog", "x; rm -rf /"]),
            (vec!["prog", "{b}", "{missing}"], vec!["prog", "1", "2"]),
            (vec!["--n={n}", "--m={missing}"], vec!["--n=5", "--m="]),
            (vec!["{q}-{a}"], vec!["{a}-x; rm -rf /"]),
        ] {
            let template: Vec<String> = template.into_iter().map(str::to_owned).collect();
            assert_eq!(argv(&template, &arguments), expected);
        }
    }
}
