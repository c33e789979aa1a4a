//! What the service answers with is what its schemas say: doors print both.

use env_contracts::Wanted;
use glovebox_events::{Budget, Grant, Logged, Session};
use glovebox_plane::Target;
use glovebox_plane::{
    ActionView, Attention, Card, Explained, Found, Halted, Interrupted, Listing, NewTask, OpenTurn, QuestionView,
    Settled, TaskView, Telling, Trace, TurnStart,
};
use glovebox_store::QuestionFilter;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, agent, approval, id, person};
use crate::loops::{about, coder, new_task};
use crate::turns::ASK;

/// Whether a value is one by this type's schema: as it is printed, or as it is
/// read.
fn valid<T: JsonSchema>(settings: SchemaSettings, value: &Value) -> Result<(), String> {
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    jsonschema::validator_for(&schema).unwrap().validate(value).map_err(|error| error.to_string())
}

fn printed() -> SchemaSettings {
    SchemaSettings::draft2020_12().for_serialize()
}

fn read<T: JsonSchema>(value: &Value) -> Result<(), String> {
    valid::<T>(SchemaSettings::draft2020_12(), value)
}

/// Whether a value is one by its own schema, and no longer with another first
/// field.
fn fits<T: JsonSchema + Serialize>(value: &T) {
    let name = std::any::type_name::<T>();
    let mut value = serde_json::to_value(value).unwrap();
    valid::<T>(printed(), &value).unwrap_or_else(|error| panic!("{name}: {error} in {value:#}"));
    // The schema says something: each of these has fields that it needs.
    let first = value.as_object().unwrap().keys().next().unwrap().clone();
    value[&first] = json!([[[]]]);
    assert!(valid::<T>(printed(), &value).is_err(), "{name} takes anything as `{first}`");
}

#[test]
fn what_is_answered_fits_its_schema() {
    let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ASK));
    house.runs_well();
    let service = &house.service;
    fits::<Session>(&house.open_session(&coder(), "s1", None));
    fits(&house.open_task());
    house.say(glovebox_plane::Saying::Steer("left"));
    house.say(glovebox_plane::Saying::Constrain("no new dependency"));
    house.ask(about("window", None)).unwrap();
    fits::<TurnStart>(&house.turn());
    let waits = house.waits("fake.write", r#"{"count":1}"#);
    fits::<ActionView>(&service.action(&coder(), &waits.id).unwrap());
    fits::<Card>(&service.approval(&person("u"), approval(&waits)).unwrap());
    let settled = house.answer(approval(&waits), "session", Some("go on")).unwrap();
    fits::<Grant>(settled.grant.as_ref().unwrap());
    fits::<Settled>(&settled);
    fits::<Card>(&service.approval(&person("u"), approval(&waits)).unwrap());
    house.resume(&waits);
    fits::<ActionView>(&service.action(&coder(), &waits.id).unwrap());
    let explained = house.block_on(service.explain(house.asked("fake.write", "{}"))).unwrap();
    fits::<Explained>(&explained);
    fits::<TurnStart>(&house.turn());
    fits::<TaskView>(&service.task(&coder(), &id("t1")).unwrap());
    for question in service.questions(&coder(), &QuestionFilter::default()).unwrap().items {
        fits::<QuestionView>(&question);
    }
    fits::<Trace>(&service.trace(&coder(), &id("t1")).unwrap());
    fits::<Attention>(&service.attention(&coder(), &id("s1")).unwrap());
    fits::<Interrupted>(&house.interrupt(Target::Session(id("s1")), None).unwrap());
    fits::<Halted>(&house.block_on(service.stop_all(&person("u"), None)).unwrap());
    fits::<Listing>(&service.registry().list().unwrap());
    for found in service.registry().search("fake", &agent("u", "coder"), &Default::default()).unwrap() {
        fits::<Found>(&found);
    }
    let log = house.log(&["s1"]);
    assert!(log.len() > 10);
    log.iter().for_each(fits::<Logged>);
}

#[test]
fn bodies_are_read_strictly() {
    let task: NewTask = serde_json::from_value(json!({ "session": "s1", "goal": "make it work" })).unwrap();
    assert_eq!((task.budget, &task.goal), (Budget::default(), &new_task("t1", "s1", Budget::default()).goal));
    let turn = json!({ "task": "t1", "expected_turn": 0, "goal_version": 1 });
    assert!(serde_json::from_value::<OpenTurn>(turn.clone()).unwrap().key.is_none());
    let told = json!({ "what": { "kind": "text" }, "content": "look" });
    assert_eq!(serde_json::from_value::<Telling>(told.clone()).unwrap().content.as_deref(), Some("look"));
    for (body, fits) in [
        (turn, read::<OpenTurn> as fn(&Value) -> Result<(), String>),
        (told, read::<Telling>),
        (json!({ "session": "s1", "goal": "g" }), read::<NewTask>),
    ] {
        fits(&body).unwrap();
        let mut more = body;
        more["by"] = json!("somebody else");
        assert!(fits(&more).is_err(), "{more}");
    }
    let forged = json!({ "session": "s1", "goal": "g", "principal": { "tenant": "local", "user": "root" } });
    assert!(serde_json::from_value::<NewTask>(forged).is_err(), "who asks is the channel's to say");
    let wanted: Wanted = "fake.write".parse().unwrap();
    assert_eq!(serde_json::to_value(&wanted).unwrap(), json!("fake.write"));
}
