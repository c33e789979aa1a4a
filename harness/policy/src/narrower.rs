//! Variants of facts that ask for less.
//!
//! They serve twice: `explain` shows the first that would be permitted, and a
//! check warns where less is denied although more is permitted.

use env_contracts::{Access, Delegation, Identity};
use serde_json::Value;

use crate::sample::Sample;

/// How many elements of how many arguments are tried: a few show the way, and
/// each is a decision.
const ARGUMENTS_MAX: usize = 8;

/// Facts that ask for less than others.
pub(crate) struct Narrower {
    /// What is less, as the end of "the same …".
    pub(crate) change: String,
    pub(crate) sample: Sample,
    /// Whether it is less whatever the tool makes of it. To leave an argument
    /// out can mean more to a tool.
    pub(crate) surely: bool,
}

/// What asks for less than these facts, by one change each.
pub(crate) fn of(wide: &Sample) -> Vec<Narrower> {
    let mut out = Vec::new();
    let mut with = |change: String, surely: bool, make: &dyn Fn(&mut Sample)| {
        let mut sample = wide.clone();
        make(&mut sample);
        sample.derive();
        out.push(Narrower { change, sample, surely });
    };
    if !wide.delta.is_empty() {
        with("within the tool's own contract".into(), true, &|sample| {
            let limits = sample.contract.limits.clone();
            sample.contract = sample.manifest.contract.clone();
            sample.contract.limits = limits;
            sample.delta.clear();
        });
    }
    for (less, name) in [(Access::Overlay, "in a layer over the folders"), (Access::Read, "only reading the folders")] {
        let more = |access: Access| access > less;
        if wide.contract.filesystem.iter().any(|mount| foreign(mount) && more(mount.access)) {
            with(name.into(), true, &|sample| {
                for mount in sample.contract.filesystem.iter_mut().filter(|mount| foreign(mount) && more(mount.access))
                {
                    mount.access = less;
                }
            });
        }
    }
    if !wide.contract.network.egress.is_empty() {
        with("without network access".into(), true, &|sample| sample.contract.network.egress.clear());
    }
    if wide.contract.network.egress.len() > 1 {
        for rule in &wide.contract.network.egress {
            with(format!("without access to {}", rule.host), true, &|sample| {
                sample.contract.network.egress.retain(|other| other != rule);
            });
        }
    }
    if !wide.contract.network.ingress.is_empty() {
        with("without being reached".into(), true, &|sample| sample.contract.network.ingress.clear());
    }
    if !wide.contract.secrets.is_empty() {
        with("without secrets".into(), true, &|sample| sample.contract.secrets.clear());
    }
    if wide.contract.identity.delegation != Delegation::None {
        with("without delegated identity".into(), true, &|sample| sample.contract.identity = Identity::default());
    }
    arguments(wide, &mut with);
    out
}

/// Whether a mount is not one of the action's own folders.
fn foreign(mount: &env_contracts::Mount) -> bool {
    use env_contracts::Source::{Outputs, Scratch};
    !matches!(mount.source, Scratch | Outputs)
}

/// Takes what a change is called, whether it surely is less, and the change.
type With<'a> = dyn FnMut(String, bool, &dyn Fn(&mut Sample)) + 'a;

fn arguments(wide: &Sample, with: &mut With<'_>) {
    let required: Vec<&str> = match wide.manifest.input.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    for (name, value) in wide.arguments.as_object().into_iter().flatten().take(ARGUMENTS_MAX) {
        let schema = wide.manifest.input.get("properties").and_then(|all| all.get(name));
        let least = schema.and_then(|schema| schema.get("minItems")).and_then(Value::as_u64).unwrap_or(1);
        if value.as_array().is_some_and(|values| values.len() as u64 > least) {
            with(format!("with one element less in `{name}`"), is_list(schema), &|sample| {
                if let Some(Value::Array(values)) = sample.arguments.get_mut(name) {
                    values.pop();
                }
            });
        }
        if !required.contains(&name.as_str()) {
            with(format!("without the argument `{name}`"), false, &|sample| {
                if let Value::Object(all) = &mut sample.arguments {
                    all.remove(name);
                }
            });
        }
    }
}

/// Whether an array is a list of things, of which fewer are less. A command
/// line with a word less can be another command.
fn is_list(schema: Option<&Value>) -> bool {
    schema.is_none_or(|schema| schema.get(crate::arguments::ARGV).is_none())
}
