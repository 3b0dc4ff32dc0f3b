"""Looking at the cluster while it works: who is up, who leads, how far everybody is."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import trio

from tidemark.cli.cluster import quorums
from tidemark.client import (
    Admin,
    PartitionDescription,
    QuorumDescription,
    RequestError,
    TopicPartition,
)
from tidemark.protocol.types import NodeId

_INTERVAL_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was seen at one look."""

    partitions: tuple[PartitionDescription, ...] = ()
    quorums: Mapping[int, QuorumDescription] = field(default_factory=dict)

    def led_by(self, node_id: int) -> tuple[PartitionDescription, ...]:
        return tuple(each for each in self.partitions if each.leader == node_id)

    def lags(self, node_id: int) -> list[int | None]:
        """How far behind its leaders a broker is, in each partition; None is not known."""
        return [quorum.lag().get(NodeId(node_id)) for quorum in self.quorums.values()]

    def is_caught_up(self, node_id: int, *, lag_max: int) -> bool:
        """Whether all leaders say that a broker is no further behind than what is under way."""
        lags = self.lags(node_id)
        is_known = bool(self.partitions) and len(lags) == len(self.partitions)
        return is_known and all(lag is not None and lag <= lag_max for lag in lags)


class Watch:
    """The newest sight; see `look_until_cancelled`."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self.sight = Sight()
        self._admin = admin
        self._topic = topic

    async def look_until_cancelled(self) -> None:
        while True:
            # A look that hangs, on a broker that has just died, is no better than a new one.
            with trio.move_on_after(_LOOK_SECONDS), suppress(OSError, RequestError):
                self.sight = await self._look()
            await trio.sleep(_INTERVAL_SECONDS)

    async def _look(self) -> Sight:
        topic = await self._admin.describe_topic(self._topic)
        led: dict[NodeId, list[TopicPartition]] = {}
        for each in topic.partitions:
            if each.leader is not None:
                led.setdefault(each.leader, []).append(TopicPartition(topic.name, each.partition))
        found = await quorums(self._admin, led)
        return Sight(
            partitions=topic.partitions,
            quorums={at.partition: quorum for at, quorum in found.items()},
        )
