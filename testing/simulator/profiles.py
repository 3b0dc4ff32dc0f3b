"""Kinds of seed: knobs that go together, so that something rare becomes common.

Not drawn evenly: a run has some kinds of fault and lacks others, and settings that are absurd in
practice (an append of one byte, a journal of a few pages) are common, because they bring rare
paths to the front.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tidemark.testing.simulator.kinds import TIMED_KINDS, TRIGGERS
from tidemark.testing.simulator.knobs import Knobs


def hours(rng: Random, knobs: Knobs) -> Knobs:
    """A long time with little to do, and a fault every minute or two."""
    return replace(
        knobs,
        seconds=12 * knobs.seconds,
        failure_timeout=1.5,
        loss=0.0,
        fault_kinds=(*knobs.fault_kinds, "kill", "power", "isolate"),
        triggers=some(rng, ("leader", "vote", "hand over", "pausing", "truncate")),
    )


def anything(_rng: Random, knobs: Knobs) -> Knobs:
    """Any faults, at any time."""
    return knobs


def coups(rng: Random, knobs: Knobs) -> Knobs:
    """Leaders fall as soon as they lead, with what they had begun; and come back soon.

    Most of what Raft forbids does harm only after two or three such leaders in a row.
    """
    nodes = rng.choice((3, 3, 5, 4))
    timeout = rng.choice((0.3, 0.4, 0.8))
    return replace(
        knobs,
        nodes=nodes,
        voters=nodes,
        groups=rng.choice((1, 1, 2)),
        producers=rng.choice((1, 2)),
        consumers=1,
        send_interval=rng.choice((0.03, 0.1)),
        append_bytes_max=rng.choice((1, 1, 200)),
        window_bytes=rng.choice((1, 1, 400, 8 << 20)),
        failure_timeout=timeout,
        heartbeat=timeout / 4,
        election_jitter=rng.choice((0.01, 0.05)),
        election_rank=0.0,
        campaign_timeout=0.2,
        drift=0.0,
        loss=rng.choice((0.0, 0.02)),
        resets_seen=rng.choice((0.0, 0.5, 1.0)),
        fault_interval=rng.choice((2.0, 5.0)),
        triggers=("leader", *some(rng, TRIGGERS)),
        trigger_chance=rng.choice((0.3, 0.8)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1)),
        answers=(
            "strand",
            "isolate",
            *some(rng, ("strand", "hold", "kill", "power", "power all")),
        ),
        fault_seconds=rng.choice((0.3, 0.7, 1.5)),
    )


def changes(rng: Random, knobs: Knobs) -> Knobs:
    """Voters come and go, and some of those that come find the log's start gone."""
    return replace(
        knobs,
        nodes=5,
        voters=rng.choice((1, 3, 3)),
        fault_interval=rng.choice((0.7, 1.5)),
        fault_kinds=(
            *("reconfigure", "reconfigure", "trim"),
            *some(rng, ("kill", "power", "cut", "isolate", "strand", "hand over", "checkpoint")),
        ),
        trigger_chance=rng.choice((0.0, 0.1)),
    )


def moves(rng: Random, knobs: Knobs) -> Knobs:
    """Leaders are wished elsewhere all the time, and something happens in each phase of it."""
    return replace(
        knobs,
        nodes=rng.choice((3, 3, 4, 5)),
        voters=3,
        groups=rng.choice((1, 2)),
        producers=rng.choice((2, 3)),
        send_interval=rng.choice((0.02, 0.05)),
        sync_seconds=rng.choice((0.002, 0.02, 0.1)),
        fault_interval=rng.choice((0.5, 1.0)),
        fault_kinds=(
            *("move leader", "move leader", "move leader"),
            *some(rng, ("kill", "power", "cut", "isolate", "pause", "slow disk", "reconfigure")),
        ),
        triggers=some(rng, _MOVE_TRIGGERS),
        trigger_chance=rng.choice((0.1, 0.3)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1)),
        fault_seconds=rng.choice((0.3, 1.0, 2.0)),
    )


def late(rng: Random, knobs: Knobs) -> Knobs:
    """Answers arrive when another, or the same one again, leads: held back as they are given."""
    with_coups = coups(rng, knobs)
    return replace(
        with_coups,
        nodes=5,
        voters=5,
        duplication=rng.choice((0.0, 0.3)),
        lateness=rng.choice((0.0, 0.05)),
        fault_kinds=("strand", "strand", "isolate", "hold"),
        triggers=("ack", "append", "leader"),
        answers=("hold", "strand", "strand", "isolate"),
        fault_seconds=rng.choice((0.5, 1.0, 2.0)),
    )


_MOVE_TRIGGERS: Final = ("catching up", "pausing", "handing over", "hold", "hand over", "leader")
PROFILES: Final = (anything, coups, changes, moves)


def draw(rng: Random, seconds: float) -> Knobs:
    nodes = rng.choice((1, 3, 3, 3, 4, 5, 5, 5))
    voters = min(nodes, rng.choice((2, 3, 4, 5, 5)))
    failure_timeout = rng.choice((0.4, 0.8, 0.8, 1.5))
    drift = rng.choice((0.0, 0.0, 0.1, 0.1, 0.4))
    return Knobs(
        nodes=nodes,
        voters=voters,
        groups=rng.choice((1, 2, 2, 4)),
        producers=rng.choice((1, 2, 3)),
        consumers=rng.choice((1, 2)),
        seconds=seconds,
        send_interval=rng.choice((0.05, 0.15, 0.4)),
        records_max=rng.choice((1, 3, 8)),
        in_flight_max=rng.choice((1, 2, 5)),
        append_bytes_max=rng.choice((1, 1, 200, 4096, 1 << 20)),
        window_bytes=rng.choice((1, 400, 8 << 20)),
        early_bytes_max=rng.choice((1, 400, 8 << 20)),
        segment_bytes=rng.choice((300, 2000, 1 << 16)),
        journal_file_bytes=rng.choice((4 * 4096, 16 * 4096, 256 * 4096)),
        fetch_bytes_max=rng.choice((1, 500, 1 << 16)),
        checkpoint_interval=rng.choice((0.7, 5.0, 30.0)),
        # A sign of life is confirmed within two heartbeats, by clocks that differ as drawn.
        heartbeat=failure_timeout / (8 if drift > 0.1 else rng.choice((4, 4, 8))),
        failure_timeout=failure_timeout,
        election_jitter=rng.choice((0.01, 0.05, 0.3)),
        election_rank=rng.choice((0.0, 0.25)),
        campaigns_at_once=rng.choice((1, 64)),
        campaign_timeout=rng.choice((0.2, 0.5)),
        retry=rng.choice((0.3, 1.0)),
        write_seconds=rng.choice((0.0, 0.0002, 0.01)),
        sync_seconds=rng.choice((0.0005, 0.002, 0.02, 0.1)),
        latency=rng.choice((0.0001, 0.0005, 0.01)),
        jitter=rng.choice((0.0, 0.0005, 0.005, 0.05)),
        loss=rng.choice((0.0, 0.0, 0.02, 0.15)),
        duplication=rng.choice((0.0, 0.0, 0.05, 0.3)),
        lateness=rng.choice((0.0, 0.0, 0.01, 0.05)),
        capacity=rng.choice((1000, 1000, 20)),
        in_order=rng.random() < 0.3,
        splits_frames=rng.random() < 0.5,
        resets_seen=rng.choice((0.0, 0.5, 1.0)),
        start_errors=rng.choice((0.0, 0.0, 0.05, 0.3)),
        unsynced=rng.choice((0.0, 0.0, 0.5)),
        drift=drift,
        fault_interval=rng.choice((0.8, 2.0, 5.0)),
        fault_kinds=some(rng, TIMED_KINDS),
        triggers=some(rng, TRIGGERS) if rng.random() < 0.75 else (),
        trigger_chance=rng.choice((0.02, 0.1, 0.4, 0.8)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1, 0.4)),
        fault_seconds=rng.choice((0.5, 2.0, 5.0)),
    )


def some(rng: Random, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """A subset, each of half a chance, in their order."""
    return tuple(kind for kind in kinds if rng.random() < 0.5)
