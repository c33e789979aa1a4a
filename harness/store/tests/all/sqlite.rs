//! The suite of all stores, with this one.

use glovebox_store::{Options, Sqlite};

/// A store in a folder of its own.
pub(crate) struct Fresh {
    pub(crate) store: Sqlite,
    pub(crate) folder: tempfile::TempDir,
}

impl Fresh {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: Sqlite::open(folder.path(), &Options::default()).unwrap(), folder }
    }
}

/// Each promise is a test of its own.
macro_rules! promises {
    ($($name:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                let fresh = Fresh::new();
                crate::suite::$name(&fresh.store).await;
            }
        )+
    };
}

promises! {
    events_have_dense_numbers_and_chained_hashes,
    a_commit_is_found_again,
    of_many_who_change_one_version_one_wins,
    a_conflict_touches_nobody_else,
    a_commit_that_fails_half_way_leaves_nothing,
    the_operators_stop_stops_commits,
    a_key_is_claimed_once,
    grants_end_and_are_taken_back,
    asks_and_calls_are_counted,
    actions_are_listed_newest_first,
    ten_thousand_pending_approvals_are_paged,
    approvals_are_found_after_newer_ones,
    what_expires_is_found_in_order,
    a_task_adds_up,
    contents_are_erased_and_the_log_says_so,
    other_tenants_see_nothing,
    listeners_hear_of_commits,
    sessions_form_trees,
    tasks_are_listed_newest_first,
    a_task_stays_in_its_session,
    an_action_is_tied_to_where_its_task_is,
    an_action_needs_what_is_left_of_a_budget,
    what_tools_say_they_used_adds_up_to_a_number,
    questions_are_found_by_who_has_to_answer_them,
    one_question_of_a_topic_at_a_time,
    the_story_of_a_task_is_told_in_order,
    the_words_of_a_task_are_erased,
    tasks_of_other_tenants_do_not_exist,
    lists_hold_what_one_user_and_agent_has,
    events_of_all_logs_have_one_order,
}
