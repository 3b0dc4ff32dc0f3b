"""What keeps a broker with a full disk able to write what frees it."""

from tests.mutations import Mutation

_ROOM = "partitions/storage/room.py"
_ROOM_TESTS = "tests/partitions/storage/test_room.py::"
_OUT_OF_ROOM = "partitions/replication/out_of_room.py"
_GROUPS = "tests/partitions/replication/test_full_disks.py::"
_WATCH = "broker/replicas/room_watch.py"
_WATCH_TESTS = "tests/broker/replicas/test_room_watch.py::"

MUTATIONS = (
    Mutation(
        name="a log that is out of room takes nothing, on whatever way",
        file="partitions/storage/log_appending.py",
        old="        if self.room.is_out:\n            raise self.room.refusal()\n",
        new="",
        killed_by=f"{_ROOM_TESTS}test_a_log_that_is_out_of_room_takes_nothing_and_reads_on",
    ),
    Mutation(
        name="what a broker appends is counted, and it looks at the disk before that is full",
        file="partitions/storage/log_appending.py",
        old="        self.room.took(size_bytes)\n",
        new="",
        killed_by=f"{_ROOM_TESTS}"
        "test_the_disk_is_looked_at_before_appends_can_have_used_what_was_spare",
    ),
    Mutation(
        name="what is appended may be in the journal, too, and fills the disk twice as fast",
        file=_ROOM,
        old="_TIMES_WRITTEN: Final = 2\n",
        new="_TIMES_WRITTEN: Final = 1\n",
        killed_by=f"{_ROOM_TESTS}"
        "test_the_disk_is_looked_at_before_appends_can_have_used_what_was_spare",
    ),
    Mutation(
        name="both rooms have the disk looked at that they are of",
        file=_WATCH,
        old="        room.records.look = room.coordinators.look = self.look\n",
        new="",
        killed_by=f"{_WATCH_TESTS}"
        "test_a_broker_that_fills_its_disk_by_itself_sees_it_between_two_looks",
    ),
    Mutation(
        name="a leader whose disk takes nothing more does not stay one",
        file="broker/replicas/replica_state.py",
        old="isinstance(error, OSError) and not may_pass(error):",
        new="False:",
        killed_by="tests/broker/handlers/test_produce.py"
        "::test_a_log_that_cannot_be_written_to_ends_the_broker_unless_that_may_pass",
    ),
    Mutation(
        name="a follower whose disk takes nothing more does not stay one",
        file="partitions/replication/participating.py",
        old="""        self.fail(f"cannot be written to now: {error}")
        self._judge(error)
""",
        new="""        self.fail(f"cannot be written to now: {error}")
""",
        killed_by=f"{_GROUPS}"
        "test_a_disk_that_takes_nothing_more_ends_the_broker_and_a_full_one_does_not",
    ),
    Mutation(
        name="a cut whose sync fails is the end",
        file="partitions/replication/group_replica.py",
        old="""Start the broker again")
            self._judge(error)
""",
        new="""Start the broker again")
""",
        killed_by="tests/partitions/replication/test_changes_of_logs.py"
        "::test_a_log_that_cannot_be_cut_is_cut_by_the_next_start",
    ),
    Mutation(
        name="a cut whose sync finds no room is the end, too",
        file="partitions/replication/participating.py",
        old="        return may_pass(error) and not isinstance(error, SyncFailed)\n",
        new="        return may_pass(error)\n",
        killed_by="tests/partitions/replication/test_changes_of_logs.py"
        "::test_a_log_that_cannot_be_cut_is_cut_by_the_next_start",
    ),
    Mutation(
        name="a rename whose sync fails is the end",
        file="broker/metadata/hosting.py",
        old="""        self._judge(error)
        self._failed(topic_ids, error)
""",
        new="""        self._failed(topic_ids, error)
""",
        killed_by="tests/broker/test_hosting.py"
        "::test_a_sync_that_fails_while_a_replica_goes_ends_the_broker",
    ),
    Mutation(
        name="a sync of names that fails after files were removed is the end",
        file="broker/replicas/removals.py",
        old="""be on the disk either.
                self._disk.fail(error)
""",
        new="""be on the disk either.
                del error
""",
        killed_by="tests/broker/test_checkpoints.py"
        "::test_a_sync_of_names_that_fails_after_files_were_removed_is_the_end",
    ),
    Mutation(
        name="a sync that was begun is not begun again",
        file="partitions/storage/refusals.py",
        old="NOT_ASKED and not isinstance(error, SyncFailed)",
        new="NOT_ASKED",
        killed_by="tests/partitions/storage/test_disk_full.py"
        "::test_a_sync_of_names_that_fails_is_the_end_whatever_it_says",
    ),
    Mutation(
        name="a sync that could not be begun is begun later",
        file="partitions/storage/syncing.py",
        old="        if was_not_asked(error):\n",
        new="        if False:\n",
        killed_by="tests/partitions/storage/test_disk_full.py"
        "::test_what_could_not_be_opened_beside_a_log_is_in_the_next_capture",
    ),
    Mutation(
        name="an index that was not taken is in the next capture",
        file="partitions/storage/syncing.py",
        old="                    self.state.unfinished += sealed\n",
        new="",
        killed_by="tests/partitions/storage/test_disk_full.py"
        "::test_what_could_not_be_opened_beside_a_log_is_in_the_next_capture",
    ),
    Mutation(
        name="the journal's names are synced though the first try did not begin",
        file="partitions/storage/journal/journal.py",
        old="            if not was_not_asked(error):\n                self._failure = error\n",
        new="            self._failure = error\n",
        killed_by="tests/partitions/storage/journal/test_journal.py"
        "::test_a_directory_that_cannot_be_opened_for_its_sync_is_synced_later",
    ),
    Mutation(
        name="what the loop has written is not written again",
        file="broker/replicas/disk.py",
        old="                group.records.clear()  "
        "# the thread syncs them, and does not write them again\n",
        new="",
        killed_by="tests/broker/test_disk_on_the_loop.py::test_what_the_loop_has_written_the_thread_only_syncs",
    ),
    Mutation(
        name="a swap whose name is not synced is undone",
        file="partitions/storage/compaction/log_swap.py",
        old="                undo_commit(self._home.files, self._home.directory, self._range)\n",
        new="",
        killed_by="tests/partitions/storage/compaction/test_crashes.py"
        "::test_a_swap_whose_name_could_not_be_synced_does_not_count",
    ),
    Mutation(
        name="what a group finds of the disk ends the broker",
        file="broker/replicas/driver.py",
        old="            self._disk.fail(output.disk_failure)\n",
        new="            pass\n",
        killed_by="tests/broker/replicas/test_driver.py"
        "::test_a_disk_that_a_group_has_found_to_have_failed_is_told_so",
    ),
    Mutation(
        name="want of descriptors does not use up the reserve",
        file="broker/replicas/writer_thread.py",
        old="if error.errno in NO_ROOM and self._make_room():",
        new="if self._make_room():",
        killed_by="tests/broker/test_disk_that_refuses.py"
        "::test_a_journal_without_a_descriptor_waits_and_leaves_the_reserve",
    ),
    Mutation(
        name="records are refused before the reserve is needed",
        file=_ROOM,
        old="    if spare < below:\n",
        new="    if spare < 0:\n",
        killed_by=f"{_ROOM_TESTS}test_records_are_refused_below_five_units_and_taken_again_from_six",
    ),
    Mutation(
        name="coordinators leave half of the reserve to the metadata",
        file=_ROOM,
        old="below=unit // 2, again=unit)",
        new="below=0, again=unit)",
        killed_by=f"{_ROOM_TESTS}test_coordinators_may_use_half_of_the_reserve",
    ),
    Mutation(
        name="no more of the reserve is given up than is asked for",
        file=_ROOM,
        old="return self._reserve.give_up(self.unit_bytes // 4)",
        new="return self._reserve.give_up(self.unit_bytes)",
        killed_by=f"{_ROOM_TESTS}"
        "test_the_reserve_is_given_up_by_quarters_and_no_sooner_than_it_is_asked_for",
    ),
    Mutation(
        name="the reserve is really allocated",
        file="partitions/storage/os_files.py",
        old="os.posix_fallocate(self._descriptor, 0, size_bytes)",
        new="os.ftruncate(self._descriptor, size_bytes)",
        killed_by=f"{_ROOM_TESTS}test_a_reserve_is_really_allocated",
    ),
    Mutation(
        name="a stop leaves the start half of the reserve",
        file=_ROOM,
        old="            self._reserve.give_up(self.unit_bytes // 2)\n",
        new="            self._reserve.give_up(self.unit_bytes)\n",
        killed_by=f"{_ROOM_TESTS}"
        "test_a_start_on_a_full_disk_is_given_half_a_unit_of_what_the_last_run_has_reserved",
    ),
    Mutation(
        name="the metadata are never refused",
        file=_WATCH,
        old="            return ALWAYS\n",
        new="            return self.room.coordinators\n",
        killed_by=f"{_WATCH_TESTS}test_the_metadata_are_never_refused_and_coordinators_last",
    ),
    Mutation(
        name="the journal is given some of the reserve before anybody waits",
        file="broker/replicas/writer_thread.py",
        old="and self._make_room():\n",
        new="and False:\n",
        killed_by="tests/broker/test_disk_that_refuses.py::"
        "test_a_journal_without_room_is_given_some_of_the_reserve_at_once",
    ),
    Mutation(
        name="files of a deleted topic that could not be removed are removed later",
        file="broker/metadata/upkeep.py",
        old="math.inf if is_done else RETRY_SECONDS",
        new="math.inf",
        killed_by="tests/broker/test_upkeep.py"
        "::test_files_of_a_deleted_topic_that_could_not_be_removed_are_removed_later",
    ),
    Mutation(
        name="a follower without room stays a voter",
        file="partitions/replication/group_replica.py",
        old="        if self.log.room.is_out:\n",
        new="        if False:\n",
        killed_by=f"{_GROUPS}"
        "test_a_follower_whose_disk_is_nearly_full_takes_no_records_and_stays_a_voter",
    ),
    Mutation(
        name="records that there is no room for do not become a probe",
        file=_OUT_OF_ROOM,
        old="    if not entries:\n        return None\n",
        new="",
        killed_by="tests/partitions/replication/test_out_of_room.py::"
        "test_records_alone_are_lost_and_do_not_become_a_probe",
    ),
    Mutation(
        name="leaders hear at once that a follower has room again",
        file=_OUT_OF_ROOM,
        old="                self._outbox.send(leader, GroupMessage(replica.key, Opened",
        new="                print(leader, GroupMessage(replica.key, Opened",
        killed_by=f"{_GROUPS}test_leaders_hear_at_once_that_their_followers_have_room_again",
    ),
    Mutation(
        name="an observer without room does not ask for what it cannot keep",
        file="partitions/replication/observers.py",
        old="        has_room = not self._replicas[key].log.room.is_out\n",
        new="        has_room = True\n",
        killed_by="tests/partitions/replication/test_observers.py::"
        "test_an_observer_without_room_asks_seldom_and_at_once_when_there_is_some",
    ),
    Mutation(
        name="no replica is moved by hand to where there is no room",
        file="broker/reassigning/door.py",
        old="    if is_full(node):\n",
        new="    if False:\n",
        killed_by="tests/broker/test_reassigning_door.py::"
        "test_nothing_is_moved_to_a_full_disk_and_what_is_there_may_stay",
    ),
    Mutation(
        name="a leader is not moved by hand to where its records are refused",
        file="broker/moves/door.py",
        old="                is_full=self._is_full(node),\n",
        new="",
        killed_by="tests/broker/moves/test_door.py::"
        "test_a_broker_with_a_full_disk_is_not_given_a_leader",
    ),
    Mutation(
        name="a step that found no room holds no file open, whose room would not be free",
        file="broker/threads.py",
        old="        _leave_frames(error)\n",
        new="",
        killed_by="tests/broker/test_checkpoints.py::"
        "test_where_there_was_no_room_no_file_is_held_open",
    ),
)
