"""Aims of seeds in which what is rare comes about in transactions, by the knobs of any seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tidemark.testing.simulator.kinds import COMPACTION_KINDS
from tidemark.testing.simulator.knobs import Knobs

_DELETIONS_SHARE: Final = 0.3
_UNDECIDED_SHARE: Final = 0.3
_CROSSING_SHARE: Final = 0.3
"""Of those that have no other aim."""


def quick(knobs: Knobs) -> Knobs:
    """With disks and links that take little time: more happens in a run."""
    return replace(
        knobs,
        loss=0.0,
        duplication=0.0,
        lateness=0.0,
        write_seconds=0.0002,
        sync_seconds=0.002,
        latency=0.0005,
        jitter=0.0005,
        append_bytes_max=1 << 20,
        window_bytes=8 << 20,
        early_bytes_max=8 << 20,
        in_order=True,
    )


def with_late_markers(rng: Random, knobs: Knobs) -> Knobs:
    """Markers are held up on their way, while another coordinator, or the same one again, ends the
    transaction without them, and the next one begins."""
    return replace(
        quick(knobs),
        aim="late markers",
        groups=5,
        writers=3,
        rivals=1,
        bumping=rng.choice((0.0, 1.0)),
        request_timeout=0.3,
        client_lateness=0.0,
        client_duplication=0.0,
        late_calls=0.3,
        aborts=0.5,
        pauses=0.7,
        fault_interval=rng.choice((2.0, 5.0)),
        fault_kinds=("hand over", "move leader"),
        triggers=("markers asked for",),
        trigger_chance=rng.choice((0.1, 0.3)),
        trigger_delay=0.003,
        answers=("depose", "depose", "depose", "muffle", "hold"),
        fault_seconds=rng.choice((1.0, 2.0, 4.0)),
    )


def with_lost_decisions(rng: Random, knobs: Knobs) -> Knobs:
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
        fault_interval=5.0,
        fault_kinds=("slow disk", "power"),
        triggers=("transaction ends",),
        trigger_chance=rng.choice((0.1, 0.2)),
        trigger_delay=0.003,
        answers=("sever", "sever", "sever", "sever", "power", "power all"),
        fault_seconds=rng.choice((2.0, 4.0)),
    )


def with_late_answers(rng: Random, knobs: Knobs) -> Knobs:
    """What a coordinator says of a transaction comes when that is over."""
    return replace(
        quick(knobs),
        aim="late answers",
        writers=3,
        rivals=1,
        request_timeout=0.3,
        bumping=rng.choice((0.0, 0.5)),
        transaction_seconds=5.0,
        late_calls=rng.choice((0.2, 0.5)),
        fault_interval=rng.choice((2.0, 5.0)),
        triggers=(),
    )


def with_deletions(rng: Random, knobs: Knobs) -> Knobs:
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


def with_undecided_records(rng: Random, knobs: Knobs) -> Knobs:
    """What is compacted is compacted all the time, while transactions stay open for long in it, and
    are given up then as often as not."""
    if knobs.aim or rng.random() >= _UNDECIDED_SHARE:
        return knobs
    return replace(
        quick(knobs),
        aim="undecided records",
        groups=5,
        writers=3,
        rivals=1,
        transformers=0,
        members=0,
        pauses=0.4,
        aborts=0.5,
        transaction_seconds=5.0,
        segment_bytes=300,
        fault_interval=0.3,
        fault_kinds=(*COMPACTION_KINDS * 12, "hand over", "kill"),
        triggers=(),
    )


def with_crossing_commits(rng: Random, knobs: Knobs) -> Knobs:
    """Several commit offsets of one group in transactions that are open at once."""
    if knobs.aim or rng.random() >= _CROSSING_SHARE:
        return knobs
    return replace(
        quick(knobs),
        aim="crossing commits",
        writers=1,
        strangers=3,
        fault_interval=rng.choice((2.0, 5.0)),
        trigger_chance=rng.choice((0.0, 0.01, 0.05)),
    )


def with_deleted_records(rng: Random, knobs: Knobs) -> Knobs:
    """Records are deleted while the transactions are open that they are in, and who comes to vote,
    or was away, gets a log that begins behind them."""
    return replace(
        quick(knobs),
        aim="deleted records",
        nodes=rng.choice((4, 5)),
        voters=rng.choice((1, 3, 3)),
        groups=rng.choice((5, 6)),
        writers=3,
        rivals=1,
        transformers=rng.choice((0, 1)),
        members=0,
        pauses=0.4,
        aborts=0.4,
        transaction_seconds=rng.choice((2.0, 5.0)),
        segment_bytes=rng.choice((300, 2000)),
        drift=0.0,
        fault_interval=rng.choice((0.15, 0.3)),
        fault_kinds=(
            *("trim",) * 6,
            *("reconfigure",) * 3,
            "isolate",
            "kill",
            "power",
            "hand over",
        ),
        triggers=("leader", "truncate", "transaction over"),
        trigger_chance=rng.choice((0.02, 0.1)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1)),
        answers=("isolate", "strand", "kill", "power", "hand over", "depose"),
        fault_seconds=rng.choice((0.3, 1.0)),
    )
