"""Metadata: traps M1 to M8 of the protocol."""

from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.handlers.turns import counting_turns
from tests.broker.nodes import open_node
from tidemark.broker import steps
from tidemark.broker.access.operations import ALL_BITS
from tidemark.broker.config import Address
from tidemark.broker.handlers import list_offsets, metadata
from tidemark.broker.metadata.topic import NewTopic
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.acls import ResourceType
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tidemark.protocol.messages.metadata import (
    NOT_ASKED,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

VERSIONS = range(13)


def asking_for(*names: str, allow: bool = True) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=allow)


def names(response: MetadataResponse) -> list[str | None]:
    return [topic.name for topic in response.topics]


def errors(response: MetadataResponse) -> list[int]:
    return [topic.error_code for topic in response.topics]


@pytest.mark.parametrize("version", VERSIONS)
async def test_trap_m1_null_asks_for_all_and_an_empty_list_for_none_except_in_version_0(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path) as node:
        for name in ("waves", "tides"):
            await node.topics.create(NewTopic(name=name, partitions=1))
        nothing = await ask(metadata.handle, node, MetadataRequest(topics=()), version)
        assert names(nothing) == (["waves", "tides"] if version == 0 else [])
        if version > 0:
            everything = await ask(metadata.handle, node, MetadataRequest(topics=None), version)
            assert names(everything) == ["waves", "tides"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_trap_m2_a_topic_asked_for_by_name_is_created_with_a_leader_in_the_same_answer(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path) as node:
        response = await ask(metadata.handle, node, asking_for("waves"), version)
        (topic,) = response.topics
        assert topic.error_code == ErrorCode.NONE
        assert [partition.leader_id for partition in topic.partitions] == [1] * 4
        assert node.topics.get("waves") is not None


async def test_trap_m2_a_topic_is_not_created_where_the_client_or_the_broker_says_so(
    tmp_path: Path,
) -> None:
    unknown = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    async with open_node(tmp_path) as node:
        response = await ask(metadata.handle, node, asking_for("waves", allow=False), 12)
        assert errors(response) == unknown
    async with open_node(tmp_path, auto_create_topics_enable=False) as node:
        assert errors(await ask(metadata.handle, node, asking_for("waves"), 12)) == unknown
        assert node.topics.get("waves") is None


async def test_trap_m2_asking_for_the_offsets_topic_creates_it_as_an_internal_one(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, offsets_topic_num_partitions=2) as node:
        response = await ask(metadata.handle, node, asking_for(CONSUMER_OFFSETS), 12)
        (topic,) = response.topics
        assert (topic.is_internal, len(topic.partitions)) == (True, 2)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "x" * 250])
@pytest.mark.parametrize("allow", [True, False])
async def test_trap_m3_a_name_that_no_topic_can_have_is_invalid_and_not_created(
    tmp_path: Path, name: str, allow: bool
) -> None:
    async with open_node(tmp_path) as node:
        response = await ask(metadata.handle, node, asking_for(name, allow=allow), 12)
        assert errors(response) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
        assert list(node.topics) == []


async def test_trap_m3_one_bad_name_does_not_spoil_the_others(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        response = await ask(metadata.handle, node, asking_for("a b", "waves"), 12)
        assert errors(response) == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]


async def test_trap_m4_a_topic_made_by_first_use_has_four_partitions(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        response = await ask(metadata.handle, node, asking_for("waves"), 1)
        assert len(response.topics[0].partitions) == 4


async def test_trap_m5_an_id_is_looked_up_from_version_12_and_refused_before(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        waves = await node.topics.create(NewTopic(name="waves", partitions=1))
        by_id = MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=waves.id),))
        assert names(await ask(metadata.handle, node, by_id, 12)) == ["waves"]
        for version in (10, 11):
            refused = await ask(metadata.handle, node, by_id, version)
            assert errors(refused) == [ErrorCode.INVALID_REQUEST]


async def test_trap_m5_an_unknown_id_is_answered_with_a_null_name_and_creates_nothing(
    tmp_path: Path,
) -> None:
    stranger = UUID(int=77)
    async with open_node(tmp_path) as node:
        by_id = MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=stranger),))
        (topic,) = (await ask(metadata.handle, node, by_id, 12)).topics
        assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
        assert topic.topic_id == stranger
        assert list(node.topics) == []


async def test_trap_m6_a_topic_has_an_id_that_is_not_zero_and_stays(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        first = (await ask(metadata.handle, node, asking_for("waves"), 12)).topics[0].topic_id
    async with open_node(tmp_path) as node:
        second = (await ask(metadata.handle, node, asking_for("waves"), 12)).topics[0].topic_id
    assert first == second
    assert first.int != 0


async def test_trap_m7_the_controller_is_one_of_the_brokers_listed(tmp_path: Path) -> None:
    async with open_node(tmp_path, node_id=5, broker_rack="r1") as node:
        address = Address("10.0.0.9", 1234)
        request = MetadataRequest(topics=())
        response = await ask(metadata.handle, node, request, 12, listener=address)
        (broker,) = response.brokers
        assert response.controller_id == broker.node_id == 5
        assert (broker.host, broker.port, broker.rack) == ("10.0.0.9", 1234, "r1")
        assert response.cluster_id == node.cluster_id


async def test_trap_m8_the_leader_epoch_is_real_and_grows_with_every_start(tmp_path: Path) -> None:
    epochs = []
    for _ in range(3):
        async with open_node(tmp_path) as node:
            response = await ask(metadata.handle, node, asking_for("waves"), 9)
            epochs.append(response.topics[0].partitions[0].leader_epoch)
    assert epochs == [0, 1, 2]


@pytest.mark.parametrize("version", [8, 9, 10, 11, 12])
async def test_what_a_client_may_do_is_said_only_if_it_asks(tmp_path: Path, version: int) -> None:
    async with open_node(tmp_path) as node:
        silent = await ask(metadata.handle, node, asking_for("waves"), version)
        assert silent.topics[0].topic_authorized_operations == NOT_ASKED
        assert silent.cluster_authorized_operations == NOT_ASKED
        curious = MetadataRequest(
            topics=None,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=version <= 10,
        )
        told = await ask(metadata.handle, node, curious, version)
        assert told.topics[0].topic_authorized_operations == ALL_BITS[ResourceType.TOPIC]
        expected = ALL_BITS[ResourceType.CLUSTER] if version <= 10 else NOT_ASKED
        assert told.cluster_authorized_operations == expected


async def test_a_partition_whose_files_cannot_be_served_has_no_leader(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", partitions=2))
    damage(tmp_path / "waves-1")
    async with open_node(tmp_path) as node:
        response = await ask(metadata.handle, node, asking_for("waves"), 12)
        well, ill = response.topics[0].partitions
        assert (well.error_code, well.leader_id) == (ErrorCode.NONE, 1)
        assert (ill.error_code, ill.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert (list(ill.isr_nodes), list(ill.offline_replicas)) == ([], [1])


def damage(directory: Path) -> None:
    """Make a partition's log one that cannot be opened."""
    for file in directory.iterdir():
        file.unlink()
    (directory / "00000000000000000000.log").mkdir()


@pytest.mark.parametrize("asks_for", ["all", "some", "none of them"])
async def test_others_have_their_turn_while_much_is_described(
    tmp_path: Path, asks_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", 10)
    request = {
        "all": MetadataRequest(topics=None, allow_auto_topic_creation=False),
        "some": asking_for(*(f"t{number}" for number in range(4)), allow=False),
        "none of them": asking_for(*(f"no-{number}" for number in range(100)), allow=False),
    }[asks_for]
    async with open_node(tmp_path) as node:
        for number in range(4):
            await node.topics.create(NewTopic(name=f"t{number}", partitions=20))
        async with counting_turns() as turns:
            await ask(metadata.handle, node, request, 9)
        assert turns.count >= 2


async def test_others_have_their_turn_while_many_ends_are_looked_up(tmp_path: Path) -> None:
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[ListOffsetsTopic(name="t", partitions=[asked] * 10_000)],
    )
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="t", partitions=1))
        async with counting_turns() as turns:
            await ask(list_offsets.handle, node, request, 7)
        assert turns.count >= 8
