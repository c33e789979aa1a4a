//! At what a rule looks: at which arguments, so that a value which rules can't
//! see never slips past one that would have forbidden it; and at which attributes
//! of the context, so that no other has to be made.

use serde_json::Value;

use crate::context::Attributes;

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

/// What a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Looks {
    /// The places in the arguments.
    pub(crate) args: Vec<Look>,
    /// Whether it looks at the approval, so that it has to be asked again for
    /// each class that could give one.
    pub(crate) approval: bool,
    /// The other attributes of the context.
    pub(crate) context: Attributes,
}

impl Looks {
    /// Of a rule's text, where it names attributes in the plain way. `None`: its
    /// JSON form has to be made, which takes as long as parsing the rule does.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let mut looks = Self::default();
        let code = code_only(text);
        let mut rest = code.as_str();
        while let Some(at) = rest.find("context") {
            let (path, presence, after) = plain_path(&rest[at + "context".len()..])?;
            rest = after;
            match path.split_first()? {
                (first, []) if first == "args" && !presence => return None,
                (first, way) => looks.at(first, way, presence),
            }
        }
        Some(looks)
    }

    /// Of a rule's JSON form.
    pub(crate) fn of_json(policy: &Value) -> Self {
        let mut looks = Self::default();
        if let Some(conditions) = policy.get("conditions") {
            looks.walk(conditions);
        }
        looks
    }

    /// `context.first` and the way on from there.
    fn at(&mut self, first: &str, way: &[String], presence: bool) {
        self.context = self.context.and(Attributes::named(first));
        self.approval |= first == "approval";
        if first == "args" {
            self.args.push(Look { path: way.to_vec(), presence });
        }
    }

    fn walk(&mut self, expr: &Value) {
        if let Some((path, presence)) = chain(expr) {
            match path.split_first() {
                // The whole context, compared or handed on.
                None => {
                    self.args.push(Look { path: Vec::new(), presence: false });
                    self.approval = true;
                    self.context = Attributes::ALL;
                }
                Some((first, way)) => self.at(first, way, presence),
            }
            return;
        }
        match expr {
            Value::Object(fields) => fields.values().for_each(|value| self.walk(value)),
            Value::Array(values) => values.iter().for_each(|value| self.walk(value)),
            _ => {}
        }
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

/// A text with its strings emptied and its comments taken out: what annotations
/// and comparisons say in words is no look at anything.
fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                while let Some(inner) = chars.next().filter(|inner| *inner != '"') {
                    if inner == '\\' {
                        chars.next();
                    }
                }
                out.push('"');
            }
            '/' if chars.peek() == Some(&'/') => {
                chars.by_ref().find(|c| *c == '\n');
                out.push('\n');
            }
            c => out.push(c),
        }
    }
    out
}

/// The way of `.name.name` or ` has name.name`, whether it asks for presence, and
/// what follows. `None` where another notation goes on with it.
fn plain_path(text: &str) -> Option<(Vec<String>, bool, &str)> {
    let mut path = Vec::new();
    let mut presence = false;
    let mut rest = text.trim_start();
    loop {
        let field = if let Some(field) = rest.strip_prefix('.') {
            field
        } else if let Some(field) = rest.strip_prefix("has").filter(|field| field.starts_with(char::is_whitespace)) {
            presence = true;
            field
        } else {
            break;
        };
        let field = field.trim_start();
        let end = field.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(field.len());
        let (name, after) = field.split_at(end);
        rest = after.trim_start();
        // A quoted name, which may be escaped.
        if name.is_empty() {
            return None;
        }
        // A method of what came before.
        if rest.starts_with('(') {
            return Some((path, presence, rest));
        }
        path.push(name.to_owned());
    }
    (!rest.starts_with('[') && !path.is_empty()).then_some((path, presence, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(condition: &str) -> (Option<Looks>, Looks) {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        let policy = cedar_policy::Policy::parse(None, &text).unwrap();
        (Looks::of_text(&text), Looks::of_json(&policy.to_json().unwrap()))
    }

    #[test]
    fn text_and_json_tell_the_same() {
        for plain in [
            "context.effects == \"none\"",
            "context.args has path && context.args.path like \"src/*\"",
            "context has args.deep.er && context.args . deep.er.contains(1)",
            "context has approval && context.approval.classes.contains(\"x\")",
            "[context.args.a, \"b\"].contains(context.args.c)",
            "context // here\n.approval.source == \"x\"",
            "context.effects == \"context.args.a \\\" context.args.b\"",
            "principal.name == \"x\" && !context.args.names.containsAll([\"a\"])",
        ] {
            let (text, json) = looks(plain);
            assert_eq!(text.unwrap(), json, "{plain}");
        }
    }

    #[test]
    fn what_the_text_does_not_tell_is_read_from_the_json() {
        let whole = Look { path: vec![], presence: false };
        let of = |names: &[&str]| {
            names.iter().map(|name| Attributes::named(name)).fold(Attributes::default(), Attributes::and)
        };
        for (odd, args, approval, context) in [
            ("context == context", vec![whole.clone(), whole.clone()], true, Attributes::ALL),
            ("context.args == context.args", vec![whole.clone(), whole.clone()], false, of(&["args"])),
            ("(if true then context else context).args.a == 1", vec![whole.clone(), whole], true, Attributes::ALL),
            (
                "context[\"\\u{61}rgs\"].a == 1",
                vec![Look { path: vec!["a".into()], presence: false }],
                false,
                of(&["args"]),
            ),
            (
                "context.args[\"a b\"] == 1",
                vec![Look { path: vec!["a b".into()], presence: false }],
                false,
                of(&["args"]),
            ),
            ("context[\"approval\"].source == \"x\"", vec![], true, of(&[])),
            ("context[\"walls\"] == 1 && context.past.grants == 0", vec![], false, of(&["walls", "past"])),
        ] {
            let (text, json) = looks(odd);
            assert_eq!(text, None, "{odd}");
            assert_eq!(json, Looks { args, approval, context }, "{odd}");
        }
    }
}
