"""The coordinator's settings, with Kafka's defaults."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from tidemark.partitions.state_machines.config_table import parse_all
from tidemark.partitions.state_machines.group_configs import GROUP_SETTINGS
from tidemark.protocol.values import dataclass

COMMIT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Every record says the group's name: with one of 32 kB, a small request could be a gigabyte."""
_MINUTE_MS = 60_000
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    initial_rebalance_delay_ms: int = 3_000
    """How long an empty group waits for more members after the first; each that comes in that time
    makes it wait as long again, within the rebalance timeout. 0 does not wait."""

    session_timeout_min_ms: int = 6_000
    session_timeout_max_ms: int = 30 * _MINUTE_MS
    group_members_max: int = 2**31 - 1
    offset_metadata_bytes_max: int = 4_096
    commit_bytes_max: int = COMMIT_BYTES_MAX
    """What the commits of one request may take in the log, where they are one batch."""

    offsets_retention_ms: int = 7 * 24 * 60 * _MINUTE_MS

    consumer_session_timeout_ms: int = 45_000
    """How long a member of the consumer protocol may be silent. Members do not choose."""

    consumer_heartbeat_interval_ms: int = 5_000
    consumer_reconciling_interval_ms: int = 500
    """How soon a member comes back that has to give up partitions, or waits for some."""

    consumer_group_members_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first is that of groups whose members do not ask for one."""

    may_upgrade: bool = True
    """Whether a group of consumers that speak the classic protocol becomes one of the consumer
    protocol when the first that speaks it joins; and back, when the last of them has left."""
    may_downgrade: bool = True

    new_member_timeout_ms: int = 5 * _MINUTE_MS
    """How long a member that was never in a generation may wait for one. It does not know its id
    yet, so it cannot send heartbeats, and nothing else tells whether it is still there."""

    group_configs: Callable[[str], Mapping[str, str]] = lambda _: _NONE
    """What was set for one group alone, by its id: configs by name, as text."""

    def of(self, group_id: str) -> "GroupSettings":
        """The settings as they are for one group."""
        configs = self.group_configs(group_id)
        if not configs:
            return self
        # Any: a table's values, each of its row's type.
        values: dict[str, Any] = parse_all(GROUP_SETTINGS, configs)
        return replace(self, **values)
