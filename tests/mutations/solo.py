"""A replica that is alone: what is appended past its core, and when the core has to hear of it."""

from tests.mutations import Room

_rule = Room("partitions/replication").rule


_SYNCED = "test_solo_synced.py::"

MUTATIONS = (
    _rule(
        "who is not alone has to tell the others",
        "solo.py",
        old="            and not group.progress()\n",
        new="",
        killed_by="test_solo.py::test_a_learner_is_sent_what_is_appended",
    ),
    _rule(
        "a group that all brokers are to hear of is not solo",
        "solo.py",
        old="            and not self.is_eager\n            and self.is_accepting\n",
        new="            and self.is_accepting\n",
        killed_by=f"{_SYNCED}test_a_group_that_all_brokers_want_to_hear_of_is_not_solo",
    ),
    _rule(
        "the core hears of what is being synced before the flush mode changes",
        "solo.py",
        old="        self._end_solo()\n        self._store.set_syncs",
        new="        self._solo_epoch = self.commits_in = None\n        self._store.set_syncs",
        killed_by=f"{_SYNCED}test_a_start_that_moves_waits_for_the_core",
    ),
    _rule(
        "what held in one flush mode ends with it",
        "solo.py",
        old="        self._end_solo()\n        self._store.set_syncs",
        new="        self._tell_appended()\n        self._store.set_syncs",
        killed_by="test_solo.py::test_a_change_of_the_flush_mode_ends_it_and_begins_it_anew",
    ),
    _rule(
        "what happens to a group ends what held while nothing did",
        "group_replica.py",
        old="        self._end_solo()\n        event(self._group)\n",
        new="        self._tell_appended()\n        event(self._group)\n",
        killed_by="test_solo.py::test_a_lone_leader_that_steps_down_appends_nothing",
    ),
    _rule(
        "the core knows of all that was appended",
        "solo.py",
        old="        self._tell_appended()\n        return self._group\n",
        new="        return self._group\n",
        killed_by="test_solo.py::test_whoever_looks_at_the_core_finds_all_that_was_appended",
    ),
    # Of one that syncs
    _rule(
        "one batch that is to be synced is not committed by being appended",
        "appending.py",
        old="base_offset, epoch = log.end_offset, self.commits_in",
        new="base_offset, epoch = log.end_offset, self._solo_epoch",
        killed_by=f"{_SYNCED}test_what_comes_next_is_not_committed_before_it_is_durable",
    ),
    _rule(
        "batches that are to be synced are not committed by being appended",
        "appending.py",
        old="base_offset, epoch = self.log.end_offset, self.commits_in",
        new="base_offset, epoch = self.log.end_offset, self._solo_epoch",
        killed_by=f"{_SYNCED}test_what_is_not_durable_is_not_committed",
    ),
    _rule(
        "something does follow from a batch that is to be synced",
        "solo.py",
        old="        if not self._store.syncs_before_ack:\n            self.commits_in",
        new="        if True:\n            self.commits_in",
        killed_by=f"{_SYNCED}test_something_follows_from_a_batch_that_is_to_be_synced",
    ),
    _rule(
        "the core is told what is durable",
        "solo.py",
        old="        if self.high_watermark > self._group.high_watermark:\n",
        new="        if False:\n",
        killed_by=f"{_SYNCED}test_a_core_that_is_looked_at_knows_what_is_durable_and_what_is_not",
    ),
    _rule(
        "the core is told what is still being synced, as that",
        "solo.py",
        old="self._group.appended(end_offset, is_durable=False)",
        new="self._group.appended(end_offset, is_durable=True)",
        killed_by=f"{_SYNCED}test_a_core_that_is_looked_at_knows_what_is_durable_and_what_is_not",
    ),
    _rule(
        "what the core was told is worked on",
        "solo.py",
        old="is_durable=False)\n        self._touch()\n",
        new="is_durable=False)\n",
        killed_by=f"{_SYNCED}test_a_core_that_is_looked_at_knows_what_is_durable_and_what_is_not",
    ),
    _rule(
        "the core hears of what is being synced before writes are held",
        "appending.py",
        old="        self._end_solo()\n        self.is_p",
        new="        self._solo_epoch = self.commits_in = None\n        self.is_p",
        killed_by=f"{_SYNCED}test_writes_that_are_held_leave_nothing_uncommitted",
    ),
    _rule(
        "what was solo when it was written is committed by it no more than the core allows",
        "steady_replica.py",
        old="        if epoch == self._solo_epoch:\n",
        new="        if True:\n",
        killed_by=f"{_SYNCED}test_a_lone_leader_that_steps_down_before_it_is_durable",
    ),
    _rule(
        "what was solo when it was written takes nothing back",
        "steady_replica.py",
        old="        if committed[1] > self.high_watermark or committed > self.committed:\n",
        new="        if True:\n",
        killed_by=f"{_SYNCED}test_a_sync_that_was_not_awaited_any_more_takes_nothing_back",
    ),
    _rule(
        "what is durable is told to who waits for it",
        "steady_replica.py",
        old="            self._note_committed(Position(epoch, end_offset))\n",
        new="            self._commit(Position(epoch, end_offset))\n"
        "            self._tell_committed()\n",
        killed_by=f"{_SYNCED}test_what_has_become_durable_is_reported_to_the_broker",
    ),
    _rule(
        "what is durable is told to who observes",
        "steady_replica.py",
        old="            self._note_committed(Position(epoch, end_offset))\n",
        new="            self._commit(Position(epoch, end_offset))\n"
        "            self._host.outbox.committed(self.key)\n",
        killed_by=f"{_SYNCED}test_an_observer_hears_of_what_is_committed_at_the_next_heartbeat",
    ),
    _rule(
        "it is durable with what is staged with it",
        "steady_replica.py",
        old="                lane.stage_solo(self, self._solo_epoch, self.log.end_offset)\n",
        new="                self.persisted_solo(self._solo_epoch, self.log.end_offset)\n",
        killed_by=f"{_SYNCED}test_what_is_not_durable_is_not_committed",
    ),
    _rule(
        "a start that is to move is looked at, solo or not",
        "steady_replica.py",
        old=" and store.syncs_before_ack and self._start_move is None:\n",
        new=" and store.syncs_before_ack:\n",
        killed_by=f"{_SYNCED}test_a_start_that_could_not_be_moved_is_moved_with_the_next_append",
    ),
    _rule(
        "a start moves no farther than the core knows",
        "trimming.py",
        old="            and self._group.high_watermark >= move.to\n",
        new="",
        killed_by=f"{_SYNCED}test_a_start_that_moves_waits_for_the_core",
    ),
)
