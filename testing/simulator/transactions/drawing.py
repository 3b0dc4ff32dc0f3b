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
    TRANSACTION_TRIGGERS,
)
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.profiles import some
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.transactions.member_aims import (
    with_letting_go,
    with_migration,
    with_rolling_restarts,
)
from tidemark.testing.simulator.transactions.rare_orders import (
    with_crossing_commits,
    with_deleted_records,
    with_deletions,
    with_late_answers,
    with_late_markers,
    with_lost_decisions,
    with_undecided_records,
)

_ASSIGNED_SHARE: Final = 0.35
_BAD_DISKS_SHARE: Final = 0.3
_DELETED_RECORDS_SHARE: Final = 0.06
_NO_ROOM_SHARE: Final = 0.4
"""Of those with bad disks."""
_RARE_ORDERS_SHARE: Final = 0.3


def draw_transactions(seed: int, knobs: Knobs) -> Knobs:
    """`knobs`: as any seed has them."""
    knobs = _draw(stream(seed, "transactions"), knobs)
    knobs = _with_protocol(stream(seed, "protocol"), knobs)
    deletes = stream(seed, "DeleteRecords")
    if deletes.random() < _DELETED_RECORDS_SHARE:
        return with_deleted_records(deletes, knobs)
    rng = stream(seed, "coordinators")
    share = rng.random()
    if share < _BAD_DISKS_SHARE:
        return _with_no_room(stream(seed, "room"), _with_bad_disks(rng, knobs))
    if share < _BAD_DISKS_SHARE + _RARE_ORDERS_SHARE:
        return rng.choice((with_late_markers, with_lost_decisions, with_late_answers))(rng, knobs)
    knobs = with_migration(stream(seed, "migration"), knobs)
    knobs = with_deletions(stream(seed, "deletions"), knobs)
    knobs = with_rolling_restarts(stream(seed, "rolling restarts"), knobs)
    knobs = with_letting_go(stream(seed, "letting go"), knobs)
    knobs = with_undecided_records(stream(seed, "undecided records"), knobs)
    return with_crossing_commits(stream(seed, "crossing commits"), knobs)


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
