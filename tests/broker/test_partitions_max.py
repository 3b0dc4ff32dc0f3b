"""How many partitions a broker may hold."""

from pathlib import Path

import pytest

from tests.broker.clusters import open_brokers
from tests.broker.nodes import open_node
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId


async def test_there_is_a_limit_to_the_partitions_of_a_broker(tmp_path: Path) -> None:
    async with open_node(tmp_path, partitions_max=5, offsets_topic_num_partitions=1) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=3))
        with pytest.raises(RequestError, match=r"partitions\.max"):
            await node.topics.create(NewTopic(name="tides", partitions=3))
        with pytest.raises(RequestError, match=r"partitions\.max"):
            await node.topics.create_partitions(topic, 6)
        await node.topics.create_partitions(topic, 5)
        # Its coordinators' topics have to be there, whatever clients have made.
        await node.topics.ensure_own(CONSUMER_OFFSETS)
        await node.topics.delete(topic)
        names = [NewTopic(name=f"t-{n}", partitions=2) for n in range(3)]
        planned = await node.topics.create_all(names, validate_only=True)
        assert [isinstance(each, Topic) for each in planned] == [True, True, False]
        assert node.topics.get("t-0") is None
        made = await node.topics.create_all(names)
        assert [isinstance(each, Topic) for each in made] == [True, True, False]
        assert "the cluster holds 5 replicas" in str(made[2])


async def test_what_can_be_nowhere_is_not_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place(*_: object, **__: object) -> None:
        raise AssertionError("a hundred thousand partitions take seconds")

    async with open_node(tmp_path, partitions_max=5) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=3))
        monkeypatch.setattr("tidemark.broker.metadata.topic_creation.place", place)
        with pytest.raises(RequestError, match="holds 3 replicas, and 3 more"):
            await node.topics.create(NewTopic(name="tides", partitions=3), validate_only=True)
        with pytest.raises(RequestError, match="holds 3 replicas, and 3 more"):
            await node.topics.create_partitions(topic, 6, validate_only=True)


async def test_a_broker_may_be_full_while_others_are_not(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 2, partitions_max=4) as brokers:
        on_1 = NewTopic(name="waves", assignments=((NodeId(1),),) * 5)
        with pytest.raises(RequestError, match=r"broker 1 holds 0 partitions, and 5 more"):
            await brokers.create(on_1)
