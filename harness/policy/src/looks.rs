//! At which arguments a rule looks, so that a value which rules can't see never
//! slips past one that would have forbidden it.

use serde_json::Value;

/// A place in `context.args` at which a rule looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// The way to it. Empty: the arguments as a whole.
    path: Vec<String>,
    /// Whether only its presence is looked at.
    presence: bool,
}

impl Look {
    /// Whether a value there, or around it, or inside of it, decides what the
    /// rule finds.
    pub(crate) fn meets(&self, unseen: &[String]) -> bool {
        let common = self.path.iter().zip(unseen).take_while(|(a, b)| a == b).count();
        common == unseen.len() || (common == self.path.len() && !self.presence)
    }
}

/// Where a rule looks; `policy` is its JSON form.
pub(crate) fn of_rule(policy: &Value) -> Vec<Look> {
    let mut out = Vec::new();
    if let Some(conditions) = policy.get("conditions") {
        walk(conditions, &mut out);
    }
    out
}

fn walk(expr: &Value, out: &mut Vec<Look>) {
    if let Some((path, presence)) = chain(expr) {
        match path.split_first() {
            // The whole context, compared or handed on.
            None => out.push(Look { path: Vec::new(), presence: false }),
            Some((first, rest)) if first == "args" => out.push(Look { path: rest.to_vec(), presence }),
            Some(_) => {}
        }
        return;
    }
    match expr {
        Value::Object(fields) => fields.values().for_each(|value| walk(value, out)),
        Value::Array(values) => values.iter().for_each(|value| walk(value, out)),
        _ => {}
    }
}

/// The way from `context` that an expression takes, and whether it ends in the
/// question whether something is there.
fn chain(expr: &Value) -> Option<(Vec<String>, bool)> {
    if expr.get("Var").is_some_and(|name| name == "context") {
        return Some((Vec::new(), false));
    }
    let (inner, presence) = match (expr.get("."), expr.get("has")) {
        (Some(inner), None) => (inner, false),
        (None, Some(inner)) => (inner, true),
        _ => return None,
    };
    let (mut path, false) = chain(inner.get("left")?)? else { return None };
    match inner.get("attr")? {
        Value::String(name) => path.push(name.clone()),
        Value::Array(names) => path.extend(names.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => return None,
    }
    Some((path, presence))
}
