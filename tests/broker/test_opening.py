"""Partitions through restarts, and with disks and files that are not as they should be."""

import errno
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.handlers.producing import batch, begin, new_topic, produce, request
from tests.broker.nodes import open_node
from tests.descriptors import no_descriptors
from tests.partitions.storage.every_crash import every_crash
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.network.requests import Pending
from tidemark.broker.replicas.opening import _make_directories
from tidemark.broker.replicas.replica import Replica, ReplicaSpec
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.raft.ready import Ready
from tidemark.partitions.replication.group_log import GroupLog
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.os_files import OsFile
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.state_db import Condition, StateDb
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.types import BytesLike, Epoch, NodeId, Offset
from tidemark.testing.memory_files import MemoryFiles


def offsets(replica: Replica) -> list[int]:
    data = replica.read(replica.log_start, bytes_max=1_000_000, at_least_one=True).read()
    return [record.offset for record in decode_records(data)]


async def test_every_opening_begins_an_epoch_that_batches_carry(tmp_path: Path) -> None:
    for opening in range(3):
        async with open_node(tmp_path) as node:
            if opening == 0:
                await new_topic(node)
            replica = node.topics.replica("t", 0)
            assert replica is not None
            assert replica.epoch == opening
            await produce(node, request(batch()))
            assert [replica.epoch_at(Offset(n)) for n in range(opening + 1)] == list(
                range(opening + 1)
            )


async def test_every_epoch_leaves_a_row_with_its_leader_and_voters(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await new_topic(node)
    for _ in range(2):
        async with open_node(tmp_path):
            pass
    state = StateDb.open(f"{tmp_path}/state.db")
    states = state.partition_states().values()
    (stored,) = (each for each in states if each.key != CLUSTER_KEY)
    state.close()
    alone = Configuration((NodeId(1),))
    assert stored.name == "t-0"
    assert stored.epochs == tuple(
        EpochStart(Epoch(epoch), Offset(0), NodeId(1), alone) for epoch in range(3)
    )
    assert stored.hard_state == HardState(Epoch(2), NodeId(1))


async def test_a_clean_stop_leaves_nothing_to_recover(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="t", partitions=20))
        for partition in range(20):
            await produce(node, request(batch(), partition=partition))
    async with open_node(tmp_path) as node:
        topic = node.topics.get("t")
        assert topic is not None
        assert all(replica.log.recovery.clean for replica in topic.replicas)
        assert [offsets(replica) for replica in topic.replicas] == [[0]] * 20


async def test_a_damaged_partition_is_not_served_and_the_others_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_node(tmp_path) as node:
        for name in ("damaged", "sound"):
            await new_topic(node, name)
            await produce(node, request(batch(), topic=name))
    log = tmp_path / "damaged-0" / "00000000000000000000.log"
    log.write_bytes(b"\xff" * log.stat().st_size)
    async with open_node(tmp_path) as node:
        answer = await produce(node, request(batch(), topic="damaged"))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        replica = node.topics.replica("damaged", 0)
        assert replica is not None
        assert replica.failure is not None
        assert "corrupt" in replica.failure
        assert not replica.is_available
        assert (await produce(node, request(batch(), topic="sound"))).error_code == ErrorCode.NONE
        assert node.metrics.storage_errors.value >= 1
    assert "damaged-0 is not served" in caplog.text


async def test_a_lone_replica_that_lost_what_it_promised_is_not_served_and_holds_up_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody has its records any more, so it would wait for ever to be made good."""
    async with open_node(tmp_path) as node:
        for name in ("damaged", "sound"):
            await new_topic(node, name)
            await produce(node, request(batch(), topic=name))
        damaged = node.topics.replica("damaged", 0)
        assert damaged is not None
    state = StateDb.open(f"{tmp_path}/state.db")
    stored = state.partition_states()[damaged.key]
    state.save([replace(stored, condition=Condition.DAMAGED)])
    state.close()
    for _ in range(2):
        async with open_node(tmp_path) as node:
            refused = await produce(node, request(batch(), topic="damaged"))
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            answer = await produce(node, request(batch(), topic="sound"))
            assert answer.error_code == ErrorCode.NONE
    assert "damaged-0 is not served: records that had been acknowledged are lost" in caplog.text


async def test_a_full_disk_refuses_appends_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await produce(node, request(batch()))

        def full(self: OsFile, data: BytesLike, position: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(OsFile, "pwrite", full)
            refused = await produce(node, request(batch()))
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert offsets(replica) == [0]
        assert node.metrics.storage_errors.value == 1
        assert (await produce(node, request(batch()))).base_offset == 1


async def test_a_coordinators_batches_are_placed_and_awaited(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await produce(node, request(batch()))
        first = encode_batch([Record(value=b"a"), Record(value=b"b")])
        second = encode_batch([Record(value=b"c")])
        end_offset = replica.append_own(first + second).end_offset
        await replica.wait_committed(end_offset)
        assert replica.high_watermark == end_offset == 4
        assert offsets(replica) == [0, 1, 2, 3]


async def test_a_closed_replica_refuses_and_answers_whoever_waits(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        with node.disk.others():  # so that the loop does not sync it at once
            answer = begin(node, request(batch()))
        assert isinstance(answer, Pending)
        member = replica.close()
        assert answer.is_complete
        with pytest.raises(RequestError, match="NOT_LEADER_OR_FOLLOWER"):
            replica.read(Offset(0), bytes_max=1, at_least_one=True)
        refused = await produce(node, request(batch()))
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert member is not None
        await node.disk.wait_idle()
        member.log.abandon()


async def test_retention_removes_what_the_config_no_longer_keeps(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node, segment_bytes="1024", retention_bytes="1024")
        for _ in range(10):
            await produce(node, request(batch(bytes(600))))
        replica.apply_retention(node.clock.now_ms())
        start = replica.log_start
        assert 0 < start < 10
    async with open_node(tmp_path) as node:
        again = node.topics.replica("t", 0)
        assert again is not None
        assert again.log_start == start
        assert offsets(again)[0] == start


async def test_a_checkpoint_records_what_was_synced(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        await produce(node, request(batch()))
        services = replica._services
        await services.checkpoints.checkpoint()
        stored = services.state.partition_states()[replica.key]
        assert stored.recovery_point == 1
        assert stored.epochs == replica.member.group.shape.rows
        await services.checkpoints.checkpoint()
        assert services.state.partition_states()[replica.key] == stored


async def test_a_stop_leaves_a_log_that_could_not_be_cut_yet_to_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(store: GroupLog, ready: Ready) -> None:
        raise OSError(errno.EMFILE, "no descriptor")

    async with open_node(tmp_path) as node:
        await new_topic(node)
        replica = node.topics.replica("t", 0)
        assert replica is not None
        await produce(node, request(batch()))
        member = replica.member
        monkeypatch.setattr(GroupLog, "cut", refuse)
        services = replica._services
        services.turn.run(lambda: member._hold(Ready(truncate_to=member.committed)))
        services.turn.run(services.driver.touch)
        await services.driver.wait_durable()
        assert member.is_held
    monkeypatch.undo()
    state = StateDb.open(f"{tmp_path}/state.db")
    assert state.meta("clean_stop") == "0"
    state.close()
    async with open_node(tmp_path) as node:
        replica = node.topics.replica("t", 0)
        assert replica is not None
        assert offsets(replica) == [0]


async def test_a_stop_without_descriptors_leaves_what_it_cannot_close_to_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as out:
        async with open_node(tmp_path) as node:
            await new_topic(node)
            assert (await produce(node, request(batch()))).error_code == ErrorCode.NONE
            out.enter_context(no_descriptors())
    assert (
        "could not be closed, and are looked through at the next start: [Errno 24]" in caplog.text
    )
    async with open_node(tmp_path) as node:
        replica = node.topics.replica("t", 0)
        assert replica is not None
        assert offsets(replica) == [0]


def test_a_directory_whose_making_was_not_synced_is_by_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is recorded of a partition later must not be lost with its directory."""
    files = MemoryFiles()
    directory = DataDirectory.open(files, "/data")
    spec = ReplicaSpec(topic="t", topic_id=UUID(int=5), partition=0, config=TopicConfig())

    def refuse(path: str) -> None:
        raise OSError(errno.EMFILE, "no descriptor")

    with monkeypatch.context() as full:
        full.setattr(files, "sync_directory", refuse)
        with pytest.raises(OSError, match="no descriptor"):
            _make_directories(directory, [spec], {})
    _make_directories(directory, [spec], {})
    for disk in every_crash(files):
        assert disk.exists("/data/t-0")
    before = len(files.synced_paths)
    _make_directories(directory, [spec], {spec.key})
    assert len(files.synced_paths) == before


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
async def test_a_stop_whose_syncs_fail_is_known_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The page cache shows what the disk does not have, be it for want of room."""

    def fail(file: OsFile) -> None:
        raise SyncFailed(number, "not synced")

    with pytest.RaisesGroup(SyncFailed, flatten_subgroups=True, allow_unwrapped=True):
        async with open_node(tmp_path) as node:
            await new_topic(node)
            await produce(node, request(batch()))
            monkeypatch.setattr(OsFile, "sync", fail)
    monkeypatch.undo()
    assert "a sync has failed" in (tmp_path / "lock").read_text()
