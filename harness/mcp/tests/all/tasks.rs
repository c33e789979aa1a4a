//! Clients that come back for a task.

use env_contracts::Access;
use glovebox_events::ActionState;
use glovebox_plane::Asking;
use glovebox_runtime::job::End;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolResponse, CancelTaskParams, ErrorCode, ErrorData, GetTaskParams, InputResponses, Task, TaskPayload,
    TaskStatus, UpdateTaskParams,
};
use serde_json::json;

use crate::client::{ASK, Client, Era, Hand, Seat, calling, error};
use crate::fake::{TOOL, WRITE};
use crate::house::{Setup, agent, approval};

fn seat() -> Seat {
    let seat = Seat::of(&Setup::of(&[WRITE, TOOL]).rules(ASK));
    seat.house.runs_well();
    seat
}

async fn begun(client: &Client) -> Task {
    match client.peer().call_tool_once(calling("fake.write", json!({}))).await.unwrap() {
        CallToolResponse::Task(begun) => begun.task,
        other => panic!("{other:?}"),
    }
}

async fn look(client: &Client, task: &str) -> Result<TaskPayload, ServiceError> {
    client.peer().get_task(GetTaskParams::new(task)).await.map(|found| {
        assert_eq!(found.task.task.status, found.task.payload.status());
        found.task.payload
    })
}

/// Looks until it is over.
async fn over(client: &Client, task: &str) -> TaskPayload {
    loop {
        let payload = look(client, task).await.unwrap();
        if payload.status().is_terminal() {
            return payload;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[test]
fn a_task_waits_for_a_person_runs_once_it_was_approved_and_keeps_its_result() {
    let seat = seat();
    seat.house.block_on(async {
        let client =
            seat.client(Era::New, Hand { page: Some(crate::client::Answers::Never), ..Hand::with_tasks() }).await;
        let task = begun(&client).await;
        let action = seat.actions()[0].clone();
        assert_eq!((task.task_id.as_str(), task.status), (action.id.as_str(), TaskStatus::InputRequired));
        assert!(task.status_message.unwrap().contains("http://127.0.0.1:1/approvals/"));
        let TaskPayload::InputRequired { input_requests } = look(&client, &task.task_id).await.unwrap() else {
            panic!("it does not wait")
        };
        assert_eq!(input_requests.keys().collect::<Vec<_>>(), [approval(&action).as_str()]);
        // Whatever a client says of the page decides nothing.
        let accepts = InputResponses::from([(approval(&action).to_string(), json!({ "action": "accept" }))]);
        client.peer().update_task(UpdateTaskParams::new(&task.task_id, accepts)).await.unwrap();
        assert_eq!(seat.house.now(&action.id).state, ActionState::WaitingApproval);

        seat.answer(&action, "once", None).await;
        for _ in 0..2 {
            let TaskPayload::Completed { result } = over(&client, &task.task_id).await else { panic!("not completed") };
            assert_eq!(result["isError"], false);
            assert_eq!(result["_meta"]["glovebox/outcome"]["outcome"], "completed");
        }
        assert_eq!((seat.house.ground.ran(&action.id), seat.actions().len()), (1, 1));
    });
}

#[test]
fn a_task_that_was_declined_or_failed_is_completed_and_one_at_which_we_failed_is_failed() {
    let seat = seat();
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::with_tasks()).await;
        let declined = begun(&client).await;
        seat.answer(&seat.actions()[0], "decline", Some("not today")).await;
        let TaskPayload::Completed { result } = over(&client, &declined.task_id).await else { panic!("not completed") };
        assert_eq!(result["isError"], true);
        assert!(result["content"][0]["text"].as_str().unwrap().contains("not today"));
    });
    let seat = self::seat();
    seat.house.on_run(|_, _| End::HostFailed("the disk is on fire".into()));
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::with_tasks()).await;
        let task = begun(&client).await;
        seat.answer(&seat.actions()[0], "once", None).await;
        let TaskPayload::Failed { error } = over(&client, &task.task_id).await else { panic!("not failed") };
        assert_eq!(error["data"]["code"], "backend-error");
    });
}

#[test]
fn a_task_is_cancelled_while_it_waits_and_while_it_runs() {
    for running in [false, true] {
        let seat = seat();
        seat.house.on_run(|_, ports| {
            while !ports.stop.is_requested() {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            End::Interrupted
        });
        seat.house.block_on(async {
            let client = seat.client(Era::New, Hand::with_tasks()).await;
            let task = begun(&client).await;
            if running {
                seat.answer(&seat.actions()[0], "once", None).await;
                look(&client, &task.task_id).await.unwrap();
                seat.once(ActionState::Running).await;
            }
            client.peer().cancel_task(CancelTaskParams::new(&task.task_id)).await.unwrap();
            let ended = over(&client, &task.task_id).await;
            // What could change something outside and was cut off is not known.
            let wanted = if running { TaskStatus::Completed } else { TaskStatus::Cancelled };
            assert_eq!(ended.status(), wanted, "{ended:?}");
            assert_eq!(look(&client, &task.task_id).await.unwrap(), ended, "an end does not change");
            assert_eq!(seat.house.ground.runs().len(), usize::from(running));
        });
    }
}

#[test]
fn the_tasks_of_others_are_no_tasks_and_who_declared_none_has_none() {
    let seat = seat();
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::with_tasks()).await;
        let task = begun(&client).await.task_id;
        let without = seat.client(Era::New, Hand::default()).await;
        assert_eq!(error(look(&without, &task).await).code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
        for other in [agent("u", "other"), agent("v", "coder")] {
            let party = seat.party_of(other, Access::Write, Asking::Leave);
            let theirs = seat.client_of(party, Era::New, Hand::with_tasks()).await;
            let missing = error(look(&theirs, "nothing").await);
            let tries: [ErrorData; 3] = [
                error(look(&theirs, &task).await),
                error(theirs.peer().update_task(UpdateTaskParams::new(&task, InputResponses::new())).await),
                error(theirs.peer().cancel_task(CancelTaskParams::new(&task)).await),
            ];
            for foreign in tries {
                assert_eq!(foreign.code, ErrorCode::INVALID_PARAMS);
                assert_eq!(foreign.message.replace(&task, "nothing"), missing.message);
            }
        }
        assert_eq!(seat.actions()[0].state, ActionState::WaitingApproval, "somebody else cancelled it");
    });
}
