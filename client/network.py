"""A cluster as a client uses it: what it consists of, a connection to whom one wants, and retries.

Everything above (admin, producer, consumer, groups) asks here who leads what, and comes back with
the errors that say that the answer was out of date.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from random import Random
from typing import TypeVar

import trio

from tidemark.client.addresses import Address
from tidemark.client.any_broker import AnyBroker
from tidemark.client.background import open_background
from tidemark.client.cluster import ClusterView
from tidemark.client.codes import failed
from tidemark.client.connection import Connection
from tidemark.client.descriptions import BrokerDescription, TopicDescription
from tidemark.client.limits import require_topic
from tidemark.client.pool import Pool, open_pool
from tidemark.client.retries import LOST_BROKER, STALE_METADATA, may_pass
from tidemark.client.settings import ClientSettings
from tidemark.client.used_topics import UsedTopics
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidemark.protocol.types import Epoch, NodeId, TopicPartition

T = TypeVar("T")


class Network:
    """See the module; made by `open_network`."""

    def __init__(
        self, pool: Pool, bootstrap: tuple[Address, ...], settings: ClientSettings, random: Random
    ) -> None:
        self.settings = settings
        self.bootstrap = bootstrap
        self.random = random
        self.view = ClusterView()
        self.pool = pool
        self._any = AnyBroker(pool, bootstrap, settings.request_timeout_seconds, random)
        self._used_topics = UsedTopics(settings.metadata_max_idle_seconds)
        self._listeners: list[Callable[[], None]] = []
        self._refreshing = trio.Lock()
        # Those that have begun; which one has ended last, and how. One that was cancelled has not.
        self._refreshes = self._refreshed = 0
        self._failure: OSError | RequestError | None = None

    # What the cluster consists of

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        """Ask for the metadata anew: brokers, all topics that are in use, and these.

        Those who ask at the same time share one request, and its failure: nobody waits once more
        for brokers that do not answer. Raises `OSError` if none does.
        """
        self._used_topics.asked(topics, trio.current_time())
        asked_at = self._refreshes
        async with self._refreshing:
            if self._refreshed <= asked_at:  # else one that began later than this has covered it
                self._refreshes += 1
                self._failure = await self._refresh()
                self._refreshed = self._refreshes
            if self._failure is not None:
                raise self._failure

    async def _refresh(self) -> OSError | RequestError | None:
        """Ask once; the error, where that fails."""
        try:
            names = self._used_topics.names(trio.current_time())
            self.view = self.view.of(names)
            self._learn(await self.ask_metadata(names, may_create=False))
        except (OSError, RequestError) as error:
            return error
        return None

    async def try_refresh(self, topics: Iterable[str] = ()) -> None:
        """As `refresh`, where not getting any now is not an error."""
        with suppress(OSError, RequestError):
            await self.refresh(topics)

    async def refresh_until_cancelled(self) -> None:
        """Keep the metadata no older than it may be; the network's own task."""
        while True:
            await trio.sleep(self.settings.metadata_max_age_seconds)
            await self.try_refresh()

    async def ask_metadata(
        self, topics: Collection[str] | None, *, may_create: bool
    ) -> MetadataResponse:
        """What any broker says; None asks for all topics."""
        names = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]

        async def ask(connection: Connection) -> tuple[MetadataResponse, int]:
            version = connection.version(MetadataRequest)
            # Older versions cannot say no; the default is what they can say.
            creates = may_create or version < 4
            request = MetadataRequest(topics=names, allow_auto_topic_creation=creates)
            return await connection.request(request, MetadataResponse), version

        address, (answer, version) = await self._any.ask(self._known, ask)
        if answer.controller_id < 0 and version >= 1:
            self._any.doubted = address
        elif address == self._any.doubted:
            self._any.doubted = None
        return answer

    def _learn(self, answer: MetadataResponse) -> None:
        self._see(self.view.updated(answer))

    def learn_leader(
        self, topic_partition: TopicPartition, leader: BrokerDescription, epoch: Epoch
    ) -> bool:
        """Believe a broker that says who leads a partition instead of it, unless something newer
        is known; whether that one is the leader now, as far as is known."""
        view = self.view.led_by(topic_partition, leader, epoch)
        if view is not self.view:
            self._see(view)
        known = self.view.partition(topic_partition)
        return known is not None and (known.leader, known.leader_epoch) == (leader.node_id, epoch)

    def _see(self, view: ClusterView) -> None:
        self.view = view
        for listener in self._listeners:
            listener()

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call `listener` whenever the view has changed, for as long as the block."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def using(self, topics: Callable[[], Iterable[str]]) -> AbstractContextManager[None]:
        """Keep the metadata of whatever `topics` gives, for as long as the block. Others are
        forgotten, `metadata_max_idle_seconds` after they were asked about."""
        return self._used_topics.using(topics)

    async def topic(self, name: str, *, may_create: bool = False) -> TopicDescription:
        """A topic all of whose partitions are known, from the view or from the cluster.

        Waits a little for a topic that is unknown, because a topic that was just created is for a
        moment, and as long as other retries for one that has no leaders yet. Raises `RequestError`.
        """
        known = self.view.topics.get(name)
        if known is not None:
            self._used_topics.asked([name], trio.current_time())
            return known
        require_topic(name)
        patience = trio.current_time() + self.settings.unknown_topic_seconds

        async def look() -> TopicDescription:
            self._learn(await self.ask_metadata([name], may_create=may_create))
            found = self.view.topics.get(name)
            if found is not None:
                # Not before: it would be asked for with all others, whatever it is.
                self._used_topics.asked([name], trio.current_time())
                return found
            code = self.view.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            is_unknown = code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            error = failed(code, f"topic {name}")
            if is_unknown and trio.current_time() > patience:
                raise _Final(error)
            raise error

        return await self.retrying(look)

    def forget(self, topic: str) -> None:
        """Believe nothing of a topic that has just been created or deleted."""
        self._used_topics.forget(topic)
        self.view = self.view.without(topic)

    # Connections

    async def any_connection(self) -> Connection:
        """To some broker, preferably one that is connected; `OSError` names all that failed."""
        _, connection = await self._any.connect(self._known)
        return connection

    async def ask_any(self, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """What `ask` gets of whichever broker answers; one that hangs is left for another. So it is
        to be something that may be asked twice. `OSError` names all that failed."""
        _, answer = await self._any.ask(self._known, ask)
        return answer

    @property
    def _known(self) -> list[Address]:
        return [address_of(broker) for broker in self.view.brokers.values()]

    def broker(self, node_id: NodeId) -> BrokerDescription:
        """A broker of the view; BROKER_NOT_AVAILABLE if it is not in it."""
        broker = self.view.brokers.get(node_id)
        if broker is None:
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, f"no broker {node_id} is up")
        return broker

    def leader(self, topic_partition: TopicPartition) -> BrokerDescription:
        """Who leads a partition; retriable `RequestError` while that is not known."""
        if self.view.partition(topic_partition) is None:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic_partition}"
            )
        leader = self.view.leader(topic_partition)
        if leader is None:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic_partition} has no leader")
        return leader

    async def connection_to(self, node_id: NodeId) -> Connection:
        """To one broker, for requests that are answered at once."""
        return await self.pool.connection(address_of(self.broker(node_id)))

    async def controller(self) -> Connection:
        """To the controller, as last heard; NOT_CONTROLLER while it is not known where that is."""
        if self.view.controller is None:
            await self.refresh()
        controller = self.view.controller
        if controller is None:
            raise RequestError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return await self.pool.connection(address_of(controller))

    # Retries

    async def retrying(
        self, attempt: Callable[[], Awaitable[T]], *, final: Collection[ErrorCode] = ()
    ) -> T:
        """What `attempt` returns, as soon as it does.

        It is tried again with growing pauses while what it raises may pass, is not in `final`, and
        `retry_timeout_seconds` have not run out. Then the last error goes out.
        """
        deadline = trio.current_time() + self.settings.retry_timeout_seconds
        for pause in self.settings.backoff.delays(self.random):
            try:
                return await attempt()
            except _Final as error:
                raise error.reason from None
            except (OSError, RequestError) as error:
                if not may_pass(error) or trio.current_time() + pause > deadline:
                    raise
                if isinstance(error, RequestError) and error.code in final:
                    raise
                failure = error
            await trio.sleep(pause)
            await self.heed(failure)
        raise AssertionError("the delays have no end")

    async def heed(self, error: OSError | RequestError) -> None:
        """Refresh the metadata if that is what the error calls for; failing to is no error here."""
        if isinstance(error, OSError) or error.code in STALE_METADATA | LOST_BROKER:
            await self.try_refresh()


class _Final(Exception):
    """A retriable error that is not to be retried any more."""

    def __init__(self, reason: RequestError) -> None:
        super().__init__(reason)
        self.reason = reason


def address_of(broker: BrokerDescription) -> Address:
    return Address(broker.host, broker.port)


@asynccontextmanager
async def open_network(
    bootstrap: tuple[Address, ...], settings: ClientSettings, random: Random
) -> AsyncIterator[Network]:
    """Connect to the first bootstrap address that answers, and learn the brokers from it."""
    async with open_pool(settings, bootstrap) as pool, open_background() as nursery:
        network = Network(pool, bootstrap, settings, random)
        await network.refresh()
        nursery.start_soon(network.refresh_until_cancelled)
        yield network
