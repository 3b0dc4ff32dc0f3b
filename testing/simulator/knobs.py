"""What one run is like: its size, its settings, its weather, its faults.

All drawn from the seed, and not evenly: a run has some kinds of fault and lacks others, and
settings that are absurd in practice (an append of one byte, a journal of a few pages) are common,
because they bring rare paths to the front.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from random import Random
from typing import Any, Final

from tidemark.testing.simulator.randomness import stream

TIMED_KINDS: Final = (
    "kill",
    "power",
    "kill all",
    "power all",
    "pause",
    "slow steps",
    "cut",
    "cut client",
    "isolate",
    "strand",
    "clog",
    "hold",
    "slow disk",
    "sync error",
    "disk full",
    "clock jump",
    "hand over",
    "move leader",
    "checkpoint",
    "trim",
    "reconfigure",
    "switch parents",
)
"""What happens at times drawn beforehand."""

REPLICA_KINDS: Final = ("move replicas",)
"""The same, and only where `moves_replicas` is: not among those that any seed may draw."""

WHISPER_KINDS: Final = ("whisper",)
"""The same, and only shortly after elections, where that is all that happens."""

COMPACTION_KINDS: Final = ("compact",)
"""The same, and only in the layer of transactions."""

TRANSACTION_TRIGGERS: Final = (
    "transaction goes on",
    "transaction ends",
    "marker",
    "transaction over",
    "coordinator loading",
    "offsets in transaction",
)
"""Moments of a transaction."""

ROT_KINDS: Final = ("damage", "rot")
"""The same, in some runs of the full layer: a bit flips in a journal, or in a segment."""

DAMAGE_KINDS: Final = ("damage",)
"""The same, and only in the fast layer: a journal that has lost what it said last."""

REPLICA_TRIGGERS: Final = (
    "replica copying",
    "replica leading",
    "replica changing",
    "replica done",
    "replica joins",
    "replica given up",
    "replica forgotten",
)
"""Moments of a replica's move."""

_CACHES_SHARE: Final = 0.15
_LONG_CHECKPOINTS_SHARE: Final = 0.15
_ROT_SHARE: Final = 0.15
_ASSIGNED_SHARE: Final = 0.35
_WHISPERS_SHARE: Final = 0.08
_WHISPER_SECONDS_MAX: Final = 300.0
_DISK_KINDS: Final = ("sync error", "disk full")

TRIGGERS: Final = (
    "leader",
    "append",
    "ack",
    "commit",
    "truncate",
    "vote",
    "promise",
    "grant",
    "hand over",
    "catching up",
    "pausing",
    "handing over",
    "hold",
    "move ended",
    "checkpoint",
    "sync",
    "roll",
    "start",
)
"""Moments in a broker's life after which something is made to happen shortly."""


CORE_KINDS: Final = frozenset(
    {
        *("kill", "power", "kill all", "power all", "pause", "cut", "isolate", "strand", "clog"),
        *("hold", "slow disk", "hand over", "move leader", "trim", "reconfigure"),
    }
)
"""Of these, what the fast layer can do."""


class Layer(StrEnum):
    """What of a broker is simulated."""

    FULL = "full"
    """All but threads and sockets: replication, journal, segments, clients."""
    CORE = "core"
    """The consensus core, on logs in memory."""
    REPLICAS = "replicas"
    """As the full one; of seeds in which replicas move between brokers."""
    TRANSACTIONS = "transactions"
    """As the full one, with the coordinators of transactions and groups, and their clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """One run's settings. Times in seconds unless they say otherwise."""

    layer: str = Layer.FULL.value
    nodes: int = 3
    voters: int = 3
    groups: int = 2
    producers: int = 2
    consumers: int = 1
    seconds: float = 30.0
    """How long there are faults; a liveness phase follows."""
    send_interval: float = 0.15
    records_max: int = 3
    in_flight_max: int = 3
    request_timeout: float = 1.5
    give_up_after: float = 12.0

    append_bytes_max: int = 1 << 20
    window_bytes: int = 8 << 20
    early_bytes_max: int = 8 << 20
    segment_bytes: int = 1 << 16
    journal_file_bytes: int = 1 << 16
    journaled_bytes_max: int = 1 << 30
    """Larger runs are synced where they lie, and are not in the journal."""
    fetch_bytes_max: int = 1 << 16
    checkpoint_interval: float = 5.0
    checkpoint_syncs: int = 1
    """So many syncs a checkpoint takes; journal files fill up meanwhile."""

    heartbeat: float = 0.1
    failure_timeout: float = 0.8
    election_jitter: float = 0.05
    election_rank: float = 0.25
    campaigns_at_once: int = 64
    campaign_timeout: float = 0.5
    retry: float = 1.0

    write_seconds: float = 0.0002
    sync_seconds: float = 0.002
    latency: float = 0.0005
    jitter: float = 0.0005
    loss: float = 0.0
    duplication: float = 0.0
    lateness: float = 0.0
    """Of messages that come seconds late."""
    capacity: int = 1000
    in_order: bool = False
    splits_frames: bool = False
    """Whether each message of a turn travels alone."""
    resets_seen: float = 0.5
    """How often a peer's death is noticed by its connection, rather than by silence."""
    start_errors: float = 0.0
    """How often a disk fails while a broker starts: the journal's redo is begun again then."""
    unsynced: float = 0.0
    """Of groups with `flush=os`: their batches are in no journal."""
    observers: int = 0
    """Of each group, where there are brokers without a vote in it."""
    replica_reads: float = 0.0
    """How often a consumer asks any replica, rather than the leader."""
    moves_replicas: bool = False
    """Whether brokers open and give up replicas as the metadata say, and wishes are carried out."""
    copy_bytes: int = 0
    """What a broker's learners are sent in a second, at most; 0 for no limit."""
    near_bytes: int = 1 << 20
    """A learner that lacks no more than this is let vote."""
    writers: int = 0
    """Transactional ids that write."""
    rivals: int = 1
    """Clients of each of them, which fence each other."""
    transformers: int = 0
    """Members of a group that read, write and commit in transactions."""
    has_generations: bool = True
    """Whether transformers are fenced by their group; else those of one partition share an id."""
    assigned_by_coordinator: bool = False
    """Whether groups are of the consumer protocol (KIP-848), not of the classic one."""
    members: int = 0
    """Members of a group that commit how far they have read."""
    bumping: float = 0.5
    """Of transactional producers: those that have the epoch raised at each end (KIP-890)."""
    transaction_seconds: float = 3.0
    """How long a transaction may last."""
    client_lateness: float = 0.0
    """Of clients' requests and their answers that come seconds late, out of order."""
    client_duplication: float = 0.0
    drift: float = 0.0
    """How far a clock's rate is off at most; 0.4 is 0.6 to 1.4."""

    fault_interval: float = 4.0
    """The mean time between faults; 0 for none."""
    fault_kinds: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    trigger_chance: float = 0.0
    trigger_delay: float = 0.02
    answers: tuple[str, ...] = ()
    """What may follow a moment; empty for anything that may."""
    fault_seconds: float = 3.0
    """The mean time that a fault lasts."""

    @property
    def has_transactions(self) -> bool:
        return bool(self.writers or self.transformers or self.members)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return asdict(self)


def draw_knobs(seed: int, *, seconds: float, layer: Layer = Layer.FULL) -> Knobs:
    """The knobs of a seed."""
    rng = stream(seed, "knobs")
    if layer is Layer.CORE:
        knobs = _with_damage(stream(seed, "damage"), _draw_core(rng, seconds))
        return _with_whispers(stream(seed, "whispers"), knobs)
    if layer is Layer.REPLICAS:
        return _with_bad_disks(stream(seed, "disks"), _draw_replica_moves(rng, seconds))
    if layer is Layer.TRANSACTIONS:
        knobs = _draw_transactions(stream(seed, "transactions"), _draw(rng, seconds))
        return _with_protocol(stream(seed, "protocol"), knobs)
    knobs = _draw(rng, seconds)
    profile = rng.choices(PROFILES, weights=(5, 4, 2, 2))[0]
    journaled = stream(seed, "journaled").choice((1 << 30, 1 << 30, 400, 100))
    knobs = replace(profile(rng, knobs), journaled_bytes_max=journaled)
    knobs = _with_observers(stream(seed, "observers"), knobs)
    knobs = _with_long_checkpoints(stream(seed, "checkpoints"), knobs)
    knobs = _with_page_caches(stream(seed, "page caches"), knobs)
    return _with_rot(stream(seed, "rot"), knobs)


def _with_page_caches(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs nothing is synced, and who has acknowledged something loses its power and then
    another one's vote is asked for: one at a time, so that nothing may be lost."""
    if rng.random() >= _CACHES_SHARE:
        return knobs
    return replace(
        knobs,
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


def _with_rot(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs bits flip on disks, and nothing else is the matter with the disks."""
    if rng.random() >= _ROT_SHARE or knobs.unsynced:
        return knobs
    kinds = tuple(kind for kind in knobs.fault_kinds if kind not in _DISK_KINDS)
    return replace(
        knobs,
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
    profile = rng.choices((*PROFILES, _late, _hours), weights=(3, 5, 2, 2, 3, 5))[0]
    knobs = profile(rng, _draw(rng, seconds))
    kinds = tuple(kind for kind in knobs.fault_kinds if kind in CORE_KINDS)
    is_calm = profile is _hours
    return replace(
        knobs,
        layer=Layer.CORE.value,
        groups=1,
        # So many batches in a request, and under way.
        append_bytes_max=rng.choice((1, 3, 100)),
        window_bytes=rng.choice((1, 4, 1000)),
        early_bytes_max=rng.choice((1, 200, 8 << 20)),
        send_interval=0.2 if profile is _late else rng.choice((0.5, 2.0, 10.0)) + 10 * is_calm,
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
        seconds=min(knobs.seconds, _WHISPER_SECONDS_MAX),
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
        answers=WHISPER_KINDS,
        fault_seconds=rng.choice((0.3, 0.7, 1.5)),
    )


def _draw_replica_moves(rng: Random, seconds: float) -> Knobs:
    """Replicas are wished elsewhere all the time, and something happens in each stage of it."""
    faults = ("kill", "power", "cut", "isolate", "strand", "pause", "slow disk", "checkpoint")
    others = ("trim", "hand over", "move leader", "hold", "kill all", "power all", "slow steps")
    return replace(
        _draw(rng, seconds),
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
        fault_kinds=(*REPLICA_KINDS * rng.choice((1, 2, 4)), *_some(rng, (*faults, *others))),
        triggers=_some(rng, (*REPLICA_TRIGGERS, "leader", "checkpoint", "start")),
        trigger_chance=rng.choice((0.05, 0.2, 0.5)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1, 0.4)),
        fault_seconds=rng.choice((0.3, 1.0, 3.0)),
    )


def _draw_transactions(rng: Random, knobs: Knobs) -> Knobs:
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
        fault_kinds=(*_some(rng, (*faults, *others)), *COMPACTION_KINDS * rng.choice((0, 4, 8))),
        triggers=_some(rng, (*TRANSACTION_TRIGGERS, "leader", "checkpoint")),
        trigger_chance=rng.choice((0.01, 0.05, 0.2)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1, 0.4)),
        answers=rng.choice(((), ("strand", "strand", "isolate", "hold", "kill", "power"))),
        fault_seconds=rng.choice((0.3, 1.0, 3.0)),
    )


def _with_protocol(rng: Random, knobs: Knobs) -> Knobs:
    """In a third of the runs coordinators assign."""
    return replace(knobs, assigned_by_coordinator=rng.random() < _ASSIGNED_SHARE)


def _with_bad_disks(rng: Random, knobs: Knobs) -> Knobs:
    """In some runs disks fail or are full, or page caches are all that there is."""
    return replace(
        knobs,
        unsynced=rng.choice((0.0, 0.0, 0.5, 1.0)),
        fault_kinds=(*knobs.fault_kinds, *rng.choice(((), ("sync error",), _DISK_KINDS))),
    )


def _hours(rng: Random, knobs: Knobs) -> Knobs:
    """A long time with little to do, and a fault every minute or two."""
    return replace(
        knobs,
        seconds=12 * knobs.seconds,
        failure_timeout=1.5,
        loss=0.0,
        fault_kinds=(*knobs.fault_kinds, "kill", "power", "isolate"),
        triggers=_some(rng, ("leader", "vote", "hand over", "pausing", "truncate")),
    )


def _anything(_rng: Random, knobs: Knobs) -> Knobs:
    """Any faults, at any time."""
    return knobs


def _coups(rng: Random, knobs: Knobs) -> Knobs:
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
        triggers=("leader", *_some(rng, TRIGGERS)),
        trigger_chance=rng.choice((0.3, 0.8)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1)),
        answers=(
            "strand",
            "isolate",
            *_some(rng, ("strand", "hold", "kill", "power", "power all")),
        ),
        fault_seconds=rng.choice((0.3, 0.7, 1.5)),
    )


def _changes(rng: Random, knobs: Knobs) -> Knobs:
    """Voters come and go, and some of those that come find the log's start gone."""
    return replace(
        knobs,
        nodes=5,
        voters=rng.choice((1, 3, 3)),
        fault_interval=rng.choice((0.7, 1.5)),
        fault_kinds=(
            *("reconfigure", "reconfigure", "trim"),
            *_some(rng, ("kill", "power", "cut", "isolate", "strand", "hand over", "checkpoint")),
        ),
        trigger_chance=rng.choice((0.0, 0.1)),
    )


def _moves(rng: Random, knobs: Knobs) -> Knobs:
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
            *_some(rng, ("kill", "power", "cut", "isolate", "pause", "slow disk", "reconfigure")),
        ),
        triggers=_some(rng, _MOVE_TRIGGERS),
        trigger_chance=rng.choice((0.1, 0.3)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1)),
        fault_seconds=rng.choice((0.3, 1.0, 2.0)),
    )


def _late(rng: Random, knobs: Knobs) -> Knobs:
    """Answers arrive when another, or the same one again, leads: held back as they are given."""
    coups = _coups(rng, knobs)
    return replace(
        coups,
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
PROFILES: Final = (_anything, _coups, _changes, _moves)


def _draw(rng: Random, seconds: float) -> Knobs:
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
        fault_kinds=_some(rng, TIMED_KINDS),
        triggers=_some(rng, TRIGGERS) if rng.random() < 0.75 else (),
        trigger_chance=rng.choice((0.02, 0.1, 0.4, 0.8)),
        trigger_delay=rng.choice((0.003, 0.02, 0.1, 0.4)),
        fault_seconds=rng.choice((0.5, 2.0, 5.0)),
    )


def _some(rng: Random, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """A subset, each of half a chance, in their order."""
    return tuple(kind for kind in kinds if rng.random() < 0.5)
