"""What one group's replica on this broker is, to look at: its log, its core, how far both are.

What changes it is in the modules that build on this one: `solo` for when the core hears of what was
appended, `appending` for clients' batches, `trimming` for the log's start, `group_replica` for all
that the core says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from tidemark.partitions.raft.entries import Entry
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.replication.applier import Applier
from tidemark.partitions.replication.group_log import GroupLog
from tidemark.partitions.replication.host import Host
from tidemark.partitions.replication.log_start import StartMove
from tidemark.partitions.state_machines.producer_entry import SentBatch
from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.state_db import Condition, PartitionState
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

if TYPE_CHECKING:
    from tidemark.partitions.replication.participating import HeldReady

# Made for every run of batches: calling the class takes twice the time.
_position: Final = partial(tuple.__new__, Position)


class CutBatches(NamedTuple):
    """Producers' batches that another leader's log did not have."""

    cut_at_ms: int
    batches: Sequence[SentBatch]


class ReplicaState:
    """The part of a `GroupReplica` that the others build on.

    Invariant: log_start <= high_watermark <= log_end, and the high watermark never goes back.
    """

    __slots__ = (
        "_appended_end",
        "_applier",
        "_committed_epoch",
        "_condition",
        "_deferred",
        "_group",
        "_held",
        "_host",
        "_is_alone",
        "_is_postponed",
        "_left_in",
        "_solo_epoch",
        "_start_move",
        "_store",
        "commits_in",
        "cut_batches",
        "durable_end",
        "failure",
        "hard_state",
        "high_watermark",
        "is_awaited",
        "is_eager",
        "is_paused",
        "key",
        "led_epoch",
        "log",
        "preference",
        "priority",
    )

    def __init__(
        self,
        store: GroupLog,
        *,
        host: Host,
        shape: LogShape,
        hard_state: HardState,
        condition: Condition,
        committed: Offset,
        left_in: Epoch | None,
        applier: Applier | None,
    ) -> None:
        """For `opening`. All that is in the log is durable, or counts as that; what the log's start
        tells of it is `committed`."""
        self.key = store.key
        self.log: Log = store.log
        self.hard_state = hard_state
        """The newest that was given to the journal."""
        self.high_watermark = committed
        self.durable_end = store.log.end_offset
        """All below is on the disk; with `flush=os`, in the page cache at least."""
        self.failure: str | None = None
        """Why this replica takes no part now."""
        self.led_epoch: Epoch | None = None
        """The last one that this replica has led, since it was opened."""
        self.priority = 0
        self.preference: Sequence[NodeId] = ()
        self.is_eager = False
        self.is_awaited: Callable[[], bool] = _by_nobody
        """Whether producers wait for more replicas than committed it: asked before the lead goes
        elsewhere, for they would be refused what they have written."""
        self.cut_batches: Sequence[CutBatches] = ()
        """Of producers, since somebody took note of them. There are hardly ever any."""
        self.is_paused = False
        """Whether clients' writes are held, because the lead is about to go elsewhere."""
        self._store = store
        self._host = host
        self._condition = condition
        self._left_in = left_in
        self._applier = applier
        # What was appended since the core has heard of it: in this turn, or while it is solo.
        self._appended_end: Offset | None = None
        # While nothing but appends happens: see `solo`.
        self._solo_epoch: Epoch | None = None
        self.commits_in: Epoch | None = None
        """In this epoch nothing follows from a client's batch that would have to be done in this
        turn: it is committed once it is appended, and nobody has to hear of it. Set while this
        replica is solo and syncs nothing."""
        self._start_move: StartMove | None = None
        self._held: HeldReady | None = None
        # Whether that is to be tried again, for its files could not be cut.
        self._is_postponed = False
        # What it was told meanwhile.
        self._deferred: tuple[Callable[[], None], ...] = ()
        self._group = self._new_group(
            shape,
            # A leader may know of it what was true before it left.
            is_clean=condition is Condition.CLEAN and left_in is None,
            in_doubt=condition is Condition.DAMAGED,
        )
        self._committed_epoch = self._group.committed.epoch
        self._is_alone = self._group.config.members == (host.node_id,)

    def __repr__(self) -> str:
        return f"<GroupReplica {self._store.name} epoch {self._group.epoch}>"

    def _new_group(self, shape: LogShape, *, is_clean: bool, in_doubt: bool) -> Group:
        return Group(
            node_id=self._host.node_id,
            shape=shape,
            hard_state=self.hard_state,
            committed=self.high_watermark,
            read=self._read,
            peers=self._host.peers,
            limits=self._host.limits,
            is_clean=is_clean,
            life=self._host.incarnation,
            in_doubt=in_doubt,
            left_in=self._left_in,
        )

    @property
    def committed(self) -> Position:
        """Nothing up to there will ever change; its offset is the high watermark."""
        return _position((self._committed_epoch, self.high_watermark))

    @property
    def producers(self) -> ProducerTable:
        return self._store.producers.table

    @property
    def epoch(self) -> Epoch:
        return self._group.epoch

    @property
    def leader(self) -> NodeId | None:
        return self._group.leader

    @property
    def is_leader(self) -> bool:
        return self._group.is_leader and self.failure is None

    @property
    def is_serving(self) -> bool:
        """Whether clients may read here as at a leader.

        Only once this knows what the core does: in between, the high watermark is the one from
        before the election, and nobody may be told that.
        """
        group = self._group
        return group.is_serving and self._committed_epoch == group.epoch and self.failure is None

    @property
    def is_accepting(self) -> bool:
        """Whether clients may append here: it serves, and is not about to hand the lead over."""
        if self._solo_epoch is not None:
            return True
        group = self._group
        return (
            group.is_serving and group.is_accepting and not self.is_paused and self.failure is None
        )

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def is_held(self) -> bool:
        """Whether the journal says of its files what they do not yet."""
        return self._held is not None

    @property
    def log_start(self) -> Offset:
        return self.log.start_offset

    @property
    def log_end(self) -> Offset:
        return self.log.end_offset

    def state_row(self, recovery_point: Offset) -> PartitionState:
        """What a checkpoint records; not while it `is_held`. `recovery_point` is what a sync of the
        log has returned, or what was recorded last."""
        assert self._held is None
        if self.failure is None:
            # While the broker stops the core may have heard what is not done any more.
            self.log.doubt(self.high_watermark if self._group.has_ready else None)
        return self._store.state_row(
            recovery_point,
            hard_state=self.hard_state,
            epochs=self._group.shape.rows,
            condition=Condition.CLEAN if self._group.is_clean else self._condition,
        )

    # What the parts that build on this one do

    def _touch(self) -> None:
        """Have what comes of it done before the turn ends."""
        raise NotImplementedError

    def _commit(self, committed: Position) -> None:
        """Nothing up to there will ever change."""
        raise NotImplementedError

    def _tell_committed(self) -> None:
        """Have the others hear how far it is committed, and where the log begins."""
        raise NotImplementedError

    def _told_committed(self, to: Sequence[NodeId]) -> None:
        """Entries are on their way to these, which say how far it is committed."""
        raise NotImplementedError

    def _resign(self) -> None:
        """Have it be known that this replica does not lead any more, or follow."""
        raise NotImplementedError

    def _pause(self) -> None:
        """Have `resume` or `release` be called in a while."""
        raise NotImplementedError

    def _read(self, after: Position, up_to: Position, bytes_max: int) -> tuple[Entry, ...]:
        """The core's way to its own log."""
        raise NotImplementedError


def _by_nobody() -> bool:
    return False
