"""How a consumer takes part in its group, as `Client.consumer` was told, checked."""

from collections.abc import Awaitable, Callable

from tidemark.client.assignment import ASSIGNORS
from tidemark.client.limits import require_name, require_seconds
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass

Rebalanced = Callable[[frozenset[TopicPartition]], Awaitable[None]]
"""Called with the partitions that a rebalance gave or took away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How a member takes part; see `Client.consumer`."""

    group: str
    instance_id: str | None = None
    assignors: tuple[str, ...] = ("range", "roundrobin")
    session_timeout_seconds: float = 45.0
    rebalance_timeout_seconds: float = 60.0
    heartbeat_seconds: float = 3.0

    def __post_init__(self) -> None:
        unknown = [name for name in self.assignors if name not in ASSIGNORS]
        if unknown or not self.assignors:
            raise ValueError(f"assignors are {', '.join(ASSIGNORS)}, not {unknown}")
        require_name("group", self.group)
        if self.instance_id is not None:
            require_name("instance_id", self.instance_id)
        require_seconds("session_timeout_seconds", self.session_timeout_seconds)
        require_seconds("rebalance_timeout_seconds", self.rebalance_timeout_seconds)
        require_seconds("heartbeat_seconds", self.heartbeat_seconds)
        if self.heartbeat_seconds >= self.session_timeout_seconds:
            raise ValueError(
                f"heartbeat_seconds ({self.heartbeat_seconds:g}) is less than"
                f" session_timeout_seconds ({self.session_timeout_seconds:g}): a third is usual"
            )

    @property
    def is_cooperative(self) -> bool:
        """All have to be, because the group may choose any of them."""
        return all(ASSIGNORS[name].is_cooperative for name in self.assignors)
