//! What an operator takes away while everything runs is gone at once.

use env_contracts::{Access, Code, OutcomeKind, Profiles};

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, done};

/// Approved for an agent, not yet run; and it runs no more once `how` happened.
fn is_taken_away(how: impl FnOnce(&mut glovebox_plane::Operator)) -> (OutcomeKind, Option<Code>) {
    let house = House::of(&Setup::of(&[WRITE, TOOL]));
    house.on_run(|_, _| panic!("it ran with what was taken away"));
    let action = house.waits("fake.write", "{}");
    house.approve(&action);
    house.operator.change(how);
    let outcome = done(house.resume(&action)).outcome;
    house.audit(&["s1"]);
    (outcome.kind, outcome.code)
}

#[test]
fn a_lower_ceiling_holds_for_what_was_approved_before() {
    let (kind, code) = is_taken_away(|operator| operator.ceiling.install.filesystem[0].access = Access::Read);
    assert_eq!((kind, code), (OutcomeKind::ContractUnsatisfied, Some(Code::ContractUnsatisfied)));
}

#[test]
fn a_profile_that_lost_a_tool_holds_for_what_was_approved_before() {
    let profiles = "schema = \"glovebox/profiles/v1\"\n[default]\ndiscover = [\"*\"]\nexecute = [\"fake.tool\"]\n";
    let (kind, code) = is_taken_away(|operator| operator.profiles = Profiles::from_toml(profiles).unwrap());
    assert_eq!((kind, code), (OutcomeKind::PolicyDenied, Some(Code::PolicyDenied)));
}

#[test]
fn a_ceiling_that_was_raised_counts_for_the_next_request() {
    let house = House::of(&Setup::of(&[WRITE]).rules("permit (principal, action, resource);"));
    house.runs_well();
    let access = |access| house.operator.change(|operator| operator.ceiling.install.filesystem[0].access = access);
    access(Access::Read);
    assert_eq!(house.run("fake.write", "{}").outcome.kind, OutcomeKind::ContractUnsatisfied);
    access(Access::Write);
    assert_eq!(house.run("fake.write", "{}").outcome.kind, OutcomeKind::Completed);
}
