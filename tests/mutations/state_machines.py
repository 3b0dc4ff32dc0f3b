"""Rules of the state machines: producers, the cluster's metadata, groups and their offsets."""

from tests.mutations import Mutation

_PRODUCERS = "partitions/state_machines/producer_entry.py"
_CLUSTER = "partitions/state_machines/cluster.py"
_GROUPS = "partitions/state_machines/groups"
_OF_PRODUCERS = "tests/partitions/state_machines/test_producers.py"
_REFUSED = "partitions/state_machines/refused_batches.py"
_OF_REFUSED = "tests/partitions/state_machines/test_refused_batches.py"
_OF_CLUSTER = "tests/partitions/state_machines/test_cluster.py"
_TRAPS = f"tests/{_GROUPS}/test_group_traps.py"
_JOINING_TRAPS = f"tests/{_GROUPS}/test_joining_traps.py"
_DURABILITY = f"tests/{_GROUPS}/test_group_durability.py"
_MEETING = f"tests/{_GROUPS}/test_group_meeting.py"
_OF_WISHES = "tests/partitions/state_machines/test_cluster_wishes.py"

MUTATIONS = (
    Mutation(
        name="who may vote by a wish that was replaced keeps its replica",
        file="partitions/state_machines/cluster_reassignments.py",
        old="        left = before - {*topic.assignments[partition], *replicas}",
        new="        left = before - before",
        killed_by=f"{_OF_WISHES}::test_who_may_vote_by_a_wish_that_was_replaced_keeps_its_replica_"
        "until_the_next_is_true",
    ),
    Mutation(
        name="replicas are given up for the wish that has come true, and no other",
        file="partitions/state_machines/cluster_reassignments.py",
        old="wish != (change.replicas, change.at)",
        new="wish[0] != change.replicas",
        killed_by=f"{_OF_WISHES}::test_a_wish_is_struck_by_its_own_outcome_and_not_by_that_of_an_"
        "equal_one_before",
    ),
    Mutation(
        name="a gap in a producer's sequence is refused",
        file=_PRODUCERS,
        old="""    raise RequestError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"sequence {first} of""",
        new="""    return FRESH
    raise RequestError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"sequence {first} of""",
        killed_by=f"{_OF_PRODUCERS}::test_trap_p8_a_gap_is_out_of_order",
    ),
    Mutation(
        name="five batches a producer are remembered",
        file=_PRODUCERS,
        old="BATCHES_KEPT: Final = 5",
        new="BATCHES_KEPT: Final = 4",
        killed_by=_OF_PRODUCERS,
    ),
    Mutation(
        name="only what is known to be in the log is an old duplicate",
        file=_PRODUCERS,
        old="<= min(producer.appended, APART_MAX)",
        new="<= APART_MAX",
        killed_by=f"{_OF_PRODUCERS}::test_what_was_never_seen_is_a_gap_and_not_a_duplicate",
    ),
    Mutation(
        name="half a circle of sequences back is a gap ahead",
        file=_PRODUCERS,
        old="min(producer.appended, APART_MAX)",
        new="producer.appended",
        killed_by=f"{_OF_PRODUCERS}"
        "::test_after_more_records_than_there_are_sequences_a_gap_is_still_a_gap",
    ),
    Mutation(
        name="who follows what the broker could not take is refused alike",
        file=_REFUSED,
        old="                each.is_before(header)\n",
        new="                False\n",
        killed_by=f"{_OF_REFUSED}::test_who_follows_a_refused_batch_is_refused_alike_until_that_one"
        "_has_come",
    ),
    Mutation(
        name="what was refused is missing only until it comes",
        file=_REFUSED,
        old="table.would_take(SentBatch(producer_id, each.epoch, each.first))",
        new="bool(table)",
        killed_by=f"{_OF_REFUSED}::test_what_others_have_stored_meanwhile_is_not_missing",
    ),
    Mutation(
        name="who has given a refused batch up is told that it is missing",
        file=_REFUSED,
        old="abs(now_ms - self.at_ms) > at_most_ms",
        new="False",
        killed_by=f"{_OF_REFUSED}::test_a_producer_that_has_given_the_refused_batch_up_is_told_that"
        "_it_is_missing",
    ),
    Mutation(
        name="who did not lead remembers whom it has refused",
        file="broker/replicas/replica_writes.py",
        old=" or not records or member is None:",
        new=" or not records or member is None or not member.is_leader:",
        killed_by="tests/testing/test_late_batches.py"
        "::test_what_follows_a_batch_that_came_before_the_lead_did_is_not_out_of_order",
    ),
    Mutation(
        name="what was cut from the log is missed when this broker leads again",
        file="partitions/replication/group_replica.py",
        old="        self._note_cut_batches(ready)\n",
        new="",
        killed_by="tests/testing/test_late_batches.py"
        "::test_what_follows_a_batch_that_went_with_the_lead_is_not_out_of_order",
    ),
    Mutation(
        name="each of a producer's refused batches may be the one that is missing",
        file=_REFUSED,
        old="each.epoch == epoch and each.first != first)",
        new="False)",
        killed_by=f"{_OF_REFUSED}"
        "::test_what_is_refused_between_the_loss_of_the_lead_and_the_cut_hides_nothing",
    ),
    Mutation(
        name="in a transaction no other leadership's refusals count",
        file=_REFUSED,
        old="self.led_in == led_in and ",
        new="",
        killed_by=f"{_OF_REFUSED}"
        "::test_in_a_transaction_the_refusals_of_another_leadership_do_not_count",
    ),
    Mutation(
        name="who comes again without the one before it has given that up",
        file=_REFUSED,
        old="            if each.is_of(header):\n",
        new="            if False:\n",
        killed_by=f"{_OF_REFUSED}"
        "::test_who_comes_again_without_the_one_before_it_is_told_that_it_is_missing",
    ),
    Mutation(
        name="a producer that has gone quiet is forgotten",
        file="broker/metadata/upkeep.py",
        old="            replica.expire_producers(",
        new="            False and replica.expire_producers(",
        killed_by="tests/testing/test_producers.py"
        "::test_who_has_gone_quiet_is_forgotten_and_who_sends_is_not",
    ),
    Mutation(
        name="what was given up and may yet be applied comes before the next decision",
        file="broker/metadata/cluster_log.py",
        old="        while self._is_behind:\n            await self._applied_more.wait()\n",
        new="        pass\n",
        killed_by="tests/broker/test_cluster_log.py"
        "::test_a_command_that_was_given_up_and_applied_later_only_delays_the_next",
    ),
    Mutation(
        name="a snapshot that is sent while the metadata's replica is opened is kept",
        file="broker/metadata/open_metadata.py",
        old="    machine.on_received = partial(keep_received, services.state)\n",
        new="",
        killed_by="tests/broker/test_metadata_versions.py"
        "::test_a_broker_that_was_away_for_long_keeps_the_snapshot_that_it_is_sent_at_once",
    ),
    Mutation(
        name="what the leader took and this version refuses is not passed over",
        file="partitions/state_machines/cluster_machine.py",
        old="        except VersionConflict as error:",
        new="        except RequestError as error:",
        killed_by="tests/partitions/state_machines/test_cluster_machine.py"
        "::test_what_the_leader_took_and_this_version_refuses_is_not_passed_over",
    ),
    Mutation(
        name="a lower producer epoch is fenced",
        file=_PRODUCERS,
        old="    if epoch < producer.epoch:",
        new="if False:",
        killed_by=f"{_OF_PRODUCERS}::test_trap_p8_a_lower_epoch_is_refused",
    ),
    Mutation(
        name="a new producer epoch starts at sequence 0",
        file=_PRODUCERS,
        old="    if header.base_sequence == 0:\n",
        new="    if True:\n",
        killed_by=f"{_OF_PRODUCERS}::test_trap_p8_a_new_epoch_starts_at_sequence_zero",
    ),
    Mutation(
        name="a metadata command applies to the version it was decided at",
        file=_CLUSTER,
        old="if command.at_version != self.version:",
        new="if False:",
        killed_by=f"{_OF_CLUSTER}::test_a_command_decided_at_another_version_is_refused",
    ),
    Mutation(
        name="producer ids are given once",
        file=_CLUSTER,
        old="            self._next_producer_id = first + command.count\n",
        new="            self._next_producer_id = first\n",
        killed_by=f"{_OF_CLUSTER}::test_producer_ids_are_given_once",
    ),
    Mutation(
        name="a commit is answered once it is durable",
        file=f"{_GROUPS}/commits.py",
        old="        turn.persist(records, ReplyWhenStored(token, answer), request.producer)\n",
        new="        turn.reply(token, answer)\n",
        killed_by=f"{_DURABILITY}::test_a_commit_is_answered_and_seen_only_once_it_is_durable",
    ),
    Mutation(
        name="a write that failed changes no commit",
        file=f"{_GROUPS}/shard.py",
        old="        if error is ErrorCode.NONE:\n            self._offsets.apply(",
        new="        if True:\n            self._offsets.apply(",
        killed_by=f"{_DURABILITY}::test_a_commit_that_could_not_be_written_changes_nothing",
    ),
    Mutation(
        name="what is stored after the resignation answers nobody",
        file=f"{_GROUPS}/shard.py",
        old="        self._has_resigned = True\n",
        new="",
        killed_by=f"{_DURABILITY}"
        "::test_a_write_that_completes_after_the_resignation_answers_nobody",
    ),
    Mutation(
        name="whoever waits for a write is answered when the coordinator resigns",
        file=f"{_GROUPS}/shard.py",
        old="            refuse_waiting(unstored.then, turn)\n",
        new="            pass\n",
        killed_by=f"{_DURABILITY}::test_whoever_waits_is_sent_away_when_the_coordinator_resigns",
    ),
    Mutation(
        name="a deletion takes the commits on their way along",
        file=f"{_GROUPS}/offsets.py",
        old="on_their_way = {*self._in_flight.of(group_id), ",
        new="on_their_way = {",
        killed_by=f"{_DURABILITY}::test_a_deletion_takes_the_commit_along_that_was_on_its_way",
    ),
    Mutation(
        name="a stale assignment is not handed out",
        file=f"{_GROUPS}/sync.py",
        old="        return  # A rebalance came in between, and has answered everybody.\n",
        new="        pass\n",
        killed_by=f"{_TRAPS}"
        "::test_trap_g14_a_join_while_the_assignment_is_being_stored_loses_nobody",
    ),
    Mutation(
        name="a generation's assignment is its leader's first",
        file=f"{_GROUPS}/sync.py",
        old="if member.id != group.leader or group.is_storing_assignment:",
        new="if member.id != group.leader:",
        killed_by=f"{_DURABILITY}"
        "::test_a_leader_that_syncs_twice_is_answered_with_its_first_assignment",
    ),
    Mutation(
        name="a commit of another generation is refused",
        file=f"{_GROUPS}/commits.py",
        old="    if request.generation != group.generation:\n",
        new="    if False:\n",
        killed_by=f"{_TRAPS}::test_trap_g7_a_stale_generation_or_a_stranger_may_not_commit",
    ),
    Mutation(
        name="an instance has one member id at a time",
        file=f"{_GROUPS}/identity.py",
        old="        if current != member_id:\n",
        new="        if False:\n",
        killed_by=f"{_JOINING_TRAPS}::test_trap_g4_the_process_before_is_fenced",
    ),
    Mutation(
        name="a rebalance waits for ids that were given out",
        file=f"{_GROUPS}/group.py",
        old="return self.joining_count == len(self.members) and not self.pending",
        new="return self.joining_count == len(self.members)",
        killed_by=f"{_JOINING_TRAPS}::test_trap_g1_a_rebalance_waits_for_an_id_that_was_given_out",
    ),
    Mutation(
        name="a join phase that nobody has joined goes on for a while",
        file=f"{_GROUPS}/rebalance.py",
        old="max(group.rebalance_timeout_ms(), _LONGER_AT_LEAST_MS)",
        new="group.rebalance_timeout_ms()",
        killed_by=f"{_MEETING}::test_a_join_phase_without_anybody_does_not_end_all_the_time",
    ),
    Mutation(
        name="members that never sync are taken out",
        file=f"{_GROUPS}/rebalance.py",
        old="    group.wake_by(group.sync_deadline_ms)\n",
        new="    group.sync_deadline_ms = NEVER\n",
        killed_by=f"{_TRAPS}::test_trap_g14_members_that_never_sync_are_taken_out",
    ),
    Mutation(
        name="a join phase ends",
        file=f"{_GROUPS}/rebalance.py",
        old="    group.join_deadline_ms = deadline_ms\n    group.wake_by(deadline_ms)\n",
        new="    pass\n",
        killed_by=f"{_JOINING_TRAPS}"
        "::test_trap_g10_the_wait_for_more_members_ends_at_the_rebalance_timeout",
    ),
    Mutation(
        name="an initial rebalance waits for more members",
        file=f"{_GROUPS}/rebalance.py",
        old="        and not group.is_initial_rebalance\n",
        new="",
        killed_by=f"{_JOINING_TRAPS}::test_trap_g10_an_empty_group_waits_for_more_members_after_the_first",
    ),
    Mutation(
        name="a leader is one that joined",
        file=f"{_GROUPS}/rebalance.py",
        old="    if group.members[group.leader].is_joining:\n        return True\n",
        new="    return True\n",
        killed_by=f"{_MEETING}"
        "::test_a_static_leader_that_is_missing_leaves_the_lead_to_one_that_joined",
    ),
    Mutation(
        name="a group in use keeps its offsets",
        file=f"{_GROUPS}/retention.py",
        old="        if partition.topic not in in_use\n        and",
        new="        if",
        killed_by=f"{_DURABILITY}"
        "::test_a_stable_group_keeps_what_it_reads_and_loses_what_it_read_once",
    ),
    Mutation(
        name="a partition with a commit on its way does not expire",
        file=f"{_GROUPS}/retention.py",
        old="        and not offsets.is_in_flight(group.id, partition)\n",
        new="",
        killed_by=f"{_DURABILITY}::test_a_commit_on_its_way_keeps_its_partition_from_expiring",
    ),
    Mutation(
        name="only an empty group is deleted",
        file=f"{_GROUPS}/deletion.py",
        old="    elif not is_empty(group):\n",
        new="    elif False:\n",
        killed_by=f"{_TRAPS}::test_trap_g13_only_an_empty_group_is_deleted",
    ),
)
