"""A snapshot as the search for better places sees it: numbers in place of names, and what each
move would bring.

Groups whose leader is on the move count as led where they go to. Leaders on brokers that are left
alone are not counted at all: they are no load that could be moved, and their brokers no capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tidemark.partitions.balancing.eligibility import (
    Role,
    role_of,
    why_cooling,
    why_in_motion,
    why_not_in_sync,
)
from tidemark.partitions.balancing.settings import Settings, Weights
from tidemark.partitions.balancing.snapshot import Group, Snapshot
from tidemark.partitions.balancing.tally import EPSILON, Gains, Tally
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

NONE: Final = -1
"""In place of a broker's number: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """How far a cluster is from even: the less, the better. The terms are without weights."""

    misplaced: int
    """Leaders on brokers that are being emptied. One less is worth any unevenness."""
    count: float
    topic: float
    rate: float
    preferred: float
    weights: Weights

    @property
    def total(self) -> float:
        weights = self.weights
        return (
            weights.count * self.count
            + weights.topic * self.topic
            + weights.rate * self.rate
            + weights.preferred * self.preferred
        )

    def is_worse_than(self, other: Objective) -> bool:
        """By more than rounding can have done it."""
        if self.misplaced != other.misplaced:
            return self.misplaced > other.misplaced
        return self.total > other.total + EPSILON * max(1.0, other.total)


class Board:
    """Who leads what, and which groups may still be moved.

    Each list that is about groups or brokers is by their number: the place in `groups`, `brokers`.
    """

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        self.settings = settings
        self.now_ms = snapshot.now_ms
        self.brokers, self.groups = snapshot.in_order()
        index = {broker.node_id: number for number, broker in enumerate(self.brokers)}
        self.roles = [role_of(broker, snapshot.now_ms, settings) for broker in self.brokers]
        self.takers = [at for at, role in enumerate(self.roles) if role is Role.TAKES]
        topics: dict[str, int] = {}
        self.topic = [topics.setdefault(g.partition.topic, len(topics)) for g in self.groups]
        self.lead = [_lead(group, index) for group in self.groups]
        self.share = self._shares()
        self._begin_tally(len(topics))
        self.targets: list[tuple[int, ...]] = []
        """Brokers that may lead a group next; where it is led may be among them."""
        self.preferred: list[int] = []
        """The preferred leader, if it is a broker that takes leaders."""
        self.is_open: list[bool] = []
        """Whether a group may be moved: once a plan at most."""
        self.is_forced: list[bool] = []
        """Whether its leader is on a broker that is being emptied."""
        self._read_groups()
        each = len(self.takers) * max(1, self._counted)
        # Of one group: the term is a share of all groups, by the number of brokers.
        self._preferred_worth = settings.weights.preferred / each if each else 0.0
        noise = settings.hysteresis
        self._price = 2 * noise * (2 + noise) * settings.weights.rate

    def _shares(self) -> list[float]:
        rates = [group.bytes_per_second for group in self.groups]
        whole = sum(
            rate for rate, lead in zip(rates, self.lead, strict=True) if self._is_counted(lead)
        )
        whole = max(whole, self.settings.quiet_bytes_per_second)
        return [rate / whole for rate in rates]

    def _is_counted(self, broker: int) -> bool:
        return broker != NONE and self.roles[broker] is not Role.LEFT_ALONE

    def _begin_tally(self, topics: int) -> None:
        self.tally = Tally(
            brokers=len(self.brokers),
            topics=topics,
            takers=self.takers,
            weights=self.settings.weights,
        )
        # What the means are taken of: what takers lead, and what they are to get.
        self._counted, self._counted_share, self._counted_of = 0, 0.0, [0] * topics
        for lead, topic, share in zip(self.lead, self.topic, self.share, strict=True):
            if self._is_counted(lead):
                self.tally.add(lead, topic, share)
                self._counted += 1
                self._counted_share += share
                self._counted_of[topic] += 1

    def _read_groups(self) -> None:
        takes = {self.brokers[at].node_id: at for at in self.takers}
        settings = self.settings
        for group, lead in zip(self.groups, self.lead, strict=True):
            self.targets.append(
                tuple(
                    takes[node]
                    for node in group.replicas
                    if node in takes and why_not_in_sync(group, node, settings) is None
                )
            )
            self.preferred.append(takes.get(group.replicas[0], NONE) if group.replicas else NONE)
            is_forced = lead != NONE and self.roles[lead] is Role.EMPTIED
            self.is_forced.append(is_forced)
            self.is_open.append(
                self._is_counted(lead)
                and why_in_motion(group) is None
                and (is_forced or why_cooling(group, self.now_ms, settings) is None)
            )

    def objective(self) -> Objective:
        uneven = self.tally.unevenness(self._counted, self._counted_of, self._counted_share)
        elsewhere = sum(
            preferred not in (NONE, lead)
            for preferred, lead in zip(self.preferred, self.lead, strict=True)
            if self._is_counted(lead)
        )
        each = len(self.takers) * max(1, self._counted)
        return Objective(
            misplaced=sum(
                count
                for count, role in zip(self.tally.counts, self.roles, strict=True)
                if role is Role.EMPTIED
            ),
            count=uneven.count,
            topic=uneven.topic,
            rate=uneven.share,
            preferred=elsewhere / each if each else 0.0,
            weights=self.settings.weights,
        )

    # Moves

    def gain(self, group: int, target: int) -> float:
        """What it would take off the objective to lead `group` from `target`."""
        source, preferred = self.lead[group], self.preferred[group]
        gain = self.tally.gain(source, target, self.topic[group], self.share[group])
        if preferred == target:
            gain += self._preferred_worth
        elif preferred == source:
            gain -= self._preferred_worth
        return gain

    def gains(self, group: int, target: int) -> Gains:
        """The same, term by term."""
        source, preferred = self.lead[group], self.preferred[group]
        return self.tally.gains(
            source,
            target,
            self.topic[group],
            self.share[group],
            preferred=self._preferred_worth * ((preferred == target) - (preferred == source)),
        )

    def worth_without_traffic(self, group: int, target: int, *, with_topic: bool) -> float:
        """The part of `gain` that is about the topic, if it is asked for, and the preference."""
        source, preferred, worth = self.lead[group], self.preferred[group], 0.0
        if with_topic:
            of_topic = self.tally.by_topic[self.topic[group]]
            worth = 2 * self.settings.weights.topic * (of_topic[source] - of_topic[target] - 1)
        if preferred == target:
            return worth + self._preferred_worth
        return worth - self._preferred_worth if preferred == source else worth

    def price(self, group: int, target: int) -> float:
        """What the move has to bring, lest it be measured noise.

        With shares that may each be wrong by a fraction t, the gain of moving r from s to u, which
        is 2 r (s - u - r), is wrong by at most 2 t (2 + t) r (s + u + r). Prices add up: a step of
        several moves is wrong by at most the sum of theirs.
        """
        share, shares = self.share[group], self.tally.shares
        return self._price * share * (shares[self.lead[group]] + shares[target] + share)

    def net(self, group: int, target: int) -> float:
        return self.gain(group, target) - self.price(group, target)

    def best(
        self, group: int, free: Sequence[int], lots: Sequence[float], *, is_priced: bool = True
    ) -> tuple[int, float]:
        """The target with the most to gain, and `net` of it (or `gain`); `NONE` if there is none.

        Only targets that have `free` moves; between equals the higher of the `lots`. This is `net`
        written out, as it is what a plan's time goes into.
        """
        source, share, preferred = self.lead[group], self.share[group], self.preferred[group]
        tally, weights = self.tally, self.settings.weights
        counts, shares, of_topic = tally.counts, tally.shares, tally.by_topic[self.topic[group]]
        of_share, price = 2 * weights.rate * share, self._price * share if is_priced else 0.0
        base = (
            2 * (weights.count * (counts[source] - 1) + weights.topic * (of_topic[source] - 1))
            + of_share * (shares[source] - share)
            - price * (shares[source] + share)
        )
        if preferred == source:
            base -= self._preferred_worth
        per_count, per_topic, per_share = 2 * weights.count, 2 * weights.topic, of_share + price
        best, most = NONE, 0.0
        for target in self.targets[group]:
            if target == source or free[target] < 1:
                continue
            value = (
                base
                - per_count * counts[target]
                - per_topic * of_topic[target]
                - per_share * shares[target]
            )
            if target == preferred:
                value += self._preferred_worth
            if best == NONE or value > most or (value == most and lots[target] > lots[best]):
                best, most = target, value
        return best, most

    def move(self, group: int, target: int) -> None:
        """Try what it would be like; the group stays open."""
        self.tally.shift(self.lead[group], target, self.topic[group], self.share[group])
        self.lead[group] = target

    def noisy_rate_bound(self, source: int, target: int) -> float:
        """The most that the rate term can give for changing two leaders' places: nothing, unless
        the brokers differ by more than the noise."""
        shares, noise = self.tally.shares, self.settings.hysteresis
        difference = abs(shares[source] - shares[target])
        if difference <= noise * (2 + noise) * (shares[source] + shares[target]):
            return 0.0
        return self.settings.weights.rate * difference**2 / 2

    def open_by_pair(self) -> dict[tuple[int, int], list[int]]:
        """The groups that may go from one broker to another."""
        pairs: dict[tuple[int, int], list[int]] = {}
        for group in self.open_groups():
            lead = self.lead[group]
            for target in self.targets[group]:
                if target != lead:
                    pairs.setdefault((lead, target), []).append(group)
        return pairs

    def open_groups(self) -> Iterator[int]:
        """Those that may be moved for evenness."""
        for group, is_open in enumerate(self.is_open):
            if is_open and not self.is_forced[group]:
                yield group


def _lead(group: Group, index: Mapping[NodeId, int]) -> int:
    """The broker that leads a group, or is about to: in between nobody does for a moment."""
    node = group.leader if group.moving_to is None else group.moving_to
    return NONE if node is None else index.get(node, NONE)
