"""What keeps the journal's promise: what it calls synced is there again after a crash."""

from tests.mutations import Mutation
from tests.mutations.storage import storage_rule

MUTATIONS = (
    # The journal
    storage_rule(
        "what the journal calls synced was synced",
        "journal/journal.py",
        old="                file.file.sync()\n",
        new="                pass\n",
        killed_by="journal/test_journal.py::test_what_was_synced_survives_a_crash",
    ),
    storage_rule(
        "a journal file's name is synced with its first block",
        "journal/journal.py",
        old="                self._files.sync_directory(self._path)\n",
        new="",
        killed_by="journal/test_journal.py::test_a_new_files_name_is_synced_with_its_first_block",
    ),
    storage_rule(
        "names that a dead process left are synced",
        "journal/file_pool.py",
        old="        files.sync_directory(path)\n        first.is_new = False\n",
        new="        first.is_new = False\n",
        killed_by="journal/test_journal.py"
        "::test_a_name_that_a_dead_process_did_not_sync_is_synced_at_the_opening",
    ),
    storage_rule(
        "no block is written where the journal's first file is stamped",
        "journal/file_pool.py",
        old="    taken.page = STAMP_PAGES\n",
        new="    taken.page = 0\n",
        killed_by="journal/test_stamp.py::test_the_first_block_of_a_process_may_be_torn",
    ),
    storage_rule(
        "until a file is stamped, the same is said elsewhere in it",
        "journal/making.py",
        old="        file.pwritev(empty, -(-size_bytes // PAGE_BYTES) * PAGE_BYTES)\n",
        new="",
        killed_by="journal/test_stamp.py"
        "::test_a_file_is_stamped_without_a_moment_in_which_it_holds_no_block",
    ),
    storage_rule(
        "the name of a journal file that was prepared is synced",
        "journal/making.py",
        old='        files.sync_directory(path.rpartition("/")[0])\n',
        new="",
        killed_by="journal/test_prepared_files.py"
        "::test_what_was_synced_to_a_prepared_file_survives_a_crash",
    ),
    storage_rule(
        "a journal file that is being prepared is nobody else's",
        "journal/file_pool.py",
        old=" | {self._preparing}\n",
        new="\n",
        killed_by="journal/test_prepared_files.py"
        "::test_the_writer_comes_to_the_end_of_its_file_before_the_next_one_is_there",
    ),
    storage_rule(
        "a journal file that was prepared, and is not used yet, is no unused name",
        "journal/file_pool.py",
        old="*self._full, *self._free, self.active",
        new="*self._full, self.active",
        killed_by="journal/test_prepared_files.py"
        "::test_each_that_is_prepared_has_a_name_of_its_own",
    ),
    storage_rule(
        "no journal file is written over before its checkpoint",
        "journal/file_pool.py",
        old="            done = [file for file in self._full if file.end <= mark]\n",
        new="            done = list(self._full)\n",
        killed_by="journal/test_journal.py::test_a_file_with_one_record_behind_the_mark_is_kept",
    ),
    storage_rule(
        "after a failed sync the journal writes nothing any more",
        "journal/journal.py",
        old="            self._failure = error\n            raise\n        self._unsynced = []\n",
        new="            raise\n        self._unsynced = []\n",
        killed_by="journal/test_journal.py::test_after_a_failed_sync_nothing_is_written_any_more",
    ),
    storage_rule(
        "the journal notes what was synced, though nothing follows",
        "journal/journal.py",
        old="        if notes:\n            self.note_synced()\n",
        new="",
        killed_by="journal/test_tail.py"
        "::test_a_flipped_bit_anywhere_is_damage_and_never_a_shorter_journal",
    ),
    storage_rule(
        "the name of a new file of the journal is synced before anything in it counts",
        "journal/journal.py",
        old="not self._unsynced and not active.is_new\n",
        new="not self._unsynced\n",
        killed_by="journal/test_journal.py::test_a_file_that_is_new_has_its_name_synced_by_sync",
    ),
    storage_rule(
        "a block is only synced by its own write where all before it is",
        "journal/journal.py",
        old="synced and not self._unsynced and not",
        new="synced and not",
        killed_by="journal/test_journal.py::test_nothing_is_called_synced_that_follows_what_is_not",
    ),
    storage_rule(
        "what its own write has synced is called synced",
        "journal/journal.py",
        old="        if in_one_call:\n            self._synced = self._next\n        elif active",
        new="        if not in_one_call and active",
        killed_by="journal/test_tail.py::test_damage_to_what_its_own_write_synced_is_told",
    ),
    storage_rule(
        "a write that was to sync, and failed, is a failed sync",
        "os_files.py",
        old="                    raise SyncFailed(*error.args) from error\n        # Which",
        new="                    raise\n        # Which",
        killed_by="test_files.py::test_a_write_that_is_to_sync_and_fails_is_a_failed_sync",
    ),
    storage_rule(
        "what was refused for want of room is written and synced anew",
        "os_files.py",
        old="        self.pwritev(parts, position)\n        self.sync()\n",
        new="        self.pwritev(parts, position)\n",
        killed_by="test_files.py::test_what_cannot_be_written_and_synced_in_one_call_is_in_two",
    ),
    storage_rule(
        "a journal whose disk is not mounted is not a lost one",
        "journal/redo.py",
        old="        files.make_directory(path)\n",
        new="        pass\n",
        killed_by="test_links.py::test_a_journal_whose_disk_is_not_mounted_is_not_a_lost_one",
    ),
    storage_rule(
        "nor is one whose directory is empty",
        "journal/redo.py",
        old="        raise StorageError(_NOTHING_THERE.format(path=path))\n",
        new="        pass\n",
        killed_by="test_links.py"
        "::test_a_journal_that_is_an_empty_directory_may_be_of_a_disk_that_is_not_mounted",
    ),
    Mutation(
        name="nothing is done by the word of what the journal has in the page cache only",
        file="partitions/storage/journal/redo.py",
        old="    journal.make_durable()\n",
        new="",
        killed_by="tests/partitions/storage/journal/test_redo_damage.py"
        "::test_what_the_journal_has_in_the_page_cache_only_is_durable_before_it_is_done"
        "[not synced-the start has moved]",
    ),
    Mutation(
        name="that is written again, for it may be there since a sync that failed",
        file="partitions/storage/journal/reader.py",
        old="                file.pwrite(file.pread(size_bytes, block.position), block.position)\n",
        new="                pass\n",
        killed_by="tests/partitions/storage/journal/test_redo_damage.py"
        "::test_what_the_journal_has_in_the_page_cache_only_is_durable_before_it_is_done"
        "[the sync failed-the start has moved]",
    ),
    Mutation(
        name="a write whose sync was full is not tried again",
        file="partitions/storage/refusals.py",
        old="return may_pass(error) and not isinstance(error, SyncFailed)",
        new="return may_pass(error)",
        killed_by="tests/broker/test_disk_on_the_loop.py::test_a_write_whose_sync_was_full_is_not_tried_again",
    ),
    storage_rule(
        "what a disk refuses to write back is not taken for a call that is not there",
        "writing_back.py",
        old=" and not _is_let_through(sync_file_range, descriptor):\n",
        new=":\n",
        killed_by="test_files.py"
        "::test_where_a_kernel_or_a_sandbox_has_no_such_call_nothing_is_written_back",
    ),
    storage_rule(
        "what could not begin to be written is a failed sync",
        "os_files.py",
        old="            begin_writing(self._descriptor)\n        except OSError as error:\n"
        "            raise SyncFailed",
        new="            begin_writing(self._descriptor)\n        except OSError as error:\n"
        "            return\n            raise SyncFailed",
        killed_by="test_files.py::test_what_cannot_begin_to_be_written_is_a_failed_sync",
    ),
    storage_rule(
        "what could not be written back is a failed sync",
        "os_files.py",
        old="said again to who syncs.\n            raise SyncFailed",
        new="said again to who syncs.\n            return\n            raise SyncFailed",
        killed_by="test_files.py::test_what_cannot_be_written_back_is_a_failed_sync",
    ),
    Mutation(
        name="a disk that was slow does not hold the loop up again and again",
        file="broker/replicas/quick_syncs.py",
        old="            self._slow_until = max(self._slow_until, now + slow)\n",
        new="            pass\n",
        killed_by="tests/broker/replicas/test_quick_syncs.py"
        "::test_after_a_slow_one_the_thread_syncs_for_many_times_as_long",
    ),
    storage_rule(
        "half a block that a full disk left gives way to the whole one",
        "journal/reader.py",
        old="            if all(record.is_sound for record in found[1]):\n",
        new="            if True:\n",
        killed_by="journal/test_journal.py"
        "::test_half_a_block_is_not_met_where_the_next_try_went_to_another_file",
    ),
    storage_rule(
        "a log is checked from where the journal speaks of it",
        "journal/replay.py",
        old="            self.state = replace(self.state, recovery_point=offset)\n",
        new="            pass\n",
        killed_by="journal/test_redo.py"
        "::test_a_truncation_whose_log_was_not_yet_cut_is_done_or_leaves_what_was_there",
    ),
    storage_rule(
        "a bad block that was synced is damage",
        "journal/reader.py",
        old="            if not is_whole and lsn >= self.synced_lsn:\n",
        new="            if not is_whole:\n",
        killed_by="journal/test_tail.py"
        "::test_a_flipped_bit_anywhere_is_damage_and_never_a_shorter_journal",
    ),
    storage_rule(
        "a torn tail is no damage",
        "journal/reader.py",
        old="max((block.header.synced_lsn for block in blocks)",
        new="max((block.end for block in blocks)",
        killed_by="journal/test_tail.py::test_a_torn_tail_ends_the_journal_at_its_last_whole_block",
    ),
    storage_rule(
        "a payload's CRC is checked",
        "journal/reader.py",
        old=" and crc32c(view[at : at + length]) == crc",
        new="",
        killed_by="journal/test_tail.py::test_a_torn_tail_ends_the_journal_at_its_last_whole_block",
    ),
    storage_rule(
        "a block's header and table are checked",
        "journal/reader.py",
        old=" if is_sound(crc, head) else None",
        new="",
        killed_by="journal/test_tail.py"
        "::test_a_flipped_bit_anywhere_is_damage_and_never_a_shorter_journal",
    ),
    storage_rule(
        "another directory's blocks are not believed",
        "journal/blocks.py",
        old="    if owner_bytes != owner.bytes:\n",
        new="    if False:\n",
        killed_by="journal/test_journal.py::test_files_of_another_directory_are_not_believed",
    ),
    storage_rule(
        "blocks are known by a secret, and not by what clients are told",
        "state_file.py",
        old="        return self.directory_id if stored is None else UUID(stored)\n",
        new="        return self.directory_id\n",
        killed_by="journal/test_owner.py"
        "::test_what_a_client_has_sent_is_no_block_whatever_it_looks_like",
    ),
    storage_rule(
        "a journal without a block since it has a secret is not lost",
        "journal/reader.py",
        old=" and not any(former)\n",
        new="\n",
        killed_by="journal/test_owner.py"
        "::test_a_journal_in_which_nothing_was_written_since_it_has_a_secret_is_not_lost",
    ),
    # Redo
    storage_rule(
        "the journal goes on behind every block that is there",
        "journal/redo.py",
        old="    goes_on = max(start, journal.next_lsn)\n",
        new="    goes_on = max(start, journal.synced_lsn)\n",
        killed_by="journal/test_tail.py::test_a_block_behind_a_torn_one_is_never_met_again",
    ),
    storage_rule(
        "records that are missing make all partitions doubtful",
        "journal/redo.py",
        old="        redoing.doubt_all()\n",
        new="        pass\n",
        killed_by="journal/test_redo_damage.py::test_a_journal_that_is_gone_makes_all_doubtful",
    ),
    storage_rule(
        "a deleted partition's records are not a later one's",
        "journal/redo.py",
        old="            self.replays[record.key] = forgotten(stored, known)\n",
        new="",
        killed_by="journal/test_redo_of_partitions.py"
        "::test_a_partition_that_comes_back_has_nothing_of_the_one_before",
    ),
    storage_rule(
        "what redo has written is synced",
        "journal/segments.py",
        old="    end_offset = log.sync()\n",
        new="    end_offset = log.end_offset\n",
        killed_by="journal/test_redo.py"
        "::test_batches_that_were_synced_in_the_journal_are_in_the_log",
    ),
    storage_rule(
        "a log that the journal does not join is damaged",
        "journal/segments.py",
        old="    if offset != log.end_offset:\n",
        new="    if False:\n",
        killed_by="journal/test_redo_damage.py"
        "::test_a_log_that_ends_before_the_journal_goes_on_with_it_is_damaged",
    ),
    storage_rule(
        "a reset is done even if the old log is still there",
        "journal/segments.py",
        old="    if bases and min(bases) > start_offset:\n",
        new="    if False:\n",
        killed_by="journal/test_redo.py::test_a_reset_whose_log_was_not_yet_given_up_is_done",
    ),
    storage_rule(
        "a reset is not done to a log that was reset",
        "journal/segments.py",
        old="    if bases and min(bases) > start_offset:\n",
        new="    if bases:\n",
        killed_by="journal/test_redo_of_unjournaled.py::test_what_is_not_journaled_survives_a_redo_of_its_reset",
    ),
    storage_rule(
        "a truncation takes the epochs back",
        "journal/replay.py",
        old="        kept = tuple(row for row in self.state.epochs if row.position <= to)\n",
        new="        kept = self.state.epochs\n",
        killed_by="journal/test_redo.py::test_epochs_that_were_truncated_do_not_come_back",
    ),
    storage_rule(
        "a truncation takes the batches back",
        "journal/replay.py",
        old="        self._drop_from(to.offset)\n",
        new="",
        killed_by="journal/test_redo.py"
        "::test_a_truncation_into_a_run_of_batches_keeps_those_before_it",
    ),
    storage_rule(
        "what the journal left to the segments must be there",
        "journal/replay.py",
        old="            self.state = replace(self.state, recovery_point=end)\n",
        new="            pass\n",
        killed_by="journal/test_redo_of_unjournaled.py"
        "::test_what_the_journal_left_to_the_segments_is_missed_if_it_is_not_there",
    ),
    storage_rule(
        "a vote never goes back",
        "journal/replay.py",
        old="        if state.epoch > stored.epoch or ",
        new="        if True or ",
        killed_by="journal/test_redo.py::test_a_vote_never_goes_back",
    ),
    storage_rule(
        "a tail of another history is cut by its epochs",
        "tail_check.py",
        old="        if self._epochs is not None and not",
        new="        if False and self._epochs is not None and not",
        killed_by="test_recovery.py::test_a_tail_of_another_history_is_cut_by_its_epochs",
    ),
    storage_rule(
        "what was in the page cache only is unclean when that was lost",
        "state_file.py",
        old="            if is_cache_lost:\n",
        new="            if False:\n",
        killed_by="test_state_db.py"
        "::test_what_was_in_the_page_cache_only_is_unclean_after_it_was_lost",
    ),
    # Large runs, which are not in the journal
    storage_rule(
        "a large run's segments are synced, all that are not",
        "log_syncing.py",
        old="                unnamed.append(segment)\n",
        new="                unnamed.append(segment)\n            break\n",
        killed_by="../replication/test_large_runs.py"
        "::test_a_checkpoint_that_has_captured_a_roll_does_not_count_as_its_sync",
    ),
    storage_rule(
        "one that was synced so, and cut, and has grown, is so again",
        "log_appending.py",
        old="        sealed.is_synced = False\n",
        new="",
        killed_by="test_syncing.py::test_one_that_was_cut_and_has_grown_is_synced_again",
    ),
    storage_rule(
        "a sync from before a cut says nothing of what has grown since",
        "syncing.py",
        old="            if self.generation != self.state.generation:\n                return\n",
        new="",
        killed_by="test_syncing.py::test_so_it_is_where_the_sync_from_before_the_cut_says_so_late",
    ),
    storage_rule(
        "and so is the name of one that is new",
        "syncing.py",
        old="        if self.unnamed:\n",
        new="        if False:\n",
        killed_by="../replication/test_large_runs.py"
        "::test_a_segment_that_a_start_begins_with_keeps_its_name",
    ),
)
