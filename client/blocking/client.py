"""The trio client from a thread; see the package for what it is for."""

import queue
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar, Unpack

import trio

from tidemark.client.admin import Admin
from tidemark.client.blocking.consumer import BlockingConsumer
from tidemark.client.blocking.portal import Portal
from tidemark.client.blocking.producer import BlockingProducer
from tidemark.client.client import Client
from tidemark.client.client import open_client as open_trio_client
from tidemark.client.options import ConsumerOptions, ProducerOptions
from tidemark.client.settings import ClientSettings
from tidemark.protocol.types import TopicPartition

P = ParamSpec("P")
T = TypeVar("T")


class BlockingClient:
    """Made by `open_client`. `admin` is the trio client's, for `run`:

    `client.run(client.admin.create_topic, "greetings", partitions=3)`
    """

    def __init__(self, client: Client, portal: Portal) -> None:
        self._client = client
        self._portal = portal

    @property
    def admin(self) -> Admin:
        return self._client.admin

    def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something of the trio client, and wait for what it returns or raises."""
        return self._portal.run(function, *args, **kwargs)

    @contextmanager
    def producer(self, **settings: Unpack[ProducerOptions]) -> Iterator[BlockingProducer]:
        """As `Client.producer`."""
        with self._portal.entered(self._client.producer(**settings)) as producer:
            yield BlockingProducer(producer, self._portal)

    @contextmanager
    def consumer(
        self,
        what: str | TopicPartition | Iterable[str | TopicPartition],
        **settings: Unpack[ConsumerOptions],
    ) -> Iterator[BlockingConsumer]:
        """As `Client.consumer`."""
        with self._portal.entered(self._client.consumer(what, **settings)) as consumer:
            blocking = BlockingConsumer(consumer, self._portal)
            try:
                yield blocking
            finally:
                blocking.take_back()


@contextmanager
def open_client(
    bootstrap: str | Sequence[str],
    *,
    settings: ClientSettings | None = None,
    client_id: str | None = None,
    rack: str | None = None,
) -> Iterator[BlockingClient]:
    """As `tidemark.client.open_client`, run in a thread of its own for as long as the block."""
    begun: queue.SimpleQueue[trio.lowlevel.TrioToken] = queue.SimpleQueue()
    opened: queue.SimpleQueue[tuple[Client, Portal] | BaseException] = queue.SimpleQueue()
    whole, stop = trio.CancelScope(), trio.Event()

    async def main() -> None:
        token = trio.lowlevel.current_trio_token()
        begun.put(token)
        with whole:
            async with (
                open_trio_client(
                    bootstrap, settings=settings, client_id=client_id, rack=rack
                ) as client,
                trio.open_nursery() as nursery,
            ):
                opened.put((client, Portal(token, nursery)))
                await stop.wait()

    def run() -> None:
        try:
            trio.run(main)
        except BaseException as error:
            opened.put(error)

    thread = threading.Thread(target=run, name="tidemark-client", daemon=True)
    thread.start()
    try:
        result = opened.get()
    except BaseException:  # Ctrl-C: else it would go on for nobody
        with suppress(trio.RunFinishedError):
            begun.get().run_sync_soon(whole.cancel)
        thread.join()
        raise
    if isinstance(result, BaseException):
        thread.join()
        raise result
    client, portal = result
    try:
        yield BlockingClient(client, portal)
    finally:
        portal.run_sync(stop.set)
        thread.join()
