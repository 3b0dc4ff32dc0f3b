"""The knobs of a seed, layer by layer.

What was added later has a stream of its own, so that the other seeds stay what they were.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tidemark.testing.simulator.disk_orders import (
    with_failing_disks,
    with_files_used_again,
    with_short_segments,
)
from tidemark.testing.simulator.kinds import (
    CALM_TRIGGERS,
    CORE_KINDS,
    DAMAGE_KINDS,
    DISK_KINDS,
    REPLICA_KINDS,
    REPLICA_TRIGGERS,
    ROT_KINDS,
)
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.orders import (
    with_compactions,
    with_cut_compactions,
    with_departures,
    with_late_resets,
    with_lost_markers,
    with_returns,
)
from tidemark.testing.simulator.profiles import PROFILES, draw, hours, late, some
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.transactions.drawing import draw_transactions

_CACHES_SHARE: Final = 0.15
_CALM_SHARE: Final = 0.1
_REQUESTS_MAX: Final = 64
_LONG_CHECKPOINTS_SHARE: Final = 0.15
_ROT_SHARE: Final = 0.15
_WHISPERS_SHARE: Final = 0.08
_FORGOTTEN_SHARE: Final = 0.08
_CHANGES_SHARE: Final = 0.06
_COUP_SECONDS_MAX: Final = 300.0


def draw_knobs(seed: int, *, seconds: float, layer: Layer = Layer.FULL) -> Knobs:
    """The knobs of a seed."""
    rng = stream(seed, "knobs")
    if layer is Layer.CORE:
        knobs = _with_damage(stream(seed, "damage"), _draw_core(rng, seconds))
        knobs = _with_whispers(stream(seed, "whispers"), knobs)
        knobs = _with_forgotten_votes(stream(seed, "forgotten votes"), knobs)
        return _with_changes_at_once(stream(seed, "changes at once"), knobs)
    if layer is Layer.REPLICAS:
        knobs = _with_bad_disks(stream(seed, "disks"), _draw_replica_moves(rng, seconds))
        knobs = with_returns(stream(seed, "returns"), knobs)
        return with_departures(stream(seed, "departures"), knobs)
    if layer is Layer.TRANSACTIONS:
        knobs = draw_transactions(seed, draw(rng, seconds))
        return with_compactions(stream(seed, "compactions"), knobs)
    knobs = draw(rng, seconds)
    profile = rng.choices(PROFILES, weights=(5, 4, 2, 2))[0]
    journaled = stream(seed, "journaled").choice((1 << 30, 1 << 30, 400, 100))
    knobs = replace(profile(rng, knobs), journaled_bytes_max=journaled)
    knobs = _with_observers(stream(seed, "observers"), knobs)
    knobs = _with_long_checkpoints(stream(seed, "checkpoints"), knobs)
    knobs = _with_page_caches(stream(seed, "page caches"), knobs)
    knobs = _with_rot(stream(seed, "rot"), knobs)
    knobs = _with_calm(stream(seed, "calm"), knobs)
    knobs = with_late_resets(stream(seed, "late resets"), knobs)
    knobs = with_lost_markers(stream(seed, "lost markers"), knobs)
    knobs = with_cut_compactions(stream(seed, "cut compactions"), knobs)
    knobs = with_failing_disks(stream(seed, "disks in time"), knobs)
    knobs = with_files_used_again(stream(seed, "files used again"), knobs)
    return with_short_segments(stream(seed, "short segments"), knobs)


def _with_page_caches(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs nothing is synced, and who has acknowledged something loses its power and then
    another one's vote is asked for: one at a time, so that nothing may be lost."""
    if rng.random() >= _CACHES_SHARE:
        return knobs
    return replace(
        knobs,
        aim="page caches",
        nodes=3,
        voters=3,
        groups=rng.choice((1, 2)),
        unsynced=1.0,
        observers=0,
        replica_reads=0.0,
        fault_interval=rng.choice((1.0, 2.0)),
        fault_kinds=("power", "strand", "isolate"),
        triggers=("ack", "commit", "leader"),
        trigger_chance=rng.choice((0.1, 0.3)),
        trigger_delay=rng.choice((0.003, 0.02)),
        answers=("power", "strand", "isolate"),
        fault_seconds=rng.choice((0.3, 1.0)),
    )


def _with_calm(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs little happens, so that heartbeats are few, and leaders fall just then."""
    if rng.random() >= _CALM_SHARE or knobs.aim:
        return knobs
    return replace(
        knobs,
        aim="calm",
        heartbeat=knobs.failure_timeout / rng.choice((16, 32)),
        send_interval=rng.choice((1.0, 3.0)),
        fault_interval=rng.choice((5.0, 10.0)),
        triggers=CALM_TRIGGERS,
        trigger_chance=rng.choice((0.05, 0.2)),
        trigger_delay=rng.choice((0.003, 0.1, 0.4)),
        answers=("kill", "power", "pause", "isolate", "strand", "hold"),
    )


def _with_rot(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs bits flip on disks, and nothing else is the matter with the disks."""
    if rng.random() >= _ROT_SHARE or knobs.unsynced:
        return knobs
    kinds = tuple(kind for kind in knobs.fault_kinds if kind not in DISK_KINDS)
    return replace(
        knobs,
        aim="rot",
        nodes=max(3, knobs.nodes),
        voters=max(3, knobs.voters),
        start_errors=0.0,
        segment_bytes=rng.choice((300, 2000)),
        checkpoint_interval=rng.choice((0.7, 5.0)),
        fault_kinds=(*kinds, *ROT_KINDS * rng.choice((1, 4, 8))),
    )


def _with_long_checkpoints(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs a checkpoint takes as long as the journal needs to go round, and the power goes
    shortly after one."""
    if rng.random() >= _LONG_CHECKPOINTS_SHARE:
        return knobs
    return replace(
        knobs,
        aim="long checkpoints",
        checkpoint_syncs=rng.choice((10, 30)),
        checkpoint_interval=0.7,
        journal_file_bytes=4 * 4096,
        sync_seconds=rng.choice((0.002, 0.01)),
        send_interval=0.05,
        fault_kinds=(*knobs.fault_kinds, "power", "power"),
    )


def _with_observers(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs: in a chain or a tree, as they happen to choose their parents."""
    count = rng.choice((0, 0, 1, 2, 3))
    reads = rng.choice((0.0, 0.0, 0.3, 0.8))
    if knobs.unsynced:  # who has lost something may be behind its observers
        return knobs
    kinds = knobs.fault_kinds
    if count and kinds:
        kinds = (*kinds, "switch parents")
    nodes = min(5, max(knobs.nodes, knobs.voters + count)) if count else knobs.nodes
    return replace(knobs, nodes=nodes, observers=count, replica_reads=reads, fault_kinds=kinds)


def _draw_core(rng: Random, seconds: float) -> Knobs:
    """Of the fast layer: one group, fewer records, and in half of the seeds coups."""
    profile = rng.choices((*PROFILES, late, hours), weights=(3, 5, 2, 2, 3, 5))[0]
    knobs = profile(rng, draw(rng, seconds))
    kinds = tuple(kind for kind in knobs.fault_kinds if kind in CORE_KINDS)
    is_calm = profile is hours
    # So many batches in a request, and under way. Brokers are connected, so what is under way comes
    # in order; here one request that overtakes the others has all of those refused, and sent again.
    append_max, window = rng.choice((1, 3, 100)), rng.choice((1, 4, 1000))
    return replace(
        knobs,
        layer=Layer.CORE.value,
        groups=1,
        append_bytes_max=append_max,
        window_bytes=min(window, _REQUESTS_MAX * append_max),
        early_bytes_max=rng.choice((1, 200, 8 << 20)),
        send_interval=0.2 if profile is late else rng.choice((0.5, 2.0, 10.0)) + 10 * is_calm,
        heartbeat=knobs.failure_timeout / 2,
        sync_seconds=rng.choice((0.002, 0.02, 0.1)),
        fault_interval=rng.choice((2.0, 15.0, 60.0)) + 60 * is_calm,
        trigger_chance=0.05 if is_calm else rng.choice((0.05, 0.1, 0.3)),
        fault_kinds=kinds,
        unsynced=rng.choice((0.0, 0.0, 1.0)),
    )


def _with_damage(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs: where page caches are lost, journals are not damaged as well."""
    count = rng.choice((0, 0, 1, 4))
    if knobs.unsynced or not knobs.fault_kinds:
        return knobs
    return replace(knobs, fault_kinds=(*knobs.fault_kinds, *DAMAGE_KINDS * count))


def _with_whispers(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs each leader is left with the same follower, whose answers come when it leads
    once more. Meanwhile that one has followed others, and has cut what its answers are about."""
    if rng.random() >= _WHISPERS_SHARE:
        return knobs
    timeout = rng.choice((0.3, 0.8))
    return replace(
        knobs,
        aim="whispers",
        seconds=min(knobs.seconds, _COUP_SECONDS_MAX),
        nodes=5,
        voters=5,
        unsynced=0.0,
        failure_timeout=timeout,
        heartbeat=timeout / 4,
        election_rank=0.0,
        campaign_timeout=0.2,
        drift=0.0,
        loss=0.0,
        fault_interval=rng.choice((2.0, 5.0)),
        fault_kinds=("isolate", "hand over"),
        triggers=("leader",),
        trigger_chance=rng.choice((0.8, 0.95)),
        trigger_delay=rng.choice((0.003, 0.02)),
        answers=("whisper",),
        fault_seconds=rng.choice((0.3, 0.7, 1.5)),
    )


def _with_forgotten_votes(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs who is elected is alone at once, and who has voted for it forgets that."""
    if rng.random() >= _FORGOTTEN_SHARE or knobs.aim:
        return knobs
    nodes, timeout = rng.choice((3, 3, 5)), rng.choice((0.3, 0.8))
    return replace(
        knobs,
        aim="forgotten votes",
        seconds=min(knobs.seconds, _COUP_SECONDS_MAX),
        nodes=nodes,
        voters=nodes,
        unsynced=0.0,
        failure_timeout=timeout,
        heartbeat=timeout / 4,
        election_rank=0.0,
        campaign_timeout=0.2,
        drift=0.0,
        loss=rng.choice((0.0, 0.1)),
        send_interval=0.1,
        fault_interval=rng.choice((1.0, 2.0)),
        fault_kinds=("hand over", "hand over", "isolate", *DAMAGE_KINDS),
        triggers=("leader", "hand over"),
        trigger_chance=rng.choice((0.3, 0.8)),
        trigger_delay=rng.choice((0.003, 0.02)),
        answers=("forget", "forget", "forget", "strand", "hold"),
        fault_seconds=rng.choice((0.3, 0.7, 1.5)),
    )


def _with_changes_at_once(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs who has begun a change of voters is wished another at once, and much is lost on
    the way, so that some have heard of the one, some of the other, and some of neither."""
    if rng.random() >= _CHANGES_SHARE or knobs.aim:
        return knobs
    timeout = rng.choice((0.8, 1.5))
    return replace(
        knobs,
        aim="changes at once",
        seconds=min(knobs.seconds, _COUP_SECONDS_MAX),
        nodes=5,
        voters=3,
        unsynced=0.0,
        failure_timeout=timeout,
        heartbeat=timeout / 8,
        campaign_timeout=0.2,
        drift=0.0,
        loss=rng.choice((0.1, 0.3)),
        latency=0.0005,
        jitter=rng.choice((0.0005, 0.005)),
        sync_seconds=0.002,
        fault_interval=rng.choice((0.5, 1.0)),
        fault_kinds=("reconfigure", "reconfigure", "reconfigure", "isolate"),
        triggers=("leader",),
        trigger_chance=rng.choice((0.5, 0.9)),
        trigger_delay=0.003,
        answers=("change again", "change again", "strand"),
        fault_seconds=rng.choice((0.3, 1.0)),
    )


def _draw_replica_moves(rng: Random, seconds: float) -> Knobs:
    """Replicas are wished elsewhere all the time, and something happens in each stage of it."""
    faults = ("kill", "power", "cut", "isolate", "strand", "pause", "slow disk", "checkpoint")
    others = ("trim", "hand over", "move leader", "hold", "kill all", "power all", "slow steps")
    return replace(
        draw(rng, seconds),
        nodes=rng.choice((4, 5)),
        voters=rng.choice((1, 3, 3)),
        groups=rng.choice((1, 2, 3)),
        moves_replicas=True,
        copy_bytes=rng.choice((0, 500, 10_000)),
        near_bytes=rng.choice((0, 200, 1 << 20)),
        failure_timeout=0.8,
        heartbeat=0.1,
        loss=rng.choice((0.0, 0.0, 0.02)),
        start_errors=0.0,
        unsynced=0.0,
        fault_interval=rng.choice((0.5, 1.0, 2.0)),
        fault_kinds=(*REPLICA_KINDS * rng.choice((1, 2, 4)), *some(rng, (*faults, *others))),
        triggers=some(rng, (*REPLICA_TRIGGERS, "leader", "checkpoint", "start")),
        trigger_chance=rng.choice((0.05, 0.2, 0.5)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1, 0.4)),
        fault_seconds=rng.choice((0.3, 1.0, 3.0)),
    )


def _with_bad_disks(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs disks fail or are full, or page caches are all that there is."""
    return replace(
        knobs,
        unsynced=rng.choice((0.0, 0.0, 0.5, 1.0)),
        fault_kinds=(*knobs.fault_kinds, *rng.choice(((), ("sync error",), DISK_KINDS))),
    )
