"""Bugs that the simulator found: each put back, and the run that found it."""

from tests.mutations import Mutation


def _found(name: str, file: str, *, old: str, new: str, scenario: str) -> Mutation:
    """A bug as it was, and the file in `tests/simulator/found/` that must fail again."""
    return Mutation(
        name=f"found: {name}",
        file=file,
        old=old,
        new=new,
        killed_by=f"tests/simulator/test_found.py::test_it_stays_mended[{scenario}]",
    )


MUTATIONS = (
    _found(
        "a data directory that is there already is not taken for durable",
        "partitions/storage/directory.py",
        old="            files.sync_directory(os.path.dirname(os.path.abspath(path)))\n",
        new="            pass\n",
        scenario="data-directory-not-synced",
    ),
    _found(
        "what only the page cache may have is written again",
        "partitions/storage/tail_recovery.py",
        old="                file.pwrite(file.pread(length, position), position)\n",
        new="",
        scenario="page-cache-after-failed-sync",
    ),
    _found(
        "the time to let go begins when a member is told",
        "partitions/state_machines/groups/consumer/writing.py",
        old="    _begin_revocations(group, records, turn)\n",
        new="",
        scenario="told-when-the-time-is-over",
    ),
    _found(
        "a leader that is heard of and lost at once is replaced",
        "partitions/replication/campaigns.py",
        old="            self._heard[replica.key] = None\n",
        new="            pass\n",
        scenario="heard-only-to-resign",
    ),
    _found(
        "who leaves a group keeps its epoch",
        "partitions/replication/opening.py",
        old="        left_in = left.get(spec.key)\n",
        new="        left_in = left.get(spec.key) and None\n",
        scenario="an-old-voter-comes-back",
    ),
    _found(
        "a row whose directory was renamed is forgotten",
        "partitions/storage/journal/redo.py",
        old="    redoing.forget_renamed()\n",
        new="",
        scenario="renamed-and-not-forgotten",
    ),
    _found(
        "where a log begins may have been in what the journal has lost",
        "partitions/replication/opening.py",
        old="        may_begin_later=stored.condition is Condition.DAMAGED,\n",
        new="",
        scenario="where-it-begins-was-in-what-was-damaged",
    ),
    _found(
        "a journal that rots counts before its broker knows",
        "testing/simulator/healing.py",
        old="    return broker.has_rot or broker.rotten",
        new="    return broker.rotten",
        scenario="a-core-without-the-one-that-rots",
    ),
    _found(
        "a doubt counts for as long as the disk says it",
        "testing/simulator/healing.py",
        old=" or is_in_doubt\n",
        new="\n",
        scenario="in-doubt-once-more",
    ),
    _found(
        "what gets a replica sure counts in that very turn",
        "testing/simulator/group_judge.py",
        old="            self._in_doubt.commits(replica.committed)  # what gets",
        new="            pass  # what gets",
        scenario="sure-within-the-turn",
    ),
    _found(
        "that a log was cut may have been in what the journal has lost",
        "partitions/replication/opening.py",
        old="        may_end_earlier=stored.condition is Condition.DAMAGED",
        new="        may_end_earlier=False and stored.condition is Condition.DAMAGED",
        scenario="that-it-was-cut-was-in-what-was-damaged",
    ),
    _found(
        "a log that begins with another one's batches has no place of its own there",
        "partitions/storage/recovery.py",
        old="            and not begins_in_epoch(first, self._epochs)\n",
        new="            and False\n",
        scenario="what-begins-with-another-log",
    ),
    Mutation(
        name="a group has time to come to rest from when it has a coordinator",
        file="testing/simulator/transactions/migrant.py",
        old="            self._settling_since = now\n        since = ",
        new="            pass\n        since = ",
        killed_by="tests/simulator/test_migration.py"
        "::test_a_group_has_its_time_to_come_to_rest_from_when_it_has_a_coordinator",
    ),
    _found(
        "a former coordinator may know nothing of a member",
        "testing/simulator/transactions/holdings.py",
        old="        if is_sure and not self._has_former_coordinator(group):\n",
        new="        if is_sure:\n",
        scenario="told-by-a-former-coordinator",
    ),
    Mutation(
        name="a change of topics that has not begun by its deadline never begins",
        file="broker/metadata/rounds.py",
        old="        if trio.current_time() >= deadline:\n",
        new="        if False:\n",
        killed_by="tests/broker/test_rounds.py"
        "::test_at_the_deadline_each_is_told_what_became_of_it",
    ),
    Mutation(
        name="what is done by its deadline is not said to be unknown",
        file="broker/metadata/rounds.py",
        old="            results = await settle(results)\n",
        new="            results = await settle(await carry_out(some))\n",
        killed_by="tests/broker/test_rounds.py"
        "::test_rounds_follow_each_other_once_what_they_changed_is_open",
    ),
    Mutation(
        name="a long topic is not taken for another that was deleted",
        file="partitions/storage/directory.py",
        old="    if len(topic) < _TOPIC_KEPT:\n",
        new="    if True:\n",
        killed_by="tests/partitions/storage/test_directory.py"
        "::test_a_long_topic_is_not_taken_for_another_that_was_deleted",
    ),
    Mutation(
        name="who asks again when he is told is not dropped",
        file="partitions/replication/confirming.py",
        old="        if self._asked.get(key) is not asked:\n",
        new="        if False:\n",
        killed_by="tests/partitions/replication/test_confirming.py"
        "::test_who_asks_again_when_he_is_told_is_answered_again",
    ),
    Mutation(
        name="a marker is of a producer that can be",
        file="broker/handlers/write_txn_markers.py",
        old="    if asked.producer_id < 0:\n",
        new="    if False:\n",
        killed_by="tests/broker/handlers/test_transactions.py"
        "::test_a_marker_of_a_producer_that_cannot_be_is_refused",
    ),
)
