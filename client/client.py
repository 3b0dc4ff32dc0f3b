"""A client of one cluster: see `open_client`."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Final, Literal

from trio.lowlevel import in_trio_run

from tidemark.client.addresses import parse_bootstrap
from tidemark.client.admin import Admin
from tidemark.client.consumer import Consumer
from tidemark.client.consumer_settings import ConsumerSettings
from tidemark.client.fetcher import FetchSettings
from tidemark.client.group_settings import GroupSettings, Rebalanced
from tidemark.client.limits import INT32_MAX
from tidemark.client.network import Network, open_network
from tidemark.client.offsets import Beginning, End, Isolation, Start, as_isolation, as_start
from tidemark.client.open_consumer import open_consumer
from tidemark.client.open_producer import open_producer
from tidemark.client.partitioner import Partitioner, murmur2_partition
from tidemark.client.producer import Producer
from tidemark.client.producer_settings import ProducerSettings, as_compression
from tidemark.client.read_levels import ReadLevel
from tidemark.client.read_levels import read_level as level_of
from tidemark.client.settings import ClientSettings
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.types import TopicPartition


class Client:
    """Connections to one cluster and what it is known to consist of; made by `open_client`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.admin = Admin(network)

    def producer(
        self,
        *,
        acks: Literal["all", 0, 1, -1] = "all",
        idempotent: bool | None = None,
        compression: Compression | str = Compression.NONE,
        linger_ms: float = 0,
        batch_bytes: int = 16 * 1024,
        request_bytes_max: int = 1024 * 1024,
        buffer_bytes: int = 32 * 1024 * 1024,
        max_in_flight: int = 5,
        delivery_timeout_seconds: float = 120.0,
        partitioner: Partitioner = murmur2_partition,
        transactional_id: str | None = None,
        transaction_timeout_seconds: float = 60.0,
    ) -> AbstractAsyncContextManager[Producer]:
        """A producer for as long as the block; leaving the block flushes, an error in it does not.

        `compression` is "none", "gzip", "snappy", "lz4" or "zstd", or a `Compression`.
        `idempotent` None means: as `acks` allows, and only "all" does. `partitioner` places records
        that have a key and no explicit partition; those without a key go to one partition until
        its batch is full, then to another. `linger_ms` is how long a batch waits for company while
        nothing else holds it back. Per partition, records are stored in the order of `send`; with
        `idempotent=False` and more than one request in flight a retry may change the order.

        With a `transactional_id` it sends within `async with producer.transaction():`, and fences
        whoever had that id before. A transaction that is open for longer than
        `transaction_timeout_seconds` is aborted by the broker.
        """
        return open_producer(
            self._network,
            ProducerSettings(
                acks=-1 if acks == "all" else acks,
                idempotent=idempotent,
                compression=as_compression(compression),
                linger_seconds=_seconds("linger_ms", linger_ms),
                batch_bytes=batch_bytes,
                request_bytes_max=request_bytes_max,
                buffer_bytes=buffer_bytes,
                max_in_flight=max_in_flight,
                delivery_timeout_seconds=delivery_timeout_seconds,
                partitioner=partitioner,
                transactional_id=transactional_id,
                transaction_timeout_seconds=transaction_timeout_seconds,
            ),
        )

    def consumer(
        self,
        what: str | TopicPartition | Iterable[str | TopicPartition],
        *,
        group: str | None = None,
        instance_id: str | None = None,
        start: Start | str | int | Mapping[TopicPartition, Start | str | int] = "beginning",
        out_of_range: Literal["error", "beginning", "end"] = "error",
        until_end: bool = False,
        isolation: Isolation | str = Isolation.READ_UNCOMMITTED,
        read_level: ReadLevel | str | None = None,
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

        With `isolation` "read_committed", records of transactions are read once these are
        committed, and never if they are aborted.

        `out_of_range` says what to do when a position has been deleted or does not exist (yet).
        `until_end` notes where each partition ends when it is first read and ends the iteration
        there. `auto_commit_seconds` None leaves commits to the caller; otherwise they are made in
        the background, at a rebalance and at the end of the block. `on_assigned` and `on_revoked`
        run in the background, too; heartbeats wait for them, and what they raise ends the block.

        `read_level` is "committed", "strict", "two-step" or "replica": see `ReadLevel`. Without it,
        a client with a rack reads from replicas near it, any other from the leaders. With "strict"
        and "two-step", `until_end` and `end_offsets` mean all that was committed by anybody when
        they were asked for, and reading fails with the reason while no majority can say what that
        is.
        """
        topics, partitions = _split(what)
        same = as_start("beginning" if isinstance(start, Mapping) else start)
        each = start if isinstance(start, Mapping) else {}
        for key in each:
            if not isinstance(key, TopicPartition):
                raise TypeError(f"start is by TopicPartition, not by {key!r}")
        if isinstance(assignors, str):
            raise TypeError(f"assignors are names in a list, as [{assignors!r}]")
        if instance_id is not None and group is None:
            raise ValueError("instance_id is a member's: say of which group")
        return open_consumer(
            self._network,
            ConsumerSettings(
                topics=topics,
                partitions=partitions,
                start=same,
                starts={tp: as_start(value) for tp, value in each.items()},
                until_end=until_end,
                fetch=FetchSettings(
                    min_bytes=fetch_min_bytes,
                    max_wait_ms=fetch_max_wait_ms,
                    fetch_bytes=fetch_bytes,
                    partition_bytes=partition_bytes,
                    prefetch_bytes=prefetch_bytes,
                    isolation=as_isolation(isolation),
                    reset=_reset(out_of_range),
                    level=level_of(read_level, self._network.settings.rack),
                    rack=self._network.settings.rack,
                ),
                group=None
                if group is None
                else GroupSettings(
                    group=group,
                    instance_id=instance_id,
                    assignors=tuple(assignors),
                    session_timeout_seconds=session_timeout_seconds,
                    rebalance_timeout_seconds=rebalance_timeout_seconds,
                    heartbeat_seconds=heartbeat_seconds,
                ),
                auto_commit_seconds=auto_commit_seconds,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
            ),
        )


def _seconds(name: str, value_ms: float) -> float:
    if not isinstance(value_ms, int | float):
        raise TypeError(f"{name} is a number of milliseconds, not {value_ms!r}")
    if not 0 <= value_ms <= INT32_MAX:  # which NaN is not, either
        raise ValueError(f"{name} is from 0 to {INT32_MAX}, not {value_ms}")
    return value_ms / 1000


_RESETS: Final[Mapping[str, Start | None]] = {
    "error": None,
    "beginning": Beginning(),
    "end": End(),
}


def _reset(out_of_range: str) -> Start | None:
    """Where to go on when a position is out of range; None raises."""
    if out_of_range not in _RESETS:
        raise ValueError(f'out_of_range is "error", "beginning" or "end", not {out_of_range!r}')
    return _RESETS[out_of_range]


def _split(
    what: str | TopicPartition | Iterable[str | TopicPartition],
) -> tuple[tuple[str, ...], tuple[TopicPartition, ...]]:
    """The topics and the partitions in what is to be read. Raises `TypeError` for anything else."""
    if not isinstance(what, str | TopicPartition | Iterable):
        raise TypeError(f"what is read is a topic's name or a TopicPartition, not {what!r}")
    items = [what] if isinstance(what, str | TopicPartition) else list(dict.fromkeys(what))
    for item in items:
        if not isinstance(item, str | TopicPartition):
            raise TypeError(f"what is read is a topic's name or a TopicPartition, not {item!r}")
        if isinstance(item, TopicPartition) and not isinstance(item.partition, int):
            raise TypeError(f"a partition is a whole number, not {item.partition!r}")
    return (
        tuple(item for item in items if isinstance(item, str)),
        tuple(item for item in items if isinstance(item, TopicPartition)),
    )


@asynccontextmanager
async def open_client(
    bootstrap: str | Sequence[str],
    *,
    settings: ClientSettings | None = None,
    client_id: str | None = None,
    rack: str | None = None,
) -> AsyncIterator[Client]:
    """A client of the cluster that these brokers belong to, for as long as the block.

    `bootstrap` is "host:port", several with commas or as a list; the port may be left out (9092).
    Connects to the first that answers and learns the others from it. Raises `OSError` with one line
    that names every address if none does, `ConfigError` if one is not an address, `RuntimeError`
    outside of trio. Errors that the block raises leave it as they are, not in an exception group.
    """
    if not in_trio_run():
        raise RuntimeError(
            "this client runs under trio: use tidemark.client.blocking.open_client elsewhere"
        )
    settings = ClientSettings() if settings is None else settings
    if not isinstance(settings, ClientSettings):
        raise TypeError(f"settings are ClientSettings, not {settings!r}")
    if client_id is not None:
        settings = replace(settings, client_id=client_id)
    if rack is not None:
        settings = replace(settings, rack=rack)
    async with open_network(parse_bootstrap(bootstrap), settings, Random()) as network:
        yield Client(network)
