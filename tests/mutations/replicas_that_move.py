"""What keeps a partition's records while replicas come, go and come back."""

from tests.mutations import Mutation, Room

_rule = Room("partitions/replication").rule


MUTATIONS = (
    _rule(
        "of thousands of wishes each has its turn",
        "reassigning.py",
        old="        self._waiting_from = first + most\n",
        new="",
        killed_by="test_reassigning_many.py"
        "::test_of_those_in_whose_way_something_stands_some_are_looked_at_each_time",
    ),
    _rule(
        "a leader that is to go hands over before the voters change",
        "reassignment.py",
        old="            if heirs:",
        new="            if not heirs:",
        killed_by="test_reassigning.py::test_a_leader_that_is_to_go_hands_over_first",
    ),
    _rule(
        "a wish has come true when the new voters have committed something",
        "reassignment.py",
        old="        if not replica.is_serving:\n            self.idle(now)",
        new="        if not replica.is_leader:\n            self.idle(now)",
        killed_by="test_reassigning.py::test_nothing_is_struck_before_the_new_voters_have_committed_"
        "something_of_their_own",
    ),
    _rule(
        "the log goes to nobody who has yet to hear of the wish",
        "reassignment.py",
        old="            elif not self._node.peers.has_applied(node, self.wish.at):\n",
        new="            elif False:\n",
        killed_by="test_reassigning.py::test_nobody_is_sent_the_log_who_has_yet_to_hear_of_the_wish",
    ),
    _rule(
        "what has come true is of the wish itself",
        "reassignment.py",
        old="        if are_there and config.version == self.wish.at:\n",
        new="        if are_there:\n",
        killed_by="test_reassigning.py::test_who_has_yet_to_hear_of_a_wish_does_not_undo_it",
    ),
    _rule(
        "writes are held while the voters change",
        "reassignment.py",
        old="        replica.pause_writes()\n",
        new="",
        killed_by="test_reassigning.py::test_writes_are_held_while_the_voters_change_and_none_is_"
        "sent_away",
    ),
    _rule(
        "a learner is sent no more than the broker may send",
        "reassigning.py",
        old="if share != UNLIMITED:",
        new="if False:",
        killed_by="test_reassigning.py::test_the_log_is_copied_no_faster_than_the_limit",
    ),
    _rule(
        "a throttle holds beside the limit on all",
        "throttles.py",
        old="shares[at] = min(shares[at], max(0.0, min(most, -left)) / len(covered))",
        new="pass",
        killed_by="test_throttles.py::test_a_learner_is_sent_no_more_than_its_throttle_lets_through",
    ),
    _rule(
        "what is sent beside a limit is made good",
        "throttles.py",
        old="self._owed[limit.name] = self._owed.get(limit.name, 0.0) + size_bytes",
        new="pass",
        killed_by="test_throttles.py::test_many_small_logs_are_limited_together_though_each_is_"
        "nearly_there_at_once",
    ),
    Mutation(
        name="what a broker may be sent is shared by all who send to it",
        file="broker/reassigning/throttles.py",
        old="rates[node] / len(leaders[node] - {None} | {me})",
        new="rates[node]",
        killed_by="tests/broker/test_throttles.py::"
        "test_a_followers_rate_is_shared_by_those_who_lead_what_it_is_to_get",
    ),
    Mutation(
        name="a throttle is known by the look that follows it",
        file="broker/reassigning/executor.py",
        old="                self.reassignments.throttles = self._find_throttles(state)\n",
        new="",
        killed_by="tests/testing/test_moving_replicas.py::"
        "test_a_throttle_holds_a_move_back_until_it_is_removed",
    ),
    _rule(
        "an empty replica elects nobody whose log ends where it left the group",
        "opening.py",
        old="        left_in=left_in,\n",
        new="        left_in=None,\n",
        killed_by="test_reassigning.py::test_a_replica_that_was_given_up_too_early_does_not_count",
    ),
    _rule(
        "who comes back says that it has lost what a leader may know of it",
        "replica_state.py",
        old="is_clean=condition is Condition.CLEAN and left_in is None",
        new="is_clean=condition is Condition.CLEAN",
        killed_by="test_returning.py::test_who_comes_back_has_its_leader_begin_anew",
    ),
    _rule(
        "who has gone beyond where it left asks for no more than others",
        "opening.py",
        old="                returned.append(spec.key)\n                left_in = None\n",
        new="                pass\n",
        killed_by="test_returning.py::test_once_it_has_gone_beyond_it_is_like_any_other_though_its_"
        "log_is_lost",
    ),
    _rule(
        "who comes back is in the epoch that it left in",
        "opening.py",
        old="before = replace(before, hard_state=HardState(left_in, None))",
        new="pass",
        killed_by="test_returning.py::test_who_comes_back_refuses_the_leaders_that_it_had_deposed",
    ),
    Mutation(
        name="who comes back does not lead with the old part of the log",
        file="partitions/raft/group.py",
        old="        if not may_elect(self, self.shape.last):\n            return\n",
        new="",
        killed_by="tests/scenarios/test_returning.py::test_it_does_not_elect_itself_by_the_old_part",
    ),
    Mutation(
        name="who comes back votes for nobody whose log ends where it left",
        file="partitions/raft/voting.py",
        old="        and may_elect(group, request.last)\n    )\n    if granted",
        new="    )\n    if granted",
        killed_by="tests/scenarios/test_returning.py::test_those_who_come_back_do_not_elect_each_other",
    ),
    Mutation(
        name="a replica that is given up is remembered by its newest epoch",
        file="broker/replicas/replica.py",
        old="        return member.epoch\n",
        new="        return NO_EPOCH\n",
        killed_by="tests/broker/test_hosting.py::test_what_is_wanted_again_is_opened_anew_after_its_"
        "old_files_have_gone",
    ),
    Mutation(
        name="a crash while a replica is given up keeps its epoch",
        file="partitions/storage/journal/replay.py",
        old="left_in=known.newest_epoch",
        new="left_in=Epoch(-1)",
        killed_by="tests/partitions/storage/journal/test_redo_of_partitions.py"
        "::test_the_epoch_of_a_partition_that_was_given_up_is_that_of_its_newest_record",
    ),
    Mutation(
        name="nothing is forgotten while an older row may still be written",
        file="broker/metadata/hosted_files.py",
        old="        await self._services.checkpoints.wait_saved()\n",
        new="",
        killed_by="tests/broker/test_hosting.py::test_a_checkpoint_does_not_bring_back_what_was_given_"
        "up",
    ),
    Mutation(
        name="a voter of a wish that is still to be heard of is not given up",
        file="partitions/replication/reassigning.py",
        old="    return replica.group.config.version >= version\n",
        new="    return False\n",
        killed_by="tests/broker/test_hosting.py::test_a_voter_of_a_wish_that_is_still_to_be_heard_of_"
        "is_not_given_up",
    ),
    Mutation(
        name="no replica is given up for a command older than the current metadata",
        file="broker/metadata/hosting.py",
        old="        if self._is_current:\n"
        "            self._give_up_strangers(topic.metadata, partitions)",
        new="        self._give_up_strangers(topic.metadata, partitions)",
        killed_by="tests/broker/test_hosting.py::test_nothing_is_given_up_before_the_metadata_are_"
        "current",
    ),
    Mutation(
        name="no replica is made by metadata that are not current",
        file="broker/metadata/hosting.py",
        old="            if not self._may_make:",
        new="            if False:",
        killed_by="tests/broker/test_hosting.py::test_nothing_is_made_before_the_metadata_are_"
        "current",
    ),
    Mutation(
        name="a leader sends those who vote as much as there is",
        file="partitions/raft/leader.py",
        old="progress.allow(None if node in group.config.members else more_bytes)",
        new="progress.allow(more_bytes)",
        killed_by="tests/scenarios/test_membership.py::test_a_learner_is_sent_no_more_than_it_is_"
        "allowed",
    ),
)
