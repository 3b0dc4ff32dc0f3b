"""The knobs of a seed in which there are transactions and groups.

What was added later has a stream of its own, so that the other seeds stay what they were.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tidemark.testing.simulator.kinds import (
    COMPACTION_KINDS,
    COORDINATOR_TRIGGERS,
    DISK_KINDS,
    GROUP_TRIGGERS,
    TRANSACTION_TRIGGERS,
)
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.profiles import some
from tidemark.testing.simulator.randomness import stream

_ASSIGNED_SHARE: Final = 0.35
_BAD_DISKS_SHARE: Final = 0.3
_NO_ROOM_SHARE: Final = 0.4
"""Of those with bad disks."""
_RARE_ORDERS_SHARE: Final = 0.3
_MIGRATION_SHARE: Final = 0.6
_DELETIONS_SHARE: Final = 0.3
_ROLLING_SHARE: Final = 0.3
"""Of those that have no other aim."""


def draw_transactions(seed: int, knobs: Knobs) -> Knobs:
    """`knobs`: as any seed has them."""
    knobs = _draw(stream(seed, "transactions"), knobs)
    knobs = _with_protocol(stream(seed, "protocol"), knobs)
    rng = stream(seed, "coordinators")
    share = rng.random()
    if share < _BAD_DISKS_SHARE:
        return _with_no_room(stream(seed, "room"), _with_bad_disks(rng, knobs))
    if share < _BAD_DISKS_SHARE + _RARE_ORDERS_SHARE:
        return rng.choice((_with_late_markers, _with_lost_decisions, _with_late_answers))(
            rng, knobs
        )
    knobs = _with_migration(stream(seed, "migration"), knobs)
    knobs = _with_deletions(stream(seed, "deletions"), knobs)
    return _with_rolling_restarts(stream(seed, "rolling restarts"), knobs)


def _draw(rng: Random, knobs: Knobs) -> Knobs:
    """Coordinators fall in each phase, requests come late and twice, logs are compacted."""
    faults = ("kill", "power", "kill all", "power all", "pause", "cut", "cut client", "isolate")
    others = ("strand", "clog", "hold", "slow disk", "clock jump", "hand over", "move leader")
    return replace(
        knobs,
        nodes=rng.choice((3, 4, 5, 5)),
        voters=rng.choice((1, 3, 3, 3)),
        groups=rng.choice((5, 6, 8, 9)),
        producers=1,
        consumers=1,
        send_interval=rng.choice((0.1, 0.3)),
        records_max=rng.choice((1, 3)),
        in_flight_max=1,
        request_timeout=rng.choice((0.3, 1.0)),
        segment_bytes=rng.choice((300, 300, 2000)),
        checkpoint_interval=rng.choice((0.3, 0.7, 5.0)),
        fetch_bytes_max=rng.choice((1, 500, 1 << 16)),
        failure_timeout=0.8,
        heartbeat=0.1,
        capacity=1000,
        start_errors=0.0,
        unsynced=0.0,
        loss=rng.choice((0.0, 0.0, 0.02)),
        drift=rng.choice((0.0, 0.1)),
        writers=rng.choice((1, 2, 3)),
        rivals=rng.choice((1, 1, 2)),
        transformers=rng.choice((0, 1, 2, 3)),
        members=rng.choice((0, 1, 2)),
        has_generations=rng.random() < 0.6,
        bumping=rng.choice((0.0, 0.5, 1.0)),
        transaction_seconds=rng.choice((0.5, 2.0, 5.0)),
        client_lateness=rng.choice((0.0, 0.03, 0.15)),
        client_duplication=rng.choice((0.0, 0.05, 0.3)),
        fault_interval=rng.choice((0.7, 2.0, 5.0)),
        fault_kinds=(*some(rng, (*faults, *others)), *COMPACTION_KINDS * rng.choice((0, 4, 8))),
        triggers=some(rng, (*TRANSACTION_TRIGGERS, "leader", "checkpoint")),
        trigger_chance=rng.choice((0.01, 0.05, 0.2)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1, 0.4)),
        answers=rng.choice(((), ("strand", "strand", "isolate", "hold", "kill", "power"))),
        fault_seconds=rng.choice((0.3, 1.0, 3.0)),
    )


def _with_protocol(rng: Random, knobs: Knobs) -> Knobs:
    """In a third of the runs coordinators assign."""
    return replace(knobs, assigned_by_coordinator=rng.random() < _ASSIGNED_SHARE)


def _with_bad_disks(rng: Random, knobs: Knobs) -> Knobs:
    """Syncs fail, and disks are full or slow, mostly where a coordinator has just written."""
    disks = (*DISK_KINDS, "slow disk")
    others = some(rng, ("kill", "power", "hand over", "pause", "power all"))
    return replace(
        knobs,
        aim="bad disks",
        start_errors=rng.choice((0.0, 0.05, 0.3)),
        sync_seconds=rng.choice((0.0005, 0.002, 0.02, 0.1)),
        fault_kinds=(*knobs.fault_kinds, *disks * rng.choice((1, 3))),
        triggers=(*some(rng, COORDINATOR_TRIGGERS), "marker", "transaction ends"),
        trigger_chance=rng.choice((0.01, 0.05, 0.2)),
        answers=(*disks, *others),
    )


def _with_no_room(rng: Random, knobs: Knobs) -> Knobs:
    """What coordinators write is refused now and then, for want of room, and they lead on: nobody
    starts them again, and reads back what the log has."""
    if rng.random() >= _NO_ROOM_SHARE:
        return knobs
    return replace(
        knobs,
        aim="no room",
        voters=rng.choice((1, 3)),
        members=rng.choice((2, 3)),
        has_generations=True,
        assigned_by_coordinator=rng.random() < 0.6,
        start_errors=0.0,
        sync_seconds=rng.choice((0.0005, 0.002, 0.02)),
        fault_interval=rng.choice((0.7, 2.0)),
        fault_kinds=("no room", "no room", "no room", "hand over"),
        triggers=(*COORDINATOR_TRIGGERS, "transaction over", "member joins", "member leaves"),
        trigger_chance=rng.choice((0.05, 0.2)),
        trigger_delay=rng.choice((0.003, 0.02)),
        answers=("no room",),
        fault_seconds=rng.choice((0.05, 0.3, 1.0)),
    )


def _with_late_markers(rng: Random, knobs: Knobs) -> Knobs:
    """Markers are held up on their way, while another coordinator, or the same one again, ends the
    transaction without them, and the next one begins."""
    return replace(
        knobs,
        aim="late markers",
        groups=5,
        writers=3,
        rivals=1,
        bumping=rng.choice((0.0, 1.0)),
        request_timeout=0.3,
        client_lateness=0.0,
        client_duplication=0.0,
        loss=0.0,
        late_calls=rng.choice((0.1, 0.3)),
        aborts=0.4,
        fault_interval=rng.choice((2.0, 5.0)),
        fault_kinds=("hand over", "move leader"),
        triggers=("markers asked for",),
        trigger_chance=rng.choice((0.1, 0.3)),
        trigger_delay=0.003,
        answers=("depose", "depose", "depose", "muffle", "hold"),
        fault_seconds=rng.choice((1.0, 2.0, 4.0)),
    )


def _with_lost_decisions(rng: Random, knobs: Knobs) -> Knobs:
    """Disks take their time, and the power goes when markers are asked for, or written; or whoever
    has decided is left alone with it."""
    return replace(
        knobs,
        aim="lost decisions",
        groups=6,
        writers=3,
        nodes=5,
        voters=rng.choice((1, 3, 3, 3)),
        transaction_seconds=0.5,
        sync_seconds=rng.choice((0.002, 0.02, 0.1)),
        fault_interval=rng.choice((2.0, 5.0)),
        fault_kinds=("slow disk", "slow disk", "power", "power all"),
        triggers=("transaction ends",),
        trigger_chance=rng.choice((0.02, 0.1)),
        trigger_delay=0.003,
        answers=("sever", "sever", "sever", "power", "power all", "strand"),
        fault_seconds=rng.choice((1.0, 2.0)),
    )


def _with_late_answers(rng: Random, knobs: Knobs) -> Knobs:
    """What a coordinator says of a transaction comes when that is over."""
    return replace(
        knobs,
        aim="late answers",
        writers=3,
        rivals=1,
        request_timeout=0.3,
        bumping=rng.choice((0.0, 0.5)),
        transaction_seconds=5.0,
        loss=0.0,
        late_calls=rng.choice((0.2, 0.5)),
        fault_interval=rng.choice((2.0, 5.0)),
        triggers=(),
    )


def _with_migration(rng: Random, knobs: Knobs) -> Knobs:
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


def _with_deletions(rng: Random, knobs: Knobs) -> Knobs:
    """What is compacted is compacted all the time, and keeps the ends of transactions but briefly.

    Nobody is behind for as long as that: a replica that had the records, and finds their end gone,
    would take the transaction for open, as in Kafka.
    """
    if knobs.aim or rng.random() >= _DELETIONS_SHARE:
        return knobs
    return replace(
        knobs,
        aim="deletions",
        seconds=min(knobs.seconds, 8.0),
        nodes=3,
        groups=5,
        deletions_seconds=rng.choice((0.1, 0.5)),
        writers=rng.choice((1, 2)),
        transformers=rng.choice((0, 1)),
        members=0,
        transaction_seconds=2.0,
        segment_bytes=300,
        client_lateness=0.0,
        loss=0.0,
        jitter=0.0005,
        lateness=0.0,
        drift=0.0,
        fault_interval=0.3,
        fault_kinds=(*COMPACTION_KINDS * 12, "hand over", "move leader"),
        triggers=(),
    )


def _with_rolling_restarts(rng: Random, knobs: Knobs) -> Knobs:
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
