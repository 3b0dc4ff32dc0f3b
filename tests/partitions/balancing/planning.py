"""Plans of leaders, for tests: asked for with few words, and read with few words."""

from random import Random

from tests.partitions.balancing.clusters import (
    brokers,
    group,
    snapshot,
)
from tidemark.partitions.balancing.explain import explain
from tidemark.partitions.balancing.leaders import Plan, plan
from tidemark.partitions.balancing.refusals import Reason, Refusal
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, Group, Snapshot

EVERYWHERE = (1, 2, 3)
ALL_THE_WAY = Settings().without_bounds()


def planned(members: list[Broker], groups: list[Group], settings: Settings = ALL_THE_WAY) -> Plan:
    return plan(snapshot(members, groups), settings, Random(1))


def moves(made: Plan) -> list[str]:
    return [f"{move.partition} {move.source}->{move.target}" for move in made.moves]


def refused(made: Plan, reason: Reason) -> list[Refusal]:
    return [refusal for refusal in made.refusals if refusal.reason is reason]


def table(made: Plan, title: str) -> str:
    (found,) = [each for each in explain(made) if each.title == title]
    return "\n".join(found.lines())


def three_hundred_on_one() -> Snapshot:
    groups = [
        group(f"{topic}-{at}", (1 + at % 3, 1 + (at + 1) % 3, 1 + (at + 2) % 3), 1, rate=20_000.0)
        for topic in ("clicks", "orders", "views")
        for at in range(100)
    ]
    return snapshot(brokers(3), groups)


def lopsided(**of_group: object) -> list[Group]:
    """Four led by broker 1, with replicas on 2 as well."""
    return [group(f"t-{at}", (1, 2), **of_group) for at in range(4)]  # type: ignore[arg-type]  # passed on
