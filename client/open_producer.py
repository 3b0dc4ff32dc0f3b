"""Making a producer: its identity, its way to the brokers, and the tasks that it needs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidemark.client.accumulator import BatchLimits, ProducerIdentity
from tidemark.client.background import open_background
from tidemark.client.codes import check
from tidemark.client.network import Network
from tidemark.client.partitioner import StickyPartitions
from tidemark.client.pool import open_pool
from tidemark.client.producer import Producer
from tidemark.client.producer_settings import ProducerSettings
from tidemark.client.routes import Routes
from tidemark.client.sender import SendSettings
from tidemark.client.transactions import TransactionCalls
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


@asynccontextmanager
async def open_producer(network: Network, settings: ProducerSettings) -> AsyncIterator[Producer]:
    """See `Client.producer`."""
    identity, transactions = None, None
    if settings.transactional_id is not None:
        timeout_ms = int(settings.transaction_timeout_seconds * 1000)
        transactions = TransactionCalls(network, settings.transactional_id, timeout_ms)
        identity = await transactions.take_over()
    else:
        identity = await _identify(network, settings)
    limits = BatchLimits(
        batch_bytes=settings.batch_bytes,
        in_flight_max=settings.max_in_flight,
        compression=settings.compression,
    )
    send_settings = SendSettings(
        acks=settings.acks,
        linger_seconds=settings.linger_seconds,
        request_bytes_max=settings.request_bytes_max,
        in_flight_max=settings.max_in_flight,
        # It answers that it could not before its connection is given up.
        store_timeout_ms=int(network.settings.request_timeout_seconds * 1000 / 2),
        delivery_timeout_seconds=settings.delivery_timeout_seconds,
        transactional_id=settings.transactional_id,
    )
    pool_of_its_own = open_pool(network.settings, network.bootstrap)
    async with pool_of_its_own as pool, open_background() as nursery:
        routes = Routes(network, pool, nursery, send_settings, limits, identity)
        sticky = StickyPartitions(network.random)
        producer = Producer(
            routes,
            settings,
            sticky,
            is_idempotent=identity is not None,
            transactions=transactions,
        )
        nursery.start_soon(routes.refresh_when_stale)
        nursery.start_soon(producer.expire_until_cancelled)
        with network.listening(routes.update), network.using(routes.used):
            try:
                yield producer
                await producer.flush()
            finally:
                producer.close()


async def _identify(network: Network, settings: ProducerSettings) -> ProducerIdentity | None:
    """Ask for a producer id, if this producer is to be idempotent."""
    if not settings.wants_identity:
        return None

    async def ask() -> ProducerIdentity:
        connection = await network.any_connection()
        # The transaction timeout means nothing without a transactional id, but must be positive.
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = await connection.request(request, InitProducerIdResponse)
        check(answer.error_code, "InitProducerId")
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    try:
        return await network.retrying(ask)
    except RequestError as error:
        if settings.idempotent is None and error.code is ErrorCode.UNSUPPORTED_VERSION:
            return None
        raise
