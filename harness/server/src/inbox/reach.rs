//! What would run can reach, on its card.

use env_contracts::text::{escaped, escaped_line};
use glovebox_plane::CardClause;
use maud::{Markup, html};

/// The clauses by which something can be reached; all others are limits.
const REACHES: [&str; 4] = ["filesystem", "network", "secrets", "identity"];

/// What can be reached stands open; limits are beside it.
///
/// `uncontained` is who carries it out where nothing contains it. A contract
/// always has clauses: where there are none, the plan was erased.
pub(super) fn of(uncontained: Option<&str>, clauses: &[CardClause], workspace: Option<&str>) -> Markup {
    let reaches = |clause: &CardClause| REACHES.iter().any(|part| clause.clause.starts_with(part));
    let (reach, rest): (Vec<_>, Vec<_>) = clauses.iter().partition(|clause| reaches(clause));
    html! {
        @if let Some(who) = uncontained {
            p .note { strong { "Whatever the agent itself can reach." } " Contained by " (escaped_line(who)) "." }
        } @else if clauses.is_empty() {
            p .faint { "It was erased." }
        } @else if reach.is_empty() {
            p { "No folders, no network, no secrets." }
        } @else {
            (listed(&reach))
        }
        @if let Some(workspace) = workspace { p { "Workspace: " code { (escaped_line(workspace)) } } }
        @if reach.iter().any(|clause| clause.clause.starts_with("secrets")) {
            p .faint { "Secrets are named, and never shown: a contract holds references." }
        }
        @if !rest.is_empty() {
            details .exact { summary { "Limits and surroundings (" (rest.len()) ")" } (listed(&rest)) }
        }
    }
}

fn listed(clauses: &[&CardClause]) -> Markup {
    html! {
        dl .fields {
            @for clause in clauses { dt { (escaped_line(&clause.clause)) } dd { code { (escaped(&clause.value)) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: &str = "No folders, no network, no secrets.";

    fn clause(clause: &str, value: &str) -> CardClause {
        CardClause { clause: clause.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn only_a_contract_without_any_reach_is_called_one() {
        let limit = clause("runtime.memory", "64MiB");
        let calm = of(None, std::slice::from_ref(&limit), None).into_string();
        assert!(calm.contains(CALM) && calm.contains("64MiB"), "{calm}");
        let some = of(None, &[limit, clause("filesystem./work", "read")], Some("/home/u/<b>")).into_string();
        assert!(!some.contains(CALM) && some.contains("filesystem./work") && some.contains("&lt;b&gt;"), "{some}");
        let free = of(Some("nothing: the agent carries it out"), &[], None).into_string();
        assert!(!free.contains(CALM) && free.contains("Contained by nothing"), "{free}");
        let erased = of(None, &[], None).into_string();
        assert!(!erased.contains(CALM) && erased.contains("erased"), "{erased}");
    }
}
