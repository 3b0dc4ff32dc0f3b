"""What keeps records on the disk, or tells honestly that they are not there."""

from tests.mutations import Mutation


def _rule(name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """A mutation of a module of storage, killed by one of its tests."""
    return Mutation(
        name=name,
        file=f"partitions/storage/{file}",
        old=old,
        new=new,
        killed_by=f"tests/partitions/storage/{killed_by}",
    )


MUTATIONS = (
    # Recovery
    _rule(
        "recovery checks the CRC of what may not have been synced",
        "recovery.py",
        old="                    check_crc(data, header)\n",
        new="",
        killed_by="test_crash_at_every_byte.py::test_every_bit_of_a_tail_is_checked",
    ),
    _rule(
        "recovery checks that offsets follow each other",
        "recovery.py",
        old="        if header.base_offset != expected:\n",
        new="        if False:\n",
        killed_by="test_crash_at_every_byte.py::test_every_bit_of_a_tail_is_checked",
    ),
    _rule(
        "recovery checks that leader epochs do not go back",
        "recovery.py",
        old="        if epoch < self._epoch:\n",
        new="        if False:\n",
        killed_by="test_recovery.py::test_a_leader_epoch_that_goes_back_is_not_believed",
    ),
    _rule(
        "recovery does not believe an epoch that was never opened",
        "recovery.py",
        old="        if self._epoch_max is not None and epoch > self._epoch_max:\n",
        new="        if False:\n",
        killed_by="test_crash_at_every_byte.py::test_every_bit_of_a_tail_is_checked",
    ),
    _rule(
        "recovery writes again what only the page cache may have",
        "recovery.py",
        old="                file.pwrite(file.pread(length, position), position)\n",
        new="",
        killed_by="test_recovery.py"
        "::test_what_a_failed_sync_left_in_the_page_cache_only_is_written_again",
    ),
    _rule(
        "corruption below the recovery point is refused, not cut",
        "recovery.py",
        old="        if end_offset < self._recovery_point:\n            raise corrupt(",
        new="        if False:\n            raise corrupt(",
        killed_by="test_recovery.py::test_corruption_in_the_middle_does_not_shorten_the_log",
    ),
    _rule(
        "a log shorter than what was synced is refused",
        "recovery.py",
        old="        if end_offset < self._recovery_point:\n            raise StorageError(",
        new="        if False:\n            raise StorageError(",
        killed_by="test_recovery.py::test_a_log_that_is_shorter_than_what_was_synced_is_refused",
    ),
    _rule(
        "segments below the recovery point must join",
        "recovery.py",
        old="        if end_offset != following:\n",
        new="        if False:\n",
        killed_by="test_recovery.py::test_a_missing_segment_is_refused_and_the_rest_left_untouched",
    ),
    _rule(
        "what recovery kept is synced",
        "recovery.py",
        old="            file.sync()\n",
        new="",
        killed_by="test_crash_at_every_byte.py::test_what_recovery_kept_is_durable_at_once",
    ),
    _rule(
        "a removal that a crash interrupted is finished",
        "recovery.py",
        old="        while len(segments) > 1 and segments[1].base_offset <= self._start_offset:\n",
        new="        while False:\n",
        killed_by="test_recovery.py"
        "::test_segments_below_the_log_start_are_removed_even_with_a_gap_between_them",
    ),
    _rule(
        "no snapshot above the recovery point is believed",
        "recovery.py",
        old="            if not first <= offset <= settled:\n",
        new="            if not first <= offset:\n",
        killed_by="test_snapshots.py::test_a_snapshot_above_the_recovery_point_is_not_believed",
    ),
    _rule(
        "a snapshot's CRC is checked",
        "snapshots.py",
        old=" or _CRC.unpack_from(data)[0] != crc32c(payload)",
        new="",
        killed_by="test_snapshots.py::test_a_damaged_snapshot_costs_time_and_nothing_else",
    ),
    # Syncing
    _rule(
        "a sync covers the segments that were rolled since the last",
        "log_syncing.py",
        old="        files = [segment.writer for segment in self._unsynced if segme"
        "nt.writer is not None]\n",
        new="        files = []\n",
        killed_by="test_syncing.py::test_a_roll_while_a_sync_is_under_way_is_covered_by_the_next",
    ),
    _rule(
        "a new segment's name is synced before it counts",
        "syncing.py",
        old="        if self.sealed or self.snapshots:\n",
        new="        if False:\n",
        killed_by="test_syncing.py::test_a_new_segments_name_is_synced_before_it_counts",
    ),
    _rule(
        "the directory is synced after what a roll wrote",
        "syncing.py",
        old="                if sealed or saved:\n                    self.home.sync()\n",
        new="",
        killed_by="test_syncing.py::test_a_new_segments_name_is_synced_before_it_counts",
    ),
    _rule(
        "after a failed sync nothing is synced any more",
        "syncing.py",
        old="        state.failure = error\n",
        new="",
        killed_by="test_syncing.py::test_a_failed_sync_is_reported_and_never_followed_by_another",
    ),
    _rule(
        "nothing is written for a log that has gone",
        "syncing.py",
        old="self.sealed if self.generation == self.state.generation else ()",
        new="self.sealed",
        killed_by="test_syncing.py::test_a_sync_after_the_files_went_away_writes_nothing",
    ),
    _rule(
        "a file is synced before it is renamed into its place",
        "files.py",
        old="    file.sync()\n    files.rename(temporary, path)\n",
        new="    files.rename(temporary, path)\n",
        killed_by="test_syncing.py::test_an_index_file_is_all_there_or_not_at_all",
    ),
    # Appending
    _rule(
        "an append that failed is cut back",
        "log_appending.py",
        old="        writer.truncate(self._active.size_bytes)\n        self._is_ragged = False\n",
        new="",
        killed_by="test_disk_full.py::test_an_append_that_does_not_fit_leaves_nothing_behind",
    ),
    _rule(
        "a tail that could not be cut back is cut before the next append",
        "log_appending.py",
        old="        if writer is None or self._is_ragged:\n",
        new="        if writer is None:\n",
        killed_by="test_disk_full.py"
        "::test_a_tail_that_could_not_be_cut_back_is_cut_before_the_next_append",
    ),
    _rule(
        "half a batch is cut before a segment is closed",
        "log_appending.py",
        old="        if self._is_ragged:\n            self._open_writer()\n",
        new="",
        killed_by="test_disk_full.py::test_a_tail_that_could_not_be_cut_back_is_cut_before_a_roll",
    ),
    # Truncation and removal
    _rule(
        "a truncation is synced before anything is appended",
        "home.py",
        old="        segment.writer.sync()\n",
        new="",
        killed_by="test_syncing.py::test_a_truncation_is_durable_before_anything_is_appended",
    ),
    _rule(
        "a truncation removes the snapshots of what is gone",
        "home.py",
        old="        self.snapshots.remove_above(end_offset)\n        self.sync()\n"
        "        if segment.writer",
        new="        self.sync()\n        if segment.writer",
        killed_by="test_snapshots.py::test_a_truncation_removes_snapshots_of_what_is_gone",
    ),
    _rule(
        "segments are removed one by one, oldest first",
        "retention.py",
        old="            self.home.remove_files(segment)\n            self.home.sync()\n",
        new="            self.home.remove_files(segment)\n        self.home.sync()\n",
        killed_by="test_syncing.py::test_a_crash_during_a_removal_leaves_no_gap",
    ),
    _rule(
        "retention removes only what is committed",
        "retention.py",
        old="        if segment.end_offset > end_offset:\n",
        new="        if False:\n",
        killed_by="test_retention.py::test_nothing_goes_that_is_not_committed",
    ),
    _rule(
        "a timestamp in the future is not believed",
        "retention.py",
        old="else min(largest.timestamp_ms, modified_ms)",
        new="else largest.timestamp_ms",
        killed_by="test_retention.py"
        "::test_a_timestamp_in_the_future_does_not_keep_a_segment_for_ever",
    ),
    # Looking up
    _rule(
        "an index lookup never overshoots",
        "index.py",
        old="        return self._entry(bisect_right(self._offsets, offset - self.b"
        "ase_offset) - 1)\n",
        new="        at = bisect_right(self._offsets, offset - self.base_offset)\n"
        "        return self._entry(min(at, len(self._offsets) - 1))\n",
        killed_by="test_index.py::test_an_offset_lookup_never_overshoots",
    ),
    _rule(
        "an index that is rewound forgets what is gone",
        "index.py",
        old="        del self._offsets[kept:], self._positions[kept:]\n",
        new="",
        killed_by="test_index.py::test_an_index_that_was_rewound_is_as_if_it_had_never_known_more",
    ),
    _rule(
        "an index file's entry is checked before it is followed",
        "segment.py",
        old="        if isinstance(self._index, StoredIndex) and not self._is_true(entry):\n",
        new="        if False:\n",
        killed_by="test_recovery.py::test_indexes_that_are_missing_or_wrong_change_no_answer",
    ),
    # The journal
    _rule(
        "what the journal calls synced was synced",
        "journal/journal.py",
        old="                file.file.sync()\n",
        new="                pass\n",
        killed_by="journal/test_journal.py::test_what_was_synced_survives_a_crash",
    ),
    _rule(
        "a journal file's name is synced with its first block",
        "journal/journal.py",
        old="                self._files.sync_directory(self._path)\n",
        new="",
        killed_by="journal/test_journal.py::test_a_new_files_name_is_synced_with_its_first_block",
    ),
    _rule(
        "names that a dead process left are synced",
        "journal/journal.py",
        old="            files.sync_directory(path)\n            first.is_new = False\n",
        new="            first.is_new = False\n",
        killed_by="journal/test_journal.py"
        "::test_a_name_that_a_dead_process_did_not_sync_is_synced_at_the_opening",
    ),
    _rule(
        "no journal file is written over before its checkpoint",
        "journal/journal.py",
        old="            done = [file for file in self._full if file.end <= mark]\n",
        new="            done = list(self._full)\n",
        killed_by="journal/test_journal.py::test_a_file_with_one_record_behind_the_mark_is_kept",
    ),
    _rule(
        "after a failed sync the journal writes nothing any more",
        "journal/journal.py",
        old="            self._failure = error\n            raise\n        self._unsynced = []\n",
        new="            raise\n        self._unsynced = []\n",
        killed_by="journal/test_journal.py::test_after_a_failed_sync_nothing_is_written_any_more",
    ),
    _rule(
        "the journal notes what was synced, though nothing follows",
        "journal/journal.py",
        old="        if notes:\n            self.note_synced()\n",
        new="",
        killed_by="journal/test_tail.py"
        "::test_a_flipped_bit_anywhere_is_damage_and_never_a_shorter_journal",
    ),
    Mutation(
        name="the disk writer has the journal note it, once nothing follows",
        file="broker/replicas/disk.py",
        old="        self._journal.note_synced()\n",
        new="",
        killed_by="tests/broker/test_disk.py"
        "::test_where_nothing_follows_the_journal_notes_that_all_is_synced",
    ),
    _rule(
        "half a block that a full disk left gives way to the whole one",
        "journal/reader.py",
        old="            if all(record.is_sound for record in found[1]):\n",
        new="            if True:\n",
        killed_by="journal/test_journal.py"
        "::test_half_a_block_is_not_met_where_the_next_try_went_to_another_file",
    ),
    _rule(
        "a log is checked from where the journal speaks of it",
        "journal/replay.py",
        old="            self.state = replace(self.state, recovery_point=offset)\n",
        new="            pass\n",
        killed_by="journal/test_redo.py"
        "::test_a_truncation_whose_log_was_not_yet_cut_is_done_or_leaves_what_was_there",
    ),
    _rule(
        "a bad block that was synced is damage",
        "journal/reader.py",
        old="            if not is_whole and lsn >= self.synced_lsn:\n",
        new="            if not is_whole:\n",
        killed_by="journal/test_tail.py"
        "::test_a_flipped_bit_anywhere_is_damage_and_never_a_shorter_journal",
    ),
    _rule(
        "a torn tail is no damage",
        "journal/reader.py",
        old="max((block.header.synced_lsn for block in blocks)",
        new="max((block.end for block in blocks)",
        killed_by="journal/test_tail.py::test_a_torn_tail_ends_the_journal_at_its_last_whole_block",
    ),
    _rule(
        "a payload's CRC is checked",
        "journal/reader.py",
        old=" and crc32c(view[at : at + length]) == crc",
        new="",
        killed_by="journal/test_tail.py::test_a_torn_tail_ends_the_journal_at_its_last_whole_block",
    ),
    _rule(
        "a block's header and table are checked",
        "journal/reader.py",
        old=" if is_sound(crc, head) else None",
        new="",
        killed_by="journal/test_tail.py"
        "::test_a_flipped_bit_anywhere_is_damage_and_never_a_shorter_journal",
    ),
    _rule(
        "another directory's blocks are not believed",
        "journal/blocks.py",
        old="    if owner_bytes != owner.bytes:\n",
        new="    if False:\n",
        killed_by="journal/test_journal.py::test_files_of_another_directory_are_not_believed",
    ),
    # Redo
    _rule(
        "the journal goes on behind every block that is there",
        "journal/redo.py",
        old="    goes_on = max(start, journal.next_lsn)\n",
        new="    goes_on = max(start, journal.synced_lsn)\n",
        killed_by="journal/test_tail.py::test_a_block_behind_a_torn_one_is_never_met_again",
    ),
    _rule(
        "records that are missing make all partitions doubtful",
        "journal/redo.py",
        old="        redoing.doubt_all()\n",
        new="        pass\n",
        killed_by="journal/test_redo_damage.py::test_a_journal_that_is_gone_makes_all_doubtful",
    ),
    _rule(
        "a deleted partition's records are not a later one's",
        "journal/redo.py",
        old="            self.replays[record.key] = forgotten(stored, known)\n",
        new="",
        killed_by="journal/test_redo.py"
        "::test_a_partition_that_comes_back_has_nothing_of_the_one_before",
    ),
    _rule(
        "what redo has written is synced",
        "journal/segments.py",
        old="    end_offset = log.sync()\n",
        new="    end_offset = log.end_offset\n",
        killed_by="journal/test_redo.py"
        "::test_batches_that_were_synced_in_the_journal_are_in_the_log",
    ),
    _rule(
        "a log that the journal does not join is damaged",
        "journal/segments.py",
        old="    if offset != log.end_offset:\n",
        new="    if False:\n",
        killed_by="journal/test_redo_damage.py"
        "::test_a_log_that_ends_before_the_journal_goes_on_with_it_is_damaged",
    ),
    _rule(
        "a reset is done even if the old log is still there",
        "journal/segments.py",
        old="    if bases and min(bases) > start_offset:\n",
        new="    if False:\n",
        killed_by="journal/test_redo.py::test_a_reset_whose_log_was_not_yet_given_up_is_done",
    ),
    _rule(
        "a reset is not done to a log that was reset",
        "journal/segments.py",
        old="    if bases and min(bases) > start_offset:\n",
        new="    if bases:\n",
        killed_by="journal/test_redo.py::test_what_is_not_journaled_survives_a_redo_of_its_reset",
    ),
    _rule(
        "a truncation takes the epochs back",
        "journal/replay.py",
        old="        kept = tuple(row for row in self.state.epochs if row.position <= to)\n",
        new="        kept = self.state.epochs\n",
        killed_by="journal/test_redo.py::test_epochs_that_were_truncated_do_not_come_back",
    ),
    _rule(
        "a truncation takes the batches back",
        "journal/replay.py",
        old="        self._drop_from(to.offset)\n",
        new="",
        killed_by="journal/test_redo.py"
        "::test_a_truncation_into_a_run_of_batches_keeps_those_before_it",
    ),
    _rule(
        "what the journal left to the segments must be there",
        "journal/replay.py",
        old="            self.state = replace(self.state, recovery_point=end)\n",
        new="            pass\n",
        killed_by="journal/test_redo.py"
        "::test_what_the_journal_left_to_the_segments_is_missed_if_it_is_not_there",
    ),
    _rule(
        "a vote never goes back",
        "journal/replay.py",
        old="        if state.epoch > stored.epoch or ",
        new="        if True or ",
        killed_by="journal/test_redo.py::test_a_vote_never_goes_back",
    ),
    _rule(
        "a tail of another history is cut by its epochs",
        "recovery.py",
        old="        if self._epochs is not None and not",
        new="        if False and self._epochs is not None and not",
        killed_by="test_recovery.py::test_a_tail_of_another_history_is_cut_by_its_epochs",
    ),
    _rule(
        "what was in the page cache only is unclean when that was lost",
        "state_db.py",
        old="            if is_cache_lost:\n",
        new="            if False:\n",
        killed_by="test_state_db.py"
        "::test_what_was_in_the_page_cache_only_is_unclean_after_it_was_lost",
    ),
    # Large runs, which are not in the journal
    _rule(
        "a large run's segments are synced, all that are not",
        "log_syncing.py",
        old="                unnamed.append(segment)\n",
        new="                unnamed.append(segment)\n            break\n",
        killed_by="../replication/test_large_runs.py"
        "::test_a_checkpoint_that_has_captured_a_roll_does_not_count_as_its_sync",
    ),
    _rule(
        "and so is the name of one that is new",
        "syncing.py",
        old="            if self.unnamed:\n",
        new="            if False:\n",
        killed_by="../replication/test_large_runs.py"
        "::test_a_segment_that_a_start_begins_with_keeps_its_name",
    ),
    # What follows from batches that are gone
    _rule(
        "a redo writes the snapshot that the start was moved with",
        "journal/segments.py",
        old="    if replay.below_start is not None:\n",
        new="    if False:\n",
        killed_by="journal/test_redo.py::test_what_moved_the_start_is_beside_the_log_after_a_redo",
    ),
    _rule(
        "the snapshot at the start is kept",
        "snapshots.py",
        old="            if old != log_start:\n",
        new="            if True:\n",
        killed_by="test_snapshots.py::test_and_the_one_with_which_the_start_has_moved",
    ),
    _rule(
        "a snapshot of before what is gone is not believed",
        "recovery.py",
        old="            if not first <= offset <= settled:\n",
        new="            if offset > settled:\n",
        killed_by="test_snapshots.py::test_a_snapshot_of_before_what_is_gone_is_not_believed",
    ),
    # The data directory
    _rule(
        "state.db syncs every commit",
        "state_schema.py",
        old="PRAGMA synchronous = FULL",
        new="PRAGMA synchronous = NORMAL",
        killed_by="test_state_db.py::test_a_commit_is_synced",
    ),
    _rule(
        "a transaction that fails changes nothing",
        "state_db.py",
        old="                connection.rollback()\n",
        new="                connection.commit()\n",
        killed_by="test_state_db.py::test_a_transaction_that_fails_changes_nothing",
    ),
    _rule(
        "one broker at a time uses a data directory",
        "files.py",
        old="            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        new="            pass\n",
        killed_by="test_directory.py::test_a_second_broker_is_told_whose_it_is",
    ),
)
