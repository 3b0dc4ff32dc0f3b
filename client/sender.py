"""Sends the batches of all partitions that one broker leads: one task for each broker.

A request carries at most one batch of a partition, and no more than `in_flight_max` requests are
unanswered at a time. Partitions take turns when there is more than fits into one request.
"""

import math
from collections.abc import Callable
from functools import partial

import trio

from tidemark.client.accumulator import PartitionQueue
from tidemark.client.background import Signal
from tidemark.client.batches import Batch
from tidemark.client.codes import error_code
from tidemark.client.connection import Connection, Reply
from tidemark.client.descriptions import BrokerDescription
from tidemark.client.network import Network, address_of
from tidemark.client.pool import Pool
from tidemark.client.request_limits import NAME, OVERHEAD_BYTES, RequestLimits
from tidemark.client.retries import STALE_METADATA
from tidemark.protocol.errors import ErrorCode, MalformedMessage, RequestError
from tidemark.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tidemark.protocol.types import NO_OFFSET, Epoch, NodeId, Offset, TopicPartition
from tidemark.protocol.values import dataclass

Taken = dict[tuple[str, int], tuple[PartitionQueue, Batch]]
"""The batches of one request, by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSettings:
    """How requests are made."""

    acks: int
    linger_seconds: float
    request_bytes_max: int
    in_flight_max: int
    store_timeout_ms: int
    """How long a broker may wait for the others to have it, too."""
    delivery_timeout_seconds: float
    transactional_id: str | None = None


class BrokerSender:
    """See the module."""

    def __init__(
        self,
        node_id: NodeId,
        network: Network,
        pool: Pool,
        settings: SendSettings,
        limits: RequestLimits,
        *,
        is_flushing: Callable[[], bool],
        offer_to_leader: Callable[[PartitionQueue], None],
        retry_when_refreshed: Callable[[PartitionQueue, float], None],
    ) -> None:
        self.node_id = node_id
        self._network = network
        self._pool = pool
        self._settings = settings
        self._limits = limits
        self._is_flushing = is_flushing
        self._offer_to_leader = offer_to_leader
        self._retry_when_refreshed = retry_when_refreshed
        self._offered: dict[PartitionQueue, None] = {}
        self._requests_in_flight = 0
        self._signal = Signal()
        self._sleeps = False

    def offer(self, queue: PartitionQueue) -> None:
        """This queue may have something to take, now or when its linger is over."""
        self._offered[queue] = None
        self._signal.set()

    def send_or_offer(self, queue: PartitionQueue) -> None:
        """As `offer`. But where nothing is on its way, and nothing has to be waited for, what is
        due is sent by whoever calls this: a record that comes alone waits for no other task then.
        Those that come with it, from other tasks, are collected for the next request.
        """
        self._offered[queue] = None
        if self._sleeps and not self._requests_in_flight:
            connection = self._drained_connection()
            taken = {} if connection is None else self._take(trio.current_time())[0]
            if connection is not None and taken:
                self._send_on(connection, taken)
                if not self._offered:
                    return
        self._signal.set()

    def _drained_connection(self) -> Connection | None:
        """The one to this broker, if it is there and takes a request at once."""
        try:
            address = address_of(self._network.broker(self.node_id))
        except RequestError:
            return None
        connection = self._pool.open_connection(address)
        return connection if connection is not None and connection.is_drained else None

    def withdraw(self, queue: PartitionQueue) -> None:
        """This queue has another leader now."""
        self._offered.pop(queue, None)

    async def send_until_cancelled(self) -> None:
        """The sender's task."""
        while True:
            taken, wake_at = self._take(trio.current_time())
            if taken:
                await self._send(taken)
            else:
                self._sleeps = True
                try:
                    await self._signal.wait_until(wake_at)
                finally:
                    self._sleeps = False

    def _take(self, now: float) -> tuple[Taken, float]:
        """The batches for one request; without any, when to look again."""
        taken: Taken = {}
        wake_at = math.inf
        if self._requests_in_flight >= self._settings.in_flight_max:
            return taken, wake_at
        linger_seconds = 0.0 if self._is_flushing() else self._settings.linger_seconds
        batch_bytes_max = self._limits.room_bytes(self.node_id)
        room_bytes, entry_bytes = self._settings.request_bytes_max, 0
        if batch_bytes_max is not None:
            room_bytes, entry_bytes = min(room_bytes, batch_bytes_max), OVERHEAD_BYTES
        for queue in list(self._offered):
            due = queue.due(linger_seconds)
            if due is None:
                del self._offered[queue]
            elif due > now:
                wake_at = min(wake_at, due)
            elif not taken or queue.next_bytes <= room_bytes:
                next_bytes, batch = queue.next_bytes, queue.take()
                if batch_bytes_max is not None and batch.encoded_bytes > batch_bytes_max:
                    self._refuse(queue, batch, batch_bytes_max)
                    continue
                room_bytes -= next_bytes + entry_bytes
                taken[queue.topic, queue.partition] = (queue, batch)
                # To the end, so that the others come first in the next request.
                del self._offered[queue]
                if queue.has_more:
                    self._offered[queue] = None
        return taken, wake_at

    def _refuse(self, queue: PartitionQueue, batch: Batch, bytes_max: int) -> None:
        """As the broker would if it said why it closes a connection."""
        what = (
            f"its {batch.encoded_bytes} bytes are more than broker {self.node_id} takes at once"
            f" ({NAME}={bytes_max + OVERHEAD_BYTES}): make the record smaller, or raise that there"
        )
        self._answered(queue, batch, ErrorCode.MESSAGE_TOO_LARGE, what)

    async def _send(self, taken: Taken) -> None:
        """Send one request. Cancelled, its batches stay in flight: the producer is closing."""
        try:
            address = address_of(self._network.broker(self.node_id))
            connection = await self._pool.connection(address)
            await connection.wait_drained()
            # Their transaction may have been aborted meanwhile.
            taken = {at: each for at, each in taken.items() if each[1].outcome is None}
        except OSError as error:
            self._all_answered(taken, ErrorCode.NETWORK_EXCEPTION, str(error))
        except RequestError as error:
            self._all_answered(taken, error.code, error.message)
        else:
            if taken:
                self._send_on(connection, taken)

    def _send_on(self, connection: Connection, taken: Taken) -> None:
        """Send one request on a connection that is drained."""
        request = _request(taken, self._settings)
        size_bytes = sum(batch.encoded_bytes for _, batch in taken.values())
        try:
            if self._settings.acks == 0:
                connection.send_unanswered_now(request)
                for queue, batch in taken.values():
                    self._answered(queue, batch, ErrorCode.NONE)
                return
            reply = connection.send_now(request, ProduceResponse)
        except OSError as error:
            self._limits.lost(self.node_id, size_bytes)
            self._all_answered(taken, ErrorCode.NETWORK_EXCEPTION, str(error))
        except RequestError as error:
            self._all_answered(taken, error.code, error.message)
        except MalformedMessage as error:
            self._all_answered(taken, ErrorCode.UNSUPPORTED_VERSION, str(error))
        else:
            self._requests_in_flight += 1
            # Not a task for each request: that would be a fifth of what a small one costs.
            reply.then(partial(self._receive, taken, reply, size_bytes))

    def _receive(self, taken: Taken, reply: Reply[ProduceResponse], size_bytes: int) -> None:
        self._requests_in_flight -= 1
        if self._offered:
            self._signal.set()
        try:
            response = reply.result()
        except OSError as error:
            self._limits.lost(self.node_id, size_bytes)
            self._all_answered(taken, ErrorCode.NETWORK_EXCEPTION, str(error))
            return
        self._limits.answered(self.node_id, size_bytes)
        for topic in response.responses:
            for partition in topic.partition_responses:
                known = taken.pop((topic.name, partition.index), None)
                if known is not None:
                    is_led = self._learn_leader(topic.name, partition, response)
                    self._answered_by(*known, partition, is_led=is_led)
        self._all_answered(taken, ErrorCode.UNKNOWN_SERVER_ERROR, "left out of the answer")

    def _learn_leader(
        self, topic: str, answer: PartitionProduceResponse, response: ProduceResponse
    ) -> bool:
        """Whether a refusal says who leads instead, and nothing newer is known."""
        current = answer.current_leader
        for each in response.node_endpoints:
            if each.node_id == current.leader_id:
                leader = BrokerDescription(
                    node_id=NodeId(each.node_id), host=each.host, port=each.port, rack=each.rack
                )
                at = TopicPartition(topic, answer.index)
                return self._network.learn_leader(at, leader, Epoch(current.leader_epoch))
        return False

    def _answered_by(
        self,
        queue: PartitionQueue,
        batch: Batch,
        answer: PartitionProduceResponse,
        *,
        is_led: bool,
    ) -> None:
        message = answer.error_message
        if message is None and answer.record_errors:
            message = answer.record_errors[0].batch_index_error_message
        self._answered(
            queue,
            batch,
            error_code(answer.error_code),
            message,
            Offset(answer.base_offset),
            answer.log_append_time_ms,
            is_led=is_led,
        )

    def _all_answered(self, taken: Taken, code: ErrorCode, message: str | None) -> None:
        for queue, batch in taken.values():
            self._answered(queue, batch, code, message)

    def _answered(
        self,
        queue: PartitionQueue,
        batch: Batch,
        code: ErrorCode,
        message: str | None = None,
        base_offset: Offset = NO_OFFSET,
        append_time_ms: int = -1,
        *,
        is_led: bool = False,
    ) -> None:
        retry_at = 0.0
        # To a leader that is known by name it may go at once.
        if code is not ErrorCode.NONE and not is_led:
            backoff = self._network.settings.backoff
            pause = backoff.delay(batch.attempts - 1, self._network.random)
            now = trio.current_time()
            retry_at = now + pause
            if code in STALE_METADATA:
                self._retry_when_refreshed(queue, retry_at)
                # In case that nobody answers soon: this broker may well be the leader still.
                retry_at = now + max(pause, backoff.max_seconds)
        queue.answered(
            batch,
            code,
            base_offset=base_offset,
            append_time_ms=append_time_ms,
            message=message,
            retry_at=retry_at,
        )
        if code is not ErrorCode.NONE:
            # What comes back too late is not sent again: its time has run out.
            timeout_seconds = self._settings.delivery_timeout_seconds
            queue.expire(trio.current_time() - timeout_seconds, timeout_seconds)
        if queue.has_more:
            # Its leader may be another broker by now.
            self._offer_to_leader(queue)


def _request(taken: Taken, settings: SendSettings) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for (topic, partition), (_, batch) in taken.items():
        assert batch.data is not None
        topics.setdefault(topic, []).append(
            PartitionProduceData(index=partition, records=memoryview(batch.data))
        )
    return ProduceRequest(
        transactional_id=settings.transactional_id,
        acks=settings.acks,
        timeout_ms=settings.store_timeout_ms,
        topic_data=[
            TopicProduceData(name=name, partition_data=data) for name, data in topics.items()
        ],
    )
