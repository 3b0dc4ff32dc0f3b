"""What keeps a group's replicas from promising what they do not hold, and from waiting for ever."""

from tests.mutations import Mutation, Room

_rule = Room("partitions/replication").rule


MUTATIONS = (
    Mutation(
        name="a group whose leader was heard of and lost at once gets another one",
        file="partitions/replication/campaigns.py",
        old="            self._heard[replica.key] = None\n",
        new="            pass\n",
        killed_by="tests/partitions/replication/test_heard_in_passing.py"
        "::test_a_leader_that_is_heard_again_only_to_resign_is_replaced",
    ),
    Mutation(
        name="a group that has kept its leader is not looked at without end",
        file="partitions/replication/campaigns.py",
        old="            if replicas[key].leader is None:\n",
        new="            if True:\n",
        killed_by="tests/partitions/replication/test_heard_in_passing.py"
        "::test_one_that_is_heard_again_and_leads_on_is_not",
    ),
    # Persist before you speak
    _rule(
        "what waits for a batch waits until it is persisted",
        "outbox.py",
        old="        for waiting in self._waiting:\n            if waiting.number >= write:\n",
        new="        for waiting in self._waiting:\n            if False:\n",
        killed_by="test_outbox.py::test_waiting_for_a_batch_that_is_persisted_is_no_waiting",
    ),
    _rule(
        "a batch that is persisted says nothing of later ones",
        "outbox.py",
        old="        while self._waiting and self._waiting[0].number <= write:\n",
        new="        while self._waiting:\n",
        killed_by="test_outbox.py::test_a_batch_says_nothing_of_what_was_staged_after_it_was_taken",
    ),
    _rule(
        "an append with flush=commit counts once it is synced",
        "solo.py",
        old="is_durable=not syncs)",
        new="is_durable=True)",
        killed_by="test_steady.py::test_a_leader_counts_itself_once_what_it_appended_is_durable",
    ),
    _rule(
        "who serves knows what is committed",
        "replica_state.py",
        old="group.is_serving and self._committed_epoch == group.epoch and self.failure",
        new="group.is_serving and self.failure",
        killed_by="test_cluster.py::"
        "test_a_new_leader_serves_no_earlier_than_it_knows_what_is_committed",
    ),
    _rule(
        "an append is the commit only where nobody else votes",
        "appending.py",
        old="        if self._is_alone and not self._store.syncs_before_ack:\n",
        new="        if not self._store.syncs_before_ack:\n",
        killed_by="test_flush.py::test_with_flush_os_a_majority_has_to_hold_it_too",
    ),
    _rule(
        "batches of flush=commit are in the journal",
        "group_log.py",
        old="            elif self._syncs:\n                records",
        new="            elif False:\n                records",
        killed_by="test_cluster.py::test_what_was_acknowledged_survives_the_power_of_all",
    ),
    _rule(
        "what a leader appends is in its journal",
        "group_log.py",
        old="stage_record(record)\n        if has_followers:",
        new="stage([], lambda: None)\n        if has_followers:",
        killed_by="test_cluster.py::test_what_a_single_voter_acknowledged_survives_its_power",
    ),
    _rule(
        "votes are in the journal",
        "group_log.py",
        old="        if ready.hard_state is not None:\n            records",
        new="        if False:\n            records",
        killed_by="test_cluster.py::test_a_single_voter_serves_once_its_vote_and_its_epoch_are_durable",
    ),
    # Cutting
    _rule(
        "files are cut only once the journal says so",
        "group_replica.py",
        old="        self._stage(staged, then=self.release)\n",
        new="        self._stage(staged)\n        self.release()\n",
        killed_by="test_changes_of_logs.py::test_files_are_cut_only_once_the_journal_says_so",
    ),
    _rule(
        "no checkpoint while a log is not what the journal says",
        "node_state.py",
        old="        return self.held == 0\n",
        new="        return True\n",
        killed_by="test_changes_of_logs.py::test_files_are_cut_only_once_the_journal_says_so",
    ),
    _rule(
        "a cut takes back what it said of producers",
        "group_log.py",
        old="            self.producers.rebuild(self.log)\n",
        new="            self.producers.is_stale = False\n",
        killed_by="test_duplicates.py::test_what_was_cut_is_no_duplicate",
    ),
    _rule(
        "what the disk did not take is taken back whole",
        "participating.py",
        old="            self._store.truncate(end_offset)\n",
        new="            pass\n",
        killed_by="test_full_disks.py"
        "::test_of_one_message_that_a_full_disk_took_in_part_nothing_stays",
    ),
    _rule(
        "a core that begins anew finds only what is durable",
        "participating.py",
        old="        self._store.when_durable(self._begin_anew)\n",
        new="        self._begin_anew()\n",
        killed_by="test_full_disks.py::test_after_a_full_disk_nothing_counts_that_was_not_synced_before",
    ),
    _rule(
        "what a full disk did not take behind a cut is taken later",
        "group_replica.py",
        old="            self._take_back(ready, end_offset, error)\n",
        new="            self.fail(str(error))\n",
        killed_by="test_full_disks.py::"
        "test_a_disk_that_is_full_right_behind_a_cut_is_written_to_once_there_is_room",
    ),
    _rule(
        "a log that lost its end with the page cache is unclean",
        "opening.py",
        old="    lost = Condition.UNCLEAN if stored.condition is Condition.CLEAN else",
        new="    lost =",
        killed_by="test_opening.py::test_a_log_that_lost_its_end_is_unclean",
    ),
    _rule(
        "a log that a start could not sync is unclean",
        "opening.py",
        old="            if found is not None and _may_have_lost(found, error):\n",
        new="            if False:\n",
        killed_by="test_opening.py"
        "::test_a_log_that_a_start_could_not_sync_is_unclean_if_the_journal_does_not_have_it",
    ),
    _rule(
        "also one whose sync found no room",
        "opening.py",
        old="(isinstance(error, SyncFailed) and may_lose(error))",
        new="False",
        killed_by="test_opening.py"
        "::test_a_log_that_a_start_could_not_sync_is_unclean_if_the_journal_does_not_have_it",
    ),
    Mutation(
        name="a stop whose sync finds no room is known to the next start",
        file="broker/replicas/opening.py",
        old="                if may_lose(error):\n",
        new="                if not may_lose(error):\n",
        killed_by="tests/broker/test_opening.py"
        "::test_a_stop_whose_syncs_fail_is_known_to_the_next_start",
    ),
    Mutation(
        name="the voters stay the newest that were durable",
        file="partitions/storage/epoch_rows.py",
        old="    return (*kept[:-1], replace(kept[-1], config=rows[-1].config))\n",
        new="    return kept\n",
        killed_by="tests/partitions/replication/test_opening.py::"
        "test_the_voters_stay_the_newest_that_were_durable_where_a_log_lost_its_end",
    ),
    _rule(
        "what an attempt to open has made is synced by the next one",
        "opening.py",
        old="            unsynced.append(spec.directory)\n",
        new="            pass\n",
        killed_by="test_opening.py::test_what_an_attempt_has_made_and_not_synced_is_synced_by_the_"
        "next_one",
    ),
    _rule(
        "a damaged replica is in doubt",
        "opening.py",
        old="        condition=after.condition,\n",
        new="        condition=Condition.CLEAN,\n",
        killed_by="test_opening.py::test_a_damaged_replica_is_in_doubt",
    ),
    _rule(
        "the journal does not go on where the files may end",
        "group_log.py",
        old="            self.log.sync()\n",
        new="            pass\n",
        killed_by="test_flush.py::test_a_change_to_flush_commit_syncs_what_was_not",
    ),
    _rule(
        "a checkpoint does not pass off what a failed replica has as what it should have",
        "participating.py",
        old="        self.log.doubt(self.high_watermark)\n",
        new="",
        killed_by="test_changes_of_logs.py::test_a_log_that_cannot_be_cut_is_cut_by_the_next_start",
    ),
    _rule(
        "a log that cannot be cut now is cut later",
        "group_replica.py",
        old="            if may_be_done_later(error):\n",
        new="            if False:\n",
        killed_by="test_late_cuts.py"
        "::test_a_log_that_cannot_be_cut_for_want_of_descriptors_is_cut_once_there_are_some",
    ),
    _rule(
        "so long the journal keeps what it says of it",
        "group_replica.py",
        old="        if self.failure is None and not self._cut(held.ready):\n            return\n",
        new="        if self.failure is None and not self._cut(held.ready):\n"
        "            self._host.held -= 1\n            return\n",
        killed_by="test_late_cuts.py"
        "::test_a_log_that_cannot_be_cut_for_want_of_descriptors_is_cut_once_there_are_some",
    ),
    Mutation(
        name="and so it does where the broker stops",
        file="broker/replicas/opening.py",
        old="journal_start=mark if is_all else None",
        new="journal_start=mark",
        killed_by="tests/broker/test_opening.py"
        "::test_a_stop_leaves_a_log_that_could_not_be_cut_yet_to_the_journal",
    ),
    Mutation(
        name="no stop is a clean one that left something to be cut",
        file="broker/replicas/opening.py",
        old="    if is_all:\n",
        new="    if True:\n",
        killed_by="tests/broker/test_opening.py"
        "::test_a_stop_leaves_a_log_that_could_not_be_cut_yet_to_the_journal",
    ),
    _rule(
        "a replica that is gone keeps no checkpoint waiting",
        "participating.py",
        old="            self._host.held -= 1  # nobody comes back to it\n",
        new="",
        killed_by="test_late_cuts.py"
        "::test_a_replica_that_is_given_up_before_it_could_be_cut_keeps_no_checkpoint_waiting",
    ),
    _rule(
        "who heard nothing while its log could not be cut hears it then",
        "group_replica.py",
        old="            self._deferred += (partial(self._tell_later, event),)\n",
        new="",
        killed_by="test_late_cuts.py"
        "::test_what_a_group_is_told_while_its_log_cannot_be_cut_it_hears_once_it_is",
    ),
    _rule(
        "what a log says of producers is read again where it was not read to its end",
        "group_log.py",
        old="        if self.producers.is_stale:\n",
        new="        if offset < self.log.end_offset:\n",
        killed_by="test_late_cuts.py"
        "::test_what_follows_from_a_cut_is_done_again_where_it_was_not_done_to_its_end",
    ),
    _rule(
        "the journal has nothing of what a full disk did not take behind a cut",
        "participating.py",
        old="            self._store.stage(Ready(truncate_to=last))\n",
        new="            pass\n",
        killed_by="test_late_cuts.py"
        "::test_what_could_not_be_written_behind_a_cut_is_not_in_the_journal_either",
    ),
    _rule(
        "a reset commits what its log begins at, also where no room is behind it",
        "participating.py",
        old="            self._commit(group.committed)  # what a reset begins at is\n",
        new="            pass\n",
        killed_by="test_late_cuts.py"
        "::test_a_log_that_begins_anew_and_finds_no_room_has_committed_where_it_begins",
    ),
    # Producers
    _rule(
        "a log's start does not move while nobody can tell what it would be within",
        "group_log.py",
        old="        if may_pass(error):\n            raise\n",
        new="        del error\n",
        killed_by="test_start_within_batch.py"
        "::test_a_start_waits_until_it_can_be_told_what_it_is_within",
    ),
    _rule(
        "followers follow the producers",
        "group_log.py",
        old="                producers.on_run(data, now_ms)\n",
        new="                pass\n",
        killed_by="test_duplicates.py::test_a_duplicate_after_a_failover_gets_the_offset_of_the_original",
    ),
    _rule(
        "only a leader that serves appends",
        "replica_state.py",
        old="            group.is_serving and group.is_accepting and not self.is_paused and",
        new="            group.is_leader and",
        killed_by="test_cluster.py::test_a_leader_appends_nothing_before_its_epoch_is_committed",
    ),
    # Lies
    _rule(
        "a batch's offset is what its envelope says",
        "checking.py",
        old="            if header.base_offset != offset or",
        new="            if",
        killed_by="test_checking.py::test_every_flipped_bit_of_a_batch_is_noticed",
    ),
    _rule(
        "a batch's epoch is what its envelope says",
        "checking.py",
        old=" or header.partition_leader_epoch != run.epoch:\n",
        new=":\n",
        killed_by="test_checking.py::test_every_flipped_bit_of_a_batch_is_noticed",
    ),
    _rule(
        "a follower checks the CRC of what it is sent",
        "checking.py",
        old="            check_crc(data, header, at)\n",
        new="",
        killed_by="test_checking.py::test_every_flipped_bit_of_a_batch_is_noticed",
    ),
    _rule(
        "batches end where their envelope says",
        "checking.py",
        old="    if offset != run.end_offset or size < HEADER_BYTES:\n",
        new="    if False:\n",
        killed_by="test_checking.py::test_a_lie_in_an_append_is_refused",
    ),
    _rule(
        "what is refused does not reach the core",
        "group_replica.py",
        old='sent: {error}")\n            return\n',
        new='sent: {error}")\n',
        killed_by="test_cluster.py::test_a_peer_that_lies_is_refused_and_nothing_of_it_stored",
    ),
    # State machines
    _rule(
        "a state machine hears only of what is committed",
        "group_replica.py",
        old="                apply_committed(self._applier, self.log, committed.offset)\n",
        new="                apply_committed(self._applier, self.log, self.log.end_offset)\n",
        killed_by="test_state_machines.py::test_nothing_is_applied_that_is_not_committed",
    ),
    _rule(
        "a reset carries the state that it begins with",
        "group_replica.py",
        old="                message = with_snapshot(message, self._applier)\n",
        new="                pass\n",
        killed_by="test_state_machines.py::test_who_comes_late_gets_a_snapshot_and_what_follows",
    ),
    _rule(
        "a state machine's log keeps what its own snapshot does not have",
        "trimming.py",
        old="            and self._applier is None\n",
        new="",
        killed_by="test_state_machines.py::test_a_replica_with_a_state_machine_keeps_its_own_log_start",
    ),
    # flush=os: a log is whole up to the newest change of its voters
    _rule(
        "what precedes a change of voters is synced before it is durable",
        "group_log.py",
        old="        if not self._syncs:\n            self._host.outbox.stage_sync",
        new="        if False:\n            self._host.outbox.stage_sync",
        killed_by="test_changing_voters.py::"
        "test_what_precedes_a_change_of_voters_survives_the_power",
    ),
    _rule(
        "an epoch that changes no voters syncs no log",
        "group_log.py",
        old="                if entry.config != self._voters:\n",
        new="                if True:\n",
        killed_by="test_changing_voters.py::"
        "test_an_epoch_with_the_same_voters_costs_no_sync_of_the_log",
    ),
    _rule(
        "voters that were cut are not known any more",
        "group_log.py",
        old="        self._recent, self._voters = NO_RUNS, None\n        if offset",
        new="        self._recent = NO_RUNS\n        if offset",
        killed_by="test_changing_voters.py::test_voters_that_were_cut_are_new_when_they_come_again",
    ),
    _rule(
        "behind a cut the journal has a change of voters once what precedes it is written",
        "group_replica.py",
        old="        staged = ready if self.syncs_before_ack else ready._replace(entries=())\n",
        new="        staged = ready\n",
        killed_by="test_changing_voters.py::"
        "test_behind_a_cut_a_change_of_voters_waits_for_what_precedes_it",
    ),
    Mutation(
        name="a broker that ends waits for no log that may never be settled",
        file="broker/replicas/checkpoints.py",
        old="self._is_settled() or self._has_ended or self._disk.error",
        new="self._is_settled() or self._disk.error",
        killed_by="tests/broker/test_checkpoints.py::"
        "test_the_end_waits_for_no_log_that_may_never_be_settled",
    ),
    Mutation(
        name="a journal file that cannot be synced is the end",
        file="broker/replicas/checkpoints.py",
        old="if not may_pass(error):\n                        self._disk.fail(error)\n",
        new="del error\n",
        killed_by="tests/broker/test_checkpoints.py::"
        "test_a_journal_file_that_cannot_be_synced_is_the_end",
    ),
    Mutation(
        name="an early sync that fails is the end",
        file="broker/replicas/early_syncs.py",
        old="                    self._disk.fail(error)\n",
        new="                    del error\n",
        killed_by="tests/broker/test_checkpoints.py::test_an_early_sync_that_fails_is_the_end",
    ),
    Mutation(
        name="a sync that fails amid a change of flush is the end",
        file="broker/replicas/replica.py",
        old="            self._services.disk.fail(error)\n",
        new="            del error\n",
        killed_by="tests/broker/replicas/test_changes_of_flush.py"
        "::test_a_sync_that_fails_amid_a_change_ends_the_broker",
    ),
    Mutation(
        name="a change of flush for which there is no descriptor now is made later",
        file="broker/replicas/checkpoints.py",
        old="raise StorageError(str(error)) from error  # the wish is left, for later\n",
        new="del error\n",
        killed_by="tests/broker/replicas/test_changes_of_flush.py"
        "::test_descriptors_that_run_out_amid_a_change_are_waited_for",
    ),
    Mutation(
        name="a change of flush that was taken back is not made",
        file="broker/replicas/replica.py",
        old="            checkpoints.keep_flush(self)\n",
        new="            pass\n",
        killed_by="tests/broker/replicas/test_changes_of_flush.py"
        "::test_a_change_that_is_taken_back_before_it_is_done_is_not_done[commit]",
    ),
    Mutation(
        name="what a coordinator cannot read now, for want of a descriptor, is read later",
        file="broker/coordinating/served_topic.py",
        old="            if isinstance(cause, OSError) and may_pass(cause):\n",
        new="            if False:\n",
        killed_by="tests/broker/test_served_topic.py"
        "::test_groups_are_read_back_once_there_are_descriptors",
    ),
    Mutation(
        name="who has given a partition up says who coordinates what is in it",
        file="broker/coordinating/served_topic.py",
        old="        if not replica.is_available and replica.failure is not None:\n",
        new="        if not replica.is_available:\n",
        killed_by="tests/broker/test_served_topic.py"
        "::test_who_has_given_a_partition_up_says_who_serves_it",
    ),
    Mutation(
        name="whose copy is damaged says who coordinates what is in it",
        file="broker/coordinating/served_topic.py",
        old="            if leader == self._node_id and self._find(name) is NotServed.FAILED:\n",
        new="            if self._find(name) is NotServed.FAILED:\n",
        killed_by="tests/broker/test_served_topic.py"
        "::test_whose_copy_is_damaged_says_who_serves_it",
    ),
    Mutation(
        name="the journal is used again once the epochs of what was given up are recorded",
        file="broker/replicas/checkpoints.py",
        old="            remember(self._state, left)\n",
        new="",
        killed_by="tests/broker/test_checkpoints.py::test_the_journal_is_not_used_again_before_the_"
        "epochs_of_what_left_are_recorded",
    ),
)
