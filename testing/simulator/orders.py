"""Aims that bring about an order of events that no seed comes upon by itself."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tidemark.testing.simulator.kinds import COMPACTION_KINDS
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.profiles import coups

_COMPACTIONS_SHARE: Final = 0.5
_CUT_COMPACTIONS_SHARE: Final = 0.06
_DEPARTURES_SHARE: Final = 0.1
_LATE_RESETS_SHARE: Final = 0.08
_LOST_MARKERS_SHARE: Final = 0.05
_RETURNS_SHARE: Final = 0.2


def with_late_resets(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs logs begin anew all the time, behind followers and observers that are away, and
    what they are sent then comes twice. Whoever was reset leads soon."""
    if rng.random() >= _LATE_RESETS_SHARE or knobs.aim:
        return knobs
    return replace(
        knobs,
        aim="late resets",
        nodes=4,
        voters=rng.choice((2, 3)),
        groups=1,
        observers=1,
        producers=rng.choice((1, 2)),
        send_interval=rng.choice((0.1, 0.3)),
        unsynced=0.0,
        start_errors=0.0,
        drift=0.0,
        failure_timeout=0.8,
        heartbeat=0.1,
        loss=0.0,
        duplication=rng.choice((0.3, 0.5)),
        lateness=0.0,
        in_order=False,
        capacity=1000,
        fault_interval=0.3,
        fault_kinds=("trim", "trim", "trim", "isolate", "kill", "move leader", "cut client"),
        triggers=("start", "leader"),
        trigger_chance=0.3,
        trigger_delay=rng.choice((0.003, 0.1)),
        answers=("isolate", "strand", "kill", "hand over"),
        fault_seconds=rng.choice((0.5, 1.0, 2.0)),
    )


def with_lost_markers(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs without another aim all is in transactions that are given up, in page caches
    alone; logs begin anew all the time, and then the power fails: what is known of the part that
    was given up is kept, and is of more than is left of the log."""
    if rng.random() >= _LOST_MARKERS_SHARE or knobs.aim:
        return knobs
    nodes = rng.choice((1, 3))
    return replace(
        knobs,
        aim="lost markers",
        nodes=nodes,
        voters=nodes,
        groups=rng.choice((1, 2)),
        observers=0,
        replica_reads=0.0,
        producers=rng.choice((2, 3)),
        in_flight_max=1,
        send_interval=0.05,
        give_ups=rng.choice((0.3, 0.6)),
        unsynced=1.0,
        start_errors=0.0,
        segment_bytes=rng.choice((300, 2000)),
        checkpoint_interval=rng.choice((0.7, 5.0)),
        loss=0.0,
        drift=0.0,
        fault_interval=rng.choice((0.15, 0.3)),
        fault_kinds=("trim", "trim", "power" if nodes == 1 else "power all"),
        triggers=(),
        fault_seconds=0.1,
    )


def with_returns(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs a group has one voter, then another, and soon the first one again, which is cut
    off, or alone, while it is sent the log in which it is the only one."""
    if rng.random() >= _RETURNS_SHARE:
        return knobs
    return replace(
        knobs,
        aim="returns",
        nodes=2,
        voters=1,
        groups=rng.choice((1, 2)),
        producers=1,
        send_interval=rng.choice((0.1, 0.3)),
        replicas_max=1,
        append_bytes_max=rng.choice((1, 200)),
        window_bytes=8 << 20,
        copy_bytes=rng.choice((1000, 3000)),
        near_bytes=200,
        unsynced=rng.choice((0.0, 0.0, 0.5)),
        failure_timeout=0.4,
        heartbeat=0.05,
        resets_seen=1.0,
        drift=0.0,
        duplication=0.0,
        lateness=0.0,
        loss=0.0,
        fault_interval=rng.choice((1.0, 2.0)),
        fault_kinds=("move replicas",),
        triggers=("replica joins", "replica copying", "replica done"),
        trigger_chance=rng.choice((0.3, 0.6)),
        trigger_delay=rng.choice((0.1, 0.5, 1.0)),
        answers=("isolate", "kill", "power", "power"),
        fault_seconds=rng.choice((0.5, 1.0)),
    )


def with_departures(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs without another aim brokers crash just when they give up a replica, of which
    `state.db` has nothing newer than the run's beginning, and the group comes back to them."""
    if rng.random() >= _DEPARTURES_SHARE or knobs.aim:
        return knobs
    return replace(
        knobs,
        aim="departures",
        nodes=3,
        voters=rng.choice((1, 2)),
        groups=rng.choice((2, 3)),
        producers=1,
        send_interval=rng.choice((0.1, 0.3)),
        replicas_max=2,
        append_bytes_max=4096,
        window_bytes=8 << 20,
        copy_bytes=0,
        near_bytes=1 << 20,
        journal_file_bytes=256 * 4096,
        checkpoint_interval=30.0,
        sync_seconds=rng.choice((0.002, 0.02)),
        unsynced=rng.choice((0.0, 0.5)),
        failure_timeout=0.4,
        heartbeat=0.05,
        resets_seen=1.0,
        drift=0.0,
        duplication=0.0,
        lateness=0.0,
        loss=0.0,
        fault_interval=rng.choice((0.3, 0.6)),
        fault_kinds=("move replicas", "move replicas", "hand over"),
        triggers=("replica given up",),
        trigger_chance=rng.choice((0.3, 0.6)),
        trigger_delay=0.05,
        answers=("kill", "power"),
        fault_seconds=rng.choice((0.3, 1.0)),
    )


def with_cut_compactions(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs without another aim leaders fall with what they had begun, and while they have
    to cut it off their logs are compacted, which takes a while; later these are compacted again."""
    if rng.random() >= _CUT_COMPACTIONS_SHARE or knobs.aim:
        return knobs
    return replace(
        coups(rng, knobs),
        aim="cut compactions",
        nodes=3,
        voters=3,
        groups=1,
        producers=3,
        observers=0,
        in_flight_max=5,
        records_max=3,
        append_bytes_max=1 << 20,
        window_bytes=8 << 20,
        unsynced=0.0,
        start_errors=0.0,
        write_seconds=0.0,
        sync_seconds=0.002,
        latency=0.0005,
        jitter=0.0005,
        loss=0.0,
        duplication=0.0,
        lateness=0.0,
        capacity=1000,
        send_interval=0.1,
        fetch_bytes_max=1 << 16,
        segment_bytes=300,
        checkpoint_interval=0.3,
        compaction_seconds=rng.choice((0.1, 0.3)),
        fault_interval=0.2,
        fault_kinds=(*COMPACTION_KINDS * 20, "kill", "power"),
        triggers=("leader", "append", "truncate"),
        trigger_chance=0.5,
        trigger_delay=0.01,
        answers=("strand", "strand", *COMPACTION_KINDS),
        fault_seconds=0.7,
    )


def with_compactions(rng: Random, knobs: Knobs) -> Knobs:
    """In some of the runs without another aim logs are compacted all the time, as soon as there is
    anything in a transaction, and the power fails meanwhile."""
    if rng.random() >= _COMPACTIONS_SHARE or knobs.aim:
        return knobs
    return replace(
        knobs,
        aim="compactions",
        groups=5,
        writers=3,
        rivals=1,
        aborts=0.4,
        transaction_seconds=rng.choice((0.5, 2.0)),
        segment_bytes=300,
        compaction_strikes=rng.choice((0.4, 0.8)),
        fault_interval=rng.choice((0.15, 0.3)),
        fault_kinds=(*COMPACTION_KINDS * 16, "power", "hand over", "cut client"),
        triggers=("transaction goes on",),
        trigger_chance=rng.choice((0.05, 0.2)),
        trigger_delay=rng.choice((0.02, 0.1)),
        answers=COMPACTION_KINDS,
        fault_seconds=rng.choice((0.3, 1.0)),
    )
