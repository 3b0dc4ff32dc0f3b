"""Compaction on a running broker: what is done by itself, and what operators see of it."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest
import trio

from tests.descriptors import no_descriptors
from tidemark.broker.compaction import cleaner as cleaner_module
from tidemark.broker.compaction import process
from tidemark.broker.compaction.cleaner import Cleaner
from tidemark.broker.compaction.process import CompactionFailed, open_run
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.client import TopicPartition, open_client
from tidemark.partitions.storage.compaction.job import Job, Rewritten, SourceSegment
from tidemark.partitions.storage.compaction.log_swap import LogSwap
from tidemark.partitions.storage.compaction.settings import CompactionLimits
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.syncing import final, sync_names
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import HEADER_BYTES, seal
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset
from tidemark.testing import open_cluster
from tidemark.testing.cluster import Cluster

SETTINGS = {"log.cleaner.backoff.ms": "50"}
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "2048",
    "min.cleanable.dirty.ratio": "0.01",
}
SMALL_BYTES = 6000
"""A third of what `fill` writes: no more than the segment that is written to, and a little."""


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(20):
        while not holds():  # noqa: ASYNC110  # many things at once are waited for
            await trio.sleep(0.02)


async def fill(cluster: Cluster, topic: str, *, rounds: int = 40) -> None:
    async with open_client(cluster.bootstrap) as client, client.producer() as producer:
        for number in range(rounds):
            for key in (b"a", b"b", b"c"):
                await producer.send(topic, b"%d" % number + b"v" * 100, key=key, partition=0)
            await producer.flush()


async def create(cluster: Cluster, topic: str, *, replicas: int = 1, **config: str) -> None:
    async with open_client(cluster.bootstrap) as client:
        changed = {name.replace("_", "."): value for name, value in config.items()}
        await client.admin.create_topic(
            topic, partitions=1, replication_factor=replicas, configs=CONFIG | changed
        )


def replica_of(cluster: Cluster, topic: str, node: int = 1) -> Replica:
    replica = cluster.brokers[node].node.topics.get(topic).replicas[0]  # type: ignore[union-attr]  # it is there
    assert isinstance(replica, Replica)
    return replica


def hosts(node: Node, topic: str) -> bool:
    """Whether its replica there is open, which is soon after the topic is known."""
    found = node.topics.get(topic)
    return found is not None and bool(found.replicas)


def have_all(replicas: Sequence[Replica], end: int) -> bool:
    return all(replica.log_end == end for replica in replicas)


async def test_a_dirty_topic_is_compacted_by_itself(tmp_path: Path) -> None:
    async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
        await create(cluster, "waves")
        await fill(cluster, "waves")
        replica = replica_of(cluster, "waves")
        await until(lambda: replica.size_bytes < SMALL_BYTES)
        compaction = cluster.broker.node.metrics.compaction
        assert compaction.runs.value >= 1
        await until(lambda: compaction.removed_records.value > 60)
        assert compaction.read_bytes.value > compaction.written_bytes.value
        assert "waves-0" in compaction.dirty_ratios
        await fill(cluster, "waves", rounds=1)  # and it is written to as before
        directory = replica.log.directory
    assert verify(OsFiles(), directory).problems == []


async def test_each_replica_compacts_what_time_has_closed(tmp_path: Path) -> None:
    """Without a look at how old segments are: that comes every five minutes."""
    async with open_cluster(brokers=3, data_dir=tmp_path, settings=SETTINGS) as cluster:
        await create(cluster, "waves", replicas=3, segment_bytes="1000000", segment_ms="1000")
        await until(lambda: all(hosts(each.node, "waves") for each in cluster.brokers.values()))
        nodes = [replica_of(cluster, "waves", node) for node in (1, 2, 3)]
        now_ms = time.time_ns() // 1_000_000
        async with open_client(cluster.bootstrap) as client, client.producer() as producer:
            for at in range(4):
                value = b"%d" % at + b"v" * 1000
                await producer.send("waves", value, key=b"a", timestamp_ms=now_ms + 1001 * at)
                await producer.flush()
                # Batches that come together to a replica lie in one segment.
                await until(partial(have_all, nodes, at + 1))
        await until(lambda: all(2000 < each.size_bytes < 3000 for each in nodes))


async def test_when_a_log_was_last_compacted_is_known_after_a_restart(tmp_path: Path) -> None:
    async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
        await create(cluster, "waves")
        await fill(cluster, "waves")
        before = cluster.broker.node.metrics.compaction
        await until(lambda: before.runs.value > 0 and before.dirty_ratios.get("waves-0") == 0.0)
    at = TopicPartition("waves", 0)
    async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
        after = cluster.broker.node.metrics.compaction
        await until(lambda: "waves-0" in after.dirty_ratios)
        async with open_client(cluster.bootstrap) as client:
            found = (await client.admin.describe_replicas([at]))[at].compaction
    assert after.runs.value == 0
    assert found is not None
    assert found.cleaned_ms is not None
    assert abs(found.cleaned_ms - before.last_run_seconds * 1000) < 1000
    assert abs(after.last_run_seconds - before.last_run_seconds) < 1


async def test_operators_see_which_batches_compaction_cannot_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They came before the topic was compacted, say: nothing in them is ever replaced."""
    bad = bytearray(encode_batch([Record(key=b"a", value=b"1")]))
    bad[HEADER_BYTES] = 0x7F  # the length of its one record
    seal(bad, 0)
    async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
        await create(cluster, "waves")
        replica = replica_of(cluster, "waves")
        await replica.wait_committed(replica.append_own(bytes(bad)).end_offset)
        await fill(cluster, "waves")
        await until(lambda: cluster.broker.node.metrics.compaction.unreadable_batches != {})
        assert cluster.broker.node.metrics.compaction.unreadable_batches == {"waves-0": 1}
        directory = replica.log.directory
    assert "waves-0 has 1 batches in which no record can be read" in caplog.text
    (problem,) = verify(OsFiles(), directory).problems
    assert (problem.position, problem.is_harmless) == (0, False)


async def test_each_replica_is_compacted_and_a_new_one_gets_what_is_left(tmp_path: Path) -> None:
    async with open_cluster(brokers=3, data_dir=tmp_path, settings=SETTINGS) as cluster:
        await create(cluster, "waves", replicas=3)
        await fill(cluster, "waves", rounds=10)
        await cluster.kill(3)
        await fill(cluster, "waves")
        nodes = [replica_of(cluster, "waves", node) for node in (1, 2)]
        await until(lambda: all(each.size_bytes < SMALL_BYTES for each in nodes))
        # It ends where the others have a gap by now.
        await cluster.start(3)
        end = nodes[0].log_end
        await until(lambda: replica_of(cluster, "waves", 3).high_watermark >= end)
        await fill(cluster, "waves", rounds=5)  # what it was sent is in one segment, which closes
        await until(lambda: replica_of(cluster, "waves", 3).size_bytes < SMALL_BYTES)
        directories = [replica_of(cluster, "waves", node).log.directory for node in (1, 2, 3)]
    for directory in directories:
        assert verify(OsFiles(), directory).problems == []


async def test_a_partition_that_is_damaged_is_set_aside_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
        for topic in ("good", "bad"):
            await create(cluster, topic, min_compaction_lag_ms=str(10**9))
            await fill(cluster, topic)
        bad = replica_of(cluster, "bad")
        await until(lambda: bad.log.segment_count > 2)
        with (Path(bad.log.directory) / f"{0:020d}.log").open("r+b") as file:
            file.seek(70)
            file.write(b"\xff\xff")
        async with open_client(cluster.bootstrap) as client:
            for topic in ("good", "bad"):
                await client.admin.alter_configs(topic, {"min.compaction.lag.ms": "0"})
        compaction = cluster.broker.node.metrics.compaction
        await until(lambda: "bad-0" in compaction.set_aside and bool(compaction.runs.value))
        assert "is corrupt at byte 0" in compaction.set_aside["bad-0"]
        # It is not tried again, dirty as it is: the others have their turns.
        runs = compaction.runs.value
        await fill(cluster, "good")
        await until(lambda: compaction.runs.value > runs)
        assert compaction.failures.value == 1
        await until(lambda: replica_of(cluster, "good").size_bytes < SMALL_BYTES)
        assert "bad-0 cannot be compacted, and grows until the broker is started" in caplog.text


async def test_a_topic_may_be_deleted_while_it_is_compacted(tmp_path: Path) -> None:
    slow = SETTINGS | {"log.cleaner.io.max.bytes.per.second": "5000"}
    async with open_cluster(data_dir=tmp_path, settings=slow) as cluster:
        await create(cluster, "waves")
        await fill(cluster, "waves")
        await trio.sleep(0.3)
        async with open_client(cluster.bootstrap) as client:
            await client.admin.delete_topic("waves")
        await create(cluster, "waves")
        await fill(cluster, "waves", rounds=2)
        assert not cluster.broker.node.metrics.compaction.set_aside


async def test_a_topic_that_is_deleted_as_a_segment_is_replaced_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, mark = LogSwap.commit, DataDirectory.mark_deleted
    begun, renamed = Event(), Event()

    def commit_later(swap: LogSwap) -> bool:
        begun.set()
        assert renamed.wait(20)
        return commit(swap)

    def rename(*arguments: Any) -> list[str]:
        paths = mark(*arguments)
        if paths:
            renamed.set()
        return paths

    monkeypatch.setattr(LogSwap, "commit", commit_later)
    monkeypatch.setattr(DataDirectory, "mark_deleted", rename)
    async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
        await create(cluster, "waves")
        await fill(cluster, "waves")
        await until(begun.is_set)
        async with open_client(cluster.bootstrap) as client:
            await client.admin.delete_topic("waves")
        compaction = cluster.broker.node.metrics.compaction
        await create(cluster, "others")
        await fill(cluster, "others")
        await until(lambda: compaction.runs.value > 0)
        assert compaction.failures.value == 0


async def test_a_topic_that_is_deleted_as_a_segment_is_made_is_no_failed_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new segment comes when the log is given up, and its directory is not yet renamed."""
    swap, mark = Cleaner._swap, DataDirectory.mark_deleted
    swapping, begins, renames = trio.Event(), Event(), Event()

    async def wait_deleted(cleaner: Cleaner, log: Log, rewritten: Rewritten) -> None:
        swapping.set()
        await until(lambda: not replica.is_available)
        try:
            await swap(cleaner, log, rewritten)
        finally:
            begins.set()

    def commit(swap: LogSwap) -> bool:
        begins.set()
        assert renames.wait(20)
        with final(swap._state):
            sync_names(swap._home)
        raise AssertionError("its directory is still there")

    def rename(*arguments: Any) -> list[str]:
        assert begins.wait(20)
        renamed = mark(*arguments)
        renames.set()
        return renamed

    monkeypatch.setattr(Cleaner, "_swap", wait_deleted)
    monkeypatch.setattr(LogSwap, "commit", commit)
    monkeypatch.setattr(DataDirectory, "mark_deleted", rename)
    async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
        await create(cluster, "waves")
        replica = replica_of(cluster, "waves")
        await fill(cluster, "waves")
        await swapping.wait()
        async with open_client(cluster.bootstrap) as client:
            await client.admin.delete_topic("waves")
        await create(cluster, "others")
        await fill(cluster, "others", rounds=1)
        assert cluster.broker.node.metrics.compaction.failures.value == 0


# The process


class Rounds(trio.abc.Instrument):
    """How often the loop has come back to look for what else there is."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


async def test_logs_that_are_not_compacted_are_passed_over_without_a_round_of_the_loop(
    tmp_path: Path,
) -> None:
    async with open_cluster(data_dir=tmp_path) as cluster:
        await create(cluster, "kept", cleanup_policy="delete")
        node, kept = cluster.broker.node, replica_of(cluster, "kept")
        cleaner = Cleaner(node.settings, kept._services, [kept] * 2_500)
        rounds = Rounds()
        trio.lowlevel.add_instrument(rounds)
        assert await cleaner._dirtiest() is None
        trio.lowlevel.remove_instrument(rounds)
    assert 1 <= rounds.count <= 20, "others had their turns, and not one for each"


async def test_a_log_that_cannot_be_looked_at_for_want_of_descriptors_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cleaner_module, "RETRY_SECONDS", 0.0)
    async with open_cluster(data_dir=tmp_path) as cluster:
        await create(cluster, "waves")
        node, replica = cluster.broker.node, replica_of(cluster, "waves")
        cleaner = Cleaner(node.settings, replica._services, [replica])
        with no_descriptors():
            assert await cleaner._dirtiest() is None
        assert "waves-0 cannot be compacted, and grows until it can: [Errno 24]" in caplog.text
        assert not cleaner._is_set_aside(replica.key)


async def test_what_is_known_of_a_log_is_forgotten_with_it(tmp_path: Path) -> None:
    async with open_cluster(data_dir=tmp_path) as cluster:
        await create(cluster, "waves")
        await create(cluster, "rides")
        node, kept = cluster.broker.node, replica_of(cluster, "waves")
        hosted = [kept, replica_of(cluster, "rides")]
        cleaner = Cleaner(node.settings, kept._services, hosted)
        for replica in hosted:
            cleaner._fail(replica, "it is damaged", is_final=True)
            cleaner._stuck_at[replica.key] = Offset(3)
        del hosted[1]
        assert await cleaner._dirtiest() is None
        assert list(cleaner._set_aside) == list(cleaner._stuck_at) == [kept.key]


async def test_what_could_not_be_done_to_its_end_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is, the log's old segments stay, and its start cannot move past them."""
    finish, tries = LogSwap.finish, list[LogSwap]()

    def refuse_once(swap: LogSwap) -> bool:
        tries.append(swap)
        if len(tries) == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return finish(swap)

    monkeypatch.setattr(LogSwap, "finish", refuse_once)
    async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
        await create(cluster, "waves")
        await fill(cluster, "waves")
        await until(lambda: len(tries) > 1)
        assert tries[1] is tries[0]
        directory = Path(replica_of(cluster, "waves").log.directory)
        await until(lambda: not list(directory.glob("*.swap")))
    assert verify(OsFiles(), str(directory)).problems == []


async def test_a_sync_that_fails_at_the_end_of_a_swap_ends_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, sync, finishing, tries = LogSwap.finish, LogHome.sync, set[int](), list[LogSwap]()
    filled = Event()

    def begin(swap: LogSwap) -> bool:
        assert filled.wait(20), "a producer would try again and again"
        tries.append(swap)
        finishing.add(get_ident())
        try:
            return finish(swap)
        finally:
            finishing.clear()

    def fail(home: LogHome) -> None:
        if get_ident() in finishing:
            raise OSError(errno.EIO, "Input/output error")
        sync(home)

    async def compact() -> None:
        async with open_cluster(data_dir=tmp_path, settings=SETTINGS) as cluster:
            await create(cluster, "waves")
            await fill(cluster, "waves")
            filled.set()
            await until(lambda: len(tries) > 1)  # it has ended before

    monkeypatch.setattr(LogSwap, "finish", begin)
    monkeypatch.setattr(LogHome, "sync", fail)
    with pytest.raises(StorageError, match=r"a write or a sync of .* failed"):
        await compact()


def a_job(directory: str) -> Job:
    return Job(
        directory=directory,
        segments=(SourceSegment(Offset(0), Offset(1), 70),),
        dirty_from=Offset(0),
        now_ms=0,
        delete_retention_ms=0,
        segment_bytes=100,
        interval_bytes=100,
        producers=frozenset(),
        limits=CompactionLimits(),
    )


async def run_through(job: Job) -> None:
    async with open_run(job) as run:
        async for _ in run.segments():
            raise AssertionError


def test_a_job_goes_to_another_process_and_is_the_same() -> None:
    job = a_job("/somewhere")
    assert Job.from_json(job.to_json()) == job


async def test_a_file_that_is_gone_is_said_by_the_process(tmp_path: Path) -> None:
    with pytest.raises(CompactionFailed, match="No such file"):
        await run_through(a_job(str(tmp_path)))


async def test_what_lies_where_the_broker_runs_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CompactionFailed, match="No such file"):
        await run_through(a_job(str(tmp_path)))


async def test_a_process_that_dies_says_what_may_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_COMMAND", ("sh", "-c", "kill -9 $$"))
    with pytest.raises(CompactionFailed, match=r"status -9\. .*dedupe\.buffer\.size smaller"):
        await run_through(a_job(str(tmp_path)))


async def test_without_a_process_a_run_fails_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_COMMAND", ("/no/such/python",))
    with pytest.raises(CompactionFailed, match=r"cannot be started: .*No such file"):
        await run_through(a_job(str(tmp_path)))
