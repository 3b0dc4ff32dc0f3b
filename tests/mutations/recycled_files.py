"""What keeps a segment that is written over an old one's file from being taken for the old one."""

from tests.mutations import Mutation

_FILE = "partitions/storage/recycled_file.py"
_TESTS = "tests/partitions/storage/test_recycled_file.py::"
_KEPT = "tests/broker/replicas/test_removals.py::"

MUTATIONS = (
    Mutation(
        name="an old batch cannot go on behind the first bytes of a new one",
        file=_FILE,
        old="~crc & 0xFFFFFFFF",
        new="crc",
        killed_by=f"{_TESTS}test_whatever_happens_what_was_synced_is_there_and_nothing_else",
    ),
    Mutation(
        name="that is on the disk before anything is written there",
        file=_FILE,
        old="file.pwritev_synced(",
        new="file.pwritev(",
        killed_by=f"{_TESTS}test_old_batches_are_spoilt_on_the_disk_before_a_new_one_comes",
    ),
    Mutation(
        name="a file that somebody reads is not written over",
        file=_FILE,
        old="        file = self._files.open_alone(self._path)\n",
        new="        file = self._files.open(self._path)\n",
        killed_by=f"{_TESTS}test_who_reads_the_old_segment_goes_on_reading_it",
    ),
    Mutation(
        name="of the system a file is taken only if nobody has it open",
        file="partitions/storage/os_files.py",
        old="            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
        "            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)\n",
        new="            pass\n",
        killed_by=f"{_TESTS}test_of_the_os_a_file_is_taken_only_if_nobody_has_it_open",
    ),
    Mutation(
        name="the name that it had is gone on the disk before it is written over",
        file=_FILE,
        old="                self._step = _Renamed(lender)\n",
        new="                self._step = _Waiting(lender)\n",
        killed_by=f"{_TESTS}test_a_file_whose_name_may_be_there_yet_is_not_offered",
    ),
    Mutation(
        name="a file that something was sent from is not written over",
        file=_FILE,
        old="= not step.lender.is_lent and _is",
        new="= _is",
        killed_by=f"{_TESTS}test_a_file_that_something_was_sent_from_is_not_written_over",
    ),
    Mutation(
        name="nor is one that is not in memory any more",
        file=_FILE,
        old="is_lent and _is_in_memory(file)\n",
        new="is_lent\n",
        killed_by=f"{_TESTS}test_a_file_that_is_not_in_memory_any_more_is_not_written_over",
    ),
    Mutation(
        name="what is to be sent is known of",
        file="partitions/storage/slices.py",
        old="            self._lender.is_lent = True\n",
        new="            pass\n",
        killed_by=f"{_TESTS}test_a_file_that_something_was_sent_from_is_not_written_over",
    ),
    Mutation(
        name="a copy is sent of what is not to be lent",
        file="broker/network/send_queue.py",
        old="        data = os.pread(part.fileno(), size,",
        new="        data = os.pread(part.lend(), size,",
        killed_by="tests/broker/network/test_send_queue.py"
        "::test_bytes_and_slices_go_out_in_order[CopyingSendQueue]",
    ),
    Mutation(
        name="followers are sent copies",
        file="broker/peers/frame_socket.py",
        old="        self._out: SendQueue = CopyingSendQueue()\n",
        new="        self._out: SendQueue = SendQueue()\n",
        killed_by="tests/broker/peers/test_messages.py"
        "::test_a_file_of_which_a_broker_was_sent_something_may_be_written_over",
    ),
    Mutation(
        name="nor is a file written over that a process before may have sent",
        file="partitions/storage/home.py",
        old="        segment.is_lent = self.files.sends_pages\n",
        new="",
        killed_by=f"{_TESTS}test_nor_is_one_that_a_process_before_may_have_sent",
    ),
    Mutation(
        name="who opens a file while it is taken does not end the broker",
        file="partitions/storage/os_files.py",
        old="            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)\n",
        new="",
        killed_by=f"{_TESTS}test_who_opens_a_file_while_it_is_taken_does_not_end_the_process",
    ),
    Mutation(
        name="a log that begins anew takes no file of its former self",
        file="partitions/storage/log.py",
        old="            self._state.recycled.drop()\n",
        new="",
        killed_by=f"{_TESTS}test_a_log_that_begins_anew_takes_no_file_of_its_former_self",
    ),
    Mutation(
        name="nor one that was prepared meanwhile",
        file="partitions/storage/retention.py",
        old="            if file is not None and self.beginning == self.state.beginnings:\n",
        new="            if file is not None:\n",
        killed_by=f"{_TESTS}test_a_log_that_begins_anew_while_a_file_is_prepared_does_not_take_it",
    ),
    Mutation(
        name="a complete segment's file ends where it does",
        file="partitions/storage/log_appending.py",
        old="        self._end_file(sealed)\n",
        new="",
        killed_by=f"{_TESTS}test_the_next_segment_is_written_over_the_file_of_one_that_is_gone",
    ),
    Mutation(
        name="so does that of a log that was closed",
        file="partitions/storage/log.py",
        old="        self._end_file(self._active)\n",
        new="",
        killed_by=f"{_TESTS}test_a_log_that_was_closed_has_nothing_behind_its_end",
    ),
    Mutation(
        name="a partition that is given up touches nothing at its path",
        file="partitions/storage/log.py",
        old="        self._state.recycled.give_up()\n",
        new="",
        killed_by=f"{_TESTS}test_a_partition_that_is_given_up_leaves_its_path_alone",
    ),
    Mutation(
        name="no file is kept on a disk that is full",
        file="partitions/storage/log.py",
        old="if is_large and not self.room.is_out else -1\n",
        new="if is_large else -1\n",
        killed_by=f"{_TESTS}test_only_a_large_file_of_a_log_that_may_grow_is_kept",
    ),
    Mutation(
        name="a file that was kept and is not used goes",
        file="broker/replicas/removals.py",
        old="            is_over = until <= now or self._is_full()\n",
        new="            is_over = self._is_full()\n",
        killed_by=f"{_KEPT}test_a_kept_file_that_is_not_used_goes_after_a_minute_or_on_a_full_disk",
    ),
    Mutation(
        name="it goes where the disk is full",
        file="broker/replicas/removals.py",
        old="            is_over = until <= now or self._is_full()\n",
        new="            is_over = until <= now\n",
        killed_by=f"{_KEPT}test_a_kept_file_that_is_not_used_goes_after_a_minute_or_on_a_full_disk",
    ),
    Mutation(
        name="one that somebody has read is used once nobody does",
        file="broker/replicas/removals.py",
        old="recycled.drop if is_over else removal.offer",
        new="recycled.drop",
        killed_by=f"{_KEPT}test_a_kept_file_that_somebody_reads_is_offered_later",
    ),
    Mutation(
        name="damage before what an older segment has left is not taken for that",
        file="partitions/storage/older_tail.py",
        old="bool(found) and all(",
        new="bool(found) and any(",
        killed_by="tests/partitions/storage/test_older_tail.py::test_damage_before_it_is_still_damage",
    ),
    Mutation(
        name="an offset that is far from its segment's is damage, or older, and no mistake of ours",
        file="partitions/storage/segment_index.py",
        old="            if first < 0 or last - self.base_offset > RELATIVE_OFFSET_MAX:\n",
        new="            if False:\n",
        killed_by="tests/partitions/storage/test_older_tail.py"
        "::test_a_start_bears_one_whose_offsets_are_far_away",
    ),
    Mutation(
        name="what was cut off behind the recovery point may be there again, and is no damage",
        file="partitions/storage/recovery.py",
        old="        ):\n            settled -= 1\n",
        new="        ):\n            pass\n",
        killed_by="tests/partitions/storage/test_recovery.py"
        "::test_what_was_cut_off_behind_the_recovery_point_is_cut_off_again",
    ),
    Mutation(
        name="it is cut off durably before what is behind it is durable",
        file="partitions/storage/tail_recovery.py",
        old="segments[first - is_at_end :]",
        new="segments[first:]",
        killed_by="tests/partitions/storage/test_unsynced_ends.py"
        "::test_what_was_cut_off_does_not_come_back_before_what_was_written_behind_it",
    ),
    Mutation(
        name="that is looked at, too, where nothing is behind it but a name",
        file="partitions/storage/segment_ends.py",
        old="is_there and (len(segments) == 1 or ends_before(segments[-2], last, recovery_point))",
        new="is_there",
        killed_by="tests/partitions/storage/test_recovery.py"
        "::test_so_it_is_where_nothing_is_behind_it_but_a_name",
    ),
)
