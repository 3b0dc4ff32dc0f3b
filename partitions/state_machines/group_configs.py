"""The configs that a group can have, under Kafka's names: they are about the consumer protocol.

What a group does not set is as its coordinator's broker has it.
"""

from types import MappingProxyType
from typing import Final

from tidemark.partitions.state_machines.config_table import setting, settings_of, whole_int
from tidemark.protocol.values import dataclass

GROUPS_MAX: Final = 10_000
"""That have configs: all brokers hold them in memory, and in every snapshot of the metadata."""
NAME_BYTES_MAX: Final = 1_000
"""Of a group that has configs."""


@dataclass(frozen=True, kw_only=True)
class GroupConfig:
    """A group's configs as values; the defaults are those of a broker that sets nothing."""

    consumer_session_timeout_ms: int = setting(
        "consumer.session.timeout.ms",
        whole_int(1),
        "45000",
        "How long a member may be silent before its partitions are given to others.",
        synonym="group.consumer.session.timeout.ms",
    )
    consumer_heartbeat_interval_ms: int = setting(
        "consumer.heartbeat.interval.ms",
        whole_int(1),
        "5000",
        "How often members are told to send a heartbeat. Less than the session timeout.",
        synonym="group.consumer.heartbeat.interval.ms",
    )


GROUP_SETTINGS: Final = MappingProxyType(settings_of(GroupConfig))
"""The rows by name, in the order in which they are shown."""
