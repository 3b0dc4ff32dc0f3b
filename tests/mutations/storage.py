"""What keeps records on the disk, or tells honestly that they are not there."""

from tests.mutations import Mutation, Room

storage_rule = Room("partitions/storage").rule


MUTATIONS = (
    # Recovery
    storage_rule(
        "recovery checks the CRC of what may not have been synced",
        "tail_check.py",
        old="                    check_crc(data, header)\n",
        new="",
        killed_by="test_crash_at_every_byte.py::test_every_bit_of_a_tail_is_checked",
    ),
    storage_rule(
        "recovery checks that offsets follow each other",
        "tail_check.py",
        old="        if header.base_offset != expected:\n",
        new="        if False:\n",
        killed_by="test_crash_at_every_byte.py::test_every_bit_of_a_tail_is_checked",
    ),
    storage_rule(
        "recovery checks that leader epochs do not go back",
        "tail_check.py",
        old="        if epoch < self._epoch:\n",
        new="        if False:\n",
        killed_by="test_recovery.py::test_a_leader_epoch_that_goes_back_is_not_believed",
    ),
    storage_rule(
        "recovery does not believe an epoch that was never opened",
        "tail_check.py",
        old="        if self._epoch_max is not None and epoch > self._epoch_max:\n",
        new="        if False:\n",
        killed_by="test_crash_at_every_byte.py::test_every_bit_of_a_tail_is_checked",
    ),
    storage_rule(
        "recovery writes again what only the page cache may have",
        "tail_recovery.py",
        old="                file.pwrite(file.pread(length, position), position)\n",
        new="",
        killed_by="test_recovery.py"
        "::test_what_a_failed_sync_left_in_the_page_cache_only_is_written_again",
    ),
    storage_rule(
        "corruption below the recovery point is refused, not cut",
        "tail_recovery.py",
        old="        if end_offset < self._recovery_point and not self._may_end_earlier:\n"
        "            raise corrupt(",
        new="        if False:\n            raise corrupt(",
        killed_by="test_recovery.py::test_corruption_in_the_middle_does_not_shorten_the_log",
    ),
    storage_rule(
        "a log shorter than what was synced is refused",
        "tail_recovery.py",
        old="    if end_offset < recovery_point:\n        raise StorageError(",
        new="    if False:\n        raise StorageError(",
        killed_by="test_recovery.py::test_a_log_that_is_shorter_than_what_was_synced_is_refused",
    ),
    storage_rule(
        "a log whose beginning is lost is refused",
        "recovery.py",
        old="            self._settle_beginning(segments[0])\n",
        new="            pass\n",
        killed_by="test_recovery.py"
        "::test_a_missing_first_segment_is_refused_and_the_rest_left_untouched",
    ),
    storage_rule(
        "segments below the recovery point must join",
        "segment_ends.py",
        old="    if end_offset != following.base_offset:\n",
        new="    if False:\n",
        killed_by="test_recovery.py::test_a_missing_segment_is_refused_and_the_rest_left_untouched",
    ),
    storage_rule(
        "what recovery kept is synced",
        "tail_recovery.py",
        old="            file.sync()\n",
        new="",
        killed_by="test_crash_at_every_byte.py::test_what_recovery_kept_is_durable_at_once",
    ),
    storage_rule(
        "a removal that a crash interrupted is finished",
        "recovery.py",
        old="        while len(segments) > 1 and segments[1].base_offset <= self.start_offset:\n",
        new="        while False:\n",
        killed_by="test_recovery.py"
        "::test_segments_below_the_log_start_are_removed_even_with_a_gap_between_them",
    ),
    storage_rule(
        "no snapshot above the recovery point is believed",
        "recovery.py",
        old="            if not first <= offset <= settled:\n",
        new="            if not first <= offset:\n",
        killed_by="test_snapshots.py::test_a_snapshot_above_the_recovery_point_is_not_believed",
    ),
    storage_rule(
        "a snapshot's CRC is checked",
        "snapshots.py",
        old=" or _CRC.unpack_from(data)[0] != crc32c(payload)",
        new="",
        killed_by="test_snapshots.py::test_a_damaged_snapshot_costs_time_and_nothing_else",
    ),
    # Syncing
    storage_rule(
        "a sync covers the segments that were rolled since the last",
        "log_syncing.py",
        old="        dirty = list(self._unsynced)\n",
        new="        dirty = list[Segment]()\n",
        killed_by="test_syncing.py::test_a_roll_while_a_sync_is_under_way_is_covered_by_the_next",
    ),
    storage_rule(
        "a new segment's name is synced before it counts",
        "syncing.py",
        old="        if self.sealed or self.snapshots or self.unnamed:\n",
        new="        if False:\n",
        killed_by="test_syncing.py::test_a_new_segments_name_is_synced_before_it_counts",
    ),
    storage_rule(
        "the directory is synced after what a roll wrote",
        "syncing.py",
        old="                    if sealed or saved or unnamed:\n"
        "                        sync_names(self.home)\n",
        new="",
        killed_by="test_syncing.py::test_a_new_segments_name_is_synced_before_it_counts",
    ),
    storage_rule(
        "after a failed sync nothing is synced any more",
        "syncing.py",
        old="        state.failure = error\n",
        new="",
        killed_by="test_syncing.py::test_a_failed_sync_is_reported_and_never_followed_by_another",
    ),
    storage_rule(
        "nothing is written for a log that has gone",
        "syncing.py",
        old="            is_as_it_was = self.generation == self.state.generation\n",
        new="            is_as_it_was = True\n",
        killed_by="test_syncing.py::test_a_sync_after_the_files_went_away_writes_nothing",
    ),
    storage_rule(
        "nor is its directory synced for a large run",
        "syncing.py",
        old="            if self.generation != self.state.generation:\n                return\n",
        new="",
        killed_by="test_syncing.py"
        "::test_a_tail_whose_files_went_away_asks_nothing_of_their_directory",
    ),
    storage_rule(
        "segments that a start removed, and did not live to sync that, are gone with the next sync",
        "recovery.py",
        old="            segments[-1].is_new = True\n",
        new="",
        killed_by="test_every_crash.py"
        "::test_a_segment_that_a_start_removed_does_not_come_back_in_what_was_synced_since",
    ),
    storage_rule(
        "a removal leaves the files of who has the names after it",
        "retention.py",
        old="if self.state.is_given_up or self.beginning != self.state.beginnings:\n",
        new="if False:\n",
        killed_by="test_retention.py"
        "::test_a_removal_leaves_the_files_of_a_topic_that_was_made_anew_meanwhile",
    ),
    storage_rule(
        "a removal leaves what a log that was reset has written since",
        "log.py",
        old="            self._state.end_locked()\n            for segment in self._segments:\n",
        new="            self._state.generation += 1\n            for segment in self._segments:\n",
        killed_by="test_retention.py"
        "::test_a_removal_leaves_what_a_log_that_was_reset_has_written_since",
    ),
    storage_rule(
        "a reset removes also what a removal has not come to",
        "log.py",
        old="            self._home.remove_segments()\n",
        new="            for segment in reversed(self._segments):\n"
        "                self._home.remove_files(segment)\n",
        killed_by="test_retention.py::test_a_reset_leaves_nothing_that_a_removal_has_not_come_to",
    ),
    storage_rule(
        "a directory that was renamed is so on the disk, whichever attempt gets to sync it",
        "directory.py",
        old="        if self._has_unsynced_names:  #",
        new="        if renamed:  #",
        killed_by="test_directory.py"
        "::test_a_name_that_is_free_but_not_yet_on_the_disk_is_there_with_the_next_attempt",
    ),
    Mutation(
        name="a partition's directory is on the disk before it is recorded, whoever has made it",
        file="broker/replicas/opening.py",
        old="        is_synced &= not is_missing and spec.key in stored\n",
        new="        is_synced &= not is_missing\n",
        killed_by="tests/broker/test_opening.py"
        "::test_a_directory_whose_making_was_not_synced_is_by_the_next_attempt",
    ),
    storage_rule(
        "a file is synced before it is renamed into its place",
        "files.py",
        old="    file.sync()\n    files.rename(temporary, path)\n",
        new="    files.rename(temporary, path)\n",
        killed_by="test_syncing.py::test_an_index_file_is_all_there_or_not_at_all",
    ),
    # Appending
    storage_rule(
        "an append that failed is cut back",
        "log_appending.py",
        old="        writer.truncate(self._active.size_bytes)\n        self._is_ragged = False\n",
        new="",
        killed_by="test_disk_full.py::test_an_append_that_does_not_fit_leaves_nothing_behind",
    ),
    storage_rule(
        "a tail that could not be cut back is cut before the next append",
        "log_appending.py",
        old="        if writer is None or self._is_ragged:\n",
        new="        if writer is None:\n",
        killed_by="test_disk_full.py"
        "::test_a_tail_that_could_not_be_cut_back_is_cut_before_the_next_append",
    ),
    storage_rule(
        "half a batch is cut before a segment is closed",
        "log_appending.py",
        old="        self._end_file(sealed)\n",
        new="",
        killed_by="test_disk_full.py::test_a_tail_that_could_not_be_cut_back_is_cut_before_a_roll",
    ),
    # Truncation and removal
    storage_rule(
        "a truncation is synced before anything is appended",
        "home.py",
        old="        segment.writer.sync()\n",
        new="",
        killed_by="test_syncing.py::test_a_truncation_is_durable_before_anything_is_appended",
    ),
    storage_rule(
        "a truncation removes the snapshots of what is gone",
        "home.py",
        old="        self.snapshots.remove_above(end_offset)\n        self.sync()\n"
        "        if segment.writer",
        new="        self.sync()\n        if segment.writer",
        killed_by="test_snapshots.py::test_a_truncation_removes_snapshots_of_what_is_gone",
    ),
    storage_rule(
        "segments are removed one by one, oldest first",
        "retention.py",
        old="                self.home.sync()\n            except",
        new="                if segment is self.segments[-1]:\n"
        "                    self.home.sync()\n            except",
        killed_by="test_syncing.py::test_a_crash_during_a_removal_leaves_no_gap",
    ),
    storage_rule(
        "retention removes only what is committed",
        "retention.py",
        old="        if segment.end_offset > end_offset:\n",
        new="        if False:\n",
        killed_by="test_retention.py::test_nothing_goes_that_is_not_committed",
    ),
    storage_rule(
        "a timestamp in the future is not believed",
        "retention.py",
        old="else min(largest.timestamp_ms, modified_ms)",
        new="else largest.timestamp_ms",
        killed_by="test_retention.py"
        "::test_a_timestamp_in_the_future_does_not_keep_a_segment_for_ever",
    ),
    # Looking up
    storage_rule(
        "an index lookup never overshoots",
        "index.py",
        old="        return self._entry(bisect_right(self._offsets, offset - self.b"
        "ase_offset) - 1)\n",
        new="        at = bisect_right(self._offsets, offset - self.base_offset)\n"
        "        return self._entry(min(at, len(self._offsets) - 1))\n",
        killed_by="test_index.py::test_an_offset_lookup_never_overshoots",
    ),
    storage_rule(
        "an index that is rewound forgets what is gone",
        "index.py",
        old="        del self._offsets[kept:], self._positions[kept:]\n",
        new="",
        killed_by="test_index.py::test_an_index_that_was_rewound_is_as_if_it_had_never_known_more",
    ),
    storage_rule(
        "snapshots of what is cut are not written later",
        "log.py",
        old="            state.unsaved = [s for s in state.unsaved"
        " if s.offset <= self.end_offset]\n",
        new="",
        killed_by="test_snapshots.py"
        "::test_who_cuts_a_log_forgets_snapshots_that_are_yet_to_be_written",
    ),
    storage_rule(
        "nor are those of a log that begins anew",
        "syncing.py",
        old="        self.unsaved, self.unfinished = [], ()\n",
        new="        self.unfinished = ()\n",
        killed_by="test_snapshots.py"
        "::test_who_cuts_a_log_forgets_snapshots_that_are_yet_to_be_written",
    ),
    storage_rule(
        "a sync of names that fails after a removal is the log's end",
        "retention.py",
        old="                self.state.failure = error"
        "  # of other names, too, nothing is known since\n",
        new="",
        killed_by="test_retention.py"
        "::test_a_sync_of_names_that_fails_after_a_removal_is_the_log_s_end",
    ),
    storage_rule(
        "a sync that failed is not followed by one that was captured before",
        "syncing.py",
        old="        if self.state.failure is not None:\n            raise self.state.failure\n",
        new="",
        killed_by="test_syncing.py::test_nor_by_one_that_was_captured_before",
    ),
    storage_rule(
        "an entry by time is held against its batch",
        "segment_index.py",
        old=" or self._time_is_true(index, entry):\n",
        new=" or index.read_before:\n",
        killed_by="test_recovery.py::test_a_flipped_bit_in_an_index_changes_no_answer",
    ),
    storage_rule(
        "so is an entry that was read before the segment was appended to",
        "segment_index.py",
        old="largest, index.read_before = index.largest, self.end_offset\n",
        new="largest, index.read_before = index.largest, Offset(0)\n",
        killed_by="test_recovery.py::test_a_flipped_bit_in_an_index_changes_no_answer",
    ),
    storage_rule(
        "what an index that was read says of the largest is what is there",
        "segment_index.py",
        old="return index if index.largest == largest and ",
        new="return index if ",
        killed_by="test_recovery.py::test_a_flipped_bit_in_an_index_changes_no_answer",
    ),
    storage_rule(
        "who appends goes on with the index that was made anew",
        "segment_index.py",
        old="            self._index.become(made)  # whoever appends goes on with it\n"
        "            return self._index\n",
        new="            pass\n",
        killed_by="test_recovery.py::test_an_index_that_was_made_anew_is_the_one_that_grows",
    ),
    storage_rule(
        "an index file's entry is checked before it is followed",
        "segment_index.py",
        old="        if entry[0] < index.read_before and not self._is_true(entry):\n",
        new="        if False:\n",
        killed_by="test_recovery.py"
        "::test_an_entry_in_the_midst_of_an_index_that_is_wrong_changes_no_answer",
    ),
    storage_rule(
        "where a reader went on is forgotten when its segment is cut",
        "segment_files.py",
        old="        self._read = None\n\n    def batches_from",
        new="\n    def batches_from",
        killed_by="test_log.py::test_where_a_reader_was_is_forgotten_when_the_log_is_cut",
    ),
    # What follows from batches that are gone
    storage_rule(
        "a redo writes the snapshot that the start was moved with",
        "journal/segments.py",
        old="    if replay.below_start is not None:\n",
        new="    if False:\n",
        killed_by="journal/test_redo.py::test_what_moved_the_start_is_beside_the_log_after_a_redo",
    ),
    storage_rule(
        "the snapshot at the start is kept",
        "snapshots.py",
        old="            if old != log_start:\n",
        new="            if True:\n",
        killed_by="test_snapshots.py::test_and_the_one_with_which_the_start_has_moved",
    ),
    storage_rule(
        "a snapshot of before what is gone is not believed",
        "recovery.py",
        old="            if not first <= offset <= settled:\n",
        new="            if offset > settled:\n",
        killed_by="test_snapshots.py::test_a_snapshot_of_before_what_is_gone_is_not_believed",
    ),
)
