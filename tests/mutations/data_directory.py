"""What a data directory says of itself, `state.db` above all: what a start believes of it."""

from tests.mutations import Mutation
from tests.mutations.storage import storage_rule

MUTATIONS = (
    storage_rule(
        "state.db syncs every commit",
        "state_schema.py",
        old="PRAGMA synchronous = EXTRA",
        new="PRAGMA synchronous = NORMAL",
        killed_by="test_state_db.py::test_a_commit_is_synced",
    ),
    Mutation(
        name="an empty state.db is none",
        file="broker/replicas/services.py",
        old="    if files.exists(directory.state_db_path) and not is_empty:\n",
        new="    if files.exists(directory.state_db_path):\n",
        killed_by="tests/system/test_bad_files.py"
        "::test_a_state_db_that_is_none_is_refused_in_one_line",
    ),
    storage_rule(
        "state.db syncs the end of a commit where there is no write-ahead log",
        "state_schema.py",
        old="PRAGMA synchronous = EXTRA",
        new="PRAGMA synchronous = FULL",
        killed_by="test_state_db_without_wal.py"
        "::test_a_commit_without_a_write_ahead_log_survives_a_power_cut",
    ),
    storage_rule(
        "state.db's write-ahead log is written again before anything is added to it",
        "state_file.py",
        old="            write_again(path)\n",
        new="            pass\n",
        killed_by="test_state_db_after_power_cuts.py"
        "::test_what_is_recorded_after_a_sync_that_failed_survives_a_power_cut",
    ),
    storage_rule(
        "a disk that takes nothing of state.db's write-ahead log is told of",
        "state_file.py",
        old='execute("PRAGMA wal_checkpoint(PASSIVE)")',
        new='execute("SELECT 1")',
        killed_by="test_state_db_on_failing_disks.py"
        "::test_a_disk_that_does_not_take_what_sqlite_copies_into_the_file_is_heard_of",
    ),
    Mutation(
        name="a checkpoint looks at how long state.db's write-ahead log is",
        file="broker/replicas/checkpoints.py",
        old="        self._state.copy_long_log()\n",
        new="",
        killed_by="tests/system/test_bad_disks.py"
        "::test_a_state_db_that_takes_nothing_of_its_long_log_ends_the_process_too",
    ),
    storage_rule(
        "a transaction that fails changes nothing",
        "state_file.py",
        old="                connection.rollback()\n",
        new="                connection.commit()\n",
        killed_by="test_state_db.py::test_a_transaction_that_fails_changes_nothing",
    ),
    storage_rule(
        "after a sync that failed the page cache is lost, whether or not the machine boots",
        "state_file.py",
        old="            is_cache_lost = has_sync_failed or (has_booted and not was_clean)\n",
        new="            is_cache_lost = has_booted and not was_clean\n",
        killed_by="test_state_db.py"
        "::test_the_page_cache_is_lost_with_a_sync_that_failed_though_the_machine_goes_on",
    ),
    storage_rule(
        "a sync that fails behind the end of a broker is known to the next start",
        "directory.py",
        old='            holder = self._holder or self._files.open(f"{self.path}/{LOCK_NAME}")\n',
        new="            holder = self._holder\n            if holder is None: return\n",
        killed_by="test_directory.py"
        "::test_a_sync_that_fails_once_the_directory_is_given_back_is_known_to_the_next_process",
    ),
    storage_rule(
        "a sync that failed is remembered until what follows is recorded",
        "directory.py",
        old="self._holder = files.open(lock_path) if self.has_sync_failed else files",
        new="self._holder = files",
        killed_by="test_directory.py"
        "::test_the_next_process_knows_of_a_sync_that_failed_until_what_follows_is_recorded",
    ),
    Mutation(
        name="a sync that failed is told to the next start",
        file="broker/replicas/services.py",
        old="        directory.note_failed_sync()\n",
        new="        pass\n",
        killed_by="tests/system/test_bad_disks.py"
        "::test_what_is_in_the_page_cache_only_counts_no_more_after_a_sync_that_failed",
    ),
    storage_rule(
        "one broker at a time uses a data directory",
        "os_files.py",
        old="            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        new="            pass\n",
        killed_by="test_directory.py::test_a_second_broker_is_told_whose_it_is",
    ),
    Mutation(
        name="what a former process may have cut is synced before the log goes on elsewhere",
        file="partitions/storage/log_appending.py",
        old="        if self._active.writer is None:\n"
        "            self._open_writer()\n        sealed",
        new="        sealed",
        killed_by="tests/partitions/storage/test_unsynced_ends.py"
        "::test_what_was_cut_off_does_not_come_back_in_the_midst_of_the_log[-sync_all]",
    ),
    Mutation(
        name="so is the end of what lies before a segment that it has begun",
        file="partitions/storage/log_appending.py",
        old="        for segment in self._segments[-2:-1]:\n",
        new="        for segment in self._segments[:0]:\n",
        killed_by="tests/partitions/storage/test_unsynced_ends.py"
        "::test_what_was_cut_off_does_not_come_back_in_the_midst_of_the_log[rolled-sync_all]",
    ),
    Mutation(
        name="a segment that a former process has begun may have no name on the disk",
        file="partitions/storage/recovery.py",
        old="            segments[-1].is_new = True\n",
        new="",
        killed_by="tests/partitions/storage/test_unsynced_ends.py"
        "::test_a_segment_that_was_begun_keeps_its_name_once_there_is_something_in_it[sync_tail]",
    ),
    Mutation(
        name="a sync of the log syncs the name of a segment that may have none",
        file="partitions/storage/log_syncing.py",
        old="tuple(s for s in (*self._unsynced, self._active) if s.is_new)",
        new="()",
        killed_by="tests/partitions/storage/test_unsynced_ends.py"
        "::test_so_does_the_first_segment_of_a_log_that_began_anew[sync_all]",
    ),
)
