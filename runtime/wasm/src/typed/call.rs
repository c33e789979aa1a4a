//! Calling a function that is known by its name and types alone.

use env_contracts::{Code, Problem};
use glovebox_runtime::job::ToolFailure;
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Type, Val};

use super::lower::Mismatch;
use super::{bulk, lift, lower};
use crate::execute::Answer;
use crate::run::Run;
use crate::state::State;

/// How a failure that the function itself says is called.
const TOOL_ERROR: &str = "tool-error";

/// The function of this name, by itself or in an exported interface.
pub(crate) fn find(
    component: &Component,
    interface: Option<&str>,
    function: &str,
) -> Option<(ComponentFunc, ComponentExportIndex)> {
    let instance = match interface {
        Some(interface) => Some(component.get_export_index(None, interface)?),
        None => None,
    };
    match component.get_export(instance.as_ref(), function)? {
        (ComponentItem::ComponentFunc(ty), index) => Some((ty, index)),
        _ => None,
    }
}

/// Whether a component exports functions at all.
pub(crate) fn exports_any(engine: &wasmtime::Engine, component: &Component) -> bool {
    component.component_type().exports(engine).any(|(_, item)| match &item.ty {
        ComponentItem::ComponentFunc(_) => true,
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(engine).any(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)))
        }
        _ => false,
    })
}

/// Calls the function with canonical arguments.
pub(crate) async fn call(
    store: &mut Store<State>,
    run: &Run,
    pre: &InstancePre<State>,
    interface: Option<&str>,
    function: &str,
    arguments: &str,
) -> wasmtime::Result<Answer> {
    let missing = || wasmtime::format_err!("the entry is not exported");
    let (ty, index) = find(pre.component(), interface, function).ok_or_else(missing)?;
    let parameters = match arrange(&ty, arguments) {
        Ok(parameters) => parameters,
        Err(mismatch) => {
            let problem = Problem::new(Code::SchemaRejected, format!("the function can't take them: {mismatch}"));
            return Ok(Answer::Refused(problem));
        }
    };
    let instance = pre.instantiate_async(&mut *store).await?;
    run.enter();
    let func = instance.get_func(&mut *store, index).ok_or_else(missing)?;
    let result = match parameters {
        Parameters::Bulk(parameters, given) => bulk::call(store, func, &parameters, given).await?,
        Parameters::Values(parameters) => {
            let mut results = vec![Val::Bool(false); ty.results().len()];
            func.call_async(&mut *store, &parameters, &mut results).await?;
            let result = ty.results().zip(results).next();
            split(result).ok_or_else(|| wasmtime::format_err!("the result is not of its type"))?
        }
    };
    Ok(Answer::Export(result.map(|value| value.to_string()).map_err(failure)))
}

/// The parameters, ready to be handed over.
enum Parameters {
    Bulk(Vec<bulk::Given>, bulk::Wanted),
    Values(Vec<Val>),
}

fn arrange(ty: &ComponentFunc, arguments: &str) -> Result<Parameters, Mismatch> {
    // Canonical arguments always parse; anything else is no object.
    let arguments = serde_json::from_str(arguments).unwrap_or(Value::Null);
    match bulk::shape(ty) {
        Some((taken, wanted)) => Ok(Parameters::Bulk(bulk::parameters(ty, &taken, &arguments)?, wanted)),
        None => lower::parameters(ty.params(), &arguments).map(Parameters::Values),
    }
}

/// A result as JSON; an error that it says is one.
fn split(result: Option<(Type, Val)>) -> Option<Result<Value, Value>> {
    let lifted = |ty: Option<Type>, val: Option<Box<Val>>| match (ty, val) {
        (Some(ty), Some(val)) => lift::lift(&ty, *val),
        _ => Some(Value::Null),
    };
    match result {
        None => Some(Ok(Value::Null)),
        Some((Type::Result(ty), Val::Result(Ok(val)))) => lifted(ty.ok(), val).map(Ok),
        Some((Type::Result(ty), Val::Result(Err(val)))) => lifted(ty.err(), val).map(Err),
        Some((ty, val)) => lift::lift(&ty, val).map(Ok),
    }
}

/// An error of the guest's as a failure: in words, and whole as its details.
fn failure(details: Value) -> ToolFailure {
    let message = match &details {
        Value::Null => "the function failed and does not say why".to_owned(),
        Value::String(text) => text.clone(),
        // Many errors are a record with a text, or a variant.
        Value::Object(fields) => match fields.get("message").or_else(|| fields.get("tag")) {
            Some(Value::String(text)) if fields.contains_key("message") || fields.len() == 1 => text.clone(),
            _ => details.to_string(),
        },
        _ => details.to_string(),
    };
    ToolFailure {
        kind: TOOL_ERROR.into(),
        message,
        retryable: false,
        details: (!details.is_null()).then(|| details.to_string()),
    }
}
