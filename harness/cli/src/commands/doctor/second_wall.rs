//! The second wall, tried from inside: a cell like any action's, in which our
//! own code asks the kernel for what an intruder would want, one attempt in
//! each cell.

use env_contracts::{Code, Problem, Wanted};
use glovebox_jail::{Attempt, Layers, syscall_name};
use glovebox_runtime::Backend as _;
use glovebox_runtime::job::End;
use glovebox_wasm::{Placement, WasmBackend};

use super::Line;
use crate::config::Config;
use crate::places::Places;
use crate::{backends, house};

/// The tool for which the cells are made.
const TOOL: &str = "text.count";

/// One line for each attempt; a single one where there is no second wall.
pub(super) fn test(config: &Config) -> Result<Vec<Line>, Problem> {
    const WHAT: &str = "second wall";
    if config.get::<Placement>("wasm.placement") == Placement::InProcess {
        return Ok(vec![Line::not_here(
            WHAT,
            "`wasm.placement` is `in-process`: the engine is the only wall; use it for code of one trust domain",
        )]);
    }
    let places = Places::of(config);
    let backend = match backends::wasm(config, &places, 1) {
        Ok(backend) => backend,
        Err(problem) => return Ok(vec![Line::required(WHAT, Err(problem))]),
    };
    let wanted: Wanted = TOOL.parse().map_err(|error: String| Problem::new(Code::BackendError, error))?;
    let tool = house::registry(&places).get(&wanted)?;
    let runtime = house::tokio_runtime()?;
    let tried = |attempt: &Attempt| {
        let prepare = backend.prepare(&tool.registered, &tool.manifest.contract, &|_| {});
        runtime.block_on(async { judge(attempt, tried(&backend, prepare.await?, attempt).await) })
    };
    let line = |attempt: &Attempt| Line::required(&format!("cell: {}", attempt.name()), tried(attempt));
    Ok(Attempt::all().iter().map(line).collect())
}

async fn tried(backend: &WasmBackend, prepared: glovebox_runtime::Prepared, attempt: &Attempt) -> End {
    backend.attempt(prepared, attempt.name()).await.end
}

/// Whether this host's Landlock refuses it by itself.
fn has_landlock(attempt: &Attempt, host: Layers) -> bool {
    attempt.landlock_from().is_some_and(|from| host.landlock.is_some_and(|abi| abi >= from))
}

/// An attempt must have been refused, and by the layer that is there for it.
fn judge(attempt: &Attempt, end: End) -> Result<String, Problem> {
    let layer = attempt.forbidden_by();
    // seccomp answers first; of what stands behind it this is no proof.
    let behind = if has_landlock(attempt, Layers::probe()) { "; Landlock stands behind it" } else { "" };
    match (attempt.forbidden_call(), &end) {
        (Some(call), End::Violation(why)) if why.contains(&format!("`{}`", syscall_name(call))) => {
            Ok(format!("refused by seccomp: `{}` ends the cell{behind}", syscall_name(call)))
        }
        (None, End::Violation(_)) => Ok("refused by seccomp: the call ends the cell".into()),
        (None, End::Exited { code }) if *code != 0 => {
            let code = i32::try_from(*code).unwrap_or(i32::MAX);
            Ok(format!("refused by {layer}: {}", std::io::Error::from_raw_os_error(code)))
        }
        _ => Err(Problem::new(
            Code::IsolationUnavailable,
            format!("`{}` was not refused by {layer}; it ended as {end:?}", attempt.name()),
        )
        .with_help("run no tools that you don't trust here, and report this")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_that_is_too_old_gets_no_credit() {
        let udp = Attempt::named("send-udp").unwrap();
        let host = |abi| Layers { landlock: Some(abi), seccomp: true };
        assert!(!has_landlock(udp, host(7)));
        assert!(has_landlock(udp, host(10)));
    }

    #[test]
    fn only_the_right_refusal_counts() {
        let socket = Attempt::named("connect-tcp").unwrap();
        let file = Attempt::named("read-passwd").unwrap();
        let refused = |call: &str| End::Violation(format!("the system call `{call}` was refused by the second wall"));
        assert!(judge(socket, refused("socket")).is_ok());
        assert!(judge(socket, refused("openat")).is_err());
        assert!(judge(socket, End::Exited { code: 13 }).is_err());
        assert!(judge(file, End::Exited { code: 13 }).unwrap().contains("denied"));
        for attempt in [socket, file] {
            assert!(judge(attempt, End::Exited { code: 0 }).is_err());
            assert!(judge(attempt, End::HostFailed(String::new())).is_err());
        }
    }
}
