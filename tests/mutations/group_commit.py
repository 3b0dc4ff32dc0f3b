"""The disk's thread and the group commit: what is told of is on the disk, in its order."""

from tests.mutations import Mutation
from tests.mutations.storage import storage_rule

MUTATIONS = (
    Mutation(
        name="the disk writer has the journal note it, once nothing follows",
        file="broker/replicas/writer_thread.py",
        old="was_not_asked)\n        self._journal.note_synced()\n",
        new="was_not_asked)\n",
        killed_by="tests/broker/test_disk.py"
        "::test_where_nothing_follows_the_journal_notes_that_all_is_synced",
    ),
    Mutation(
        name="a disk writer that breaks by a mistake is the end, too",
        file="broker/replicas/writer_thread.py",
        old="            self._call_in_loop(partial(self._failed, broken))\n",
        new="            del broken\n",
        killed_by="tests/broker/test_disk.py"
        "::test_a_thread_that_breaks_by_a_mistake_is_the_end_too",
    ),
    Mutation(
        name="a sync that fails on the loop is the end, too",
        file="broker/replicas/disk.py",
        old="            self.fail(error)\n            return True\n",
        new="            return False\n",
        killed_by="tests/broker/test_disk_on_the_loop.py::test_a_sync_that_fails_on_the_loop_is_the_end_too",
    ),
    Mutation(
        name="the loop writes nothing while the thread uses the journal",
        file="broker/replicas/disk.py",
        old="        if not self._using_journal.acquire(blocking=False):\n            return False",
        new="        self._using_journal.acquire(blocking=False)\n"
        "        if False:\n            return False",
        killed_by="tests/broker/test_disk_on_the_loop.py"
        "::test_nothing_is_written_on_the_loop_while_the_thread_uses_the_journal",
    ),
    Mutation(
        name="a leader hears its followers while its own disk is at work",
        file="broker/replicas/disk.py",
        old="not is_told and self._write_here(group)",
        new="self._write_here(group)",
        killed_by="tests/broker/test_disk_on_the_loop.py::test_what_others_were_told_of_does_not_hold_the_loop",
    ),
    storage_rule(
        "while a group is being written no other one is",
        "journal/group_commits.py",
        old="            return None if self._begun else self._begin_waiting()\n",
        new="            return self._begin_waiting()\n",
        killed_by="journal/test_group_commits.py::test_what_comes_while_a_group_is_written_is_the_next_group",
    ),
    storage_rule(
        "nothing is told of what was being written when the disk failed",
        "journal/group_commits.py",
        old="        if self.error is not None:\n            return\n        with self._lock",
        new="        with self._lock",
        killed_by="journal/test_group_commits.py"
        "::test_nothing_is_told_of_what_was_being_written_when_the_disk_failed",
    ),
    storage_rule(
        "who writes goes on with nothing when the disk has failed",
        "journal/group_commits.py",
        old="            self._waiting = CommitGroup()\n        return True",
        new="            pass\n        return True",
        killed_by="journal/test_group_commits.py"
        "::test_who_writes_is_given_nothing_more_when_the_disk_has_failed",
    ),
    storage_rule(
        "a group is told of after those that were begun before it",
        "journal/group_commits.py",
        old="            is_next = not self._begun and self._waiting.write_count\n",
        new="            is_next = self._waiting.write_count\n",
        killed_by="journal/test_group_commits.py",
    ),
    Mutation(
        name="what has come since is not taken before what was handed over",
        file="broker/replicas/writer_thread.py",
        old="                following = None if self._is_stopping else self._take()\n"
        "                self._call_in_loop(partial(self._written, group, seconds))\n",
        new="                self._call_in_loop(partial(self._written, group, seconds))\n"
        "                following = None if self._is_stopping else self._take()\n",
        killed_by="tests/broker/test_disk.py"
        "::test_what_has_come_since_is_not_taken_before_what_was_handed_over",
    ),
    Mutation(
        name="a mistake of who is told what is durable is the end",
        file="broker/replicas/disk.py",
        old="            self._written(group, seconds)\n"
        "        except Exception as error:\n            self._end_by_mistake(error)\n",
        new="            self._written(group, seconds)\n        except Exception:\n",
        killed_by="tests/broker/test_disk.py"
        "::test_a_mistake_of_who_is_told_is_the_end_whoever_has_begun_the_turn",
    ),
    Mutation(
        name="a mistake of who is told on the loop is the end, too",
        file="broker/replicas/disk.py",
        old="            is_written = not is_told and self._write_here(group)\n"
        "        except Exception as error:\n            self._end_by_mistake(error)\n",
        new="            is_written = not is_told and self._write_here(group)\n"
        "        except Exception:\n",
        killed_by="tests/broker/test_disk_on_the_loop.py"
        "::test_a_mistake_on_the_loop_is_the_end_whoever_has_begun_the_turn[True]",
    ),
    Mutation(
        name="the disk goes on with what is large while the loop is busy",
        file="broker/replicas/writer_thread.py",
        old="None if self._is_stopping else self._take()",
        new="None",
        killed_by="tests/broker/test_disk.py"
        "::test_the_disk_goes_on_with_what_is_large_while_the_loop_is_busy",
    ),
    storage_rule(
        "what is synced for a group is the newest of each log",
        "journal/group_commits.py",
        old="            group.syncs[sync.subject] = sync\n",
        new="            group.syncs.setdefault(sync.subject, sync)\n",
        killed_by="journal/test_group_commits.py::test_what_a_group_relies_on_is_synced_once_by_its_newest",
    ),
    # What is said later
    storage_rule(
        "nothing waits but that large batches are synced",
        "journal/put_off.py",
        old="        if any(record.kind is not _SYNCED for record in records):\n"
        "            return False\n",
        new="",
        killed_by="journal/test_put_off.py::test_all_else_is_written_at_once",
    ),
    storage_rule(
        "a group of which only the sync is left does not wait",
        "journal/put_off.py",
        old="        if not records or self._groups",
        new="        if self._groups",
        killed_by="journal/test_put_off.py::test_all_else_is_written_at_once",
    ),
    storage_rule(
        "what waits is written in front of what follows",
        "journal/put_off.py",
        old="[*self._newest.values(), *records]",
        new="[*records, *self._newest.values()]",
        killed_by="journal/test_put_off.py"
        "::test_it_is_written_in_front_of_what_follows_the_newest_of_each_partition",
    ),
    storage_rule(
        "no more than a few groups wait",
        "journal/put_off.py",
        old=" or self._groups >= GROUPS_MAX:\n",
        new=":\n",
        killed_by="journal/test_put_off.py::test_it_is_not_put_off_for_long",
    ),
    storage_rule(
        "what waits and finds no room goes on waiting",
        "journal/journal.py",
        old="        records = self._put_off.before(records)\n",
        new="        records = self._put_off.before(records)\n        self._put_off.clear()\n",
        killed_by="journal/test_put_off.py::test_what_could_not_be_written_is_written_later",
    ),
    Mutation(
        name="what waits is written once nothing follows",
        file="broker/replicas/writer_thread.py",
        old="            self._journal.write((), synced=True)\n",
        new="            pass\n",
        killed_by="tests/broker/test_disk.py"
        "::test_what_may_be_said_later_is_said_once_nothing_follows",
    ),
    Mutation(
        name="what waits and fails is the end, too",
        file="broker/replicas/writer_thread.py",
        old="            if not was_not_written(error):\n                raise\n"
        "            return\n",
        new="            return\n",
        killed_by="tests/broker/test_disk.py::test_what_could_be_said_later_and_fails_is_the_end",
    ),
    Mutation(
        name="what waits is left where the loop has met a failure",
        file="broker/replicas/writer_thread.py",
        old="        except StorageError:\n            return",
        new="        except StorageError:\n            raise",
        killed_by="tests/broker/test_disk.py"
        "::test_what_could_be_said_later_is_left_where_the_loop_has_met_a_failure",
    ),
)
