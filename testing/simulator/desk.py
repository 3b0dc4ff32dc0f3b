"""Where a broker answers clients: the decisions of the broker's handlers, without the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.records.header import iter_headers, read_header
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.testing.simulator.rpc import (
    Answer,
    Fetch,
    Fetched,
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
    def wall_ms(self) -> int: ...

    def replica(self, key: PartitionKey) -> GroupReplica | None: ...

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]: ...

    def moment(self, name: str) -> None: ...


class _Waiter(NamedTuple):
    """A batch in the log whose producer waits for its commit."""

    client: str
    request: int
    epoch: Epoch
    base_offset: Offset
    end_offset: Offset


class Desk:
    """One process's clients. `reply` is how an answer goes out."""

    def __init__(
        self, hosting: Hosting, watch: Watch, reply: Callable[[str, Answer], None]
    ) -> None:
        self._hosting = hosting
        self._watch = watch
        self._reply = reply
        self._waiters: dict[PartitionKey, list[_Waiter]] = {}

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiters.values()))

    def take(self, client: str, request: Request) -> None:
        """Answer now, or when the batch is committed or its leader is leader no more."""
        match request:
            case Produce():
                self._produce(client, request)
            case Fetch():
                self._reply(client, self._fetch(request))
            case WhoLeads():
                node, epoch = self._hosting.leader_of(request.key)
                self._reply(client, Leader(request.request, request.key, node, epoch))

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
        segments = replica.log.segment_count
        data = bytearray(request.batch)
        try:
            appended = replica.append(read_header(data), data, self._hosting.wall_ms)
        except RequestError as error:
            self._reply(client, Produced(request.request, error.code))
            return
        except (OSError, StorageError):
            self._reply(client, Produced(request.request, ErrorCode.KAFKA_STORAGE_ERROR))
            return
        if isinstance(appended, Duplicate):
            end_offset = appended.next_offset
        else:
            end_offset = appended.end_offset
        self._waiters.setdefault(request.key, []).append(
            _Waiter(client, request.request, replica.epoch, appended.base_offset, end_offset)
        )
        self.look_again(request.key)
        if replica.log.segment_count != segments:
            self._hosting.moment("roll")

    def _fetch(self, request: Fetch) -> Fetched:
        replica = self._hosting.replica(request.key)
        if replica is None or not replica.is_serving:
            return Fetched(request.request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        end = replica.high_watermark
        try:
            found = replica.log.read(
                request.offset, bytes_max=request.bytes_max, end_offset=end
            ).read()
        except RequestError as error:
            return Fetched(request.request, error.code, log_start=replica.log_start)
        self._watch.reads(request.key, (header for _, header in iter_headers(found)))
        return Fetched(
            request.request, ErrorCode.NONE, found, end, replica.epoch, replica.log_start
        )
