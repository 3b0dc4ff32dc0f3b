"""What keeps a group's replicas from promising what they do not hold, and from waiting for ever."""

from tests.mutations import Mutation


def _rule(name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """A mutation of a module of replication, killed by one of its tests."""
    return Mutation(
        name=name,
        file=f"partitions/replication/{file}",
        old=old,
        new=new,
        killed_by=f"tests/partitions/replication/{killed_by}",
    )


MUTATIONS = (
    Mutation(
        name="a group whose leader was heard of and lost at once gets another one",
        file="partitions/replication/campaigns.py",
        old="            self._heard[replica.key] = None\n",
        new="            pass\n",
        killed_by="tests/partitions/replication/test_heard_in_passing.py"
        "::test_a_leader_that_is_heard_again_only_to_resign_is_replaced",
    ),
    # Persist before you speak
    _rule(
        "what waits for a batch waits until it is persisted",
        "outbox.py",
        old="        for waiting in self._waiting:\n            if waiting.number >= batch:\n",
        new="        for waiting in self._waiting:\n            if False:\n",
        killed_by="test_outbox.py::test_waiting_for_a_batch_that_is_persisted_is_no_waiting",
    ),
    _rule(
        "a batch that is persisted says nothing of later ones",
        "outbox.py",
        old="        while self._waiting and self._waiting[0].number <= batch:\n",
        new="        while self._waiting:\n",
        killed_by="test_outbox.py::test_a_batch_says_nothing_of_what_was_staged_after_it_was_taken",
    ),
    _rule(
        "an append with flush=commit counts once it is synced",
        "replica_state.py",
        old="is_durable=not self._store.syncs_before_ack)",
        new="is_durable=True)",
        killed_by="test_cluster.py::test_a_single_voter_commits_what_is_synced",
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
        killed_by="test_cluster.py::test_with_flush_os_a_majority_has_to_hold_it_too",
    ),
    _rule(
        "who is not alone has to tell the others",
        "appending.py",
        old="            and not group.progress()\n",
        new="",
        killed_by="test_solo.py::test_a_learner_is_sent_what_is_appended",
    ),
    _rule(
        "to be alone and to sync nothing ends with the flush mode",
        "replica_state.py",
        old="        self._solo_epoch = None\n        self._store.set_syncs",
        new="        self._store.set_syncs",
        killed_by="test_solo.py::test_a_change_of_the_flush_mode_ends_it_and_begins_it_anew",
    ),
    _rule(
        "what happens to a group ends what held while nothing did",
        "group_replica.py",
        old="        self._solo_epoch = None\n        event(self._group)\n",
        new="        event(self._group)\n",
        killed_by="test_solo.py::test_a_lone_leader_that_steps_down_appends_nothing",
    ),
    _rule(
        "the core knows of all that was appended",
        "replica_state.py",
        old="        self._tell_appended()\n        return self._group\n",
        new="        return self._group\n",
        killed_by="test_solo.py::test_whoever_looks_at_the_core_finds_all_that_was_appended",
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
        old="        self._stage(staged, then=partial(self._release, later))\n",
        new="        self._stage(staged)\n        self._release(later)\n",
        killed_by="test_cluster.py::test_files_are_cut_only_once_the_journal_says_so",
    ),
    _rule(
        "no checkpoint while a log is not what the journal says",
        "node_state.py",
        old="        return self.held == 0\n",
        new="        return True\n",
        killed_by="test_cluster.py::test_files_are_cut_only_once_the_journal_says_so",
    ),
    _rule(
        "a cut takes back what it said of producers",
        "group_log.py",
        old="            self.log.truncate(offset)\n            self.producers.rebuild(self.log)\n",
        new="            self.log.truncate(offset)\n",
        killed_by="test_cluster.py::test_what_was_cut_is_no_duplicate",
    ),
    _rule(
        "what the disk did not take is taken back whole",
        "group_replica.py",
        old="            self._store.truncate(end_offset)\n",
        new="            pass\n",
        killed_by="test_full_disks.py::test_what_a_full_disk_took_in_part_is_taken_back_whole",
    ),
    _rule(
        "a core that begins anew finds only what is durable",
        "group_replica.py",
        old="        self._store.when_durable(self._begin_anew)\n",
        new="        self._begin_anew()\n",
        killed_by="test_full_disks.py::test_after_a_full_disk_nothing_counts_that_was_not_synced_before",
    ),
    _rule(
        "what a full disk did not take behind a cut is taken later",
        "group_replica.py",
        old="        if not self._write(ready):\n            return\n        self.durable_end",
        new="        try:\n            self._store.write(ready.entries)\n"
        "        except OSError as error:\n            self.fail(str(error))\n"
        "            return\n        self.durable_end",
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
    Mutation(
        name="the voters stay the newest that were durable",
        file="partitions/storage/epoch_rows.py",
        old="    return (*kept[:-1], replace(kept[-1], config=rows[-1].config))\n",
        new="    return kept\n",
        killed_by="tests/partitions/replication/test_opening.py::"
        "test_the_voters_stay_the_newest_that_were_durable_where_a_log_lost_its_end",
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
        killed_by="test_cluster.py::test_a_change_to_flush_commit_syncs_what_was_not",
    ),
    _rule(
        "a checkpoint does not pass off what a failed replica has as what it should have",
        "group_replica.py",
        old="        self.log.doubt(self.high_watermark)\n",
        new="",
        killed_by="test_cluster.py::test_a_log_that_cannot_be_cut_is_cut_by_the_next_start",
    ),
    # Producers
    _rule(
        "followers follow the producers",
        "group_log.py",
        old="                producers.on_run(data, now_ms)\n",
        new="                pass\n",
        killed_by="test_cluster.py::test_a_duplicate_after_a_failover_gets_the_offset_of_the_original",
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
    # Producers, where a log's start moves
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
    # Replicas that move
    _rule(
        "a leader that is to go hands over before the voters change",
        "reassigning.py",
        old="            if heirs:",
        new="            if not heirs:",
        killed_by="test_reassigning.py::test_a_leader_that_is_to_go_hands_over_first",
    ),
    _rule(
        "a wish has come true when the new voters have committed something",
        "reassigning.py",
        old="        if not replica.is_serving:\n            self._idle(job)",
        new="        if not replica.is_leader:\n            self._idle(job)",
        killed_by="test_reassigning.py::test_nothing_is_struck_before_the_new_voters_have_committed_"
        "something_of_their_own",
    ),
    _rule(
        "the log goes to nobody who has yet to hear of the wish",
        "reassigning.py",
        old="            elif not self._node.peers.has_applied(node, job.wish.at):\n",
        new="            elif False:\n",
        killed_by="test_reassigning.py::test_nobody_is_sent_the_log_who_has_yet_to_hear_of_the_wish",
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
        "what has come true is of the wish itself",
        "reassigning.py",
        old="        if are_there and config.version == job.wish.at:\n",
        new="        if are_there:\n",
        killed_by="test_reassigning.py::test_who_has_yet_to_hear_of_a_wish_does_not_undo_it",
    ),
    _rule(
        "writes are held while the voters change",
        "reassigning.py",
        old="        replica.pause()\n",
        new="",
        killed_by="test_reassigning.py::test_writes_are_held_while_the_voters_change_and_none_is_"
        "sent_away",
    ),
    _rule(
        "a learner is sent no more than the broker may send",
        "reassigning.py",
        old="share = int(self.bytes_per_second * seconds / len(copying))",
        new="share = None",
        killed_by="test_reassigning.py::test_the_log_is_copied_no_faster_than_the_limit",
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
        killed_by="tests/partitions/storage/journal/test_redo.py::test_the_epoch_of_a_partition_that_"
        "was_given_up_is_that_of_its_newest_record",
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
        name="the journal is used again once the epochs of what was given up are recorded",
        file="broker/replicas/checkpoints.py",
        old="            remember(self._state, left)\n",
        new="",
        killed_by="tests/broker/test_checkpoints.py::test_the_journal_is_not_used_again_before_the_"
        "epochs_of_what_left_are_recorded",
    ),
    Mutation(
        name="nothing is forgotten while an older row may still be written",
        file="broker/metadata/hosted_files.py",
        old="        await self._services.checkpoints.wait_saved()\n",
        new="",
        killed_by="tests/broker/test_hosting.py::test_a_checkpoint_does_not_bring_back_what_was_given_"
        "up",
    ),
    # Giving replicas up
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
