//! The table of error codes.

/// Declares [`Code`] with everything a door needs to know about each, so that
/// adding a code without its exit code, status and remedy does not compile.
macro_rules! codes {
    ($( $(#[doc = $doc:literal])+ $name:ident = $text:literal, exit $exit:literal, http $http:literal, retry $retry:literal, $remedy:literal; )+) => {
        /// A stable error name. See the module for what it is good for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum Code {
            $( $(#[doc = $doc])+ #[serde(rename = $text)] $name, )+
        }

        impl Code {
            /// Every code, in the order of the reference.
            pub const ALL: &'static [Code] = &[ $( Code::$name, )+ ];

            /// The code as it is printed and sent.
            pub const fn as_str(self) -> &'static str {
                match self { $( Code::$name => $text, )+ }
            }

            /// What it means, in a sentence or two.
            pub const fn meaning(self) -> &'static str {
                match self { $( Code::$name => concat!($($doc),+), )+ }
            }

            /// The general way out.
            pub const fn remedy(self) -> &'static str {
                match self { $( Code::$name => $remedy, )+ }
            }

            /// The process exit code of the CLI.
            pub const fn exit_code(self) -> u8 {
                match self { $( Code::$name => $exit, )+ }
            }

            /// The HTTP status of the server.
            pub const fn http_status(self) -> u16 {
                match self { $( Code::$name => $http, )+ }
            }

            /// Whether the same request can succeed later unchanged.
            pub const fn retryable(self) -> bool {
                match self { $( Code::$name => $retry, )+ }
            }
        }
    };
}

codes! {
    // The tool's own failure: exit 1.
    /// The tool ran and reported a failure of its own.
    ToolFailed = "tool-failed", exit 1, http 200, retry false, "read the tool's message; `glovebox tool show NAME` lists its errors and what helps";
    /// The tool's code stopped abnormally (a trap: unreachable code, a stack overflow, an access out of bounds).
    ToolTrapped = "tool-trapped", exit 1, http 200, retry false, "this is a bug in the tool; its stderr, kept with the action, says more";
    /// The tool's result does not have the shape that its manifest promises.
    ToolBadResult = "tool-bad-result", exit 1, http 200, retry false, "this is a bug in the tool; `glovebox tool check NAME` shows which example breaks";

    // Usage: exit 2.
    /// The command line or the request could not be understood.
    Usage = "usage", exit 2, http 400, retry false, "see `glovebox --help`";
    /// A configuration file or environment variable holds something that Glovebox does not know or accept.
    ConfigInvalid = "config-invalid", exit 2, http 500, retry false, "correct what is named; `glovebox doctor` goes on with the rest, and docs/config.md lists every key";
    /// The operator's ceiling is not valid: nothing runs until it is.
    CeilingInvalid = "ceiling-invalid", exit 2, http 500, retry false, "correct the named key; `glovebox config show --ceiling=shipped` prints a whole ceiling with comments to compare with";
    /// A policy file, the approvers or a test beside them is not valid: nothing is decided by it until it is.
    PolicyInvalid = "policy-invalid", exit 2, http 500, retry false, "correct what is named; `glovebox policy check` lists every problem with its line, and docs/policy.md what a rule can see";
    /// The operator's agent profiles are not valid: no agent is served until they are.
    ProfilesInvalid = "profiles-invalid", exit 2, http 500, retry false, "correct the named key; the JSON Schema in env-contracts/schemas lets an editor complete it";
    /// A file named on the command line is missing or can't be read.
    FileUnreadable = "file-unreadable", exit 2, http 400, retry false, "check the path and its permissions";
    /// A workspace folder is missing, is not a folder, or can't be opened.
    WorkspaceUnavailable = "workspace-unavailable", exit 2, http 400, retry false, "name an existing folder with --workspace DIR";
    /// The container engine has no image of that name or digest.
    ImageUnknown = "image-unknown", exit 2, http 404, retry false, "bring the image to the engine (`docker pull`, `docker load`); nothing is pulled by itself";
    /// An image, or the record of one, can't be used here: another processor, no digest, not what was registered.
    ImageInvalid = "image-invalid", exit 2, http 400, retry false, "get the image for this host, and register it again";
    /// What is to be run is not in the image, or can't be started there.
    ImageCommand = "image-command", exit 2, http 400, retry false, "name a program that the image has; `entry.argv` of the manifest says which";
    /// No tool of that name or version is registered.
    ToolUnknown = "tool-unknown", exit 2, http 404, retry false, "`glovebox tool list` shows what is registered; `glovebox tool add FILE` registers more";
    /// The name and version are taken by other bytes: what is registered never changes.
    ToolConflict = "tool-conflict", exit 2, http 409, retry false, "raise the version in the manifest";
    /// The name belongs to the tools that come with Glovebox.
    ToolReserved = "tool-reserved", exit 2, http 409, retry false, "choose another name; built-in names are reserved";
    /// The manifest (`tool.toml`) is not valid.
    ManifestInvalid = "manifest-invalid", exit 2, http 400, retry false, "correct the named key; the JSON Schema in env-contracts/schemas lets an editor complete it";
    /// A tool's examples or its component do not agree with its manifest.
    ToolCheckFailed = "tool-check-failed", exit 2, http 400, retry false, "the report names each check that failed";
    /// The file is no WebAssembly module or component that this version accepts.
    ComponentInvalid = "component-invalid", exit 2, http 400, retry false, "build for wasm32-wasip2 (a component) or wasm32-wasip1 (a core module)";
    /// The component is larger than the limit.
    ComponentTooLarge = "component-too-large", exit 2, http 413, retry false, "raise `component.max_size` in the configuration if you trust the file";
    /// The component imports interfaces that its contract does not grant.
    ComponentImports = "component-imports", exit 2, http 400, retry false, "build without them, or set `wasm.imports = \"stub\"` in the contract: they then answer access-denied";
    /// The component exports nothing that can be called.
    ComponentExports = "component-exports", exit 2, http 400, retry false, "export functions, the `glovebox:tool/tool` interface, or `wasi:cli/run`";
    /// The component could not be compiled within the limits.
    CompileFailed = "compile-failed", exit 2, http 400, retry false, "the message says what the compiler met; a smaller component may help";
    /// No artifact of that name exists here.
    ArtifactUnknown = "artifact-unknown", exit 2, http 404, retry false, "`glovebox artifacts list` shows what is kept";
    /// There is no environment of that id: it ended, or never was.
    EnvironmentUnknown = "environment-unknown", exit 2, http 404, retry false, "`glovebox environment list` shows what there is";
    /// There is no snapshot of that name here.
    SnapshotUnknown = "snapshot-unknown", exit 2, http 404, retry false, "`glovebox environment show` lists the snapshots of an environment";
    /// What is kept of a snapshot is not what was taken: nothing was restored.
    SnapshotDamaged = "snapshot-damaged", exit 2, http 500, retry false, "restore another snapshot, and look what changed the state folder behind Glovebox's back";
    /// The list of approvers is not valid, or others could have written it: no passphrase is accepted until it is.
    ApproversInvalid = "approvers-invalid", exit 2, http 500, retry false, "correct what is named; a new list is made by adding its approvers again";
    /// There is an approver of that name.
    ApproverConflict = "approver-conflict", exit 2, http 409, retry false, "choose another name, or remove the approver first";
    /// There is no approver of that name.
    ApproverUnknown = "approver-unknown", exit 2, http 404, retry false, "look at the list of approvers, and mind the spelling";
    /// The passphrase is too easy to guess, or too long.
    PassphraseWeak = "passphrase-weak", exit 2, http 400, retry false, "take four or more words that nobody expects together";
    /// The list of credentials is not valid, or others could read or have written it: nobody is let in until it is.
    CredentialsInvalid = "credentials-invalid", exit 2, http 500, retry false, "correct what is named; a new list is made by adding its credentials again";
    /// There is a credential of that name, or of that user of the machine.
    CredentialConflict = "credential-conflict", exit 2, http 409, retry false, "choose another name, or remove the credential first: `glovebox token remove NAME`";
    /// There is no credential of that name.
    CredentialUnknown = "credential-unknown", exit 2, http 404, retry false, "`glovebox token list` shows what there is";
    /// The request says nothing about who sends it.
    CredentialMissing = "credential-missing", exit 2, http 401, retry false, "send `authorization: Bearer TOKEN`; `glovebox token add` makes a token, and the page `/login` logs a browser in";
    /// The token or the code is not known here, was used, or expired.
    TokenUnknown = "token-unknown", exit 2, http 401, retry false, "make another with `glovebox token add`, or another code with `glovebox inbox`";
    /// The role of the credential may not do this.
    RoleForbidden = "role-forbidden", exit 2, http 403, retry false, "use a credential of a role that may; docs/http.md lists the roles of every request";
    /// The request was meant for another host, or a page that is not ours sent it.
    OriginRefused = "origin-refused", exit 2, http 403, retry false, "use the address that the server printed; other names are given to it with `serve.hosts`";
    /// There is no such request.
    RouteUnknown = "route-unknown", exit 2, http 404, retry false, "docs/http.md lists every request, and `/openapi.json` describes them";
    /// There is such a request, and it is not made with this method.
    MethodUnknown = "method-unknown", exit 2, http 405, retry false, "docs/http.md lists every request with its method";
    /// The body of the request is too large.
    BodyTooLarge = "body-too-large", exit 2, http 413, retry false, "large content is not sent inside a request: make an artifact of it, or name a workspace";
    /// The body of the request did not come in time.
    BodyTooSlow = "body-too-slow", exit 2, http 408, retry true, "send it again, all at once";
    /// The body of the request has a media type that is not taken here.
    MediaTypeUnsupported = "media-type-unsupported", exit 2, http 415, retry false, "send JSON, with `content-type: application/json`";
    /// The list of webhooks is not valid, or others could read or have written it: nobody is told of anything until it is.
    WebhooksInvalid = "webhooks-invalid", exit 2, http 500, retry false, "correct what is named; a new list is made by adding its webhooks again";
    /// There is a webhook of that name.
    WebhookConflict = "webhook-conflict", exit 2, http 409, retry false, "choose another name, or remove the webhook first: `glovebox webhook remove NAME`";
    /// There is no webhook of that name.
    WebhookUnknown = "webhook-unknown", exit 2, http 404, retry false, "`glovebox webhook list` shows what there is";
    /// The secret of a webhook is not where it should be, has another form, or could be read by others.
    WebhookSecret = "webhook-secret", exit 2, http 500, retry false, "make one: `printf 'whsec_%s' \"$(openssl rand -base64 32)\" > FILE`, for its owner alone (`chmod 600 FILE`)";
    /// The address of a webhook is none that may be called: it is not https, or leads into this host or a private network.
    WebhookTarget = "webhook-target", exit 2, http 400, retry false, "name a public https address; `--allow-private` lets one webhook call addresses of your own";
    /// The receiver of a webhook did not take what was sent.
    WebhookFailed = "webhook-failed", exit 2, http 502, retry true, "the message says what came back; look at the receiver's log";
    /// The address of an MCP server is none that may be called: it is not https, or leads into this host or a private network without being named so.
    UpstreamAddress = "upstream-address", exit 2, http 400, retry false, "name the server's https address; one of this host or a private network is named as the number it has, or with `--private`";
    /// The file with what is sent along to an MCP server is missing, has another form, or could be read by others.
    UpstreamHeader = "upstream-header", exit 2, http 500, retry false, "write lines `NAME: VALUE`, or the token alone for a bearer file, for its owner alone (`chmod 600 FILE`)";
    /// An MCP server speaks no revision of the protocol that is spoken here, or says what can't be taken.
    UpstreamInvalid = "upstream-invalid", exit 2, http 502, retry false, "the message says what came; ask who runs the server";
    /// An MCP server can't be reached, leads elsewhere, or lets nobody in who brings what was sent along.
    UpstreamUnreachable = "upstream-unreachable", exit 44, http 502, retry true, "the message says what came; look whether the server runs, and at what is sent along to it";
    /// A program that is to be an MCP server ended, was silent for too long or ran into a limit before it had answered.
    UpstreamProgram = "upstream-program", exit 2, http 502, retry false, "the message has the last that it said on standard error; try it by hand: `glovebox exec --image IMAGE -i -- COMMAND`";
    /// The file of a signing key is missing or not valid, or others could read or have written it.
    KeyInvalid = "key-invalid", exit 2, http 500, retry false, "name the file that was made with the key; what was signed with a lost key stays verifiable with its public half";
    /// No action of that id exists here, or it is not yours to see.
    ActionUnknown = "action-unknown", exit 2, http 404, retry false, "`glovebox action list` shows what there is";
    /// The action runs in another process, which alone knows what it prints until it ends.
    OutputElsewhere = "output-elsewhere", exit 2, http 409, retry true, "follow it where it was started, or read its output once it ended: `glovebox action show ACTION`";
    /// The id is taken by another action.
    ActionConflict = "action-conflict", exit 2, http 409, retry false, "leave the id out: one is made";
    /// No approval of that id exists here, or it is not yours to see.
    ApprovalUnknown = "approval-unknown", exit 2, http 404, retry false, "`glovebox approvals list` shows what waits";
    /// No grant of that id exists here, or it is not yours to see.
    GrantUnknown = "grant-unknown", exit 2, http 404, retry false, "`glovebox grants list` shows what there is";
    /// No session of that name was opened here, or it is not yours to see.
    SessionUnknown = "session-unknown", exit 2, http 404, retry false, "`glovebox session list` shows those that were opened; `glovebox action list --session ID` shows what was asked in one that nobody opened";
    /// The session is there already, with another owner or in another tree, or it was closed.
    SessionConflict = "session-conflict", exit 2, http 409, retry false, "choose another name, or leave it out: one is made";
    /// No task of that name was opened here, or it is not yours to see.
    TaskUnknown = "task-unknown", exit 2, http 404, retry false, "`glovebox task list` shows what there is; `glovebox task new` opens one";
    /// The task is there already, with another owner or in another session.
    TaskConflict = "task-conflict", exit 2, http 409, retry false, "choose another name, or leave it out: one is made";
    /// No question of that id exists here, or it is not yours to see.
    QuestionUnknown = "question-unknown", exit 2, http 404, retry false, "`glovebox questions list` shows what waits";
    /// No error code of that name exists.
    CodeUnknown = "code-unknown", exit 2, http 404, retry false, "`glovebox explain` without a name lists all codes";

    // Outcomes of an action.
    /// Some of the work was done and some was not.
    Partial = "partial", exit 10, http 200, retry false, "the Observation lists what was done";
    /// Whether the action took effect is not known.
    Unknown = "unknown", exit 11, http 200, retry false, "run the tool's verify capability before repeating";
    /// The action ran to its end, and its verify capability found that it did not do what it was to do.
    VerifyFailed = "verify-failed", exit 12, http 200, retry false, "the Observation lists what there is to do next: repair it, undo it, or let a person look; doing it again may do it twice";
    /// The arguments break the tool's schema.
    SchemaRejected = "schema-rejected", exit 20, http 422, retry false, "correct the named argument; `glovebox tool show NAME` prints the schema";
    /// The arguments are not acceptable JSON: malformed, a repeated key, too deep, too large, or a number that can't be kept exactly.
    ArgumentsInvalid = "arguments-invalid", exit 20, http 400, retry false, "send one JSON object; pass bulk data as a file with --input NAME=FILE";
    /// A path argument lies outside the mounts or can't be bound.
    PathOutsideMounts = "path-outside-mounts", exit 21, http 422, retry false, "name a path inside the workspace, relative to it or below /workspace";
    /// A clause of the contract can't be met here, or asks for more than the ceiling allows.
    ContractUnsatisfied = "contract-unsatisfied", exit 21, http 422, retry false, "`glovebox contract check FILE` shows each clause and what would satisfy it";
    /// The contract is not valid.
    ContractInvalid = "contract-invalid", exit 21, http 400, retry false, "correct the named key; env-contracts/example.toml shows every clause";
    /// A capability that the tool requires is not registered.
    DependencyUnmet = "dependency-unmet", exit 21, http 424, retry false, "register what is named, `glovebox tool add FILE`; `glovebox tool list` shows what is there";
    /// No rule permits it, a rule forbids it, or it asks for more than the tool's contract and nothing here can grant that.
    PolicyDenied = "policy-denied", exit 22, http 403, retry false, "ask for less; `glovebox policy explain` with the same arguments names the rules that decide, and the operator can change them";
    /// A person declined.
    Declined = "declined", exit 23, http 403, retry false, "do not ask for the same again; read the reason";
    /// The decision was not made in time.
    Expired = "expired", exit 24, http 410, retry true, "ask again when somebody can answer";
    /// A decision was needed and nobody is there to make it.
    Unattended = "unattended", exit 25, http 403, retry false, "add an allow rule for exactly this, or run where a person can answer";
    /// The front end can't do what is needed.
    Unsupported = "unsupported", exit 26, http 501, retry false, "use a front end that can";
    /// Too many questions were asked.
    AskLimited = "ask-limited", exit 27, http 429, retry true, "wait, and ask for what is needed in one piece";
    /// The name or the passphrase of an approver is wrong.
    CredentialWrong = "credential-wrong", exit 28, http 401, retry false, "type the passphrase again; a lost one can't be found out, so remove the approver and add a new one";
    /// A decision or a checkpoint was not signed by whom it names, or was changed since.
    SignatureInvalid = "signature-invalid", exit 29, http 403, retry false, "take it for forged: nothing runs because of it. Ask again, and look at who can write to the state folder";
    /// The operator stopped everything: nothing is let past until it is released.
    Halted = "halted", exit 39, http 403, retry true, "the operator lets things go on with `glovebox stop --release`";
    /// The action was interrupted.
    Interrupted = "interrupted", exit 30, http 200, retry true, "start it again if it is still wanted";
    /// The action ran out of time.
    TimedOut = "timed-out", exit 31, http 200, retry true, "give it longer (`limits.wall`, `limits.idle` or `limits.cpu`) if the contract allows, or less to do";
    /// The action ran into a limit other than time.
    LimitHit = "limit-hit", exit 32, http 200, retry false, "raise the named limit in the contract, within the ceiling, or give it less to do";
    /// What would run is not what was decided upon.
    Drift = "drift", exit 33, http 409, retry false, "look at what changed and ask again";
    /// The tool tried to leave the sandbox.
    SandboxViolation = "sandbox-violation", exit 34, http 200, retry false, "treat the tool as hostile; remove it";
    /// The approval was answered, expired or was withdrawn: nothing can be answered any more.
    ApprovalClosed = "approval-closed", exit 35, http 409, retry false, "`glovebox approvals show ID` says what became of it";
    /// Whoever answers is none of those who may.
    NotEligible = "not-eligible", exit 36, http 403, retry false, "`glovebox approvals show ID` says who may answer, and how they have to be logged in";
    /// The idempotency key was used for another request.
    KeyConflict = "key-conflict", exit 37, http 409, retry false, "use a new key for a new request";
    /// A person has to decide first, and the action waits for it.
    ApprovalPending = "approval-pending", exit 38, http 202, retry true, "`glovebox approvals show ID` says what is asked; once it is approved, `glovebox action resume ACTION` runs it";
    /// The task is over: nothing new begins in it.
    TaskClosed = "task-closed", exit 45, http 409, retry false, "`glovebox task show TASK` says how it ended; open another for what is left to do";
    /// The turn is not the one that is open: another loop went on, or this one did and did not notice.
    TurnConflict = "turn-conflict", exit 46, http 409, retry false, "look at the task, and open the next turn from the one that it is in";
    /// The task has another goal by now.
    GoalChanged = "goal-changed", exit 47, http 409, retry false, "read the goal, plan anew, and open a turn for its version; what is still wanted can be resumed";
    /// The question was answered, expired or was withdrawn: no answer counts any more.
    QuestionClosed = "question-closed", exit 48, http 409, retry false, "`glovebox questions show ID` says what became of it";
    /// The question is not one that can be put to a person.
    QuestionRefused = "question-refused", exit 49, http 422, retry false, "ask for one decision, with two or three options that exclude each other, each with its effect, and say what it affects";
    /// A question that was asked in the same turn waits for its answer: what has side effects waits for it too.
    QuestionPending = "question-pending", exit 63, http 409, retry false, "act in a turn after the answer; `glovebox questions list` shows what waits";
    /// The task has used up what it may use.
    BudgetSpent = "budget-spent", exit 62, http 429, retry false, "`glovebox task show TASK` says what is left of which budget; whoever opened it can open another";
    /// What a verifier found was about another revision, or held against another condition.
    EvidenceStale = "evidence-stale", exit 61, http 409, retry false, "verify what there is now, against the condition of now";
    /// The action runs already, and nobody waits for its end here.
    ActionRunning = "action-running", exit 60, http 202, retry true, "`glovebox action show ACTION` says how it ends; `glovebox action resume ACTION --ask wait` waits for it";
    /// Glovebox has no room for this action now.
    Busy = "busy", exit 40, http 503, retry true, "try again later, or raise the budgets in the configuration";
    /// The capability was called as often as it may be, for now.
    RateLimited = "rate-limited", exit 44, http 429, retry true, "wait as long as the message says; the tool's manifest and the operator's profiles say how often it may be called";
    /// The worker that ran the action is gone.
    WorkerLost = "worker-lost", exit 41, http 200, retry false, "verify whether it took effect before repeating";
    /// The backend that the contract needs does not answer on this host.
    BackendUnavailable = "backend-unavailable", exit 42, http 503, retry true, "`glovebox doctor` says what is missing";
    /// A container could not be removed: it is still there, or the engine does not say.
    ContainerLeft = "container-left", exit 43, http 500, retry true, "see to the container engine, then run `glovebox gc`";
    /// The backend failed in a way that is not the tool's fault.
    BackendError = "backend-error", exit 43, http 500, retry true, "this is a bug in Glovebox or its host; `glovebox doctor` may show the cause";

    // The host.
    /// The state folder can't be used: missing rights, a read-only file system, or damage.
    StateUnavailable = "state-unavailable", exit 50, http 500, retry false, "name a writable folder with --state DIR or $GLOVEBOX_STATE";
    /// The disk is full.
    DiskFull = "disk-full", exit 51, http 507, retry true, "free space, or run `glovebox gc`";
    /// The action ran, and how it ended could not be written down: the log will call it `unknown` or `interrupted`.
    NotRecorded = "not-recorded", exit 59, http 500, retry false, "keep this Observation, which is the only record of the result; look whether it took effect before it is done again, and see to the state folder: `glovebox doctor` says what it lacks";
    /// A cached file does not have the content that was recorded; it was set aside.
    CacheCorrupt = "cache-corrupt", exit 52, http 500, retry true, "run it again: the entry is rebuilt";
    /// A stored artifact does not have the content that was recorded.
    ArtifactCorrupt = "artifact-corrupt", exit 54, http 500, retry false, "run the action again; storing the same content again repairs it, and `glovebox gc` reports entries that can't be read";
    /// This operating system or processor is not one that Glovebox runs on.
    PlatformUnsupported = "platform-unsupported", exit 53, http 500, retry false, "use Linux on x86-64 or aarch64, for example in a container or a VM";
    /// This host can't build a wall that the work needs: Landlock or seccomp is missing or too old.
    IsolationUnavailable = "isolation-unavailable", exit 55, http 503, retry false, "`glovebox doctor` says which one the kernel lacks, and what to do";
    /// The store of actions, decisions and the log is damaged: nothing is read from it or replaced by itself.
    StoreCorrupt = "store-corrupt", exit 56, http 500, retry false, "`glovebox db check` lists the damage; stop every Glovebox process, move the files away and put a copy made by `glovebox db backup` in their place";
    /// The store was written by a newer Glovebox; it was left as it is.
    StoreNewer = "store-newer", exit 57, http 500, retry false, "use the newer Glovebox, or name another folder with --state DIR";
    /// The log is not what was recorded: something was changed, cut out or cut off.
    AuditBroken = "audit-broken", exit 58, http 500, retry false, "the report names the first place in each log; keep the files as they are, and compare with a backup or an export";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Code {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Code::ALL.iter().copied().find(|code| code.as_str() == text).ok_or(())
    }
}
