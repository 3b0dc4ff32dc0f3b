"""What those who ask for the metadata get: at the same time, and of brokers that hang."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
import trio
import trio.testing

from tests.client.scripted_peer import Peer, open_peer
from tidemark.client import ClientSettings
from tidemark.client.network import Network, open_network
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import metadata

NOTHING = metadata.MetadataResponse(brokers=[], controller_id=1, topics=[])


class Broker:
    """Holds each metadata request after the first until it is told whether to answer."""

    def __init__(self) -> None:
        self.asked = 0
        self._fates, self._told = trio.open_memory_channel[bool](10)

    def decide(self, *, answer: bool) -> None:
        self._fates.send_nowait(answer)

    async def serve(self, peer: Peer) -> None:
        await peer.greet()
        while True:
            header = await peer.request()
            self.asked += 1
            if self.asked > 1 and not await self._told.receive():
                return
            await peer.answer(header, NOTHING)


class Asker:
    """One who refreshes, and how it ended."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.scope = trio.CancelScope()
        self.outcome: str | OSError | None = None

    async def ask(self) -> None:
        with self.scope:
            try:
                await self.network.refresh()
                self.outcome = "learnt"
            except OSError as error:
                self.outcome = error


@asynccontextmanager
async def open_askers(count: int) -> AsyncIterator[tuple[Broker, list[Asker]]]:
    """The first is being answered; the others have asked since, in their order."""
    broker = Broker()
    with trio.fail_after(10):
        async with (
            open_peer(broker.serve) as address,
            open_network((address,), ClientSettings(), Random(1)) as network,
            trio.open_nursery() as nursery,
        ):
            askers = [Asker(network) for _ in range(count)]
            for asker in askers:
                nursery.start_soon(asker.ask)
                await trio.testing.wait_all_tasks_blocked(0.01)
            yield broker, askers


async def test_who_is_covered_by_a_refresh_that_fails_hears_so() -> None:
    async with open_askers(4) as (broker, askers):
        for _ in range(2):
            broker.decide(answer=False)
    first, *others = [asker.outcome for asker in askers]
    assert isinstance(first, ConnectionError)
    assert isinstance(others[0], ConnectionError)
    assert others[0] is not first  # it had begun before these asked
    assert others == [others[0]] * 3
    assert broker.asked == 1 + 2  # and nobody has tried for himself


async def test_those_who_ask_at_the_same_time_share_an_answer() -> None:
    async with open_askers(4) as (broker, askers):
        broker.decide(answer=False)
        broker.decide(answer=True)
    assert isinstance(askers[0].outcome, ConnectionError)
    assert [asker.outcome for asker in askers[1:]] == ["learnt"] * 3
    assert broker.asked == 1 + 2


async def test_a_refresh_that_is_cancelled_has_covered_nobody() -> None:
    async with open_askers(3) as (broker, askers):
        askers[0].scope.cancel()
        await trio.testing.wait_all_tasks_blocked(0.01)
        askers[1].scope.cancel()  # it has begun after the last one asked
        for _ in range(3):
            broker.decide(answer=True)
    assert [asker.outcome for asker in askers] == [None, None, "learnt"]
    assert broker.asked == 1 + 3


class Speaker:
    """Answers metadata requests, until it is silent."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_silent = False

    async def serve(self, peer: Peer) -> None:
        await peer.greet()
        while True:
            header = await peer.request()
            self.asked += 1
            if not self.is_silent:
                await peer.answer(header, NOTHING)


async def test_a_broker_that_hangs_is_left_for_another_and_asked_last() -> None:
    one, other = Speaker(), Speaker()
    settings = ClientSettings(request_timeout_seconds=10)
    async with (
        open_peer(one.serve) as first,
        open_peer(other.serve) as second,
        open_network((first, second), settings, Random(1)) as network,
    ):
        assert (one.asked, other.asked) == (1, 0)
        one.is_silent = True
        with trio.fail_after(8):
            await network.refresh()
            assert (one.asked, other.asked) == (2, 1)
            await network.refresh()
            assert (one.asked, other.asked) == (2, 2)


class Dying:
    """Closes the connection at the first request after the greeting."""

    async def serve(self, peer: Peer) -> None:
        await peer.greet()
        await peer.request()


async def test_a_broker_that_dies_when_it_is_asked_is_left_for_another() -> None:
    dying, other = Dying(), Speaker()
    async with (
        open_peer(dying.serve) as first,
        open_peer(other.serve) as second,
        open_network((first, second), ClientSettings(), Random(1)),
    ):
        assert other.asked == 1


async def test_where_all_die_each_is_named() -> None:
    async with open_peer(Dying().serve) as first, open_peer(Dying().serve) as second:
        with pytest.raises(ConnectionError) as caught:
            async with open_network((first, second), ClientSettings(), Random(1)):
                raise AssertionError("nobody answers")
        assert all(str(address) in str(caught.value) for address in (first, second))


async def test_the_last_that_can_be_asked_has_all_the_time_of_a_request() -> None:
    one = Speaker()
    settings = ClientSettings(request_timeout_seconds=1)
    async with (
        open_peer(one.serve) as address,
        open_network((address,), settings, Random(1)) as network,
    ):
        one.is_silent = True
        began = trio.current_time()
        with trio.fail_after(10), pytest.raises(ConnectionError, match="no answer within 1 s"):
            await network.refresh()
        assert trio.current_time() - began > 0.9


class Newcomer(Speaker):
    """Names the controller, which is itself, before it lists it."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[metadata.MetadataResponseBroker] = []

    async def serve(self, peer: Peer) -> None:
        await peer.greet()
        while True:
            header = await peer.request()
            self.asked += 1
            answer = metadata.MetadataResponse(brokers=self.listed, controller_id=1, topics=[])
            await peer.answer(header, answer)


async def test_a_controller_that_is_named_and_not_listed_is_looked_up_again() -> None:
    """As by Kafka's clients, to which it is no controller."""
    broker = Newcomer()
    async with (
        open_peer(broker.serve) as address,
        open_network((address,), ClientSettings(), Random(1)) as network,
    ):
        with trio.fail_after(10):
            with pytest.raises(RequestError) as failed:
                await network.controller()
            assert failed.value.code is ErrorCode.NOT_CONTROLLER
            assert broker.asked == 2
            broker.listed = [
                metadata.MetadataResponseBroker(node_id=1, host=address.host, port=address.port)
            ]
            connection = await network.retrying(network.controller)
            assert connection is await network.any_connection()
            assert broker.asked == 3
