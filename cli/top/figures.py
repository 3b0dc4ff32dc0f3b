"""What two looks at a cluster come to: rates, lags, and when a group will have caught up. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from tidemark.cli.top.sight import Sight
from tidemark.client import TopicPartition
from tidemark.protocol.types import NodeId, Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFigures:
    """Of one broker. Rates are None where it does not tell."""

    node_id: NodeId
    address: str | None
    rack: str | None
    state: str
    """`down`, `disk full`, `up`, or what is wanted of it: `draining`, `drained`, …"""
    is_controller: bool
    leaders: int
    replicas: int
    lag: int | None
    bytes_in: int | None
    bytes_out: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFigures:
    """Of one topic."""

    name: str
    partitions: int
    per_second: float
    """Records that were appended."""
    trouble: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigures:
    """Of one group."""

    name: str
    state: str
    lag: int | None
    """None where nothing is committed, of what there is."""
    per_second: float
    """Records that it went on by, as far as it has committed."""
    left_seconds: float | None
    """Until it has caught up, if all goes on as it does: infinite if it falls behind, None if there
    is no lag."""


class Figures:
    """Of the time between two looks; with one look alone, no rates are known and all are 0."""

    def __init__(self, before: Sight | None, now: Sight, *, trouble: str | None = None) -> None:
        """`trouble`: why there is no newer look."""
        self.now = now
        self.trouble = trouble
        self._before = before
        self._seconds = 0.0 if before is None else now.at - before.at
        self._appended = _steps({} if before is None else before.ends, now.ends)

    @property
    def per_second(self) -> float:
        """Records appended to all topics."""
        return self._rate(sum(self._appended.values()))

    def brokers(self) -> Iterator[BrokerFigures]:
        """By node id."""
        for row in self.now.facts.broker_rows():
            node_id = NodeId(int(str(row["node_id"])))
            status = self.now.states.get(node_id)
            state = "up" if status is None or status.state == "active" else status.state
            if node_id in self.now.facts.full:
                state = "disk full"
            yield BrokerFigures(
                node_id=node_id,
                address=_text(row["address"]),
                rack=_text(row["rack"]),
                state=state if row["up"] else "down",
                is_controller=bool(row["controller"]),
                leaders=int(str(row["leaders"])),
                replicas=int(str(row["replicas"])),
                lag=None if row["lag"] is None else int(str(row["lag"])),
                bytes_in=None if status is None else status.bytes_in_per_second,
                bytes_out=None if status is None else status.bytes_out_per_second,
            )

    def topics(self) -> list[TopicFigures]:
        """Those in trouble first, then the busiest; among equals by name."""
        appended: Counter[str] = Counter()
        for at, count in self._appended.items():
            appended[at.topic] += count
        troubles = {
            str(row["topic"]): str(row["trouble"])
            for row in self.now.facts.partition_rows()
            if row["trouble"] is not None
        }
        found = [
            TopicFigures(
                name=topic.name,
                partitions=len(topic.partitions),
                per_second=self._rate(appended[topic.name]),
                trouble=troubles.get(topic.name),
            )
            for topic in self.now.facts.topics
        ]
        return sorted(found, key=lambda each: (not each.trouble, -each.per_second, each.name))

    def groups(self) -> list[GroupFigures]:
        """The ones furthest behind first, then those of which it is not known; among equals by
        name."""
        found = [self._group(each.group, each.state) for each in self.now.facts.groups or ()]
        return sorted(found, key=lambda each: (1 if each.lag is None else -each.lag, each.name))

    def _group(self, name: str, state: str) -> GroupFigures:
        committed = self.now.committed.get(name, {})
        earlier = {} if self._before is None else self._before.committed.get(name, {})
        behind = {
            at: max(self.now.ends[at] - offset, 0)
            for at, offset in committed.items()
            if at in self.now.ends
        }
        lag = sum(behind.values()) if behind else None
        consumed = self._rate(sum(_steps(earlier, committed).values()))
        gained = consumed - self._rate(sum(self._appended[at] for at in behind))
        return GroupFigures(
            name=name,
            state=state.lower(),
            lag=lag,
            per_second=consumed,
            left_seconds=None if not lag else lag / gained if gained > 0 else inf,
        )

    def _rate(self, count: int) -> float:
        return count / self._seconds if self._seconds > 0 else 0.0


def _steps(
    before: Mapping[TopicPartition, Offset], now: Mapping[TopicPartition, Offset]
) -> Counter[TopicPartition]:
    """How far each went on. One that is new, or made anew, has not moved as far as is known."""
    return Counter({at: max(now[at] - before[at], 0) for at in before.keys() & now.keys()})


def _text(value: object) -> str | None:
    return None if value is None else str(value)
