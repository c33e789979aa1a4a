//! The tools of this door: what is registered, as a client lists it, and two of
//! its own.

use std::sync::Arc;

use env_contracts::{Access, Contract, Delegation, DerivedEffects};
use glovebox_plane::{Tool as Registered, limit_workspace};
use glovebox_runtime::{algebra, derived_effects};
use rmcp::ErrorData;
use rmcp::model::{CacheScope, JsonObject, ListToolsResult, PaginatedRequestParams, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::party::Party;

/// Waits for an action and gives what came of it.
pub(crate) const RESULT: &str = "glovebox.result";
/// Asks a person for more than a tool's contract gives.
pub(crate) const REQUEST_PERMISSION: &str = "glovebox.request_permission";

/// The longest reason, in characters: it stands on a card.
const MAX_REASON: usize = 2000;

/// How many tools stand on a page.
const PAGE: usize = 100;

/// How long a list counts, in milliseconds. Registering a tool is told to
/// nobody, so a client has to look again by itself.
const LIST_LASTS_MS: u64 = 60_000;

/// One page of what may be called, in the order of the names.
///
/// # Errors
/// `-32602` for a cursor that is none of ours.
pub(crate) fn list(
    callable: &[Arc<Registered>],
    party: &Party,
    page: Option<PaginatedRequestParams>,
) -> Result<ListToolsResult, ErrorData> {
    let after = match page.and_then(|page| page.cursor) {
        Some(cursor) => Some(name_of(&cursor)?),
        None => None,
    };
    let mut tools: Vec<Tool> =
        callable.iter().filter(|tool| !is_own(tool.manifest.name.as_str())).map(|tool| listed(tool, party)).collect();
    tools.extend([result(), request_permission()]);
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let mut rest =
        tools.into_iter().filter(|tool| after.as_ref().is_none_or(|after| tool.name.as_ref() > after.as_str()));
    let mut out = ListToolsResult::with_all_items(rest.by_ref().take(PAGE).collect());
    if rest.next().is_some() {
        out.next_cursor = out.tools.last().map(|last| data_encoding::BASE64URL_NOPAD.encode(last.name.as_bytes()));
    }
    out.ttl_ms = Some(LIST_LASTS_MS);
    // Which tools there are depends on who asks.
    out.cache_scope = Some(CacheScope::Private);
    Ok(out)
}

fn name_of(cursor: &str) -> Result<String, ErrorData> {
    let decoded = data_encoding::BASE64URL_NOPAD.decode(cursor.as_bytes()).ok();
    let name = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    name.ok_or_else(|| ErrorData::invalid_params("the cursor is none that this door gave", None))
}

/// Whether a name is one of this door's own tools.
pub(crate) fn is_own(name: &str) -> bool {
    name == RESULT || name == REQUEST_PERMISSION
}

fn listed(tool: &Registered, party: &Party) -> Tool {
    let manifest = &tool.manifest;
    let contract = effective(&manifest.contract, party);
    let mut out = Tool::new(manifest.name.to_string(), manifest.description.clone(), object_schema(&manifest.input))
        .with_title(manifest.title.clone());
    if let Some(Value::Object(schema)) = &manifest.output {
        out = out.with_raw_output_schema(Arc::new(schema.clone()));
    }
    out.with_annotations(annotations(&manifest.title, &contract))
}

/// The contract that a call through this door would have at most.
fn effective(own: &Contract, party: &Party) -> Contract {
    let mut scope = None;
    limit_workspace(&mut scope, own, party.workspace.as_ref().map_or(Access::Read, |workspace| workspace.access));
    scope.map_or_else(|| own.clone(), |scope| algebra::narrow(own, &scope))
}

/// What a tool may do to the world, derived from its contract. What its
/// manifest says of itself is not asked.
fn annotations(title: &str, contract: &Contract) -> ToolAnnotations {
    let effects = derived_effects(contract);
    let open = !contract.network.egress.is_empty()
        || !contract.network.ingress.is_empty()
        || contract.identity.delegation != Delegation::None;
    ToolAnnotations::with_title(title)
        .read_only(effects == DerivedEffects::None)
        // A private layer over a workspace takes nothing away from it.
        .destructive(effects == DerivedEffects::External)
        .idempotent(effects == DerivedEffects::None)
        .open_world(open)
}

/// A schema of arguments as the protocol wants it: of an object, said so.
fn object_schema(schema: &Value) -> Arc<JsonObject> {
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.entry("type").or_insert_with(|| json!("object"));
    Arc::new(object)
}

fn own(name: &'static str, title: &str, description: &'static str, schema: Value, idempotent: bool) -> Tool {
    // What they set going was decided on by others, each with effects of its own.
    let hints = ToolAnnotations::with_title(title).read_only(false).destructive(false);
    Tool::new(name, description, object_schema(&schema))
        .with_title(title)
        .with_annotations(hints.idempotent(idempotent).open_world(false))
}

fn result() -> Tool {
    own(
        RESULT,
        "Result of an action",
        "Waits up to 50 seconds for an action that was left waiting for a person, and gives its result: it runs once \
         it was approved. If it is still waiting then, call this again. Never repeat the tool call itself: that would \
         ask the person anew.",
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["action_id"],
            "properties": { "action_id": { "type": "string", "description": "the action, as the answer to the tool call named it" } },
        }),
        true,
    )
}

fn request_permission() -> Tool {
    own(
        REQUEST_PERMISSION,
        "Ask for a permission",
        "Asks a person to give a tool more than its contract has: a host to reach, write access, more memory or time. \
         Nothing is granted by asking. The answer says whether and for how long it was given.",
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["capability", "scope"],
            "properties": {
                "capability": { "type": "string", "description": "the tool: its name, or name@version" },
                "scope": {
                    "type": "object",
                    "description": "the sections of the tool's contract that are to be other than they are, e.g. \
                        {\"network\": {\"egress\": [{\"host\": \"api.example.com\", \"ports\": [443]}]}} or \
                        {\"limits\": {\"memory\": \"512MiB\"}}",
                },
                "reason": { "type": "string", "maxLength": MAX_REASON, "description": "why, for the person who decides" },
            },
        }),
        false,
    )
}
