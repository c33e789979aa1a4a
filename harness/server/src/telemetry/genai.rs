//! The names of OpenTelemetry that spans carry, in this file alone: the
//! conventions for generative AI are still in development and will change.

/// What a span of ours comes from.
pub(super) const SCOPE: &str = "glovebox";
/// The resource: which program.
pub(super) const SERVICE_NAME: &str = "service.name";
/// The resource: which version of it.
pub(super) const SERVICE_VERSION: &str = "service.version";

/// The name of an action's span is this and the tool's name.
pub(super) const EXECUTE_TOOL: &str = "execute_tool";
/// What is done: [`EXECUTE_TOOL`].
pub(super) const OPERATION_NAME: &str = "gen_ai.operation.name";
/// The capability.
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
/// The id of the action.
pub(super) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// Which kind of tool: [`FUNCTION`].
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
/// A tool that is executed by whoever has it, not by the model's provider.
pub(super) const FUNCTION: &str = "function";
/// The session.
pub(super) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// Why it failed: an error code of ours.
pub(super) const ERROR_TYPE: &str = "error.type";

/// How the action ended. No convention has a name for it.
pub(super) const OUTCOME: &str = "glovebox.outcome";
/// How long it waited for people, in milliseconds. No convention has a name
/// for it.
pub(super) const WAITED: &str = "glovebox.waited_ms";

/// The method of a request.
pub(super) const HTTP_METHOD: &str = "http.request.method";
/// Its route, with names in braces in place of what was asked for.
pub(super) const HTTP_ROUTE: &str = "http.route";
/// The status of its answer.
pub(super) const HTTP_STATUS: &str = "http.response.status_code";
