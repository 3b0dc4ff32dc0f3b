"""What a log keeps where its start moves: the batch around it, and what is known of producers."""

from tests.mutations import Mutation, Room

_rule = Room("partitions/replication").rule


MUTATIONS = (
    _rule(
        "the record that moves the start has what is known of producers",
        "group_log.py",
        old="journal.log_start(self.key, self.log.start_offset, snapshot)",
        new="journal.log_start(self.key, self.log.start_offset)",
        killed_by="test_log_start.py::test_a_lone_broker_knows_its_producers_after_a_crash",
    ),
    _rule(
        "what moves the start is in the log's next sync",
        "group_log.py",
        old="self.log.delete_before(offset, snapshot)",
        new="self.log.delete_before(offset)",
        killed_by="test_log_start.py::test_a_cut_back_to_the_start_does_not_forget_it",
    ),
    _rule(
        "the start moves once what is known of producers is committed",
        "log_start.py",
        old="    return StartMove(to, log.end_offset, producers",
        new="    return StartMove(to, to, producers",
        killed_by="test_log_start.py::"
        "test_the_start_moves_once_what_is_known_of_producers_is_committed",
    ),
    _rule(
        "a plan to move the start is made anew when the end was cut",
        "trimming.py",
        old="planned(self.log, self._store.producers, epochs, move.to, None)",
        new="move",
        killed_by="test_log_start.py::test_what_was_cut_meanwhile_is_not_remembered_with_the_start",
    ),
    _rule(
        "another batch around the start, in the place of one that was lost, is noticed",
        "producer_state.py",
        old="        if not epochs or epochs[at].epoch ==",
        new="        if header.base_offset < epochs[0].offset or epochs[at].epoch ==",
        killed_by="test_start_within_batch.py::"
        "test_who_wrote_in_the_place_of_the_batch_around_the_start_is_known",
    ),
    _rule(
        "a log that begins within a batch begins with the whole of it for other replicas",
        "trimming.py",
        old="self._group.trim(self._store.first_batch)",
        new="self._group.trim(move.to)",
        killed_by="test_start_within_batch.py::test_an_observer_begins_with_the_whole_batch",
    ),
    _rule(
        "after a new start, too, a log begins with a whole batch for other replicas",
        "opening.py",
        old="        start_offset=first_batch,\n",
        new="        start_offset=log.start_offset,\n",
        killed_by="test_start_within_batch.py::test_after_a_new_start_of_the_leader_too",
    ),
    _rule(
        "the batch that a log's start is within is committed",
        "opening.py",
        old="        committed=committed,\n",
        new="        committed=log.start_offset,\n",
        killed_by="test_start_within_batch.py::test_a_new_start_knows_that_the_batch_is_committed",
    ),
    _rule(
        "the batch that a log's start is within is on the disk before the start is",
        "group_log.py",
        old="        if self.first_batch < offset and not self._syncs:\n",
        new="        if False:\n",
        killed_by="test_start_within_batch.py::test_the_batch_is_on_the_disk_before_the_start_is",
    ),
    _rule(
        "who begins with the whole batch gets what is known of producers",
        "group_log.py",
        old="if start == self.first_batch else",
        new="if start == self.log.start_offset else",
        killed_by="test_start_within_batch.py::"
        "test_who_begins_with_the_whole_batch_knows_the_producers",
    ),
    Mutation(
        name="a log that begins within a gap begins there for other replicas, too",
        file="partitions/storage/log_reading.py",
        old="                if not is_gap(header):\n",
        new="                if True:\n",
        killed_by="tests/partitions/replication/test_start_within_batch.py::"
        "test_a_start_within_a_gap_is_where_replicas_begin",
    ),
    _rule(
        "a reset carries what is known of producers",
        "group_replica.py",
        old="                message = with_snapshot(message, self._store)\n",
        new="                pass\n",
        killed_by="test_log_start.py::"
        "test_a_follower_that_is_reset_knows_the_producers_of_what_it_never_had",
    ),
    _rule(
        "what a snapshot knows already is not taken in again",
        "producer_state.py",
        old="        if header.base_offset >= self.known_end:\n",
        new="        if True:\n",
        killed_by="test_log_start.py::test_batches_that_are_known_already_change_nothing",
    ),
    _rule(
        "what came in the place of what a snapshot knows is taken in",
        "producer_state.py",
        old="        if not epochs or epochs[at].epoch == header.partition_leader_epoch:\n",
        new="        if True:\n",
        killed_by="test_log_start.py::test_who_wrote_in_the_place_of_what_was_lost_is_known",
    ),
)
