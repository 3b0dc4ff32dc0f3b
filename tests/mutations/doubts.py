"""Replicas that have lost what they acknowledged, or may have forgotten what they promised."""

from tests.mutations.raft import rule

MUTATIONS = (
    # Replicas that have lost something
    rule(
        "the vote of a replica that lost records does not make a majority",
        "voting.py",
        old="        return config.agreed(lambda voter: self._granted.get(voter, False))",
        new="        return config.agreed(lambda voter: voter in self._granted)",
        killed_by="test_unclean.py::test_a_replica_that_lost_records_elects_nobody_who_lacks_them",
    ),
    rule(
        "a replica that lost records does not count before it has all",
        "held.py",
        old="        return self.match if clean_at is None or self.match >= clean_at else NOWHERE",
        new="        return self.match",
        killed_by="test_unclean.py::"
        "test_an_acknowledgement_from_before_the_loss_is_not_counted_after_it",
    ),
    rule(
        "a leader looks after a follower that comes back",
        "progress.py",
        old="        self._forget_in_flight()\n        self.is_probing = self.must_probe = True\n"
        "        self.held.ask",
        new="        self._forget_in_flight()\n        self.is_probing = True\n"
        "        self.held.ask",
        killed_by="test_unclean.py::"
        "test_a_leader_finds_out_that_a_replica_which_lacks_nothing_was_unclean",
    ),
    rule(
        "an old word of a clean replica does not make it unclean",
        "held.py",
        old="            if self._is_outdated(response, sent_after):\n",
        new="            if False:\n",
        killed_by="test_unclean.py::"
        "test_a_late_word_from_before_it_was_clean_does_not_make_a_replica_unclean_again",
    ),
    rule(
        "who says that it has lost what it had is believed, though its life is the same",
        "held.py",
        old="        return sent_after != response.prev\n",
        new="        return True\n",
        killed_by="test_unclean.py::"
        "test_a_replica_that_came_back_empty_in_the_same_life_is_counted_anew",
    ),
    rule(
        "who may have lost more is not told when it is clean before it says in which life it is",
        "held.py",
        old=" and self.doubted_at is None and not self._is_asked\n",
        new=" and self.doubted_at is None\n",
        killed_by="test_unclean.py::test_a_replica_that_crashed_again_is_clean_once_it_has_all_"
        "that_its_leader_has_by_now",
    ),
    rule(
        "who crashed again is counted anew",
        "held.py",
        old="if self.clean_at is None or has_crashed:",
        new="if self.clean_at is None:",
        killed_by="test_unclean.py::test_a_replica_that_crashed_again_is_clean_once_it_has_all_"
        "that_its_leader_has_by_now",
    ),
    rule(
        "a replica that is clean is believed though its first word for it was lost",
        "held.py",
        old="            elif not was_asked:\n",
        new="            else:\n",
        killed_by="test_unclean.py::test_its_leader_counts_it_again_all_the_same",
    ),
    rule(
        "what was not told because it was asked first is told later",
        "held.py",
        old="        if not self._is_asked:\n            self.is_told",
        new="        if True:\n            self.is_told",
        killed_by="test_unclean.py::test_what_it_was_to_hold_is_told_again_where_it_was_lost",
    ),
    rule(
        "a reset tells nobody when it is clean",
        "sending.py",
        old="    progress.sent(start, 0)\n",
        new="    progress.sent(start, 0)\n    progress.held.told()\n",
        killed_by="test_unclean.py::"
        "test_a_replica_that_has_all_with_a_reset_is_told_that_it_is_clean",
    ),
    rule(
        "who has forgotten what its last process acknowledged is unclean",
        "held.py",
        old="        if self._match_life < self.life:\n",
        new="        if False:\n",
        killed_by="test_unclean.py::"
        "test_who_has_forgotten_what_its_last_process_acknowledged_is_unclean",
    ),
    # Replicas that may have forgotten what they promised
    rule(
        "a replica in doubt knows it",
        "replica.py",
        old="        self.in_doubt = in_doubt\n",
        new="        self.in_doubt = False\n",
        killed_by="test_doubt.py::"
        "test_who_may_have_voted_for_another_does_not_count_for_this_leader",
    ),
    rule(
        "to have all that a leader has does not end a doubt",
        "held.py",
        old="        self.clean_at, self.match = NEVER, NOWHERE\n",
        new="        self.match = NOWHERE\n        self.end_doubt(last)\n",
        killed_by="test_doubt.py::"
        "test_a_leader_that_was_deposed_with_the_forgotten_vote_commits_nothing",
    ),
    rule(
        "who is in doubt does not count",
        "held.py",
        old="        self.clean_at, self.match = NEVER, NOWHERE\n",
        new="        self.clean_at, self.match = None, NOWHERE\n",
        killed_by="test_doubt.py::"
        "test_who_may_have_voted_for_another_does_not_count_for_this_leader",
    ),
    rule(
        "a leader that is in doubt does not count itself",
        "quorum.py",
        old="NOWHERE if group.in_doubt else group.durable",
        new="group.durable",
        killed_by="test_doubt.py::test_a_leader_that_is_in_doubt_itself_does_not_count_itself",
    ),
    rule(
        "where no majority is sure, all have to hold something newer",
        "leader.py",
        old="            held = max(held, held_by_all(group, self._progress))\n",
        new="            pass\n",
        killed_by="test_doubt.py::test_of_two_voters_both_have_to_hold_something_newer",
    ),
    rule(
        "all is not some",
        "doubt.py",
        old="    return min(\n        group.durable",
        new="    return max(\n        group.durable",
        killed_by="test_doubt.py::"
        "test_a_leader_that_was_deposed_with_the_forgotten_vote_commits_nothing",
    ),
    rule(
        "whose doubt has ended counts as having voted in that epoch",
        "follower.py",
        old="            group.set_hard_state(group.epoch, group.node_id)",
        new="            group.voted_for = group.node_id",
        killed_by="test_doubt.py::test_who_gave_way_counts_as_having_voted_in_its_leaders_epoch",
    ),
    rule(
        "only a word for its very life ends a doubt",
        "follower.py",
        old="            not group.in_doubt or group.life == request.ends_doubt\n",
        new="            True\n",
        killed_by="test_doubt.py::test_only_a_word_for_this_very_life_ends_a_doubt",
    ),
    rule(
        "an answer of an earlier life is not heard",
        "held.py",
        old="            if response.life < self.life:",
        new="            if False:",
        killed_by="test_doubt.py::test_an_answer_of_an_earlier_life_says_nothing",
    ),
    rule(
        "a log that nobody appends to gets an epoch for those in doubt",
        "leader.py",
        old="        self._append_for_doubts(group)\n",
        new="",
        killed_by="test_doubt.py::"
        "test_where_nothing_is_appended_the_leader_opens_another_epoch_itself",
    ),
    rule(
        "a leader that would not be elected again does not campaign for those in doubt",
        "doubt.py",
        old="    return config.agreed(counts) or all(map(is_alive, config.members))",
        new="    return True",
        killed_by="test_doubt.py::test_it_does_not_campaign_in_its_own_favour_either",
    ),
    rule(
        "a leader that waits for nobody but those in doubt is looked at",
        "leader.py",
        old="            self._has_doubts and any(map(is_alive, doubted(self._progress)))\n",
        new="            False\n",
        killed_by="test_doubt.py::"
        "test_where_nothing_is_appended_the_leader_opens_another_epoch_itself",
    ),
    rule(
        "the dead are not waited for",
        "leader.py",
        old="any(map(is_alive, self.waits_for(group))) or (",
        new="bool(self.waits_for(group)) or (",
        killed_by="test_replication.py::test_a_leader_waits_for_nobody_who_is_dead",
    ),
    rule(
        "in doubt nobody leads without having asked all",
        "group.py",
        old="        if self.in_doubt and (",
        new="        if False and (",
        killed_by="test_doubt.py::"
        "test_a_replica_in_doubt_leads_nothing_that_nobody_else_was_asked_about",
    ),
    rule(
        "the lead is handed to nobody who is in doubt",
        "leader.py",
        old=" and self._progress[node].held.doubted_at is None\n",
        new="\n",
        killed_by="test_doubt.py::"
        "test_who_is_in_doubt_is_not_handed_the_lead_while_there_is_somebody_else",
    ),
    rule(
        "doubts end while a change waits, too",
        "leader.py",
        old="        opens_one_anyway = config.is_joint and group.node_id in config.voters\n",
        new="        opens_one_anyway = config.is_joint\n",
        killed_by="test_doubt.py::"
        "test_a_change_whose_only_heir_is_in_doubt_is_finished_all_the_same",
    ),
)
