"""The configs by which Kafka's tools throttle replication: set, shown, and deleted again."""

from pathlib import Path

import pytest

from tests.broker.handlers.configuring import (
    ALL_BROKERS,
    BROKER,
    ONE_BROKER,
    by_name,
    change,
    describe,
    overrides,
    replace,
)
from tests.broker.nodes import open_node
from tidemark.broker.metadata.topic import NewTopic
from tidemark.partitions.state_machines.cluster_commands import SetTopicConfigs
from tidemark.protocol.configs import AlterOp
from tidemark.protocol.errors import ErrorCode, RequestError

RATE = "leader.replication.throttled.rate"
REPLICAS = "follower.replication.throttled.replicas"
SET, DELETE, APPEND, SUBTRACT = AlterOp


async def test_a_rate_is_shown_with_where_it_comes_from_as_long_as_it_is_set(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        assert RATE not in by_name(await describe(node, BROKER, "1"))
        for broker, value in (("", "2000"), ("1", "1000")):
            assert await change(node, broker, (RATE, SET, value), resource_type=BROKER) == 0
        shown = by_name(await describe(node, BROKER, "1"))[RATE]
        assert (shown.value, shown.config_source, shown.read_only) == ("1000", ONE_BROKER, False)
        assert [(each.name, each.value, each.source) for each in shown.synonyms] == [
            (RATE, "1000", ONE_BROKER),
            (RATE, "2000", ALL_BROKERS),
        ]
        of_all = by_name(await describe(node, BROKER, ""))
        assert {name: each.value for name, each in of_all.items()} == {RATE: "2000"}
        assert await change(node, "1", (RATE, DELETE, None), resource_type=BROKER) == 0
        shown = by_name(await describe(node, BROKER, "1"))[RATE]
        assert (shown.value, shown.config_source) == ("2000", ALL_BROKERS)
        assert await replace(node, "", {}, resource_type=BROKER) == 0
        assert RATE not in by_name(await describe(node, BROKER, "1"))


async def test_a_rate_and_a_default_for_topics_are_changed_together(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        both = ((RATE, SET, "1000"), ("log.retention.ms", SET, "5"))
        assert await change(node, "1", *both, resource_type=BROKER) == 0
        shown = by_name(await describe(node, BROKER, "1"))
        assert (shown[RATE].value, shown["log.retention.ms"].value) == ("1000", "5")


@pytest.mark.parametrize("text", ["*", "", "0:1,0:2, 1:3", "10:0"])
async def test_a_list_of_replicas_is_taken(tmp_path: Path, text: str) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves"))
        assert await change(node, "waves", (REPLICAS, SET, text)) == 0
        assert await overrides(node, "waves") == {REPLICAS: text}


@pytest.mark.parametrize("text", ["0", "0:", "a:1", "0:1:2", "*,0:1", "-1:1", "0:1;0:2"])
async def test_what_is_no_list_of_replicas_is_not_taken(tmp_path: Path, text: str) -> None:
    async with open_node(tmp_path) as node:
        with pytest.raises(RequestError, match="it takes partition:broker, with commas between"):
            await node.topics.create(NewTopic(name="waves", configs={REPLICAS: text}))
        await node.topics.create(NewTopic(name="waves"))
        assert await change(node, "waves", (REPLICAS, SET, text)) == ErrorCode.INVALID_CONFIG
        assert await replace(node, "waves", {REPLICAS: text}) == ErrorCode.INVALID_CONFIG
        assert await overrides(node, "waves") == {}


async def test_a_list_that_was_taken_before_keeps_nothing_from_being_changed(
    tmp_path: Path,
) -> None:
    """They were not checked once, so topics may have any."""
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves"))
        await node.cluster.propose(
            lambda state: SetTopicConfigs(
                at_version=state.version, id=topic.id, configs={REPLICAS: "any"}
            )
        )
        assert await change(node, "waves", ("retention.ms", SET, "5")) == 0
        assert await overrides(node, "waves") == {REPLICAS: "any", "retention.ms": "5"}


async def test_replicas_are_added_to_a_list_and_taken_out_of_it(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", configs={REPLICAS: "0:1"}))
        assert await change(node, "waves", (REPLICAS, APPEND, "0:2,0:3")) == 0
        assert await change(node, "waves", (REPLICAS, SUBTRACT, "0:1,0:2")) == 0
        assert await overrides(node, "waves") == {REPLICAS: "0:3"}
