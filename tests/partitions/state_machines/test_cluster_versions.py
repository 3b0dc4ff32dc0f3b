"""Which brokers can read which commands."""

from uuid import UUID

import pytest

from tidemark.partitions.state_machines.cluster_commands import (
    AllocateProducerIds,
    AlterAcls,
    AlterUsers,
    Command,
    SetBrokerConfigs,
    SetGroupConfigs,
    SetTopicConfigs,
)
from tidemark.partitions.state_machines.cluster_versions import version_of
from tidemark.protocol.types import NodeId

CONFIGS = {"tide.height": "7", "retention.ms": "1"}
SINCE = {"tide.height": 9}


@pytest.mark.parametrize(
    ("command", "version"),
    [
        (AllocateProducerIds(at_version=0, node_id=NodeId(1), count=1), 2),
        (AlterAcls(at_version=0, added=(), removed=()), 3),
        (AlterUsers(at_version=0, credentials=(), salt_secret=b""), 3),
        (SetTopicConfigs(at_version=0, id=UUID(int=1), configs=CONFIGS), 2),
    ],
)
def test_a_command_is_read_from_the_version_on_that_it_came_with(
    command: Command, version: int
) -> None:
    assert version_of(command) == version


@pytest.mark.parametrize(
    ("command", "version"),
    [
        (SetTopicConfigs(at_version=0, id=UUID(int=1), configs=CONFIGS), 9),
        (SetGroupConfigs(at_version=0, group_id="g", configs=CONFIGS), 9),
        (SetBrokerConfigs(at_version=0, node_id=None, configs=CONFIGS), 2),
    ],
)
def test_a_config_is_known_from_the_version_on_that_it_came_with(
    command: Command, version: int
) -> None:
    """But one of a broker, which means nothing to those that do not know it."""
    assert version_of(command, SINCE) == version
