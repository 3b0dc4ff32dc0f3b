"""Rules of groups of the consumer protocol: nobody reads what another one reads."""

from tests.mutations import Mutation

_CONSUMER = "partitions/state_machines/groups/consumer"
_RULES = f"tests/{_CONSUMER}/test_consumer_groups.py"
_DURABLE = f"tests/{_CONSUMER}/test_durable_answers.py"
_KINDS = f"tests/{_CONSUMER}/test_kinds_of_groups.py"
_STATIC = f"tests/{_CONSUMER}/test_static_members.py"
_ASSIGNORS = f"tests/{_CONSUMER}/test_assignors.py"
_GROUPS = "tests/partitions/state_machines/groups"
_UP = f"{_GROUPS}/test_migration_up.py"
_DOWN = f"{_GROUPS}/test_migration_down.py"
_LOG = f"{_GROUPS}/test_migration_log.py"
_CLASSIC = f"{_GROUPS}/test_classic_members.py"
_PATTERN = f"tests/{_CONSUMER}/test_pattern.py"

MUTATIONS = (
    Mutation(
        name="what a member has not let go of is given to nobody",
        file=f"{_CONSUMER}/member.py",
        old="return self.assigned | self.revoking if self.revoking else self.assigned",
        new="return self.assigned",
        killed_by=f"{_RULES}::test_a_partition_is_given_only_once_its_reader_has_let_go_of_it",
    ),
    Mutation(
        name="a member is given only what nobody else holds",
        file=f"{_CONSUMER}/reconciliation.py",
        old="for partition in target - kept if is_free(partition)}",
        new="for partition in target - kept}",
        killed_by=f"{_RULES}::test_a_partition_is_given_only_once_its_reader_has_let_go_of_it",
    ),
    Mutation(
        name="a member gives up first, and is given others then",
        file=f"{_CONSUMER}/reconciliation.py",
        old="    if to_revoke and _owns_any(owned, to_revoke):",
        new="    if False:",
        killed_by=f"{_RULES}::test_a_partition_is_given_only_once_its_reader_has_let_go_of_it",
    ),
    Mutation(
        name="a member has let go only once it says so",
        file=f"{_CONSUMER}/reconciliation.py",
        old="    if member.state is MemberState.REVOKING and _owns_any(owned, member.revoking):",
        new="    if False:",
        killed_by=f"{_RULES}::test_who_does_not_say_what_it_owns_has_not_let_go",
    ),
    Mutation(
        name="an older epoch is good for what a member has held since it, all of it",
        file=f"{_CONSUMER}/member.py",
        old="return all(self.held_since(each) <= since for each in partitions)",
        new="return True",
        killed_by=f"{_KINDS}::test_an_older_epoch_will_do_for_what_a_member_has_held_since",
    ),
    Mutation(
        name="what a member is given it has held since the epoch in which it is",
        file=f"{_CONSUMER}/reconciliation.py",
        old="since = dict.fromkeys(assigned, epoch)",
        new="since = dict.fromkeys(assigned, member.epoch)",
        killed_by=f"{_KINDS}::test_an_older_epoch_will_do_for_what_a_member_has_held_since",
    ),
    Mutation(
        name="of what the log does not say nothing is known from before the present epoch",
        file=f"{_CONSUMER}/member.py",
        old="return self.since.get(partition, self.epoch)",
        new="return self.since.get(partition, 0)",
        killed_by=f"{_KINDS}::test_a_log_of_a_former_release_says_nothing_of_epochs_before",
    ),
    Mutation(
        name="what is to be given up is in the log with its epochs",
        file=f"{_CONSUMER}/restoring.py",
        old="[*has.assigned_partitions, *has.partitions_pending_revocation]",
        new="has.assigned_partitions",
        killed_by=f"{_KINDS}::test_the_log_says_since_when_a_member_has_had_what_it_is_to_give_up",
    ),
    Mutation(
        name="who joins as another instance is the former no more",
        file=f"{_CONSUMER}/group.py",
        old="before.instance_id not in (None, member.instance_id)",
        new="False",
        killed_by=f"{_STATIC}"
        "::test_a_member_that_joins_as_another_instance_leaves_the_former_to_others",
    ),
    Mutation(
        name="a static member of the classic protocol stays the instance that it does not say",
        file=f"{_CONSUMER}/classic_members.py",
        old="member.instance_id if request.instance_id is None else request.instance_id",
        new="request.instance_id",
        killed_by=f"{_CLASSIC}::test_a_static_member_that_does_not_say_its_instance_stays_that_one",
    ),
    Mutation(
        name="who waits for a group's next write hears that the group is being deleted",
        file="partitions/state_machines/groups/deletion.py",
        old="turn.effects.replies += group.recording.end_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)",
        new="pass",
        killed_by=f"{_KINDS}::test_nobody_waits_for_a_group_that_is_being_deleted",
    ),
    Mutation(
        name="nobody waits for the next write of a group that is being deleted",
        file=f"{_CONSUMER}/writing.py",
        old="    if group.is_dead:\n        turn.reply",
        new="    if False:\n        turn.reply",
        killed_by=f"{_KINDS}::test_nobody_waits_for_a_group_that_is_being_deleted",
    ),
    Mutation(
        name="a group that is deleted takes along what is left of its former kind",
        file="partitions/state_machines/groups/kinds.py",
        old="[*commits, *former, group_tombstone(group.id)]",
        new="[*commits, group_tombstone(group.id)]",
        killed_by=f"{_KINDS}::test_a_group_that_was_deleted_has_left_nothing_of_another_kind",
    ),
    Mutation(
        name="a static member that is back has held nothing since before",
        file=f"{_CONSUMER}/reconciliation.py",
        old="    if member.epoch > JOINING_EPOCH:\n        since",
        new="    if True:\n        since",
        killed_by=f"{_KINDS}::test_a_static_member_that_is_back_has_held_nothing_since_before",
    ),
    Mutation(
        name="the time to let go begins when a member is told",
        file=f"{_CONSUMER}/writing.py",
        old="    _begin_revocations(group, records, turn)\n",
        new="",
        killed_by=f"{_RULES}::test_the_time_to_let_go_begins_when_a_member_is_told",
    ),
    Mutation(
        name="who does not say what it owns may own all it had",
        file=f"{_CONSUMER}/reconciliation.py",
        old="return owned is None or not owned.isdisjoint(partitions)",
        new="return owned is not None and not owned.isdisjoint(partitions)",
        killed_by=f"{_RULES}::test_who_does_not_say_what_it_owns_has_not_let_go",
    ),
    Mutation(
        name="another epoch than the member's own is fenced",
        file=f"{_CONSUMER}/heartbeat.py",
        old="    if request.epoch != member.epoch and not has_missed_it:",
        new="    if False:",
        killed_by=f"{_RULES}::test_another_epoch_than_the_members_own_is_fenced",
    ),
    Mutation(
        name="a member that has something else than its part is told it again",
        file=f"{_CONSUMER}/heartbeat.py",
        old=" or is_elsewhere\n",
        new="\n",
        killed_by=f"{_RULES}::test_who_missed_what_it_was_told_is_told_again",
    ),
    Mutation(
        name="with the epoch before its own a member may own no more than it was given",
        file=f"{_CONSUMER}/heartbeat.py",
        old="        and request.owned <= member.assigned",
        new="",
        killed_by=f"{_RULES}::test_another_epoch_than_the_members_own_is_fenced",
    ),
    Mutation(
        name="an instance that has not left is not given away",
        file=f"{_CONSUMER}/heartbeat.py",
        old="            if not group.members[current].has_given_up_its_name:",
        new="            if False:",
        killed_by=f"{_STATIC}::test_an_instance_that_has_not_left_is_not_released",
    ),
    Mutation(
        name="an answer waits for the write that it rests on",
        file=f"{_CONSUMER}/writing.py",
        old="    if not recording.answer(Reply(token, said), rests_on",
        new="    if True or not recording.answer(Reply(token, said), rests_on",
        killed_by=f"{_DURABLE}::test_an_answer_leaves_once_what_it_says_is_durable",
    ),
    Mutation(
        name="an answer without a change waits for the write that is under way",
        file=f"{_CONSUMER}/recording.py",
        old="        elif self.is_under_way:\n",
        new="        elif False:\n",
        killed_by=f"{_DURABLE}::test_an_answer_that_says_nothing_new_waits_for_what_was_said_before",
    ),
    Mutation(
        name="a group has one write on its way",
        file=f"{_CONSUMER}/writing.py",
        old="if not recording.is_touched or recording.is_under_way or group.is_dead:",
        new="if not recording.is_touched or group.is_dead:",
        killed_by=f"{_DURABLE}::test_an_answer_leaves_once_what_it_says_is_durable",
    ),
    Mutation(
        name="what could not be written is written again",
        file=f"{_CONSUMER}/recording.py",
        old="        self.forget(key for key, _ in records)\n",
        new="",
        killed_by=f"{_DURABLE}::test_a_write_that_failed_is_made_good_by_the_next",
    ),
    Mutation(
        name="what the write under way takes out of the log is in it until then",
        file=f"{_CONSUMER}/recording.py",
        old=", *self._leaving}",
        new="}",
        killed_by=f"{_LOG}::test_a_member_whose_leaving_could_not_be_written_does_not_come_back",
    ),
    Mutation(
        name="a restored member that has to let go keeps its deadline",
        file=f"{_CONSUMER}/restoring.py",
        old="            if member.state is MemberState.REVOKING:",
        new="            if False:",
        killed_by=f"{_DURABLE}::test_a_restart_in_the_middle_keeps_a_partition_held",
    ),
    Mutation(
        name="a commit is made in the member's own epoch",
        file=f"{_CONSUMER}/member.py",
        old="        if said == self.epoch:",
        new="        if True:",
        killed_by=f"{_KINDS}::test_a_commit_needs_the_members_epoch",
    ),
    Mutation(
        name="of two kinds under one name the log's last word counts",
        file="partitions/state_machines/groups/conversion.py",
        old="forget([GroupMetadataKey(group=group.id), *group.leftovers])",
        new="forget(group.leftovers)",
        killed_by=f"{_KINDS}::test_of_a_group_that_became_another_kind_nothing_is_left_in_the_log",
    ),
    Mutation(
        name="no epoch comes up twice when a group becomes one of the other kind",
        file="partitions/state_machines/groups/conversion.py",
        old="wall_ms=turn.at.wall_ms, epoch=group.generation)",
        new="wall_ms=turn.at.wall_ms)",
        killed_by=f"{_KINDS}"
        "::test_an_empty_group_becomes_one_of_the_other_kind_and_keeps_its_commits",
    ),
    Mutation(
        name="what a classic member was assigned is held for it in the new group",
        file="partitions/state_machines/groups/migration.py",
        old="assigned=frozenset(each for each in assigned if each not in converted.holders),",
        new="assigned=frozenset(),",
        killed_by=f"{_UP}::test_a_classic_group_goes_on_in_a_group_of_the_consumer_protocol[range]",
    ),
    Mutation(
        name="what a cooperative member is letting go of is held for it in the new group",
        file="partitions/state_machines/groups/migration.py",
        old="    if revoking:\n",
        new="    if False:\n",
        killed_by=f"{_UP}"
        "::test_what_a_cooperative_member_is_letting_go_of_is_held_until_it_joins_again",
    ),
    Mutation(
        name="a classic member that was taken out and still claims partitions hears so",
        file=f"{_CONSUMER}/classic_members.py",
        old="        if owned:\n",
        new="        if False:\n",
        killed_by=f"{_CLASSIC}::test_one_that_was_taken_out_and_does_not_know_hears_so",
    ),
    Mutation(
        name="what a group left in the log when it became a classic one is taken out again",
        file="partitions/state_machines/groups/migration.py",
        old="GroupMetadataKey(group=group.id), *group.leftovers])",
        new="GroupMetadataKey(group=group.id)])",
        killed_by=f"{_LOG}::test_members_of_a_group_whose_tombstones_were_lost_do_not_come_back",
    ),
    Mutation(
        name="a coordinator that takes over knows what a group that is a classic one left",
        file="partitions/state_machines/groups/replay.py",
        old="            group.leftovers = frozenset(self._leftovers.get(group.id, ()))\n",
        new="            pass\n",
        killed_by=f"{_LOG}::test_members_of_a_group_whose_tombstones_were_lost_do_not_come_back",
    ),
    Mutation(
        name="a classic member that is asked to join again does so in time",
        file=f"{_CONSUMER}/classic_members.py",
        old="    group.expect_round(member.id, ticks_ms + member.rebalance_timeout_ms)\n",
        new="",
        killed_by=f"{_CLASSIC}::test_one_that_does_not_join_again_in_time_is_taken_out",
    ),
    Mutation(
        name="a group becomes a classic one once all its members have its epoch",
        file="partitions/state_machines/groups/migration.py",
        old="        and group.state is ConsumerGroupState.STABLE\n",
        new="",
        killed_by=f"{_DOWN}::test_the_group_is_a_classic_one_again"
        "_when_the_last_of_the_other_protocol_has_left[cooperative-sticky]",
    ),
    Mutation(
        name="a group that somebody has joined meanwhile does not become a classic one",
        file="partitions/state_machines/groups/migration.py",
        old="    if error is not ErrorCode.NONE or recording.is_touched:\n",
        new="    if error is not ErrorCode.NONE:\n",
        killed_by=f"{_DOWN}"
        "::test_who_comes_while_the_group_is_written_as_a_classic_one_keeps_it_as_it_is",
    ),
    Mutation(
        name="a classic member in the log is one of the classic protocol for the next coordinator",
        file=f"{_CONSUMER}/restoring.py",
        old="        classic=_classic(said.classic_member_metadata),\n",
        new="",
        killed_by=f"{_LOG}::test_a_coordinator_that_takes_over_goes_on_with_members_of_both[range]",
    ),
    Mutation(
        name="a partition is kept by one member at most",
        file=f"{_CONSUMER}/balancing.py",
        old="            before -= self._taken\n",
        new="            pass\n",
        killed_by=f"{_ASSIGNORS}::test_what_two_had_before_one_has_then",
    ),
    Mutation(
        name="who gave and had not most gets from who has",
        file=f"{_CONSUMER}/balancing.py",
        old="        self._level(start)\n",
        new="",
        killed_by=f"{_ASSIGNORS}::test_uniform_evens_out_who_has_most_by_who_has_what_others_can_read",
    ),
    Mutation(
        name="what was taken is not held by who had it",
        file=f"{_CONSUMER}/balancing.py",
        old="            if not holders[member]:\n                del holders[member]\n",
        new="",
        killed_by=f"{_ASSIGNORS}::test_uniform_stops_where_nobody_has_what_others_can_read",
    ),
    Mutation(
        name="loads are evened out along chains",
        file=f"{_CONSUMER}/assignors.py",
        old="    balance.even_out()\n",
        new="",
        killed_by=_ASSIGNORS,
    ),
    Mutation(
        name="a pattern's cost is bounded",
        file=f"{_CONSUMER}/pattern_program.py",
        old="        if len(self.steps) >= STEPS_MAX:",
        new="        if len(self.steps) >= 100 * STEPS_MAX:",
        killed_by=_PATTERN,
    ),
)
