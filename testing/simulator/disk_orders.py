"""Aims in which disks fail or lose their power at moments, and not at any time."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tidemark.testing.simulator.kinds import DISK_KINDS
from tidemark.testing.simulator.knobs import Knobs

_FAILING_DISKS_SHARE: Final = 0.06
_USED_AGAIN_SHARE: Final = 0.1
_SHORT_SEGMENTS_SHARE: Final = 0.1


def with_failing_disks(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs without another aim disks are full, fail or are slow just when a log goes on in
    a new segment, is cut, or is opened; and soon after the process dies, or the power fails."""
    if rng.random() >= _FAILING_DISKS_SHARE or knobs.aim:
        return knobs
    disks = (*DISK_KINDS, "slow disk")
    return replace(
        knobs,
        aim="failing disks",
        nodes=3,
        voters=3,
        observers=0,
        start_errors=rng.choice((0.0, 0.05, 0.3)),
        segment_bytes=rng.choice((300, 300, 2000)),
        checkpoint_interval=rng.choice((0.3, 0.7)),
        journal_file_bytes=rng.choice((4 * 4096, 16 * 4096)),
        fault_interval=rng.choice((1.0, 2.0)),
        fault_kinds=("trim", "trim", "hand over", "kill", "power", "strand"),
        triggers=("checkpoint", "truncate", "roll", "start", "vote", "leader", "commit"),
        trigger_chance=rng.choice((0.1, 0.3)),
        trigger_delay=rng.choice((0.0005, 0.003, 0.02, 0.1)),
        answers=(*disks * 2, "strand", "power", "kill"),
        fault_seconds=rng.choice((0.1, 0.3, 1.0)),
    )


def with_files_used_again(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs without another aim a log has hardly gained a segment when it loses one, whose
    file is written over; and soon the process dies, or the power fails."""
    if rng.random() >= _USED_AGAIN_SHARE or knobs.aim:
        return knobs
    return replace(
        knobs,
        aim="files used again",
        nodes=3,
        voters=3,
        observers=0,
        groups=1,
        start_errors=0.0,
        loss=0.0,
        capacity=1000,
        send_interval=rng.choice((0.02, 0.1)),
        segment_bytes=rng.choice((300, 300, 1000)),
        checkpoint_interval=rng.choice((0.3, 0.7)),
        fault_interval=0.3,
        fault_kinds=(*("trim",) * 6, "power", "power all", "kill", "hand over", "strand"),
        triggers=("checkpoint", "roll", "start", "commit"),
        trigger_chance=rng.choice((0.02, 0.1)),
        trigger_delay=rng.choice((0.0005, 0.003, 0.02, 0.1)),
        answers=("power", "power", "kill", "strand"),
        fault_seconds=rng.choice((0.3, 1.0)),
    )


def with_short_segments(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs, whatever their aim, segments are closed by time, and with that at other places
    on each broker."""
    if rng.random() >= _SHORT_SEGMENTS_SHARE:
        return knobs
    return replace(knobs, segment_ms=rng.choice((30, 300, 2000)))
