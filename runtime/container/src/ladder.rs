//! Ending a container, step by step, each of them bounded.
//!
//! The supervisor is asked first (in `drive`), because it can keep what was
//! said. From here on the engine is: kill, then remove by force, then look
//! whether it is gone. What is still there is told, and taken again by every
//! sweep.

use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::{KillContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use env_contracts::{Code, Problem};

use crate::engine::{QUICK, within};
use crate::error::{is_missing, is_so, silent};

/// How long a kill may take; the engine waits for the process inside.
const KILL: Duration = Duration::from_secs(8);
/// How long the removal may take.
const REMOVE: Duration = Duration::from_secs(20);

/// Ends and removes a container, with the volumes that were made for it. Nobody
/// may be attached to it without reading: the engine's own kill waits then.
///
/// # Errors
/// `container-left`: it is still there, or the engine does not say.
pub(crate) async fn remove(client: &Docker, id: &str) -> Result<(), Problem> {
    let kill = client.kill_container(id, Some(KillContainerOptionsBuilder::default().signal("KILL").build()));
    // Not running is as good as killed; anything else shows below.
    let _ = tokio::time::timeout(KILL, kill).await;
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    let mut why = match tokio::time::timeout(REMOVE, client.remove_container(id, Some(options))).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) if is_missing(&error) => return Ok(()),
        // Somebody else is removing it.
        Ok(Err(error)) if is_so(&error) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => silent("removing a container", Some(REMOVE)).message,
    };
    for _ in 0..10 {
        match within("looking for a container", QUICK, async {
            match client.inspect_container(id, None).await {
                Err(error) if is_missing(&error) => Ok(true),
                other => other.map(|_| false),
            }
        })
        .await
        {
            Ok(true) => return Ok(()),
            Ok(false) => tokio::time::sleep(Duration::from_millis(200)).await,
            Err(problem) => {
                why = problem.message;
                break;
            }
        }
    }
    let short = id.get(..12).unwrap_or(id);
    Err(Problem::new(Code::ContainerLeft, format!("container {short} could not be removed: {why}")))
}
