//! What a client is shown.

use env_contracts::Access;
use glovebox_plane::Asking;
use rmcp::model::{ErrorCode, PaginatedRequestParams, Tool};
use serde_json::json;

use crate::client::{Client, ERAS, Era, Hand, Seat, error};
use crate::fake::{COMMAND, TOOL, WRITE};
use crate::house::{Setup, agent};

async fn listed(client: &Client) -> Vec<Tool> {
    client.peer().list_tools(None).await.unwrap().tools
}

#[test]
fn tools_come_in_the_order_of_their_names_with_schemas_and_with_two_of_the_doors_own() {
    for era in ERAS {
        let seat = Seat::of(&Setup::of(&[WRITE, TOOL, COMMAND]));
        seat.house.block_on(async {
            let client = seat.client(era, Hand::default()).await;
            let tools = listed(&client).await;
            let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
            let wanted = ["fake.command", "fake.tool", "fake.write", "glovebox.request_permission", "glovebox.result"];
            assert_eq!(names, wanted);
            let tool = &tools[1];
            assert_eq!((tool.title.as_deref(), tool.description.as_deref()), (Some("t"), Some("d")));
            assert_eq!(tool.input_schema["properties"]["count"], json!({ "type": "integer", "minimum": 1 }));
            assert_eq!(tool.output_schema.as_ref().unwrap()["required"], json!(["ok"]));
            assert!(tools.iter().all(|tool| tool.input_schema["type"] == "object"));
        });
    }
}

/// A manifest that claims to be harmless changes nothing: what counts is what
/// its contract lets it do through this door.
#[test]
fn the_hints_come_from_what_the_contract_lets_a_tool_do() {
    let lying = WRITE
        .replace("[contract]", "[effects]\nside_effects = \"none\"\nidempotent = true\nreversible = true\n[contract]");
    let reaching = TOOL
        .replace("\"fake.tool\"", "\"fake.reach\"")
        .replace("limits = {", "network = { egress = [{ host = \"a.example.com\", ports = [443] }] }\nlimits = {");
    let seat = Seat::of(&Setup::of(&[&lying, TOOL, &reaching]));
    let hints = |tools: &[Tool], name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let hints = tool.annotations.clone().unwrap();
        // Absent would mean something else than what is known.
        (
            hints.read_only_hint.unwrap(),
            hints.destructive_hint.unwrap(),
            hints.idempotent_hint.unwrap(),
            hints.open_world_hint.unwrap(),
        )
    };
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let tools = listed(&client).await;
        assert_eq!(hints(&tools, "fake.write"), (false, true, false, false));
        assert_eq!(hints(&tools, "fake.tool"), (true, false, true, false));
        assert_eq!(hints(&tools, "fake.reach"), (false, true, false, true));
        assert!(tools.iter().all(|tool| hints(&tools, &tool.name).0 || tool.name != "fake.tool"));
        // With a workspace that is only read, the same tool changes nothing.
        let party = seat.party_of(agent("u", "coder"), Access::Read, Asking::Leave);
        let reader = seat.client_of(party, Era::New, Hand::default()).await;
        assert_eq!(hints(&listed(&reader).await, "fake.write"), (true, false, true, false));
    });
}

#[test]
fn a_long_list_comes_in_pages_that_hold_each_tool_once() {
    let named = |number: usize| COMMAND.replace("\"fake.command\"", &format!("\"many.t{number:03}\""));
    let manifests: Vec<String> = (0..230).map(named).collect();
    let seat = Seat::of(&Setup { manifests, ..Setup::of(&[]) });
    seat.house.block_on(async {
        let client = seat.client(Era::New, Hand::default()).await;
        let (mut names, mut pages, mut cursor) = (Vec::new(), 0, None);
        loop {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = client.peer().list_tools(Some(page)).await.unwrap();
            names.extend(page.tools.iter().map(|tool| tool.name.to_string()));
            pages += 1;
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((pages, names.len()), (3, 232));
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
        let foreign = PaginatedRequestParams::default().with_cursor(Some("%%%".into()));
        assert_eq!(error(client.peer().list_tools(Some(foreign)).await).code, ErrorCode::INVALID_PARAMS);
    });
}

#[test]
fn the_door_says_what_it_can_and_nothing_that_it_can_not() {
    for era in ERAS {
        let seat = Seat::of(&Setup::of(&[TOOL]));
        seat.house.block_on(async {
            let client = seat.client(era, Hand::default()).await;
            let info = client.peer_info().unwrap();
            let can = &info.capabilities;
            assert!(can.supports_tasks() && can.resources.is_some());
            assert_eq!(can.tools.as_ref().unwrap().list_changed, None);
            assert!(can.prompts.is_none() && can.logging.is_none() && can.completions.is_none());
            assert!(info.instructions.as_ref().unwrap().contains("glovebox.result"));
        });
    }
}
