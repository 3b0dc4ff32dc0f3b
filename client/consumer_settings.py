"""What `Client.consumer` was told, checked."""

from collections.abc import Mapping
from dataclasses import field

from tidemark.client.fetcher import FetchSettings
from tidemark.client.group_settings import GroupSettings, Rebalanced
from tidemark.client.limits import require_callable, require_seconds
from tidemark.client.offsets import Beginning, Start
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """What `Client.consumer` was told; see there."""

    topics: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    start: Start = field(default_factory=Beginning)
    starts: Mapping[TopicPartition, Start] = field(default_factory=dict)
    until_end: bool = False
    fetch: FetchSettings = field(default_factory=FetchSettings)
    group: GroupSettings | None = None
    auto_commit_seconds: float | None = 5.0
    on_assigned: Rebalanced | None = None
    on_revoked: Rebalanced | None = None

    def __post_init__(self) -> None:
        if bool(self.topics) == bool(self.partitions):
            raise ValueError("say which topics to read, or which partitions, and not both")
        read = {tp for tp in self.starts if tp in self.partitions or tp.topic in self.topics}
        if others := self.starts.keys() - read:
            raise ValueError(f"start names {min(others)}, which is not among what is read")
        for name in ("on_assigned", "on_revoked"):
            if getattr(self, name) is not None:
                require_callable(name, getattr(self, name))
        if self.auto_commit_seconds is not None:
            require_seconds("auto_commit_seconds", self.auto_commit_seconds)

    @property
    def is_shared(self) -> bool:
        """Whether a group says which partitions this consumer reads."""
        return self.group is not None and bool(self.topics)

    def start_of(self, topic_partition: TopicPartition) -> Start:
        return self.starts.get(topic_partition, self.start)
