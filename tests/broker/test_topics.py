"""Topics: what a change does, what it leaves behind, and what a crash in between comes to."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
import trio

from tests.broker.clusters import wait_until
from tests.broker.nodes import open_node
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.client_quotas import EntityPart, EntityType, QuotaChange
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import AlterQuotas, SetBrokerConfigs
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.types import NodeId, Offset


def directories(data_dir: Path, topic: str) -> list[str]:
    """What there is of a topic in the data directory, whatever has become of it."""
    return sorted(path.name for path in data_dir.glob(f"{topic}-*"))


async def test_a_topic_is_there_after_a_restart_with_its_id_and_configs(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        made = await node.topics.create(
            NewTopic(name="waves", partitions=3, configs={"retention.ms": "5"})
        )
        assert [replica.epoch for replica in made.replicas] == [0, 0, 0]
    async with open_node(tmp_path) as node:
        found = node.topics.get("waves")
        assert found is not None
        assert found is node.topics.by_id(made.id)
        assert found.config.retention_ms == 5
        assert [replica.partition for replica in found.replicas] == [0, 1, 2]
        assert [replica.epoch for replica in found.replicas] == [1, 1, 1], "epochs never go back"
        assert node.topics.replica("waves", 2) is found.replicas[2]
        assert node.topics.replica("waves", 3) is None
        assert node.topics.replica("waves", -1) is None


async def test_the_cluster_keeps_its_id_and_refuses_another(tmp_path: Path) -> None:
    async with open_node(tmp_path, cluster_id="ours") as node:
        assert node.cluster_id == "ours"
    async with open_node(tmp_path) as node:
        assert node.cluster_id == "ours"
    with pytest.raises(StorageError, match=r"is of cluster ours, and cluster\.id is theirs"):
        async with open_node(tmp_path, cluster_id="theirs"):
            pass


async def test_the_broker_decides_what_is_left_open(tmp_path: Path) -> None:
    async with open_node(
        tmp_path, num_partitions=2, topic_defaults={"retention.ms": "7", "flush": "os"}
    ) as node:
        topic = await node.topics.create(NewTopic(name="waves", configs={"flush": "commit"}))
        assert topic.partition_count == 2
        assert (topic.config.retention_ms, topic.config.flush) == (7, "commit")


async def test_validate_only_makes_nothing(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=9), validate_only=True)
        assert topic.partition_count == 9
        assert node.topics.get("waves") is None
    assert not directories(tmp_path, "waves")


async def test_two_who_use_a_topic_first_at_once_get_the_same_one(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        got = []

        async def use() -> None:
            got.append(await node.topics.ensure(NewTopic(name="waves")))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(use)
        assert len({topic.id for topic in got}) == 1


async def test_the_offsets_topic_is_as_the_broker_says_whoever_asks(tmp_path: Path) -> None:
    async with open_node(tmp_path, offsets_topic_num_partitions=3) as node:
        topic = await node.topics.create(NewTopic(name=CONSUMER_OFFSETS, partitions=77))
        assert topic.is_internal
        assert topic.partition_count == 3
        assert topic.config.is_compacted
        with pytest.raises(RequestError, match="POLICY_VIOLATION"):
            await node.topics.delete(topic)
        with pytest.raises(RequestError, match="POLICY_VIOLATION"):
            await node.topics.create_partitions(topic, 9)


async def test_more_partitions_join_those_that_are_there(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        first = topic.replicas[0]
        await node.topics.create_partitions(topic, 3)
        grown = node.topics.get("waves")
        assert grown is not None
        assert grown.replicas[0] is first
        assert [replica.partition for replica in grown.replicas] == [0, 1, 2]


async def test_a_change_of_configs_reaches_the_replicas(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))

        def shorter(before: Mapping[str, str]) -> dict[str, str]:
            return {**before, "max.message.bytes": "99"}

        await node.topics.change_configs(topic, shorter, validate_only=True)
        assert topic.replicas[0].config.max_message_bytes != 99
        await node.topics.change_configs(topic, shorter)
        assert topic.replicas[0].config.max_message_bytes == 99
        await node.topics.change_configs(topic, lambda _: {})
        assert topic.replicas[0].config.max_message_bytes == 1048588


@pytest.mark.parametrize("node_id", [None, NodeId(1)])
async def test_a_change_of_the_brokers_defaults_reaches_the_replicas_also_after_a_restart(
    tmp_path: Path, node_id: NodeId | None
) -> None:
    configs = {"message.max.bytes": "99"}
    async with open_node(tmp_path) as node:
        plain = await node.topics.create(NewTopic(name="waves", partitions=1))
        own = {"max.message.bytes": "70"}
        await node.topics.create(NewTopic(name="own", partitions=1, configs=own))
        await node.cluster.propose(partial(_set_broker_configs, node_id=node_id, configs=configs))
        assert plain.replicas[0].config.max_message_bytes == 99
    async with open_node(tmp_path) as node:
        found = {topic.name: topic.replicas[0].config.max_message_bytes for topic in node.topics}
        assert found == {"waves": 99, "own": 70}


async def test_what_was_set_for_a_broker_comes_before_what_was_set_for_all(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, topic_defaults={"max.message.bytes": "3"}) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))
        seen = [topic.config.max_message_bytes]
        for node_id, value in ((None, "2"), (NodeId(1), "1"), (NodeId(1), None), (None, None)):
            configs = {} if value is None else {"message.max.bytes": value}
            await node.cluster.propose(
                partial(_set_broker_configs, node_id=node_id, configs=configs)
            )
            seen.append(topic.replicas[0].config.max_message_bytes)
        assert seen == [3, 2, 1, 2, 3]


def _set_broker_configs(
    state: ClusterState, *, node_id: NodeId | None, configs: dict[str, str]
) -> SetBrokerConfigs:
    return SetBrokerConfigs(at_version=state.version, node_id=node_id, configs=configs)


async def test_a_deleted_topic_is_gone_at_once_and_its_name_is_free(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        old = await node.topics.create(NewTopic(name="waves", partitions=2))
        await node.topics.delete(old)
        assert node.topics.get("waves") is None
        assert node.topics.by_id(old.id) is None
        with pytest.raises(RequestError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            old.replicas[0].read(old.replicas[0].high_watermark, bytes_max=1, at_least_one=True)
        new = await node.topics.create(NewTopic(name="waves", partitions=1))
        assert new.id != old.id
        with pytest.raises(RequestError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await node.topics.delete(old)
        await wait_until(lambda: directories(tmp_path, "waves") == ["waves-0"])


async def test_a_crash_after_creation_was_recorded_leaves_a_topic(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", partitions=2))
    for name in directories(tmp_path, "waves"):
        shutil.rmtree(tmp_path / name)
    async with open_node(tmp_path) as node:
        topic = node.topics.get("waves")
        assert topic is not None
        assert all(replica.is_available for replica in topic.replicas)


async def test_a_crash_after_deletion_was_recorded_leaves_no_topic_and_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise OSError("power cut")

    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=2))
        monkeypatch.setattr("tidemark.broker.metadata.hosted_files.move_away", crash)
        with pytest.raises(RequestError, match="power cut"):
            await node.topics.delete(topic)
    monkeypatch.undo()
    assert directories(tmp_path, "waves") == ["waves-0", "waves-1"]
    async with open_node(tmp_path) as node:
        assert node.topics.get("waves") is None
        await node.topics.create(NewTopic(name="waves", partitions=1))
        await wait_until(lambda: directories(tmp_path, "waves") == ["waves-0"])


async def test_a_crash_while_files_are_removed_is_made_good_by_the_next_start(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves"))
    leftover = tmp_path / ("tides-0." + "0" * 32 + "-delete")
    leftover.mkdir()
    (leftover / "00000000000000000000.log").write_bytes(b"records")
    async with open_node(tmp_path):
        await wait_until(lambda: not leftover.exists())


async def test_a_directory_that_belongs_to_no_topic_is_not_touched(tmp_path: Path) -> None:
    async with open_node(tmp_path):
        pass
    stranger = tmp_path / "tides-0"
    stranger.mkdir()
    (stranger / "00000000000000000000.log").write_bytes(b"somebody's records")
    async with open_node(tmp_path) as node:
        with pytest.raises(RequestError, match="move it away"):
            await node.topics.create(NewTopic(name="tides"))
    assert (stranger / "00000000000000000000.log").read_bytes() == b"somebody's records"


async def test_producer_ids_are_never_given_twice(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        first = await node.controller.allocate_producer_ids(1000)
    async with open_node(tmp_path) as node:
        second = await node.controller.allocate_producer_ids(1000)
    assert first.end <= second.first


async def test_many_commands_become_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.broker.metadata.cluster_snapshots.COMMANDS_MAX", 5)
    async with open_node(tmp_path) as node:
        kept = await node.topics.create(NewTopic(name="kept", partitions=1))
        gone = await node.topics.create(NewTopic(name="gone", partitions=1))
        await node.topics.delete(gone)
    for allocated in range(6):
        async with open_node(tmp_path) as node:
            assert [topic.id for topic in node.topics] == [kept.id]
            block = await node.controller.allocate_producer_ids(1)
            assert block.first == allocated
    with trio.fail_after(20):
        # The last broker may have been stopped before it had taken one.
        while _metadata_start(tmp_path) <= 5:
            async with open_node(tmp_path):
                await trio.sleep(0.1)


async def test_what_lies_below_a_snapshot_goes_from_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.broker.metadata.cluster_snapshots.COMMANDS_MAX", 20)
    client = (EntityPart(EntityType.CLIENT_ID, "c" * 30_000),)
    async with open_node(tmp_path) as node:
        for rate in range(500):
            change = QuotaChange(entity=client, values={"producer_byte_rate": 1.0 + rate})
            await node.cluster.propose(partial(_quotas_altered, change))
        directory = tmp_path / "__cluster-0"
        await wait_until(
            lambda: sum(log.stat().st_size for log in directory.glob("*.log")) < 9_000_000,
            seconds=10,
        )


def _quotas_altered(change: QuotaChange, state: ClusterState) -> AlterQuotas:
    return AlterQuotas(at_version=state.version, changes=(change,))


def _metadata_start(data_dir: Path) -> Offset:
    state = StateDb.open(str(data_dir / "state.db"))
    try:
        return state.partition_states()[CLUSTER_KEY].log_start
    finally:
        state.close()


async def test_a_disk_that_does_not_take_a_change_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=1))

        def refuse(*_: object) -> None:
            raise StorageError("disk full")

        monkeypatch.setattr("tidemark.partitions.storage.log.Log.append", refuse)
        with pytest.raises(RequestError) as raised:
            await node.topics.change_configs(topic, lambda _: {"retention.ms": "1"})
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert node.metrics.storage_errors.value == 1
        monkeypatch.undo()
        await node.topics.change_configs(topic, lambda _: {"retention.ms": "1"})


class _InOrder(list[object]):
    """Replicas of which nobody looks at all."""

    def __iter__(self) -> Iterator[object]:
        raise AssertionError("there may be thousands, and each is asked for")


@pytest.mark.parametrize("here", [(), (0, 1, 2), (1,), (0, 2, 3), (2, 3, 7), (0, 1, 5)])
def test_a_replica_is_found_wherever_the_others_are(here: Sequence[int]) -> None:
    replicas = _InOrder(SimpleNamespace(partition=each) for each in here)
    metadata = TopicMetadata(
        name="waves",
        id=UUID(int=1),
        assignments=((NodeId(1),),) * 8,
        configs={},
        created_ms=0,
    )
    topic = Topic.of(metadata, {}, cast("Sequence[Replica]", replicas))
    found = [topic.replica(partition) for partition in range(-2, 10)]
    assert [each.partition for each in found if each is not None] == list(here)
    assert [at for at, each in enumerate(found, start=-2) if each is not None] == list(here)
