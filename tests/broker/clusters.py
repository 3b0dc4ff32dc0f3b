"""Clusters of brokers with real sockets, in one trio run, for tests of what they know together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from tidemark.broker.config import Address, BrokerSettings
from tidemark.broker.config.addresses import Endpoint
from tidemark.broker.node import Node
from tidemark.broker.peers import PeerNetwork
from tidemark.broker.server import RunningBroker, open_broker


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

    async def stop(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number][0].set()
        for number in numbers:
            await self._ends[number][1].wait()


@asynccontextmanager
async def open_brokers(
    data_dir: Path, count: int, **given: Any
) -> AsyncIterator[Brokers]:  # Any: any setting
    """So many brokers, numbered from 1; the first one has founded their cluster."""
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(trio.open_nursery())
        brokers = Brokers(data_dir, tasks, given)
        for number in range(1, count + 1):
            await brokers.start(number)
        yield brokers
        await brokers.stop(*brokers._running)
        tasks.cancel_scope.cancel()


async def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """For what becomes true by itself, and tells nobody."""
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.01)
