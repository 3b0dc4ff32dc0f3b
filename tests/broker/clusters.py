"""Clusters of brokers with real sockets, in one trio run, for tests of what they know together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import trio

from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.config.addresses import Endpoint
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.broker.peers import PeerNetwork
from tidemark.broker.server import RunningBroker, open_broker
from tidemark.partitions.state_machines.cluster_brokers import voter_count
from tidemark.protocol.errors import ErrorCode, RequestError

T = TypeVar("T")

SECONDS_MAX: Final = 40.0
"""For what takes a moment, on a machine that has much else to do."""


class Brokers:
    """Some brokers, by number; each can be stopped, and started again on its directory."""

    def __init__(self, data_dir: Path, tasks: trio.Nursery, given: dict[str, Any]) -> None:
        self._data_dir = data_dir
        self._tasks = tasks
        self._given = given
        self._running: dict[int, RunningBroker] = {}
        self._ends: dict[int, tuple[trio.Event, trio.Event]] = {}
        self._addresses: dict[int, tuple[Address, Address]] = {}

    def __getitem__(self, number: int) -> Node:
        return self._running[number].node

    @property
    def nodes(self) -> list[Node]:
        return [broker.node for broker in self._running.values()]

    def peers(self, number: int) -> PeerNetwork:
        """One broker's connections to the others, to be cut and healed."""
        return self._running[number].peers

    def peer_address(self, number: int) -> Address:
        return self._addresses[number][1]

    def settings(self, number: int, **given: Any) -> BrokerSettings:  # Any: any setting
        anywhere = Address("127.0.0.1", 0)
        kafka, peers = self._addresses.get(number, (anywhere, anywhere))
        others = [address for other, (_, address) in self._addresses.items() if other != number]
        return attrs.evolve(
            BrokerSettings(data_dir=self._data_dir / str(number)),
            **{
                "node_id": number,
                "listeners": (Endpoint("PLAINTEXT", kafka, is_named=False),),
                "peer_listen": peers,
                "http_listen": None,
                "join": tuple(others[:1]),
                **self._given,
                **given,
            },
        )

    async def start(self, number: int, **given: Any) -> None:  # Any: any setting
        await self._tasks.start(self._run, number, self.settings(number, **given))

    async def _run(
        self, number: int, settings: BrokerSettings, *, task_status: trio.TaskStatus[None]
    ) -> None:
        stop, stopped = self._ends[number] = trio.Event(), trio.Event()
        try:
            async with open_broker(settings) as broker:
                self._running[number] = broker
                self._addresses[number] = (broker.kafka_address, broker.peer_address)
                task_status.started()
                await stop.wait()
                del self._running[number]
        finally:
            stopped.set()

    async def create(self, topic: NewTopic) -> None:
        """Have whoever leads the metadata make a topic; who that is may change meanwhile."""

        async def ask() -> None:
            controller = next((node for node in self.nodes if node.controller.is_here), None)
            if controller is None:
                raise RequestError(ErrorCode.NOT_CONTROLLER, "nobody leads the metadata now")
            await controller.topics.create(topic)

        await insist(ask)

    async def delete(self, name: str) -> None:
        """The same for the end of a topic, if there is one."""

        async def ask() -> None:
            controller = next((node for node in self.nodes if node.controller.is_here), None)
            if controller is None:
                raise RequestError(ErrorCode.NOT_CONTROLLER, "nobody leads the metadata now")
            topic = controller.topics.get(name)
            if topic is not None:
                await controller.topics.delete(topic)

        await insist(ask)

    @property
    def is_complete(self) -> bool:
        """Whether all know all, and any of them may go: enough of them vote on the metadata."""
        known = all(node.cluster.state.brokers.keys() >= self._ends.keys() for node in self.nodes)
        quorums = [node.brokers.quorum(CLUSTER_KEY) for node in self.nodes]
        quorum = max((each for each in quorums if each), key=lambda each: each.epoch, default=None)
        return (
            known
            and quorum is not None
            and len(quorum.voters) == voter_count(len(self._ends))
            and all(each.is_caught_up for each in (*quorum.voters, *quorum.learners))
        )

    async def stop(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number][0].set()
        for number in numbers:
            await self._ends[number][1].wait()


@asynccontextmanager
async def open_brokers(
    data_dir: Path, count: int, **given: Any
) -> AsyncIterator[Brokers]:  # Any: any setting
    """So many brokers that know each other, numbered from 1; the first has founded their cluster.

    As many of them vote on the metadata as will: at first a cluster stands on one broker alone, and
    cannot do without that one.
    """
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(trio.open_nursery())
        brokers = Brokers(data_dir, tasks, given)
        for number in range(1, count + 1):
            await brokers.start(number)
        await wait_until(lambda: brokers.is_complete)
        yield brokers
        await brokers.stop(*brokers._running)
        tasks.cancel_scope.cancel()


async def wait_until(condition: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
    """For what becomes true by itself, and tells nobody."""
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.01)


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """What comes of it, called again as long as the error is one after which clients try again."""
    with trio.fail_after(SECONDS_MAX):
        while True:
            try:
                return await call()
            except RequestError as error:
                if not error.retriable:
                    raise
            await trio.sleep(0.02)
