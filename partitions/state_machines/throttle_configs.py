"""Kafka's throttles of replicas that are being made (KIP-73), as they are set.

A broker has rates, which are set while it runs; a topic has lists of what they are about.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from tidemark.partitions.state_machines.config_table import (
    LONG_MAX,
    Whole,
    setting,
    settings_of,
    split_list,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

_ALL: Final = "*"
_REPLICA: Final = re.compile(r"(0|[1-9][0-9]*):(0|[1-9][0-9]*)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ThrottleConfig:
    """A broker's rates. What is not set is no limit, and is not shown."""

    leader_replication_throttled_rate: int = setting(
        LEADER_RATE,
        Whole(0),
        str(LONG_MAX),
        "The most bytes a second that this broker sends to new replicas of partitions that it "
        f"leads, all together, where a topic's `{LEADER_REPLICAS}` names it; 0 is none at all. "
        "`reassignment.bytes.per.second` holds as well.",
    )
    follower_replication_throttled_rate: int = setting(
        FOLLOWER_RATE,
        Whole(0),
        str(LONG_MAX),
        "The most bytes a second that this broker is sent for its new replicas, all together, "
        f"where a topic's `{FOLLOWER_REPLICAS}` names it; 0 is none at all.",
    )


THROTTLE_SETTINGS: Final = settings_of(ThrottleConfig)


def check_throttled_replicas(configs: Mapping[str, str]) -> None:
    """Whether a topic's lists, if it has any, are such. Raises `RequestError` INVALID_CONFIG."""
    for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS):
        items = split_list(configs.get(name, ""))
        if items != (_ALL,) and not all(map(_REPLICA.fullmatch, items)):
            raise RequestError(
                ErrorCode.INVALID_CONFIG,
                f'{name} = "{configs[name]}": it takes partition:broker, with commas between, '
                "or * for all",
            )


def is_throttled(replicas: Collection[str], partition: int, broker: NodeId) -> bool:
    """Whether that broker's rate is about that partition, by a topic's list."""
    return f"{partition}:{broker}" in replicas or _ALL in replicas
