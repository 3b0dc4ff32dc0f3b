"""What one run is like: its size, its settings, its weather, its faults. `drawing` says how they
come from a seed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from tidemark.testing.simulator.network import Weather


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
    aim: str = ""
    """What the others were drawn for, where that is one thing."""
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
    segment_ms: int = 7 * 24 * 3600 * 1000
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
    give_ups: float = 0.0
    """How often, after a batch, a producer gives its transaction up. Where that is not 0, all that
    producers write is in transactions, and none is committed."""
    moves_replicas: bool = False
    """Whether brokers open and give up replicas as the metadata say, and wishes are carried out."""
    replicas_max: int = 3
    """Onto so many brokers, at most, those of a group are wished."""
    copy_bytes: int = 0
    """What a broker's learners are sent in a second, at most; 0 for no limit."""
    near_bytes: int = 1 << 20
    """A learner that lacks no more than this is let vote."""
    writers: int = 0
    """Transactional ids that write."""
    rivals: int = 1
    """Clients of each of them, which fence each other."""
    pauses: float = 0.1
    """How often a writer waits, for seconds, before it goes on in a transaction, or a member before
    it commits what it has read."""
    strangers: int = 0
    """Producers that commit offsets of a group in transactions and are none of its members."""
    transformers: int = 0
    """Members of a group that read, write and commit in transactions."""
    has_generations: bool = True
    """Whether transformers are fenced by their group; else those of one partition share an id."""
    assigned_by_coordinator: bool = False
    """Whether groups are of the consumer protocol (KIP-848), not of the classic one."""
    migrating: float = 0.0
    """How often in a second a member of a group is replaced by another process, which may speak the
    other protocol (KIP-848's migration); 0 for never."""
    cooperative: bool = False
    """Whether classic members of such groups read on while they rebalance."""
    is_hasty: bool = False
    """Whether such a group gets a member of the consumer protocol just when a classic one is
    letting go of a part of what it reads, and at no other time."""
    slow_to_join: float = 0.0
    """How often a classic member of such a group that has to join reads on for seconds first."""
    members: int = 0
    """Members of a group that commit how far they have read."""
    bumping: float = 0.5
    """Of transactional producers: those that have the epoch raised at each end (KIP-890)."""
    transaction_seconds: float = 3.0
    """How long a transaction may last."""
    aborts: float = 0.15
    """Of what writers begin: what they give up, as they wish."""
    deletions_seconds: float = 24 * 3600.0
    """How long deletions, and the ends of transactions, stay in what is compacted."""
    compaction_seconds: float = 0.0
    """How long each step of a compaction takes at most, and then all logs are compacted, those too
    that lose nothing by it; 0 has all steps be one moment."""
    compaction_strikes: float = 0.0
    """Of compactions in the midst of which the power fails."""
    client_lateness: float = 0.0
    """Of clients' requests and their answers that come seconds late, out of order."""
    client_duplication: float = 0.0
    late_calls: float = 0.0
    """Of what coordinators and leaders ask each other, and of the answers: those that come up to
    two seconds late, some of them for the second time."""
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
    def weather(self) -> Weather:
        """Between brokers."""
        return Weather(
            latency_seconds=self.latency,
            jitter_seconds=self.jitter,
            loss=self.loss,
            duplication=self.duplication,
            lateness=self.lateness,
            capacity=self.capacity,
            in_order=self.in_order,
        )

    @property
    def has_transactions(self) -> bool:
        return bool(self.writers or self.transformers or self.members)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return asdict(self)
