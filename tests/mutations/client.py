"""What keeps the Python client from losing records, and from having them twice."""

from tests.mutations import Mutation

_TESTS = "tests/client"
_GROUP = f"{_TESTS}/test_group.py"
_HEARTBEATS = f"{_TESTS}/test_group_coordinator.py"
_CALLBACKS = f"{_TESTS}/test_group_callbacks.py"
_BLOCKING = f"{_TESTS}/test_blocking_consumer.py"
_HANDING_OUT = f"{_TESTS}/test_handing_out.py"
_REVOKING = f"{_TESTS}/test_revoking.py"
_FAILOVER = f"{_TESTS}/test_failover.py"
_NETWORK = f"{_TESTS}/test_network.py"
_TRANSACTIONS = f"{_TESTS}/test_transactions.py"
_DAMAGE = f"{_TESTS}/test_damage.py"
_REQUEST_LIMITS = f"{_TESTS}/test_request_limits.py"
_OFFSETS_IN_THEM = f"{_TESTS}/test_transactional_groups.py"

MUTATIONS = (
    Mutation(
        name="a member that leads its group asks for the topics that others read",
        file="client/group_leader.py",
        old="        if not topics <= self._network.view.topics.keys():\n",
        new="        if False:\n",
        killed_by=f"{_GROUP}::test_a_member_is_given_topics_that_the_leader_does_not_read",
    ),
    Mutation(
        name="a member that leads its group shares out topics that are made later",
        file="client/group_leader.py",
        old="self._count_partitions(self.topics)\n",
        new="self._count_partitions(self._counts.keys())\n",
        killed_by=f"{_TESTS}/test_group_leader.py"
        "::test_a_topic_that_is_made_or_grows_is_to_be_shared_out_anew",
    ),
    Mutation(
        name="a partition counts as read by a member once it is",
        file="client/group.py",
        old="        await self._listener.assigned(added)\n        self._owned = partitions\n",
        new="        self._owned = partitions\n        await self._listener.assigned(added)\n",
        killed_by=f"{_GROUP}::test_what_could_not_be_taken_is_given_again",
    ),
    Mutation(
        name="nothing is committed of what a callback has refused",
        file="client/consumer.py",
        old="            self._drop(partitions)\n            raise\n",
        new="            raise\n",
        killed_by=f"{_CALLBACKS}::test_what_on_assigned_raises_reaches_the_caller_as_it_is",
    ),
    Mutation(
        name="what a callback raises is no trouble of the network's",
        file="client/group.py",
        old="                if self._listener.is_callers(error):\n                    raise\n",
        new="",
        killed_by=f"{_CALLBACKS}::test_what_on_revoked_raises_reaches_the_caller_as_it_is",
    ),
    Mutation(
        name="a consumer that a callback has ended is read by nobody",
        file="client/consumer.py",
        old="""            # Whoever reads in another task would wait for ever.
            self._readings.buffer.changed.set()
""",
        new="",
        killed_by=f"{_CALLBACKS}::test_what_a_callback_raises_reaches_who_reads_from_a_thread",
    ),
    Mutation(
        name="a record is the bytes of a view, whatever its elements are",
        file="client/record_arguments.py",
        old="        return bytes(given)\n",
        new="        return given\n",
        killed_by=f"{_TESTS}/test_record_arguments.py"
        "::test_a_view_is_taken_by_its_bytes_whatever_its_elements_are",
    ),
    Mutation(
        name="what an abort has given up is not sent",
        file="client/sender.py",
        old="if each[1].outcome is None}",
        new="if True}",
        killed_by=f"{_TESTS}/test_transactions.py"
        "::test_an_abort_before_the_first_record_is_sent_harms_nothing",
    ),
    Mutation(
        name="a buffer whose content is of no use any more has room",
        file="client/readings.py",
        old="        if self.buffer.buffered_bytes < before:\n",
        new="        if taken is not None:\n",
        killed_by=f"{_TESTS}/test_consumer.py::test_a_seek_with_a_full_buffer_makes_room",
    ),
    Mutation(
        name="a coordinator that moves ends no generation",
        file="client/group_coordinator.py",
        old="if not _has_moved(error) or trio.current_time() + pause > session_end:",
        new="if True:",
        killed_by=f"{_TESTS}/test_group_failover.py"
        "::test_members_keep_what_they_read_when_the_coordinator_moves",
    ),
    Mutation(
        name="a coordinator that has moved is looked up",
        file="client/group_coordinator.py",
        old="            self.forget()\n            await trio",
        new="            await trio",
        killed_by=f"{_HEARTBEATS}"
        "::test_a_coordinator_that_has_moved_is_found_and_told_of_the_same_generation",
    ),
    Mutation(
        name="a generation that has ended is not held on to",
        file="client/group_coordinator.py",
        old="if not _has_moved(error) or trio",
        new="if trio",
        killed_by=f"{_HEARTBEATS}::test_what_ends_a_generation_is_raised_at_once",
    ),
    Mutation(
        name="a member that nobody hears does not outlive its session",
        file="client/group_coordinator.py",
        old="if not _has_moved(error) or trio.current_time() + pause > session_end:",
        new="if not _has_moved(error):",
        killed_by=f"{_HEARTBEATS}::test_nobody_is_told_for_longer_than_a_session_lasts",
    ),
    Mutation(
        name="a commit is of the generation that it was asked for in",
        file="client/committing.py",
        old="            await commit(connection, self._group, commits, membership)\n",
        new="            await commit(connection, self._group, commits, self._membership)\n",
        killed_by=f"{_TESTS}/test_committing.py"
        "::test_a_retry_commits_nothing_in_the_name_of_the_next_generation",
    ),
    Mutation(
        name="a commit becomes the next generation's only where its partitions were kept",
        file="client/committing.py",
        old="if not (is_kept() and self._goes_on_as(",
        new="if not (self._goes_on_as(",
        killed_by=f"{_TESTS}/test_committing.py"
        "::test_a_retry_commits_nothing_in_the_name_of_the_next_generation",
    ),
    Mutation(
        name="a commit becomes no other member's",
        file="client/committing.py",
        old="return now.member_id == then.member_id and ",
        new="return ",
        killed_by=f"{_TESTS}/test_committing.py"
        "::test_who_has_lost_its_place_commits_nothing_as_the_member_it_is_now",
    ),
    Mutation(
        name="a refresh that fails has failed for all whom it covers",
        file="client/network.py",
        old="            if self._failure is not None:\n                raise self._failure\n",
        new="                if self._failure is not None:\n"
        "                    raise self._failure\n",
        killed_by=f"{_NETWORK}::test_who_is_covered_by_a_refresh_that_fails_hears_so",
    ),
    Mutation(
        name="a refresh that is cancelled covers nobody",
        file="client/network.py",
        old="            if self._refreshed <= asked_at:",
        new="            if self._refreshes <= asked_at:",
        killed_by=f"{_NETWORK}::test_a_refresh_that_is_cancelled_has_covered_nobody",
    ),
    Mutation(
        name="nothing is taken into a transaction that is being committed",
        file="client/producer.py",
        old="        self._is_shut = True\n        await self.flush()\n",
        new="        await self.flush()\n",
        killed_by=f"{_TRANSACTIONS}::test_what_is_sent_while_it_is_committed_is_refused",
    ),
    Mutation(
        name="no offsets are taken into a transaction that is being committed",
        file="client/producer.py",
        old="        if self._transaction is None or self._is_shut:\n",
        new="        if self._transaction is None:\n",
        killed_by=f"{_TRANSACTIONS}::test_a_transaction_that_is_prepared_takes_nothing_more",
    ),
    Mutation(
        name="a transaction is open until its end is answered",
        file="client/producer.py",
        old="                self._go_on(await calls.end(commit=True))\n",
        new="                self._transaction = None\n"
        "                self._go_on(await calls.end(commit=True))\n",
        killed_by=f"{_TRANSACTIONS}::test_none_begins_until_the_one_before_has_ended",
    ),
    Mutation(
        name="a coordinator that hangs costs a part of the session",
        file="client/group_coordinator.py",
        old="_SHARE: Final = 1 / 5\n",
        new="_SHARE: Final = 5\n",
        killed_by=f"{_HEARTBEATS}::test_a_coordinator_that_hangs_costs_a_part_of_the_session",
    ),
    Mutation(
        name="a broker that hangs is not asked again on the same connection",
        file="client/connection.py",
        old='        self.close(f"no answer within {seconds:g} s")\n        raise self.lost()\n',
        new='        raise ConnectionError(f"no answer within {seconds:g} s")\n',
        killed_by=f"{_HEARTBEATS}::test_a_coordinator_that_hangs_costs_a_part_of_the_session",
    ),
    Mutation(
        name="nothing is handed out while on_assigned runs",
        file="client/consumer.py",
        old="until_end=self._settings.until_end, is_held=True)",
        new="until_end=self._settings.until_end)",
        killed_by=f"{_CALLBACKS}::test_nothing_is_handed_out_while_on_assigned_runs",
    ),
    Mutation(
        name="a loop that was left is gone on with",
        file="client/blocking/consumer.py",
        old="            yield from self._rest\n",
        new="            yield from tuple(self._rest)\n",
        killed_by=f"{_BLOCKING}::test_a_loop_that_was_left_is_gone_on_with",
    ),
    Mutation(
        name="a loop's commits do not run ahead of it",
        file="client/blocking/consumer.py",
        old='        """As `Consumer.commit`."""\n        self.take_back()\n',
        new="",
        killed_by=f"{_BLOCKING}::test_only_what_a_loop_has_handed_out_is_committed",
    ),
    Mutation(
        name="what a loop was not given is not committed at the end",
        file="client/blocking/client.py",
        old="                blocking.take_back()\n",
        new="                pass\n",
        killed_by=f"{_BLOCKING}::"
        "test_what_a_loop_has_not_handed_out_is_read_by_the_next_of_the_group",
    ),
    Mutation(
        name="automatic commits do not set back what was committed by name",
        file="client/consumer.py",
        old="            self._finish_to(topic_partition, as_commit(committed).offset)\n",
        new="            pass\n",
        killed_by=f"{_HANDING_OUT}::test_what_was_committed_by_name_stays_so_when_the_block_fails",
    ),
    Mutation(
        name="what was not handed out comes once though batches were asked for",
        file="client/handing_out.py",
        old="            self._records, self._taken, self._in_hand = [], 0, done\n",
        new="            self._in_hand = done\n",
        killed_by=f"{_HANDING_OUT}::"
        "test_what_was_not_handed_out_comes_once_though_asking_for_batches_was_cancelled",
    ),
    Mutation(
        name="nothing is handed out of what is being revoked",
        file="client/consumer.py",
        old="            self._hold(topic_partition)\n",
        new="            pass\n",
        killed_by=f"{_REVOKING}::test_nothing_is_handed_out_of_what_is_being_revoked",
    ),
    Mutation(
        name="a rebalance is not the end",
        file="client/consumer.py",
        old="        self._is_assigned = False  # until",
        new="        # until",
        killed_by=f"{_REVOKING}::test_a_rebalance_is_not_the_end",
    ),
    Mutation(
        name="an answer that comes when all of it was read elsewhere is dropped",
        file="client/fetcher.py",
        old="is_next = (reading.session, reading.fetch_offset) == (session, offset)\n",
        new="is_next = reading.session == session\n",
        killed_by=f"{_FAILOVER}"
        "::test_an_answer_that_comes_when_all_of_it_was_read_elsewhere_is_dropped",
    ),
    Mutation(
        name="nothing behind a damaged batch is handed out unasked",
        file="client/handing_out.py",
        old="                reading.jump(reading.position if whole is None else "
        "whole.next_offset)\n",
        new="",
        killed_by=f"{_FAILOVER}::test_a_damaged_batch_is_an_error_until_it_is_passed_over",
    ),
    Mutation(
        name="what has failed is tried again when it is asked for again",
        file="client/fetch_buffer.py",
        old="            reading.is_failed = False\n",
        new="",
        killed_by=f"{_HANDING_OUT}::test_an_error_comes_again_until_something_is_done_about_it",
    ),
    Mutation(
        name="an error of where one is not any more is not raised",
        file="client/fetch_buffer.py",
        old="            if session != reading.session:\n",
        new="            if False:\n",
        killed_by=f"{_HANDING_OUT}::test_an_error_of_where_one_is_not_any_more_is_not_raised",
    ),
    Mutation(
        name="who has left its group for good says so to all who ask",
        file="client/handing_out.py",
        old="                    raise self._gave_up.with_traceback(None)\n",
        new="""                    error, self._gave_up = self._gave_up, None
                    raise error
""",
        killed_by=f"{_GROUP}::test_a_second_holder_of_an_instance_id_fences_the_first",
    ),
    Mutation(
        name="a commit that is tried again does not set a later one back",
        file="client/committing.py",
        old="        async with self._committing:\n            for pause in",
        new="        if True:\n            for pause in",
        killed_by=f"{_TESTS}/test_committing.py"
        "::test_a_commit_that_is_tried_again_does_not_set_a_later_one_back",
    ),
    Mutation(
        name="a closed producer learns of no topic",
        file="client/taking_in.py",
        old="        self._require_open()  # still\n",
        new="",
        killed_by=f"{_TESTS}/test_closed.py"
        "::test_who_waits_for_a_topic_hears_that_the_producer_was_closed",
    ),
    Mutation(
        name="a broker that hangs is left for another where any can be asked",
        file="client/any_broker.py",
        old="math.inf if is_last else _SHARE",
        new="math.inf if True else _SHARE",
        killed_by=f"{_NETWORK}::test_a_broker_that_hangs_is_left_for_another_and_asked_last",
    ),
    Mutation(
        name="a broker that hangs is asked last",
        file="client/any_broker.py",
        old="                self._silent_until.get(address, now) > now,\n",
        new="",
        killed_by=f"{_NETWORK}::test_a_broker_that_hangs_is_left_for_another_and_asked_last",
    ),
    Mutation(
        name="a leader that hangs is waited for no longer than a request",
        file="client/sender.py",
        old="connection.send_now(request, ProduceResponse)\n",
        new="connection.send_now(request, ProduceResponse, patience_seconds=2)\n",
        killed_by=f"{_FAILOVER}::test_a_leader_that_hangs_is_waited_for_no_longer_than_a_request",
    ),
    Mutation(
        name="a transaction commits nothing of what was taken away since",
        file="client/consumer.py",
        old="return self._was or committer.group_membership",
        new="return committer.group_membership",
        killed_by=f"{_OFFSETS_IN_THEM}::test_nothing_is_committed_of_what_was_taken_away",
    ),
    Mutation(
        name="nor of what was lost",
        file="client/consumer.py",
        old="        self._remember_membership()\n        self._drop(",
        new="        self._drop(",
        killed_by=f"{_OFFSETS_IN_THEM}::test_who_has_lost_its_place_commits_nothing",
    ),
    Mutation(
        name="what is handed out after partitions went is of what is left",
        file="client/handing_out.py",
        old="                    self._was = None\n",
        new="",
        killed_by=f"{_OFFSETS_IN_THEM}::test_what_is_handed_out_after_partitions_went_is_committed",
    ),
    Mutation(
        name="what had come before partitions went is handed out as of what is left",
        file="client/consumer.py",
        old="            self._put_back(self._reading)  # else",
        new="            pass  # else",
        killed_by=f"{_OFFSETS_IN_THEM}::test_what_is_handed_out_after_partitions_went_is_committed",
    ),
    Mutation(
        name="who is in no generation is not taken for who is in no group",
        file="client/committing.py",
        old="if self._member is not None and membership.generation < 0:",
        new="if False:",
        killed_by=f"{_OFFSETS_IN_THEM}::test_who_is_no_member_yet_commits_nothing",
    ),
    Mutation(
        name="what lies before a damaged header is given by who reads a range",
        file="client/blocking/reading.py",
        old="            records = records[: error.at]\n",
        new="            records = records[:0]\n",
        killed_by=f"{_DAMAGE}::test_what_lies_before_damage_is_given_and_the_error_says_where",
    ),
    Mutation(
        name="columns are given of what lies before a damaged batch",
        file="client/columns/reading.py",
        old="                stop = at + error.at\n",
        new="                raise\n",
        killed_by=f"{_DAMAGE}::test_what_lies_before_damage_is_given_and_the_error_says_where",
    ),
    Mutation(
        name="what lies before a damaged batch is handed out by a consumer",
        file="client/handing_out.py",
        old="whole = before_corrupt(fetched, error)",
        new="whole = None",
        killed_by=f"{_TESTS}/test_failover.py"
        "::test_what_lies_before_a_damaged_batch_is_handed_out_first",
    ),
    Mutation(
        name="and what lies before a damaged header",
        file="client/fetcher.py",
        old="            records = memoryview(records)[: error.at]\n",
        new="            records = memoryview(records)[:0]\n",
        killed_by=f"{_TESTS}/test_failover.py"
        "::test_what_lies_before_a_damaged_batch_is_handed_out_first",
    ),
    Mutation(
        name="what comes back of a lost connection waits for newer metadata",
        file="client/sender.py",
        old="                retry_at = now + max(pause, backoff.max_seconds)\n",
        new="",
        killed_by=f"{_FAILOVER}::test_after_a_lost_connection_the_new_leader_is_asked_for_first",
    ),
    Mutation(
        name="metadata that does not come holds no record up for long",
        file="client/sender.py",
        old="now + max(pause, backoff.max_seconds)",
        new="now + 60",
        killed_by=f"{_FAILOVER}::test_metadata_that_does_not_come_holds_no_record_up_for_long",
    ),
    Mutation(
        name="a queue's hold ends when the metadata have come",
        file="client/routes.py",
        old="                    queue.retry_from(at)\n",
        new="",
        killed_by=f"{_FAILOVER}::test_after_a_lost_connection_the_new_leader_is_asked_for_first",
    ),
    Mutation(
        name="a topic that is deleted keeps no member from its others",
        file="client/group.py",
        old="            if topic not in self._found:\n",
        new="            if True:\n",
        killed_by=f"{_GROUP}::test_a_group_reads_on_when_one_of_its_topics_is_deleted",
    ),
    Mutation(
        name="a partitioner names a partition that there is",
        file="client/routes.py",
        old="isinstance(partition, SupportsIndex) and 0 <= (at := index(partition)) < count",
        new="isinstance(partition, SupportsIndex) and (at := index(partition)) < count",
        killed_by=f"{_TESTS}/test_producer.py"
        "::test_a_partitioner_that_names_no_partition_is_told_so",
    ),
    Mutation(
        name="a broker that may have been sent too much is asked what it takes",
        file="client/sender.py",
        old="            self._limits.lost(self.node_id, size_bytes)\n"
        "            self._all_answered(taken, ErrorCode.NETWORK_EXCEPTION, str(error))\n"
        "            return\n",
        new="            self._all_answered(taken, ErrorCode.NETWORK_EXCEPTION, str(error))\n"
        "            return\n",
        killed_by=f"{_REQUEST_LIMITS}"
        "::test_a_record_that_is_too_large_for_the_broker_fails_at_once",
    ),
    Mutation(
        name="a request has no more batches than the broker takes",
        file="client/sender.py",
        old="min(room_bytes, batch_bytes_max), OVERHEAD_BYTES",
        new="room_bytes, OVERHEAD_BYTES",
        killed_by=f"{_REQUEST_LIMITS}"
        "::test_batches_that_are_too_large_together_go_in_several_requests",
    ),
    Mutation(
        name="records are placed by how many partitions a topic has that was made anew",
        file="client/routes.py",
        old="if described.topic_id == self.topic_id and count < self.count:",
        new="if count < self.count:",
        killed_by=f"{_TESTS}/test_producer.py"
        "::test_a_topic_that_is_made_anew_with_fewer_partitions_is_sent_to",
    ),
    Mutation(
        name="and by all that it has had, where it was not",
        file="client/routes.py",
        old="if described.topic_id == self.topic_id and count < self.count:",
        new="if False:",
        killed_by=f"{_TESTS}/test_routes.py"
        "::test_a_topic_has_fewer_partitions_only_if_it_was_made_anew",
    ),
    Mutation(
        name="what has failed while it was paused is read again when it is resumed",
        file="client/fetch_buffer.py",
        old="            if session != reading.session:\n",
        new="            if session != reading.session or not is_read(reading):\n",
        killed_by=f"{_TESTS}/test_fetch_buffer.py::test_a_failure_of_what_is_paused_is_tried_again",
    ),
    Mutation(
        name="an error is told behind what was fetched before it",
        file="client/fetch_buffer.py",
        old="            if is_wanted and reading.buffered_bytes:\n",
        new="            if False:\n",
        killed_by=f"{_TESTS}/test_fetch_buffer.py"
        "::test_a_failure_is_told_when_all_that_came_before_it_was_taken",
    ),
    Mutation(
        name="an error of what is not read any more waits for nothing",
        file="client/fetch_buffer.py",
        old="            if is_wanted and reading.buffered_bytes:\n",
        new="            if reading.buffered_bytes:\n",
        killed_by=f"{_TESTS}/test_fetch_buffer.py"
        "::test_a_failure_of_what_nobody_reads_does_not_wait_for_what_nobody_takes",
    ),
    Mutation(
        name="a broker that dies when it is asked is left for another",
        file="client/any_broker.py",
        old="                if not is_last:\n                    continue\n",
        new="",
        killed_by="tests/client/test_network.py::"
        "test_a_broker_that_dies_when_it_is_asked_is_left_for_another",
    ),
)
