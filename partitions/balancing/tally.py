"""Things on brokers (leaders, or replicas), how uneven they are, and what moving one of them does.

Unevenness is a sum of squares: over the brokers, over the brokers within each topic, and over the
brokers' shares of what the things carry (bytes a second, or bytes). The means are constants of a
plan, so a move changes two squares of each sum, and its gain takes no loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.balancing.settings import Weights
from tidemark.protocol.values import dataclass

EPSILON: Final = 1e-9
"""A gain below this is the rounding's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unevenness:
    """The three sums, without weights."""

    count: float
    topic: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """What a move takes off each weighted term."""

    count: float
    topic: float
    share: float
    preferred: float = 0.0

    def plus(self, other: Gains) -> Gains:
        return Gains(
            count=self.count + other.count,
            topic=self.topic + other.topic,
            share=self.share + other.share,
            preferred=self.preferred + other.preferred,
        )


class Tally:
    """How many things each broker has, of each topic and in all, and what share they carry.

    Brokers and topics are numbers from 0. Invariant: `counts` is the sum of `by_topic`.
    """

    __slots__ = ("by_topic", "counts", "shares", "takers", "weights")

    def __init__(
        self, *, brokers: int, topics: int, takers: Sequence[int], weights: Weights
    ) -> None:
        """`takers` are the brokers over which evenness is sought."""
        self.weights = weights
        self.takers = takers
        self.counts = [0] * brokers
        self.shares = [0.0] * brokers
        self.by_topic = [[0] * brokers for _ in range(topics)]

    def add(self, broker: int, topic: int, share: float) -> None:
        self.counts[broker] += 1
        self.by_topic[topic][broker] += 1
        self.shares[broker] += share

    def shift(self, source: int, target: int, topic: int, share: float) -> None:
        counts, shares, of_topic = self.counts, self.shares, self.by_topic[topic]
        counts[source] -= 1
        counts[target] += 1
        of_topic[source] -= 1
        of_topic[target] += 1
        shares[source] -= share
        shares[target] += share

    def gain(self, source: int, target: int, topic: int, share: float) -> float:
        """What moving one thing takes off the weighted sum. From x and y to x - 1 and y + 1, the
        sum of the squares falls by 2 (x - y - 1)."""
        counts, shares, of_topic = self.counts, self.shares, self.by_topic[topic]
        weights = self.weights
        return 2 * (
            weights.count * (counts[source] - counts[target] - 1)
            + weights.topic * (of_topic[source] - of_topic[target] - 1)
            + weights.rate * share * (shares[source] - shares[target] - share)
        )

    def gains(
        self, source: int, target: int, topic: int, share: float, *, preferred: float = 0.0
    ) -> Gains:
        """The same, term by term; `preferred` is passed through."""
        of_topic, weights = self.by_topic[topic], self.weights
        return Gains(
            count=2 * weights.count * (self.counts[source] - self.counts[target] - 1),
            topic=2 * weights.topic * (of_topic[source] - of_topic[target] - 1),
            share=2 * weights.rate * share * (self.shares[source] - self.shares[target] - share),
            preferred=preferred,
        )

    def unevenness(self, count: int, of_topics: Sequence[int], share: float) -> Unevenness:
        """The sums, for means of so many things, of so many of each topic and of so much share."""
        takers, each = self.takers, len(self.takers) or 1
        return Unevenness(
            count=sum((self.counts[broker] - count / each) ** 2 for broker in takers),
            topic=sum(
                (of_topic[broker] - total / each) ** 2
                for of_topic, total in zip(self.by_topic, of_topics, strict=True)
                for broker in takers
            ),
            share=sum((self.shares[broker] - share / each) ** 2 for broker in takers),
        )
