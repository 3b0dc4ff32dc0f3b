"""Who votes, who leads next, and who only observes."""

from tests.mutations.raft import rule

MUTATIONS = (
    # Membership
    rule(
        "a change waits for an entry of the own epoch",
        "membership.py",
        old="    if config.is_joint or not group.is_serving or group.successor is not None:\n"
        "        # Raft",
        new="    if config.is_joint or group.successor is not None:\n        # Raft",
        killed_by="test_membership.py::test_a_change_waits_for_an_entry_of_the_own_epoch",
    ),
    rule(
        "one change at a time",
        "membership.py",
        old="    if config.is_joint or not group.is_serving or group.successor is not None:\n"
        "        # Raft",
        new="    if False:\n        # Raft",
        killed_by="test_membership.py::test_one_change_at_a_time",
    ),
    rule(
        "an earlier wish is not gone back to",
        "membership.py",
        old="    if version < config.version:\n",
        new="    if False:\n",
        killed_by="test_membership.py::test_an_earlier_wish_is_not_gone_back_to",
    ),
    rule(
        "a change is finished for the wish that began it",
        "leader.py",
        old="Configuration(config.voters, version=config.version)",
        new="Configuration(config.voters)",
        killed_by="test_membership.py::test_a_new_leader_finishes_the_change",
    ),
    rule(
        "a voter has caught up before it votes",
        "membership.py",
        old="        if progress is None or progress.held.counted < group.durable:",
        new="        if progress is None:",
        killed_by="test_membership.py::test_who_has_not_caught_up_does_not_become_a_voter",
    ),
    rule(
        "a joint configuration needs both majorities to commit",
        "quorum.py",
        old="    if config.outgoing:\n        outgoing = config.outgoing\n",
        new="    if False:\n        outgoing = config.outgoing\n",
        killed_by="test_membership.py::"
        "test_the_new_majority_alone_does_not_commit_a_joint_configuration",
    ),
    rule(
        "a joint configuration needs both majorities to elect",
        "entries.py",
        old="        return _is_majority(self.voters, says_yes) and (\n"
        "            not self.outgoing or _is_majority(self.outgoing, says_yes)\n"
        "        )",
        new="        return _is_majority(self.outgoing or self.voters, says_yes)",
        killed_by="test_membership.py::test_a_joint_configuration_needs_both_majorities_to_elect",
    ),
    rule(
        "a configuration goes with its entry",
        "epochs.py",
        old="        while self._rows and self._rows[-1].epoch > to.epoch:\n"
        "            self._rows = self._rows[:-1]\n",
        new="",
        killed_by="test_membership.py::test_an_uncommitted_configuration_goes_with_its_entry",
    ),
    rule(
        "a new leader finishes the change",
        "leader.py",
        old="add_learner(group, node)\n                self.advance_change(group)\n",
        new="add_learner(group, node)\n",
        killed_by="test_membership.py::test_a_new_leader_finishes_the_change",
    ),
    rule(
        "those who go out are told",
        "leader.py",
        old="                    self.add_learner(group, node)\n",
        new="                    pass\n",
        killed_by="test_membership.py::test_those_who_go_out_are_told",
    ),
    rule(
        "those who go out are told only of what is committed",
        "leader.py",
        old="(*plan.config.members, *plan.learners)",
        new="(*plan.config.members, *plan.learners, *plan.former)",
        killed_by="test_membership.py::"
        "test_one_that_goes_out_does_not_hold_up_those_who_do_not_know_yet",
    ),
    rule(
        "who has no vote does not campaign",
        "group.py",
        old="        if self.failure is not None or not self.is_voter:",
        new="        if self.failure is not None:",
        killed_by="test_membership.py::test_a_learner_has_no_vote",
    ),
    # Giving up the lead
    rule(
        "a successor is told only once it has everything",
        "leader.py",
        old="self._progress[to].held.match == group.shape.last:",
        new="True:",
        killed_by="test_hand_over.py::test_the_successor_is_told_only_once_it_has_everything",
    ),
    rule(
        "a hand-over to a dead successor ends",
        "leader.py",
        old="        if self.successor is not None and not self._may_lead(group, self.successor):",
        new="        if False:",
        killed_by="test_hand_over.py::test_a_hand_over_to_a_dead_successor_ends",
    ),
    rule(
        "a hand-over of an older epoch is not heeded",
        "group.py",
        old="                if message.epoch == self.epoch and self.leader == source:",
        new="                if True:",
        killed_by="test_hand_over.py::test_a_hand_over_of_an_older_epoch_is_not_heeded",
    ),
    # Observers
    rule(
        "an observer gets only what is committed",
        "observer.py",
        old="        entries = group.read(last, committed, bytes_max)",
        new="        entries = group.read(last, shape.last, bytes_max)",
        killed_by="test_observers.py::test_an_observer_has_what_is_committed_and_nothing_else",
    ),
    rule(
        "a parent that is behind resets nobody",
        "observer.py",
        old="    if last >= committed:\n",
        new="    if last == committed:\n",
        killed_by="test_observers.py::test_a_parent_that_is_behind_resets_nobody",
    ),
    rule(
        "an answer to an older pull is not taken",
        "observer.py",
        old="        if response.prev != shape.last:",
        new="        if False:",
        killed_by="test_observers.py::test_an_old_reset_is_not_taken",
    ),
    # Who is there late
    rule(
        "a leader begins anew with a replica that was not there",
        "group.py",
        old="            case Leader() as leader:\n                leader.restart(self, node)\n",
        new="            case Leader() as leader:\n                pass\n",
        killed_by="test_replication.py::test_a_replica_that_is_there_late_is_sent_what_it_missed",
    ),
    rule(
        "a candidate asks a voter that was not there",
        "group.py",
        old="                candidate.ask_again(self, node)\n",
        new="                pass\n",
        killed_by="test_elections.py::test_a_voter_that_is_there_late_is_asked_again",
    ),
    rule(
        "a candidate asks nobody again before its own vote is durable",
        "candidate.py",
        old="        if group.is_hard_state_durable and voter in group.config.members:\n",
        new="        if voter in group.config.members:\n",
        killed_by="test_elections.py::"
        "test_a_voter_that_is_there_late_hears_nothing_of_a_vote_that_is_not_durable",
    ),
    rule(
        "a learner that comes again is asked where its log ends",
        "sending.py",
        old="            if after == last or progress.is_to_be_asked:\n",
        new="            if after == last:\n",
        killed_by="test_membership.py::"
        "test_a_learner_that_was_given_up_and_comes_again_is_asked_where_its_log_ends",
    ),
    rule(
        "a probe is answered and not kept for later",
        "follower.py",
        old=" and request.prev > shape.last and request.entries:\n",
        new=" and request.prev > shape.last:\n",
        killed_by="test_membership.py::"
        "test_a_learner_that_was_given_up_and_comes_again_is_asked_where_its_log_ends",
    ),
)
