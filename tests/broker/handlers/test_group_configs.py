"""A group's own configs: described with where they come from, changed, and held to."""

from pathlib import Path

import pytest

from tests.broker.handlers.configuring import by_name, change, describe, replace
from tests.broker.nodes import open_node
from tidemark.broker.metadata import config_changes
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.group_configs import NAME_BYTES_MAX
from tidemark.protocol.configs import AlterOp
from tidemark.protocol.errors import ErrorCode

GROUP, OWN, FILE, DEFAULT = 32, 8, 4, 5
SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


async def alter(node: Node, group: str, key: str, value: str) -> int:
    return await change(node, group, (key, AlterOp.SET, value), resource_type=GROUP)


async def test_a_group_has_what_it_sets_and_else_what_its_broker_has(tmp_path: Path) -> None:
    settings = {"group_consumer_session_timeout_ms": 20_000}
    async with open_node(tmp_path, **settings) as node:
        assert await alter(node, "billing", SESSION, "30000") == 0
        configs = by_name(await describe(node, GROUP, "billing"))
        assert {name: (each.value, each.config_source) for name, each in configs.items()} == {
            SESSION: ("30000", OWN),
            INTERVAL: ("5000", DEFAULT),
        }
        assert [(each.value, each.source) for each in configs[SESSION].synonyms] == [
            ("30000", OWN),
            ("20000", FILE),
            ("45000", DEFAULT),
        ]
    async with open_node(tmp_path, **settings) as node:
        assert node.cluster.state.group_configs("billing") == {SESSION: "30000"}
        assert await replace(node, "billing", {}, resource_type=GROUP) == 0
        assert node.cluster.state.groups_with_configs == []


@pytest.mark.parametrize(
    ("name", "key", "value", "code"),
    [
        ("billing", SESSION, "0", ErrorCode.INVALID_CONFIG),
        ("billing", "retention.ms", "5", ErrorCode.INVALID_CONFIG),
        ("billing", INTERVAL, "45000", ErrorCode.INVALID_CONFIG),
        ("", SESSION, "30000", ErrorCode.INVALID_REQUEST),
        ("x" * (NAME_BYTES_MAX + 1), SESSION, "30000", ErrorCode.INVALID_CONFIG),
    ],
    ids=["out of range", "of a topic", "as long as the session", "no name", "a long name"],
)
async def test_what_cannot_be_changes_nothing(
    tmp_path: Path, name: str, key: str, value: str, code: ErrorCode
) -> None:
    async with open_node(tmp_path) as node:
        assert await alter(node, name, key, value) == code
        assert node.cluster.state.groups_with_configs == []


async def test_the_number_of_groups_with_configs_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in every snapshot of the metadata, whether there are such groups or not."""
    monkeypatch.setattr(config_changes, "GROUPS_MAX", 2)
    async with open_node(tmp_path) as node:
        assert [await alter(node, name, SESSION, "30000") for name in "ab"] == [0, 0]
        assert await alter(node, "c", SESSION, "30000") == ErrorCode.POLICY_VIOLATION
        assert await alter(node, "a", SESSION, "20000") == 0
        assert await replace(node, "a", {}, resource_type=GROUP) == 0
        assert await alter(node, "c", SESSION, "30000") == 0
        assert node.cluster.state.groups_with_configs == ["b", "c"]
