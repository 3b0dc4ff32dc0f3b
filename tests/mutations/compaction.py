"""What keeps a compaction from losing a record, or from bringing one back."""

from tests.mutations import Mutation

_COMPACTING = "tests/partitions/storage/compaction/test_compacting.py"
_DELETIONS = "tests/partitions/storage/compaction/test_deletions.py"
_PRODUCERS = "tests/partitions/storage/compaction/test_producers_and_transactions.py"
_CRASHES = "tests/partitions/storage/compaction/test_crashes.py"
_GAPS = "tests/partitions/storage/compaction/test_gaps.py"
_PROGRESS = "tests/partitions/storage/compaction/test_progress.py"


def _rule(name: str, file: str, *, old: str, new: str, killed_by: str) -> Mutation:
    """A mutation of a module of storage."""
    return Mutation(
        name=name, file=f"partitions/storage/{file}", old=old, new=new, killed_by=killed_by
    )


MUTATIONS = (
    Mutation(
        name="records of a topic that is only compacted are not deleted",
        file="broker/handlers/delete_records.py",
        old="if not replica.config.deletes_old_segments:",
        new="if False:",
        killed_by="tests/broker/handlers/test_lookups.py::"
        "test_of_a_topic_that_is_only_compacted_none_is_deleted",
    ),
    # What may be compacted
    _rule(
        "only what is committed is compacted",
        "log_compacting.py",
        old="if segment.end_offset > end_offset or segment.writer",
        new="if segment.writer",
        killed_by=f"{_COMPACTING}::test_what_is_not_committed_is_left_alone",
    ),
    _rule(
        "only what is synced is compacted",
        "log_compacting.py",
        old="> end_offset or segment.writer or segment in unsynced:",
        new="> end_offset:",
        killed_by=f"{_COMPACTING}::test_what_is_not_synced_is_left_alone",
    ),
    _rule(
        "an undecided transaction ends what is compacted",
        "compaction/survey.py",
        old="min([job.end_offset, *undecided.values()])",
        new="job.end_offset",
        killed_by=f"{_PRODUCERS}::test_nothing_is_compacted_from_where_a_transaction_is_undecided",
    ),
    # What goes, and what stays
    _rule(
        "a record that was aborted replaces nothing",
        "compaction/compacting.py",
        old=" and not header.is_control and not found.is_aborted(header):",
        new=" and not header.is_control:",
        killed_by=f"{_PRODUCERS}::test_an_aborted_record_is_dropped_and_replaces_nothing",
    ),
    _rule(
        "a deletion stays for its time",
        "compaction/filtering.py",
        old="horizon_ms is not None and self.now_ms >= horizon_ms",
        new="True",
        killed_by=f"{_DELETIONS}::test_a_deletion_stays_for_its_time_from_the_first_compaction_on",
    ),
    _rule(
        "a commit stays while one of its records is there",
        "compaction/filtering.py",
        old="if is_needed or header.base_offset not in",
        new="if header.base_offset not in",
        killed_by=f"{_PRODUCERS}"
        "::test_a_commit_stays_until_its_records_are_gone_and_its_time_is_over",
    ),
    _rule(
        "an abort stays",
        "compaction/filtering.py",
        old="if is_needed or header.base_offset not in self.survey.commits:",
        new="if is_needed:",
        killed_by=f"{_PRODUCERS}::test_an_abort_stays_for_readers_are_told_to_wait_for_it",
    ),
    _rule(
        "the last batch of a producer that may come back stays",
        "compaction/filtering.py",
        old="if not self.survey.is_last(header):\n            out.drop(header)",
        new="if True:\n            out.drop(header)",
        killed_by=f"{_PRODUCERS}"
        "::test_the_last_batch_of_a_producer_that_may_come_back_stays_without_its_records",
    ),
    _rule(
        "a gap ends with its leader epoch",
        "compaction/rewriting.py",
        old="if epoch != self._gap_epoch or ",
        new="if self._gap_epoch == NO_EPOCH or ",
        killed_by=f"{_COMPACTING}::test_a_gap_ends_with_its_leader_epoch",
    ),
    _rule(
        "a batch that is not sound stops a compaction",
        "compaction/reading.py",
        old="                check_crc(chunk, header, at)\n",
        new="",
        killed_by=f"{_COMPACTING}"
        "::test_a_batch_that_is_not_sound_stops_the_run_and_changes_nothing",
    ),
    _rule(
        "long keys are told apart",
        "compaction/keys.py",
        old="    return blake2b(key, digest_size=_DIGEST_BYTES).digest()",
        new="    return key[:_DIGEST_BYTES]",
        killed_by=f"{_COMPACTING}::test_long_keys_are_told_apart",
    ),
    _rule(
        "what follows what was cut off is dirty",
        "log.py",
        old="        self._forget_cleaned_above(offset)\n",
        new="",
        killed_by=f"{_PROGRESS}::test_what_follows_what_was_cut_off_is_dirty",
    ),
    _rule(
        "so is all of a log that begins anew",
        "log.py",
        old="        self._forget_cleaned_above(Offset(-1))\n",
        new="",
        killed_by=f"{_PROGRESS}::test_what_follows_what_was_cut_off_is_dirty",
    ),
    _rule(
        "so is what follows what a start has cut off",
        "tail_recovery.py",
        old="            forget_progress(self._home.files, self._home.directory)\n",
        new="            pass\n",
        killed_by=f"{_PROGRESS}::test_so_is_what_follows_what_a_start_has_cut_off",
    ),
    _rule(
        "how far a log is clean is not believed of a file that is damaged",
        "compaction/progress.py",
        old=" or _CRC.unpack_from(data)[0] != crc32c(data[_CRC.size :])",
        new="",
        killed_by=f"{_PROGRESS}::test_nor_is_anything_clean_where_it_is_damaged",
    ),
    _rule(
        "nobody reads the file that was there before a cut within a gap",
        "home.py",
        old="        self.readers.forget(segment.path)\n        segment.writer = ",
        new="        segment.writer = ",
        killed_by=f"{_GAPS}::test_a_reader_that_was_there_before_a_cut_within_a_gap"
        "_finds_what_came_since",
    ),
    Mutation(
        name="a time that cannot be keeps nothing from being compacted",
        file="partitions/storage/compaction/filtering.py",
        old="    return max(-(2**63), min(ms, 2**63 - 1))\n",
        new="    return ms\n",
        killed_by=f"{_COMPACTING}::test_a_time_that_cannot_be_keeps_nothing_from_being_compacted",
    ),
    # Crashes
    _rule(
        "a new segment is on the disk before it counts",
        "compaction/rewriting.py",
        old="        self._flush()\n        self._file.sync()",
        new="        self._flush()",
        killed_by=f"{_CRASHES}::test_every_crash_leaves_the_old_segments_or_the_new_ones",
    ),
    _rule(
        "its name is on the disk before the old ones go",
        "compaction/log_swap.py",
        old="            try:\n                self._sync()\n",
        new="            try:\n                pass\n",
        killed_by=f"{_CRASHES}::test_every_crash_leaves_the_old_segments_or_the_new_ones",
    ),
    _rule(
        "the old files are gone before the new one has their name",
        "compaction/swapping.py",
        old='            files.remove(f"{directory}/{name}")\n        sync()\n',
        new='            files.remove(f"{directory}/{name}")\n',
        killed_by=f"{_CRASHES}::test_every_crash_leaves_the_old_segments_or_the_new_ones",
    ),
    _rule(
        "a start goes on with a swap",
        "recovery.py",
        old="finish_swaps(home.files, home.directory)",
        new="home.files.sizes(home.directory)",
        killed_by=f"{_CRASHES}::test_every_crash_leaves_the_old_segments_or_the_new_ones",
    ),
    _rule(
        "a swap of a log that was cut does not come about",
        "compaction/log_swap.py",
        old="if self._state.generation != self._generation:\n                give_up_swap",
        new="if False:\n                give_up_swap",
        killed_by=f"{_CRASHES}::test_a_log_that_is_reset_meanwhile_is_reset",
    ),
    _rule(
        "a log is cut when its swap is done",
        "log.py",
        old="            self._settle_swap_locked()\n            self._state.generation += 1\n"
        "            kept",
        new="            self._state.generation += 1\n            kept",
        killed_by=f"{_CRASHES}::test_a_log_that_is_cut_meanwhile_is_cut",
    ),
    # Gaps
    _rule(
        "a log that is cut within a gap keeps its first part",
        "home.py",
        old="if is_gap(header) and header.base_offset < offset:",
        new="if False:",
        killed_by=f"{_GAPS}::test_a_log_ends_where_it_is_cut_within_a_gap_too",
    ),
    _rule(
        "a log that is cut within a gap keeps all that lies before",
        "files.py",
        old="        position += len(piece)\n",
        new="        pass\n",
        killed_by=f"{_GAPS}::test_what_lies_before_a_cut_within_a_gap_stays_however_much_it_is",
    ),
    _rule(
        "a start cuts a gap where another epoch begins",
        "tail_check.py",
        old="if end_offset is not None and end_offset < header.next_offset:",
        new="if False:",
        killed_by=f"{_GAPS}"
        "::test_a_start_cuts_a_gap_where_the_journal_says_that_another_epoch_begins",
    ),
    _rule(
        "a gap that would end below the recovery point is refused before it is cut",
        "tail_recovery.py",
        old="                self._refuse_cut(segment.path, long.position, "
        "long.end_offset, str(long))\n",
        new="",
        killed_by=f"{_GAPS}"
        "::test_a_gap_that_would_have_to_end_below_the_recovery_point_is_refused_and_left_alone",
    ),
    Mutation(
        name="a follower that ends within a gap is sent the rest of it",
        file="partitions/replication/reading.py",
        old="if first.base_offset < at.offset and is_gap(first):",
        new="if False:",
        killed_by=f"{_GAPS}::test_a_replica_that_ends_within_the_gap_is_sent_the_rest_of_it",
    ),
    Mutation(
        name="a damaged log is compacted no more",
        file="broker/compaction/cleaner.py",
        old='until = float("inf") if is_final else',
        new="until = 0.0 if is_final else",
        killed_by="tests/broker/compaction/test_cleaner.py"
        "::test_a_partition_that_is_damaged_is_set_aside_and_named",
    ),
    Mutation(
        name="a sync that fails at the end of a swap is the end",
        file="partitions/storage/compaction/log_swap.py",
        old="self._range, self._sync)",
        new="self._range)",
        killed_by="tests/partitions/storage/compaction/test_crashes.py"
        "::test_a_sync_that_fails_when_a_swap_is_finished_is_the_end",
    ),
    Mutation(
        name="a sync of a swap that fails ends the broker",
        file="broker/compaction/cleaner.py",
        old="            if log.has_failed:\n",
        new="            if False:\n",
        killed_by="tests/broker/compaction/test_cleaner.py"
        "::test_a_sync_that_fails_at_the_end_of_a_swap_ends_the_broker",
    ),
    Mutation(
        name="a log that was given up begins no swap",
        file="partitions/storage/log_compacting.py",
        old=" or self._state.is_given_up:\n            return None",
        new=":\n            return None",
        killed_by="tests/broker/compaction/test_cleaner.py"
        "::test_a_topic_that_is_deleted_as_a_segment_is_made_is_no_failed_disk",
    ),
    Mutation(
        name="a swap that is finished later does not take the new segment for an old one",
        file="partitions/storage/compaction/swapping.py",
        old="    if swap in swaps_in(there):\n",
        new="    if True:\n",
        killed_by="tests/partitions/storage/compaction/test_crashes.py"
        "::test_a_swap_that_could_not_be_finished_is_finished_later",
    ),
    Mutation(
        name="a swap that could not be finished is finished later",
        file="broker/compaction/cleaner.py",
        old="            await self._finish_again()\n",
        new="",
        killed_by="tests/broker/compaction/test_cleaner.py"
        "::test_what_could_not_be_done_to_its_end_is_tried_again",
    ),
)
