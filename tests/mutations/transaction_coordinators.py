"""What carries decisions out: markers, the requests of producers and leaders, and the client."""

from tests.mutations import Mutation

_MARKERS = "tests/broker/transactions/test_markers.py"
_COORDINATING = "tests/broker/transactions/test_coordinating.py"
_CLIENT = "tests/client/test_transactions.py"
_SHARD = "partitions/state_machines/transactions/shard.py"
_OF_SHARD = "tests/partitions/state_machines/transactions/test_waiting.py::"


MUTATIONS = (
    Mutation(
        name="the next transaction waits for the end of the last one, and is not refused",
        file=_SHARD,
        old="isinstance(request, Add) and",
        new="False and",
        killed_by=f"{_OF_SHARD}TestWhoWaits::test_the_next_one_waits_until_all_have_their_marker[False]",
    ),
    Mutation(
        name="who may not begin the next transaction does not end what is known of its id",
        file=_SHARD,
        old="        if decision.becomes is None:\n            return False\n",
        new="",
        killed_by="tests/partitions/state_machines/transactions/test_transactions.py::TestEpochs"
        "::test_who_is_fenced_by_an_end_does_not_keep_it_from_being_over",
    ),
    Mutation(
        name="it does not wait for long",
        file=_SHARD,
        old="Asked(request, token, at.ticks_ms + PATIENCE_MS)",
        new="Asked(request, token, at.ticks_ms + 60_000)",
        killed_by=f"{_OF_SHARD}TestWhoWaits::test_it_does_not_wait_for_long[False]",
    ),
    Mutation(
        name="who waits goes on where a change has failed",
        file=_SHARD,
        old="            self._retry_later(transactional_id, held, at)\n"
        "        self._look_at_waiting(held, effects, at)\n",
        new="            self._retry_later(transactional_id, held, at)\n",
        killed_by=f"{_OF_SHARD}TestWhoWaits"
        "::test_a_change_that_fails_lets_go_on_who_waits_for_it[False]",
    ),
    Mutation(
        name="a coordinator that resigns sends on who waits",
        file=_SHARD,
        old="            for asked in held.waiting:\n",
        new="            for asked in ():\n",
        killed_by=f"{_OF_SHARD}TestWhoWaits::test_who_waits_is_sent_to_the_next_coordinator[False]",
    ),
    Mutation(
        name="where a leader adds the partition, the record of that is waited for",
        file="broker/replicas/verifying.py",
        old="None if who.adds or self._has_resigned else",
        new="None if self._has_resigned else",
        killed_by="tests/broker/transactions/test_own_transactions.py"
        "::test_where_the_leader_adds_the_partition_its_record_is_waited_for",
    ),
    Mutation(
        name="a coordinator writes in the epoch that it was made in",
        file="broker/coordinating/own_log.py",
        old="self._replica.is_serving and self._replica.epoch == self._epoch",
        new="self._replica.is_serving",
        killed_by="tests/broker/test_own_log.py"
        "::test_a_coordinator_of_an_earlier_leadership_writes_nothing",
    ),
    Mutation(
        name="a coordinator writes no batch that cannot be sent to followers",
        file="broker/coordinating/own_log.py",
        old="            if len(batch) > self._batch_bytes_max:\n",
        new="            if False:\n",
        killed_by="tests/broker/test_own_log.py"
        "::test_a_batch_that_no_follower_could_be_sent_is_not_written",
    ),
    Mutation(
        name="what cannot be encoded is reported as any write",
        file="broker/coordinating/own_log.py",
        old="    except MalformedMessage as error:\n        logger",
        new="    except KeyError as error:\n        logger",
        killed_by="tests/broker/test_own_log.py"
        "::test_what_has_no_bytes_fails_in_its_turn_and_the_rest_is_written",
    ),
    Mutation(
        name="a marker waits until the groups in its partition are read back",
        file="broker/handlers/write_txn_markers.py",
        old="        coordinator.check_serves(replica.partition)\n",
        new="        pass\n",
        killed_by="tests/broker/test_coordinator.py"
        "::test_no_marker_is_written_among_groups_that_are_still_being_read",
    ),
    Mutation(
        name="a marker that was refused is sent again",
        file="broker/transactions/marker_sender.py",
        old="            else:\n                self._retry_later(owed)\n",
        new="            else:\n                self._done(owed)\n",
        killed_by=f"{_MARKERS}::test_what_is_refused_is_asked_of_whoever_leads_then",
    ),
    Mutation(
        name="a marker waits for a leader",
        file="broker/transactions/marker_sender.py",
        old="is None:\n            self._retry_later(owed)\n",
        new="is None:\n            self._done(owed)\n",
        killed_by=f"{_MARKERS}::test_it_is_tried_for_ever_and_ever_less_often",
    ),
    Mutation(
        name="who coordinates no more sends no markers",
        file="broker/transactions/marker_sender.py",
        old="        if not owed.owner.is_current:\n",
        new="        if not owed.markers:\n",
        killed_by=f"{_MARKERS}::test_who_coordinates_no_more_sends_no_more",
    ),
    Mutation(
        name="a topic that was not heard of yet is not given up",
        file="broker/transactions/whereabouts.py",
        old="        return now >= self._missing[missing]\n",
        new="        return True\n",
        killed_by=f"{_MARKERS}::test_a_topic_that_is_unknown_may_be_one_that_was_not_heard_of_yet",
    ),
    Mutation(
        name="a partition of a topic that was made anew with fewer is given up",
        file="broker/transactions/whereabouts.py",
        old="        if topic is not None and partition.partition < topic.partition_count:\n",
        new="        if topic is not None:\n",
        killed_by=f"{_MARKERS}"
        "::test_a_partition_that_its_topic_does_not_have_was_of_an_earlier_one",
    ),
    Mutation(
        name="all partitions are added or none",
        file="broker/handlers/add_partitions_to_txn.py",
        old="    if refused or not partitions:\n",
        new="    if not partitions:\n",
        killed_by=f"{_COORDINATING}::TestPartitions::test_all_of_them_or_none",
    ),
    Mutation(
        name="a leader is told what is not in the transaction",
        file="broker/handlers/add_partitions_to_txn.py",
        old="            return not_in if partition in missing else answer.error\n",
        new="            return answer.error\n",
        killed_by=f"{_COORDINATING}"
        "::TestPartitions::test_leaders_ask_about_several_transactions_at_once",
    ),
    Mutation(
        name="an end raises the epoch of who knows of it",
        file="broker/handlers/end_txn.py",
        old="        bumps_epoch = version >= _BUMPS_SINCE\n",
        new="        bumps_epoch = False\n",
        killed_by=f"{_COORDINATING}"
        "::TestEpochs::test_an_end_answers_with_the_next_epoch_to_who_knows_of_it",
    ),
    Mutation(
        name="groups hear of markers",
        file="broker/handlers/write_txn_markers.py",
        old="    if error is None:\n        coordinator.transaction_over(",
        new="    if error is not None:\n        coordinator.transaction_over(",
        killed_by=f"{_CLIENT}::test_offsets_are_committed_with_it",
    ),
    Mutation(
        name="unstable offsets are not told to who wants stable ones",
        file="broker/handlers/offset_fetch.py",
        old="        if requires_stable and node",
        new="        if not requires_stable and node",
        killed_by=f"{_CLIENT}::test_offsets_are_committed_with_it",
    ),
    Mutation(
        name="a transaction of which a record was not stored is not committed",
        file="client/producer.py",
        old="        if transaction.failure is not None:\n            raise",
        new="        if transaction.failure is self:\n            raise",
        killed_by=f"{_CLIENT}::test_a_record_that_cannot_be_stored_aborts_the_rest",
    ),
    Mutation(
        name="an end behind a beginning that waits is of what begins",
        file="partitions/state_machines/transactions/shard.py",
        old="            has_to_wait = _begins_first(held.waiting, request)\n",
        new="            has_to_wait = False\n",
        killed_by="tests/partitions/state_machines/transactions/test_waiting.py::"
        "TestWhoWaits::test_an_end_behind_a_beginning_is_of_what_begins",
    ),
)
