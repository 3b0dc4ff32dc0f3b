"""Where a broker answers clients: the decisions of the broker's handlers, without the wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.state_machines.producers import BATCHES_KEPT, Duplicate
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError, StorageError
from tidemark.protocol.records.control import Marker
from tidemark.protocol.records.header import BatchHeader, iter_headers, read_header
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.testing.checkers import serving
from tidemark.testing.simulator.rpc import (
    Answer,
    Fetch,
    Fetched,
    GiveUp,
    Leader,
    Produce,
    Produced,
    Request,
    WhoLeads,
)
from tidemark.testing.simulator.watch import Watch


class Hosting(Protocol):
    """The process behind the desk."""

    @property
    def now(self) -> float: ...

    @property
    def wall_ms(self) -> int: ...

    @property
    def disturbances(self) -> int:
        """How often this process has been made to stand still or to be slow."""

    def replica(self, key: PartitionKey) -> GroupReplica | None: ...

    def is_rotten(self, key: PartitionKey) -> bool:
        """Whether a bit of its log has flipped."""

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]: ...

    def moment(self, name: str) -> None: ...


class _Waiter(NamedTuple):
    """A batch in the log whose producer waits for its commit."""

    client: str
    request: int
    epoch: Epoch
    base_offset: Offset
    end_offset: Offset


@dataclass(slots=True)
class _Held:
    """What waits, in its order, while the lead of a group is about to go elsewhere."""

    since: float
    disturbances: int
    """How often the process had stood still until then."""
    requests: list[tuple[str, Produce]] = field(default_factory=list)


class Desk:
    """One process's clients. `reply` is how an answer goes out."""

    def __init__(
        self, hosting: Hosting, watch: Watch, reply: Callable[[str, Answer], None]
    ) -> None:
        self._hosting = hosting
        self._watch = watch
        self._reply = reply
        self._waiters: dict[PartitionKey, list[_Waiter]] = {}
        self._held: dict[PartitionKey, _Held] = {}

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiters.values()))

    def release(self) -> None:
        """Take up again what was held, where writes are held no more."""
        for key, held in list(self._held.items()):
            replica = self._hosting.replica(key)
            is_undisturbed = held.disturbances == self._hosting.disturbances
            if replica is not None and replica.is_paused and replica.failure is None:
                if is_undisturbed:
                    serving.check_held(str(key.partition), self._hosting.now - held.since)
                continue
            del self._held[key]
            for client, request in held.requests:
                self._produce(client, request)

    def take(self, client: str, request: Request) -> None:
        """Answer now, or when the batch is committed or its leader is leader no more."""
        match request:
            case Produce():
                self._produce(client, request)
            case GiveUp():
                self._reply(client, self._end(request))
            case Fetch():
                self._reply(client, self._fetch(request))
            case WhoLeads():
                node, epoch = self._hosting.leader_of(request.key)
                self._reply(client, Leader(request.request, request.key, node, epoch))

    def give_up(self, key: PartitionKey) -> None:
        """The replica is about to go: whoever waits for it has to ask another broker."""
        for waiter in self._waiters.pop(key, []):
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self._reply(waiter.client, Produced(waiter.request, error))

    def look_again(self, key: PartitionKey) -> None:
        """Something about the group has changed: answer who need not wait any more."""
        waiters, replica = self._waiters.get(key), self._hosting.replica(key)
        if not waiters or replica is None:
            return
        left = []
        for waiter in waiters:
            if not replica.is_leader or replica.epoch != waiter.epoch:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
                self._reply(waiter.client, Produced(waiter.request, error))
            elif replica.high_watermark >= waiter.end_offset:
                done = Produced(waiter.request, ErrorCode.NONE, waiter.base_offset)
                self._reply(waiter.client, done)
            else:
                left.append(waiter)
        self._waiters[key] = left

    def _produce(self, client: str, request: Produce) -> None:
        replica = self._hosting.replica(request.key)
        if replica is None:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self._reply(client, Produced(request.request, error))
            return
        if replica.is_paused and replica.failure is None:
            self._hold(client, request)
            return
        segments = replica.log.segment_count
        data = bytearray(request.batch)
        try:
            header = read_header(data)
            appended = replica.append(header, data, self._hosting.wall_ms)
        except RequestError as error:
            self._reply(client, Produced(request.request, error.code))
            return
        except (OSError, StorageError):
            self._reply(client, Produced(request.request, ErrorCode.KAFKA_STORAGE_ERROR))
            return
        if isinstance(appended, Duplicate):
            end_offset = appended.next_offset
            if _is_oldest_kept(replica, header, appended):
                self._hosting.moment("retry of the oldest")
        else:
            end_offset = appended.end_offset
        self._waiters.setdefault(request.key, []).append(
            _Waiter(client, request.request, replica.epoch, appended.base_offset, end_offset)
        )
        self.look_again(request.key)
        if replica.log.segment_count != segments:
            self._hosting.moment("roll")

    def _end(self, request: GiveUp) -> Produced:
        replica = self._hosting.replica(request.key)
        if replica is None or replica.is_paused:
            return Produced(request.request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        marker = Marker(is_commit=False, coordinator_epoch=0)
        producer_id, epoch = request.producer_id, request.producer_epoch
        try:
            replica.append_marker(producer_id, epoch, marker, raises_epoch=False)
        except RequestError as error:
            return Produced(request.request, error.code)
        except (OSError, StorageError):
            return Produced(request.request, ErrorCode.KAFKA_STORAGE_ERROR)
        self._hosting.moment("marker")
        return Produced(request.request, ErrorCode.NONE)

    def _hold(self, client: str, request: Produce) -> None:
        held = self._held.get(request.key)
        if held is None:
            hosting = self._hosting
            held = self._held[request.key] = _Held(hosting.now, hosting.disturbances)
            hosting.moment("hold")
        held.requests.append((client, request))

    def _fetch(self, request: Fetch) -> Fetched:
        replica = self._hosting.replica(request.key)
        may_answer = replica is not None and (
            replica.failure is None and not replica.is_held
            if request.of_any
            else replica.is_serving
        )
        if replica is None or not may_answer:
            return Fetched(request.request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        end = replica.high_watermark
        if request.of_any and request.offset > end:  # a broker would wait until it is there
            return Fetched(request.request, ErrorCode.OFFSET_NOT_AVAILABLE)
        try:
            found = replica.log.read(
                request.offset, bytes_max=request.bytes_max, end_offset=end
            ).read()
        except RequestError as error:
            return Fetched(request.request, error.code, log_start=replica.log_start)
        except (StorageError, CorruptBatch):
            if not self._hosting.is_rotten(request.key):
                raise
            self._hosting.moment("rot read")
            return Fetched(request.request, ErrorCode.KAFKA_STORAGE_ERROR)
        if not self._hosting.is_rotten(request.key):  # else who gets it checks it
            # What was held, and is taken in the turn's end, may be committed before the next one.
            self._watch.groups[request.key].changed(replica.group.node_id, replica)
            self._watch.reads(request.key, (header for _, header in iter_headers(found)))
        return Fetched(
            request.request, ErrorCode.NONE, found, end, replica.epoch, replica.log_start
        )


def _is_oldest_kept(replica: GroupReplica, header: BatchHeader, found: Duplicate) -> bool:
    """Whether a retry is of a batch that the next one of its producer makes the broker forget."""
    kept = dict(replica.producers.producers)[header.producer_id].batches
    return len(kept) == BATCHES_KEPT and kept[0][2] == found.base_offset
