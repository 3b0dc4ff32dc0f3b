"""A client of one cluster: see `open_client`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal

from tidemark.client.admin import Admin
from tidemark.client.consumer import Consumer
from tidemark.client.offsets import Isolation, Start
from tidemark.client.partitioner import Partitioner, murmur2_partition
from tidemark.client.producer import Producer
from tidemark.client.settings import ClientSettings
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.types import TopicPartition

Rebalanced = Callable[[frozenset[TopicPartition]], Awaitable[None]]
"""Called with the partitions that a rebalance gave or takes away."""


class Client:
    """Connections to one cluster and what it is known to consist of; made by `open_client`."""

    admin: Admin

    def producer(
        self,
        *,
        acks: Literal["all", 0, 1, -1] = "all",
        idempotent: bool | None = None,
        compression: Compression = Compression.NONE,
        linger_ms: float = 0,
        batch_bytes: int = 16 * 1024,
        request_bytes_max: int = 1024 * 1024,
        buffer_bytes: int = 32 * 1024 * 1024,
        max_in_flight: int = 5,
        delivery_timeout_seconds: float = 120.0,
        partitioner: Partitioner = murmur2_partition,
    ) -> AbstractAsyncContextManager[Producer]:
        """A producer for as long as the block; leaving the block flushes, an error in it does not.

        `idempotent` None means: as `acks` allows, and only "all" does. `partitioner` places records
        that have a key and no explicit partition; those without a key go to one partition until
        its batch is full, then to another. `linger_ms` is how long a batch waits for company while
        nothing else holds it back. Per partition, records are stored in the order of `send`; with
        `idempotent=False` and more than one request in flight a retry may change the order.
        """
        raise NotImplementedError

    def consumer(
        self,
        what: str | TopicPartition | Iterable[str | TopicPartition],
        *,
        group: str | None = None,
        instance_id: str | None = None,
        start: Start | str | int | Mapping[TopicPartition, Start | str | int] = "beginning",
        out_of_range: Literal["error", "beginning", "end"] = "error",
        until_end: bool = False,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        fetch_min_bytes: int = 1,
        fetch_max_wait_ms: int = 500,
        fetch_bytes: int = 50 * 1024 * 1024,
        partition_bytes: int = 1024 * 1024,
        prefetch_bytes: int = 16 * 1024 * 1024,
        auto_commit_seconds: float | None = 5.0,
        assignors: Sequence[str] = ("range", "roundrobin"),
        session_timeout_seconds: float = 45.0,
        rebalance_timeout_seconds: float = 60.0,
        heartbeat_seconds: float = 3.0,
        on_assigned: Rebalanced | None = None,
        on_revoked: Rebalanced | None = None,
    ) -> AbstractAsyncContextManager[Consumer]:
        """A consumer for as long as the block.

        `what` is topics, or partitions of topics, not both. With a `group`, topics are shared with
        its other members and reading begins at the group's commit; `start` holds where there is
        none. Partitions with a group are read without sharing, and the group only keeps commits.

        `out_of_range` says what to do when a position has been deleted or does not exist (yet).
        `until_end` notes where each partition ends when it is first read and ends the iteration
        there. `auto_commit_seconds` None leaves commits to the caller; otherwise they are made in
        the background, at a rebalance and at the end of the block.
        """
        raise NotImplementedError


@asynccontextmanager
async def open_client(
    bootstrap: str | Sequence[str],
    *,
    settings: ClientSettings | None = None,
    client_id: str | None = None,
) -> AsyncIterator[Client]:
    """A client of the cluster that these brokers belong to, for as long as the block.

    `bootstrap` is "host:port", several with commas or as a list; the port may be left out (9092).
    Connects to the first that answers and learns the others from it. Raises `OSError` with one line
    that names every address if none does, `ValueError` if one is not an address. Errors that the
    block raises leave it as they are, not in an exception group.
    """
    raise NotImplementedError
    yield Client()
