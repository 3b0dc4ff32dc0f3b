"""Which scenario comes into which of the core's rare branches, on purpose.

That it does is asserted with the scenario (`conftest`): a test that its branch has moved away from
proves nothing about it any more.
"""

from __future__ import annotations

from typing import Final

_REACHED_BY: Final[dict[str, dict[str, str]]] = {
    "test_commit": {
        "figure_8_an_entry_of_an_older_epoch_is_not_committed_by_counting": "truncated",
        "an_acknowledgement_of_an_older_epoch_does_not_count": "stale_answer",
        "two_replicas_that_lose_power_end_with_one_log": "late_success",
    },
    "test_doubt": {
        "an_answer_of_an_earlier_life_says_nothing": "answer_of_an_earlier_life",
        "a_replica_in_doubt_leads_nothing_that_nobody_else_was_asked_about": "campaign_in_doubt",
        "only_a_word_for_this_very_life_ends_a_doubt": "doubt_ended",
        "where_nothing_is_appended_the_leader_opens_another_epoch_itself": "epoch_for_doubts",
        "it_does_not_campaign_in_its_own_favour_either": "follower_in_doubt",
    },
    "test_elections": {
        "an_attempt_whose_requests_have_not_left_is_not_begun_anew": "campaign_not_begun_yet",
        "who_has_lost_the_voters_from_sight_is_elected_in_vain": "elected_by_who_is_lost",
        "a_leader_that_hears_no_majority_steps_down": "quorum_lost",
        "a_stale_vote_is_not_counted_in_a_later_epoch": "stale_vote",
        "voters_that_hear_a_leader_refuse_others": "vote_refused_for_a_live_leader",
    },
    "test_hand_over": {
        "a_hand_over_to_a_dead_successor_ends": "hand_over_aborted",
        "a_hand_over_of_an_older_epoch_is_not_heeded": "stale_hand_over",
    },
    "test_membership": {
        "a_joint_configuration_needs_both_majorities_to_commit": "change_finished",
        "a_leader_outside_the_new_voters_hands_over_and_stops": "leader_outside_the_new_voters",
        "an_uncommitted_configuration_goes_with_its_entry": "token_taken_back",
    },
    "test_observers": {
        "an_observer_below_its_parents_log_start_is_reset": "observer_reset",
        "an_answer_to_an_older_pull_is_not_taken": "stale_pull_response",
        "what_a_parent_cannot_have_is_not_taken": "bad_reset",
        "what_is_not_written_yet_is_not_given": "pull_before_it_is_written",
    },
    "test_replication": {
        "a_place_that_is_in_no_log_is_not_committed": "bad_committed",
        "entries_that_do_not_follow_each_other_are_not_taken": "bad_entries",
        "an_answer_that_claims_what_was_never_sent_is_not_believed": "bad_match",
        "early_arrivals_are_bounded": "early_arrival_dropped",
        "early_arrivals_are_kept_and_used_in_order": "early_arrival_kept early_arrival_used",
        "committed_entries_are_never_cut": "failed",
        "a_replica_that_is_there_late_gets_nothing_from_who_does_not_lead": (
            "opened_told_to_who_cannot_lead"
        ),
        "a_run_that_is_cut_otherwise_the_second_time_is_taken_from_where_it_is_new": (
            "part_of_a_run_held short_success"
        ),
        "a_late_refusal_of_what_is_matched_by_now_is_not_believed": "refusal_below_match",
        "a_refusal_that_leads_nowhere_is_not_followed": "refusal_that_leads_nowhere",
        "a_refusal_says_something_only_of_the_first_in_flight": "stale_refusal",
        "a_zombie_leader_is_refused_and_told": "stale_request",
        "truncation_comes_before_the_entries_that_replace": "truncated_what_was_not_even_written",
        "an_old_refusal_does_not_move_next_below_match": "logs_part",
    },
    "test_resets": {
        "a_follower_below_the_log_start_begins_there": "follower_below_the_log_start reset",
        "a_late_reset_does_not_cut_what_came_after_it": "late_reset",
    },
    "test_returning": {
        "those_who_come_back_do_not_elect_each_other": "returned_and_knows_too_little_to_elect",
    },
    "test_steady": {
        "an_answer_of_a_stranger_counts_for_nothing": "answer_of_a_stranger",
        "a_run_of_somebody_else_than_the_leader_is_not_taken": "two_leaders_in_an_epoch",
    },
    "test_unclean": {
        "a_late_word_from_before_it_was_clean_does_not_make_a_replica_unclean_again": (
            "answer_from_before_it_was_clean"
        ),
        "an_acknowledgement_from_before_the_loss_is_not_counted_after_it": (
            "answer_from_before_the_loss"
        ),
        "a_replica_counts_again_once_it_has_all_that_its_leader_had": "became_clean",
        "a_replica_that_lost_records_elects_nobody_who_lacks_them": "follower_unclean",
        "who_has_forgotten_what_its_last_process_acknowledged_is_unclean": (
            "follower_forgot unclean_again"
        ),
        "where_no_clean_majority_is_left_all_voters_together_elect_the_longest": "unclean_election",
    },
}
"""By module: a test's name without `test_`, and the marks."""

REACHED: Final = {
    (module, f"test_{test}"): frozenset(marks.split())
    for module, tests in _REACHED_BY.items()
    for test, marks in tests.items()
}
"""The marks that a test has to reach, by its module and name."""
