//! A way for bytes that does not touch each of them.
//!
//! Values whose types are known only at run time cross the wall one by one: a
//! mebibyte of `list<u8>` takes a tenth of a second and some thirty mebibytes.
//! Where a signature is one of those spelled out here, the engine copies whole
//! lists instead. Others go the slow way, which is bounded.

use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{ComponentNamedList, Func, Lift, Lower, Type};

use super::lift;
use super::lower::{self, Mismatch};
use crate::state::State;

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Bytes,
    Text,
}

/// A parameter's value.
pub(super) enum Given {
    Bytes(Vec<u8>),
    Text(String),
}

/// What a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    Bytes,
    Text,
    BytesOrText,
    TextOrText,
    NothingOrText,
}

/// Parameters that a spelled-out signature has at most.
const PARAMETERS_MAX: usize = 2;

/// The signature, if it is one of those spelled out and bytes are in it.
pub(super) fn shape(ty: &ComponentFunc) -> Option<(Vec<Taken>, Wanted)> {
    if ty.params().len() > PARAMETERS_MAX {
        return None;
    }
    let taken = ty.params().map(|(_, ty)| plain(&ty)).collect::<Option<Vec<_>>>()?;
    let wanted = match ty.results().next() {
        None => Wanted::Nothing,
        Some(Type::Result(result)) => {
            let Some(Type::String) = result.err() else { return None };
            match result.ok().map(|ty| plain(&ty)) {
                None => Wanted::NothingOrText,
                Some(Some(Taken::Bytes)) => Wanted::BytesOrText,
                Some(Some(Taken::Text)) => Wanted::TextOrText,
                Some(None) => return None,
            }
        }
        Some(ty) => match plain(&ty)? {
            Taken::Bytes => Wanted::Bytes,
            Taken::Text => Wanted::Text,
        },
    };
    let bytes = taken.contains(&Taken::Bytes) || matches!(wanted, Wanted::Bytes | Wanted::BytesOrText);
    bytes.then_some((taken, wanted))
}

fn plain(ty: &Type) -> Option<Taken> {
    match ty {
        Type::String => Some(Taken::Text),
        Type::List(list) if list.ty() == Type::U8 => Some(Taken::Bytes),
        _ => None,
    }
}

/// The parameters from the arguments.
pub(super) fn parameters(ty: &ComponentFunc, taken: &[Taken], arguments: &Value) -> Result<Vec<Given>, Mismatch> {
    let members = lower::members(ty.params(), arguments)?;
    members
        .zip(taken)
        .map(|((name, _, value), taken)| {
            let value = value.unwrap_or(&Value::Null);
            let given = match taken {
                Taken::Bytes => lower::bytes(value).map(Given::Bytes),
                Taken::Text => lower::text(value).map(|text| Given::Text(text.to_owned())),
            };
            lower::below(given, &name)
        })
        .collect()
}

/// Calls a function of such a signature.
pub(super) async fn call(
    store: &mut Store<State>,
    func: Func,
    given: &[Given],
    wanted: Wanted,
) -> wasmtime::Result<Result<Value, Value>> {
    match wanted {
        Wanted::Nothing => with::<()>(store, func, given).await,
        Wanted::Bytes => with::<(Vec<u8>,)>(store, func, given).await,
        Wanted::Text => with::<(String,)>(store, func, given).await,
        Wanted::BytesOrText => with::<(Result<Vec<u8>, String>,)>(store, func, given).await,
        Wanted::TextOrText => with::<(Result<String, String>,)>(store, func, given).await,
        Wanted::NothingOrText => with::<(Result<(), String>,)>(store, func, given).await,
    }
}

async fn with<R: Returned>(
    store: &mut Store<State>,
    func: Func,
    given: &[Given],
) -> wasmtime::Result<Result<Value, Value>> {
    use Given::{Bytes, Text};
    match given {
        [] => finish::<(), R>(store, func, ()).await,
        [Bytes(a)] => finish::<(&[u8],), R>(store, func, (a,)).await,
        [Text(a)] => finish::<(&str,), R>(store, func, (a,)).await,
        [Bytes(a), Bytes(b)] => finish::<(&[u8], &[u8]), R>(store, func, (a, b)).await,
        [Bytes(a), Text(b)] => finish::<(&[u8], &str), R>(store, func, (a, b)).await,
        [Text(a), Bytes(b)] => finish::<(&str, &[u8]), R>(store, func, (a, b)).await,
        [Text(a), Text(b)] => finish::<(&str, &str), R>(store, func, (a, b)).await,
        _ => Err(wasmtime::format_err!("the signature is not one of those spelled out")),
    }
}

async fn finish<P, R>(store: &mut Store<State>, func: Func, parameters: P) -> wasmtime::Result<Result<Value, Value>>
where
    P: ComponentNamedList + Lower + Send + Sync,
    R: Returned,
{
    let typed = func.typed::<P, R>(&*store)?;
    typed.call_async(store, parameters).await.map(Returned::json)
}

/// A result of a spelled-out signature.
trait Returned: ComponentNamedList + Lift + Send + Sync + 'static {
    fn json(self) -> Result<Value, Value>;
}

impl Returned for () {
    fn json(self) -> Result<Value, Value> {
        Ok(Value::Null)
    }
}

impl Returned for (Vec<u8>,) {
    fn json(self) -> Result<Value, Value> {
        Ok(lift::bytes(&self.0))
    }
}

impl Returned for (String,) {
    fn json(self) -> Result<Value, Value> {
        Ok(self.0.into())
    }
}

impl Returned for (Result<Vec<u8>, String>,) {
    fn json(self) -> Result<Value, Value> {
        self.0.map(|bytes| lift::bytes(&bytes)).map_err(Value::String)
    }
}

impl Returned for (Result<String, String>,) {
    fn json(self) -> Result<Value, Value> {
        self.0.map(Value::String).map_err(Value::String)
    }
}

impl Returned for (Result<(), String>,) {
    fn json(self) -> Result<Value, Value> {
        self.0.map(|()| Value::Null).map_err(Value::String)
    }
}
