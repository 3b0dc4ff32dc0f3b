"""Aims of seeds in which members of groups change their protocol, by the knobs of any seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tidemark.testing.simulator.kinds import GROUP_TRIGGERS
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.transactions.rare_orders import quick

_MIGRATION_SHARE: Final = 0.6
_ROLLING_SHARE: Final = 0.3
"""Of those that have no other aim."""
_LETTING_GO_SHARE: Final = 0.3
_SLOW_SHARE: Final = 0.3
"""Of those with rolling restarts."""


def with_migration(rng: Random, knobs: Knobs) -> Knobs:
    """Members of groups are restarted all the time, by either protocol, and coordinators fall when
    somebody comes or goes."""
    if rng.random() >= _MIGRATION_SHARE:
        return knobs
    is_orderly = rng.random() < 0.6
    return replace(
        knobs,
        aim="migration",
        groups=rng.choice((7, 11, 11)),
        writers=rng.choice((0, 1)),
        rivals=1,
        transformers=rng.choice((0, 0, 2)),
        members=rng.choice((2, 3, 4)),
        has_generations=True,
        assigned_by_coordinator=False,
        migrating=rng.choice((0.1, 0.3, 1.0)),
        cooperative=rng.random() < 0.5,
        client_lateness=0.0 if is_orderly else knobs.client_lateness,
        client_duplication=0.0 if is_orderly else knobs.client_duplication,
        fault_interval=rng.choice((2.0, 5.0)),
        triggers=(*GROUP_TRIGGERS, "leader"),
        trigger_chance=rng.choice((0.0, 0.01, 0.05, 0.2)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1)),
        answers=rng.choice(
            ((), ("kill", "power", "hand over", "hand over", "strand", "sync error"))
        ),
    )


def with_rolling_restarts(rng: Random, knobs: Knobs) -> Knobs:
    """Members of groups are restarted all the time, by either protocol, and nothing else happens:
    a fault sooner or later mends what a group has come to."""
    if knobs.aim or rng.random() >= _ROLLING_SHARE:
        return knobs
    return replace(
        knobs,
        aim="rolling restarts",
        seconds=min(knobs.seconds, rng.choice((5.0, 10.0, 20.0))),
        groups=11,
        writers=0,
        transformers=0,
        members=3,
        has_generations=True,
        assigned_by_coordinator=False,
        migrating=rng.choice((1.0, 1.2)),
        cooperative=rng.random() < 0.5,
        client_lateness=0.0,
        client_duplication=0.0,
        loss=0.0,
        fault_interval=0.0,
        triggers=(),
    )


def with_letting_go(rng: Random, knobs: Knobs) -> Knobs:
    """Of runs with rolling restarts: cooperative members are letting go of something when the group
    changes its protocol; or join only when they have been taken out, and claim what they had."""
    share = rng.random()
    if knobs.aim != "rolling restarts" or share >= _LETTING_GO_SHARE + _SLOW_SHARE:
        return knobs
    knobs = replace(quick(knobs), seconds=20.0, cooperative=True, pauses=0.0)
    if share < _LETTING_GO_SHARE:
        return replace(knobs, aim="letting go", is_hasty=True, migrating=rng.choice((0.5, 1.0)))
    return replace(knobs, aim="slow to join", slow_to_join=0.3, migrating=rng.choice((0.2, 0.5)))
